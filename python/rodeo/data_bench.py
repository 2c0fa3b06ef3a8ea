"""The Python side of `rodeo bench data`: CPU seconds for reading columns and events of a file, and sums that prove that all data were read.

python -m rodeo.data_bench FILE RESULT.json
"""

import json
import os
import sys
import time
import zlib

# NumPy's threads spin for a while after the import: their CPU time must not count.
os.environ["OPENBLAS_NUM_THREADS"] = "1"

import rodeo  # noqa: E402

CHUNK_FIELDS = ["chunk.link", "chunk.status", "chunk.size"]


def timed(work):
    """The result of `work` and the CPU seconds of this process. A first call, not timed, does imports and allocates memory."""
    work()
    begin = time.process_time()
    result = work()
    return result, time.process_time() - begin


def sums_of(columns):
    link, status, size = (int(columns[name].sum(dtype="u8")) for name in CHUNK_FIELDS)
    found = {
        "events": columns.events,
        "chunks": len(columns["chunk.link"]),
        "links": link,
        "statuses": status,
        "sizes": size,
        "bytes": 0,
    }
    if "chunk.data" in columns:
        found |= {"bytes": int(columns["chunk.data"].sum(dtype="u8")), "crc": zlib.crc32(columns["chunk.data"])}
    return found


def measure(path):
    def columns(fields, checksums):
        # Opens the file anew each time, as the C++ loop does: mapping and walking the file belong to the work.
        return rodeo.data.open(path, checksums=checksums, index=False).read(fields)

    def loop():
        events = chunks = 0
        for event in rodeo.data.open(path, checksums=False, index=False):
            events += 1
            for fragment in event.fragments:
                chunks += len(fragment.chunks.size)
        return {"events": events, "chunks": chunks}

    found = {}
    for name, fields, checksums in (
        ("columns", CHUNK_FIELDS, False),
        ("checked", CHUNK_FIELDS, True),
        ("data", [*CHUNK_FIELDS, "chunk.data"], False),
    ):
        read, seconds = timed(lambda: columns(fields, checksums))
        found[name] = {"cpu_seconds": seconds, **sums_of(read)}
    sums, seconds = timed(lambda: sums_of(columns(CHUNK_FIELDS, False)))
    found["columns_and_sums"] = {"cpu_seconds": seconds, **sums}
    sums, seconds = timed(loop)
    found["event_loop"] = {"cpu_seconds": seconds, **sums}
    return found


if __name__ == "__main__":
    with open(sys.argv[2], "w") as file:
        json.dump(measure(sys.argv[1]), file)
