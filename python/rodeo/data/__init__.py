"""Data files in Python: events with their fragments and chunks, and columns of many events.

    import rodeo
    for event in rodeo.data.open("*.data"):
        for fragment in event.fragments:
            print(hex(event.l1_id), fragment.source_id, fragment.chunks.size.sum())

    columns = rodeo.data.open("*.data").read(["l1_id", "chunk.link", "chunk.size"])         # NumPy
    array = rodeo.data.open("*.data").read(["l1_id", "chunk.link", "chunk.data"], library="ak")

The same calls read event files, recordings of FELIX blocks and dumps of RDH pages; docs/how-to/data-in-python.md describes them all.
Reading proves the data of an event; only `rodeo data verify` proves the headers.
"""

from rodeo.data._module import DamagedEvent, DataError, Event, FIELDS, Fragment, StreamTag
from rodeo.data.chunks import Chunks, Jagged
from rodeo.data.columns import Columns
from rodeo.data.decoder import DecoderError
from rodeo.data.follow import FollowedEvents
from rodeo.data.opening import open
from rodeo.data.sequence import Events

__all__ = [
    "Chunks",
    "Columns",
    "DamagedEvent",
    "DataError",
    "DecoderError",
    "Event",
    "Events",
    "FIELDS",
    "FollowedEvents",
    "Fragment",
    "Jagged",
    "StreamTag",
    "open",
]
