"""An event as a selection in Python sees it: views of shared memory, valid during the call."""

import struct
from dataclasses import dataclass, field

_ENTRY = struct.Struct("<IIQQ")
REQUEST = struct.Struct("<QIIHHHBxIIQ")
_WORD = struct.Struct("<I")
_ROD_HEADER_WORDS = 9


@dataclass
class Rob:
    """One ROB fragment. `raw` is the whole fragment with its ROB header; `data` is the data of its ROD. Both are memoryviews."""

    source_id: int
    status: int
    raw: memoryview

    def word(self, index):
        """A word of 32 bits of `raw`, counted from 0."""
        return _WORD.unpack_from(self.raw, 4 * index)[0]

    @property
    def data(self):
        """The ROD's data, without its header, status words and trailer (docs/reference/formats/event.md)."""
        rod = 4 * self.word(2)
        end = len(self.raw) - (4 if self.word(self.word(2) - 1) != 0 else 0)
        status, data, position = struct.unpack_from("<III", self.raw, end - 12)
        begin = rod + 4 * _ROD_HEADER_WORDS + (4 * status if position == 0 else 0)
        return self.raw[begin : begin + 4 * data]


@dataclass
class Event:
    """One event: its identifiers, and its ROBs by source id."""

    global_id: int
    l1id: int
    run_number: int
    lumi_block: int
    scan_step: int
    bcid: int
    trigger_type: int
    step: int
    robs: dict = field(default_factory=dict)

    @property
    def l1_id(self):
        """The extended L1 id, under its name in rodeo.data."""
        return self.l1id


def read_event(request, memory):
    """The event of a request, in the shared memory named there."""
    *who, count, _ = REQUEST.unpack(request)
    event = Event(*who)
    for index in range(count):
        source_id, status, offset, size = _ENTRY.unpack_from(memory, index * _ENTRY.size)
        event.robs[source_id] = Rob(source_id, status, memory[offset : offset + size].toreadonly())
    return event
