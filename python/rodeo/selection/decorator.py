"""The decorator that makes a function an event selection, and the values that it may return.

import rodeo

@rodeo.select
def high_energy(event):
    return rodeo.accept("Main") if len(event.robs[0x00420001].data) > 1000 else rodeo.reject()
"""

import re
from dataclasses import dataclass

_NAME = re.compile(r"[A-Za-z0-9_-]{1,32}")
_TYPE = re.compile(r"[A-Za-z0-9_-]{1,16}")


@dataclass(frozen=True)
class Stream:
    """A stream that events go to. Names and types are letters, digits, `_` and `-`."""

    name: str
    type: str = "physics"
    obeys_lumi_block: bool = True

    def __post_init__(self):
        if not _NAME.fullmatch(self.name):
            raise ValueError(f"{self.name!r} is not a valid stream name: 1 to 32 letters, digits, `_` and `-`")
        if not _TYPE.fullmatch(self.type):
            raise ValueError(f"{self.type!r} is not a valid stream type: 1 to 16 letters, digits, `_` and `-`")


@dataclass(frozen=True)
class Decision:
    """The answer of a selection, made by accept(), reject() or more()."""

    verdict: str
    streams: tuple = ()
    robs: tuple = ()


def accept(*streams):
    """The event is kept for these streams, each a name or a Stream. Default: physics_Main."""
    made = tuple(one if isinstance(one, Stream) else Stream(one) for one in streams)
    return Decision("accepted", made or (Stream("Main"),))


def reject():
    """The event is not kept."""
    return Decision("rejected")


def more(*source_ids):
    """The function is called again when these ROBs (default: all) have arrived, too. Only with the node's `building` = `steps`."""
    return Decision("more", robs=tuple(int(one) for one in source_ids))


class Selection:
    """A selecting function, and the ROBs that it needs first."""

    def __init__(self, function, first):
        self.function = function
        self.first = tuple(int(one) for one in first)

    def __call__(self, event):
        return self.function(event)


def select(function=None, *, first=()):
    """Makes a function of one event a selection: it returns accept(...), reject(), more(...), True, False, or names of streams.

    `first`: source ids of the ROBs that it needs first, if the node's `building` is `steps`; empty: all.
    """
    if function is None:
        return lambda decorated: Selection(decorated, first)
    return Selection(function, first)


def decision_of(returned):
    """Turns a function's return value into a Decision. TypeError if it is not valid."""
    if isinstance(returned, Decision):
        return returned
    if returned is True:
        return accept()
    if returned is False or returned is None:
        return reject()
    if isinstance(returned, (str, Stream)):
        return accept(returned)
    if isinstance(returned, (list, tuple)) and all(isinstance(one, (str, Stream)) for one in returned):
        return accept(*returned) if returned else reject()
    raise TypeError(f"a selection returns accept(...), reject(), more(...), True, False or streams, not {returned!r}")
