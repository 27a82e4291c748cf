"""What the guest decides, without anything of the component around it."""

import json
from typing import Dict


class ConfigError(Exception):
    """The `config` table is wrong; the text names the key."""


class Rules:
    """Which messages are kept."""

    def __init__(self, config: str) -> None:
        table = json.loads(config)
        for key in table:
            if key != "keep":
                raise ConfigError(f"config: unknown key {key}; there is keep")
        if not isinstance(table.get("keep"), str):
            raise ConfigError("config.keep: give the region to keep, as text")
        self.region = table["keep"]

    def keep(self, headers: Dict[str, str]) -> bool:
        """Whether a message with these text headers is kept."""
        return headers.get("region") == self.region
