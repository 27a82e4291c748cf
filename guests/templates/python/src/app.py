"""Keeps the messages whose header `region` is the configured one. Implements world `transform` of the contract."""

from typing import Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.message_handler import Message
from wit_world.imports.types import (
    Field_Text,
    Inputs,
    Source,
    Verdict,
    Verdict_Drop,
    Verdict_Forward,
)

from rules import ConfigError, Rules

rules: Optional[Rules] = None


class MessageHandler(exports.MessageHandler):
    """The handler that the component exports."""

    def start(self, source: Source, config: str) -> Inputs:
        """Takes the `config` table. The error is shown to the operator, and the guest is not used."""
        global rules
        try:
            rules = Rules(config)
        except ConfigError as error:
            raise Err(str(error)) from error
        return Inputs.HEADERS

    def handle(self, message: Message) -> Verdict:
        """Decides over one message."""
        assert rules is not None, "the host starts a guest first"
        texts = {
            header.key.value: header.value.value
            for header in message.headers
            if isinstance(header.key, Field_Text) and isinstance(header.value, Field_Text)
        }
        return Verdict_Forward() if rules.keep(texts) else Verdict_Drop()
