"""What a WebSocket is sent: the document whole, then what has changed, as much of it as a client should get in a second. Pure."""

import json
import math

BYTES_PER_S = 12_000.0  # of the 20 kB/s that a page may have: it asks for logs and audit, too
EVERY_S = 1.0  # a message at least so often, so that a client knows how old its data are
AT_ONCE_S = 0.2  # and no more often than this
LATE_S = 3.0  # a client that read nothing for so long gets the whole anew
LARGE = ("processes", "links", "hosts")  # members that grow with the system: sent when the allowance has room
ABSENT = object()


class Feed:
    """What one client has. `next` gives the message to send now; whoever calls it sends it, and calls again when the client took it: what changed
    meanwhile comes in the next one, so that nothing queues."""

    def __init__(self):
        self.has = None
        self.sequence = None
        self.sent_s = 0.0
        self.allowance = BYTES_PER_S

    def next(self, document: dict, now_s: float) -> str:
        """The message that brings this client to the document, as far as the allowance goes. Times in seconds, monotonic."""
        self.allowance = min(BYTES_PER_S, self.allowance + BYTES_PER_S * max(0.0, now_s - self.sent_s)) if self.has is not None else BYTES_PER_S
        late = self.has is not None and now_s - self.sent_s > LATE_S
        message = self._whole(document) if self.has is None or late else self._delta(document)
        text = encoded(message)
        self.sequence, self.sent_s = document["sequence"], now_s
        self.allowance -= len(text)
        return text

    def _whole(self, document):
        self.has = dict(document)
        return {"whole": document}

    def _delta(self, document):
        changed = {}
        for member, value in document.items():
            if member == "sequence" or self.has.get(member, ABSENT) == value:
                continue
            if member in LARGE and self.allowance <= 0:
                continue
            changed[member] = self.has[member] = value
        return {"base": self.sequence, "sequence": document["sequence"], "changed": changed}

    def wait_s(self, now_s: float) -> tuple[float, float]:
        """Seconds that must pass before the next message, and at most may, counted from now."""
        passed = now_s - self.sent_s
        return max(0.0, AT_ONCE_S - passed), max(0.0, EVERY_S - passed)


def encoded(value) -> str:
    """Compact JSON; what is no number in JSON (nan, infinity) is null there."""
    try:
        return json.dumps(value, separators=(",", ":"), allow_nan=False)
    except ValueError:
        return json.dumps(_finite(value), separators=(",", ":"), allow_nan=False)


def _finite(value):
    if isinstance(value, dict):
        return {key: _finite(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_finite(each) for each in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def merge(document: dict | None, message: dict) -> dict | None:
    """What a client does with a message: the new document, or None if it does not fit and the client must connect anew."""
    if "whole" in message:
        return message["whole"]
    if document is None or document.get("sequence") != message["base"]:
        return None
    return {**document, **message["changed"], "sequence": message["sequence"]}
