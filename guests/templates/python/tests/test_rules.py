"""Tests of the rules."""

import unittest

from rules import ConfigError, Rules


class Decisions(unittest.TestCase):
    def test_one_region_is_kept(self):
        rules = Rules('{"keep": "eu"}')
        self.assertTrue(rules.keep({"region": "eu", "other": "us"}))
        self.assertFalse(rules.keep({"region": "us"}))
        self.assertFalse(rules.keep({}))

    def test_a_wrong_key_is_named(self):
        with self.assertRaisesRegex(ConfigError, "unknown key kep"):
            Rules('{"kep": "eu"}')


if __name__ == "__main__":
    unittest.main()
