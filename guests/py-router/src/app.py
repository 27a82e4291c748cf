"""Routes messages by the fields of their JSON payloads. Implements world `transform` of the contract."""

from typing import Optional

from componentize_py_types import Err
from wit_world import exports
from wit_world.exports.message_handler import Message
from wit_world.imports.types import (
    Inputs,
    Route,
    Source,
    Verdict,
    Verdict_Drop,
    Verdict_Forward,
    Verdict_Reject,
    Verdict_Route,
)

from rules import ConfigError, Router, Target

router: Optional[Router] = None


class MessageHandler(exports.MessageHandler):
    """The handler that the component exports."""

    def start(self, source: Source, config: str) -> Inputs:
        """Takes the `config` table."""
        global router
        try:
            router = Router(config)
        except ConfigError as error:
            raise Err(str(error)) from error
        return Inputs.PAYLOADS

    def handle(self, message: Message) -> Verdict:
        """Decides over one message."""
        assert router is not None, "the host starts a guest first"
        decision = router.decide(message.payload)
        if isinstance(decision, Target):
            return Verdict_Route([Route(decision.stream, decision.topic, decision.partition)])
        if decision.kind == "drop":
            return Verdict_Drop()
        if decision.kind == "reject":
            return Verdict_Reject(decision.reason)
        return Verdict_Forward()
