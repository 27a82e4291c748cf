"""Tests of the rules."""

import json
import unittest

from rules import ConfigError, Otherwise, Router, Target


def decide(rules, payload, **more):
    return Router(json.dumps({"rules": rules, **more})).decide(json.dumps(payload).encode())


class Decisions(unittest.TestCase):
    def test_the_first_rule_that_fits_decides(self):
        rules = [
            {"field": "order.total", "at_least": 1000, "topic": "large"},
            {"field": "order.total", "at_least": 100, "below": 1000, "topic": "medium"},
            {"field": "order.country", "one_of": ["DE", "AT"], "stream": "dach", "partition": 1},
            {"field": "sku", "matches": "[A-Z]{2}-[0-9]+", "topic": "catalogue"},
            {"field": "test", "equals": True, "topic": "tests"},
        ]
        for payload, expected in [
            ({"order": {"total": 1000, "country": "DE"}}, Target(topic="large")),
            ({"order": {"total": 999.5, "country": "DE"}}, Target(topic="medium")),
            ({"order": {"total": 1, "country": "AT"}}, Target(stream="dach", partition=1)),
            ({"sku": "AB-12"}, Target(topic="catalogue")),
            ({"test": True}, Target(topic="tests")),
        ]:
            self.assertEqual(decide(rules, payload), expected)
        for payload in [{}, [], 7, {"order": 7}, {"sku": "AB-12x"}, {"sku": 12}, {"test": 1}]:
            self.assertEqual(decide(rules, payload).kind, "forward", payload)

    def test_values_of_another_kind_do_not_fit(self):
        rules = [{"field": "a", "at_least": 1, "topic": "t"}]
        for value in ["2", True, None, [2], {"a": 2}]:
            self.assertIsInstance(decide(rules, {"a": value}), Otherwise, value)

    def test_other_messages_are_forwarded_dropped_or_rejected(self):
        rules = [{"field": "a", "equals": 1, "topic": "t"}]
        for kind in ["forward", "drop", "reject"]:
            decision = decide(rules, {"a": 2}, otherwise=kind)
            self.assertEqual(decision, Otherwise(kind, "no rule fits its payload"))

    def test_what_is_not_json_fits_no_rule(self):
        router = Router('{"rules":[{"field":"a","equals":1,"topic":"t"}],"otherwise":"reject"}')
        for payload in [b"", b"plain", b"\xff", b"[" * 100_000]:
            decision = router.decide(payload)
            self.assertEqual(decision.kind, "reject")
            self.assertTrue(decision.reason.startswith("the payload is not JSON: "))


class Errors(unittest.TestCase):
    def test_errors_name_the_key(self):
        rule = {"field": "a", "equals": 1, "topic": "t"}
        for config, expected in [
            ({}, "config.rules: give at least one rule"),
            ({"rules": []}, "config.rules: give at least one rule"),
            ({"rulez": [rule]}, "config: unknown key rulez"),
            ({"rules": [rule], "otherwise": "stop"}, 'config.otherwise: is "stop"'),
            ({"rules": [rule, 7]}, "config.rules[1]: is not a table"),
            ({"rules": [rule | {"above": 1}]}, "config.rules[0]: unknown key above"),
            ({"rules": [rule | {"field": "a..b"}]}, "config.rules[0].field: "),
            ({"rules": [rule | {"one_of": []}]}, "config.rules[0].one_of: is []"),
            ({"rules": [rule | {"below": "1"}]}, 'config.rules[0].below: is "1"'),
            ({"rules": [rule | {"matches": "("}]}, "config.rules[0].matches: "),
            ({"rules": [rule | {"topic": ""}]}, "config.rules[0].topic: "),
            ({"rules": [rule | {"partition": -1}]}, "config.rules[0].partition: "),
            ({"rules": [{"field": "a", "topic": "t"}]}, "config.rules[0]: has no condition"),
            ({"rules": [{"field": "a", "equals": 1}]}, "config.rules[0]: names no destination"),
        ]:
            with self.assertRaises(ConfigError) as caught:
                Router(json.dumps(config))
            self.assertTrue(str(caught.exception).startswith(expected), caught.exception)


if __name__ == "__main__":
    unittest.main()
