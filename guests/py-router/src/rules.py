"""The rules of the router, without anything of the component around them."""

import json
import re
from dataclasses import dataclass
from typing import Any, Callable, Optional, Union

MISSING = object()

TARGET_KEYS = ("stream", "topic", "partition")


class ConfigError(Exception):
    """The `config` table is wrong; the text names the key."""


@dataclass(frozen=True)
class Target:
    """Where a message goes; what is None comes from the link."""

    stream: Optional[str] = None
    topic: Optional[str] = None
    partition: Optional[int] = None


@dataclass(frozen=True)
class Otherwise:
    """What becomes of a message that no rule fits: forward, drop or reject."""

    kind: str
    reason: str = ""


Decision = Union[Target, Otherwise]


def number(value: Any) -> bool:
    """Whether the value is a number; booleans are none here."""
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def same(left: Any, right: Any) -> bool:
    """Equality as JSON has it: true is not 1."""
    return left == right and isinstance(left, bool) == isinstance(right, bool)


def any_value(wanted: Any, place: str) -> Any:
    return wanted


def a_list(wanted: Any, place: str) -> list:
    if not isinstance(wanted, list) or not wanted:
        raise ConfigError(f"{place}: is {json.dumps(wanted)}, not a list of values")
    return wanted


def a_number(wanted: Any, place: str) -> Any:
    if not number(wanted):
        raise ConfigError(f"{place}: is {json.dumps(wanted)}, not a number")
    return wanted


def a_pattern(wanted: Any, place: str) -> re.Pattern:
    if not isinstance(wanted, str):
        raise ConfigError(f"{place}: is {json.dumps(wanted)}, not a regular expression")
    try:
        return re.compile(wanted)
    except re.error as error:
        raise ConfigError(f"{place}: is no regular expression: {error}") from error


# Conditions of a rule: how the configured value is checked, and whether a payload's value fits it.
CONDITIONS: dict[str, tuple[Callable[[Any, str], Any], Callable[[Any, Any], bool]]] = {
    "equals": (any_value, same),
    "one_of": (a_list, lambda value, wanted: any(same(value, each) for each in wanted)),
    "at_least": (a_number, lambda value, wanted: number(value) and value >= wanted),
    "below": (a_number, lambda value, wanted: number(value) and value < wanted),
    "matches": (
        a_pattern,
        lambda value, wanted: isinstance(value, str) and wanted.fullmatch(value) is not None,
    ),
}


class Rule:
    """A field, conditions for its value, and where messages go that fit all of them."""

    def __init__(self, table: Any, place: str) -> None:
        if not isinstance(table, dict):
            raise ConfigError(f"{place}: is not a table")
        known = ("field", *CONDITIONS, *TARGET_KEYS)
        for key in table:
            if key not in known:
                raise ConfigError(f"{place}: unknown key {key}; there are {', '.join(known)}")
        field = table.get("field")
        if not isinstance(field, str) or "" in field.split("."):
            raise ConfigError(f"{place}.field: is not keys with dots between them")
        self.keys = field.split(".")
        self.conditions = []
        for key, (check, fits) in CONDITIONS.items():
            if key in table:
                self.conditions.append((fits, check(table[key], f"{place}.{key}")))
        if not self.conditions:
            raise ConfigError(f"{place}: has no condition: give one of {', '.join(CONDITIONS)}")
        self.target = target(table, place)

    def fits(self, body: Any) -> bool:
        """Whether the payload has the field and its value fits all conditions."""
        value = body
        for key in self.keys:
            value = value.get(key, MISSING) if isinstance(value, dict) else MISSING
        if value is MISSING:
            return False
        return all(fits(value, wanted) for fits, wanted in self.conditions)


def target(table: dict, place: str) -> Target:
    """The destination that a rule names."""
    found = {key: table[key] for key in TARGET_KEYS if key in table}
    if not found:
        raise ConfigError(f"{place}: names no destination: give a stream, a topic or a partition")
    for key in ("stream", "topic"):
        name = found.get(key, "name")
        if not isinstance(name, str) or not 1 <= len(name.encode()) <= 255:
            raise ConfigError(f"{place}.{key}: is not a name of 1 to 255 bytes")
    partition = found.get("partition", 0)
    if not isinstance(partition, int) or isinstance(partition, bool) or not 0 <= partition < 2**32:
        raise ConfigError(f"{place}.partition: is not a partition id")
    return Target(**found)


class Router:
    """All rules, in order."""

    def __init__(self, config: str) -> None:
        table = json.loads(config)
        for key in table:
            if key not in ("rules", "otherwise"):
                raise ConfigError(f"config: unknown key {key}; there are rules and otherwise")
        rules = table.get("rules")
        if not isinstance(rules, list) or not rules:
            raise ConfigError("config.rules: give at least one rule")
        self.rules = [Rule(rule, f"config.rules[{index}]") for index, rule in enumerate(rules)]
        kind = table.get("otherwise", "forward")
        if kind not in ("forward", "drop", "reject"):
            raise ConfigError(
                f"config.otherwise: is {json.dumps(kind)}; it can be forward, drop or reject"
            )
        self.otherwise = kind

    def decide(self, payload: bytes) -> Decision:
        """The destination of the first rule that fits, or what the config says otherwise."""
        try:
            body = json.loads(payload)
        except (ValueError, RecursionError) as error:
            return Otherwise(self.otherwise, f"the payload is not JSON: {error}")
        for rule in self.rules:
            if rule.fits(body):
                return rule.target
        return Otherwise(self.otherwise, "no rule fits its payload")
