"""The messages of a WebSocket: first the whole document, then changes, bounded per second. Pure."""

import json
import math

BYTES_PER_S = 12_000.0  # a page may load 20 kB/s; the rest is for its logs and audit
EVERY_S = 1.0  # the longest time between messages, so that a client knows the age of its data
AT_ONCE_S = 0.2  # the shortest time between messages
LATE_S = 3.0  # a client that has read nothing for this time gets the whole document again
LARGE = ("processes", "links", "hosts")  # these members grow with the system; they are sent when the allowance has room
ABSENT = object()


class Feed:
    """The state of one client. The caller of next() sends its message, and calls again when the client has accepted it: the next message then
    contains all later changes, so that no messages queue."""

    def __init__(self):
        self.has = None
        self.sequence = None
        self.sent_s = 0.0
        self.allowance = BYTES_PER_S

    def next(self, document: dict, now_s: float) -> str:
        """The message that updates this client to the document, as far as the allowance permits. Times in seconds, monotonic."""
        self.allowance = (
            min(BYTES_PER_S, self.allowance + BYTES_PER_S * max(0.0, now_s - self.sent_s))
            if self.has is not None
            else BYTES_PER_S
        )
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
        """The least and the most seconds from now until the next message."""
        passed = now_s - self.sent_s
        return max(0.0, AT_ONCE_S - passed), max(0.0, EVERY_S - passed)


def encoded(value) -> str:
    """Compact JSON; NaN and infinity become null."""
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
    """Applies a message as a client does: the new document, or None if the message does not fit and the client must reconnect."""
    if "whole" in message:
        return message["whole"]
    if document is None or document.get("sequence") != message["base"]:
        return None
    return {**document, **message["changed"], "sequence": message["sequence"]}
