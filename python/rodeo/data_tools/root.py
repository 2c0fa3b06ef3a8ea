"""Converts event files to ROOT: the tree `events` has an entry for each event, with columns of fragments and chunks. usage: root.py OUT FORM < NAMES"""

import sys

from rodeo.data_tools.hdf5 import holds_chunk_records, say_made, told
from rodeo.data_tools.pieces import CHUNK_FIELDS, EVENT_FIELDS, FRAGMENT_FIELDS, open_files, piece_of
from rodeo.data_tools.running import Progress, end, names, needed, new_file, run


def convert(paths, output, form="table"):
    uproot, ak = needed("uproot", "converting to ROOT"), needed("awkward", "converting to ROOT")
    events = open_files(paths)
    groups = {
        "fragment": FRAGMENT_FIELDS,
        **({"chunk": ("chunk.source_id", *CHUNK_FIELDS)} if holds_chunk_records(events) else {}),
    }
    progress = Progress(f"converting to {output}", len(events))
    with new_file(output) as part:
        with uproot.recreate(part) as file:
            fields = [*EVENT_FIELDS, *(name for fields in groups.values() for name in fields)]
            # The columns come from an empty piece: the tree is the same with and without events.
            none = branches(ak, events[:0].read(fields), groups)
            tree, done = (
                file.mktree(
                    "events",
                    {name: array.dtype if name in EVENT_FIELDS else array.type.content for name, array in none.items()},
                ),
                0,
            )
            for columns in events.iterate(fields, events=piece_of(events, paths)):
                tree.extend(branches(ak, columns, groups))
                done += columns.events
                progress(done)
    progress.finish()
    say_made(events, output, form)
    return told(events)


def branches(ak, columns, groups):
    """By name: arrays of the events, and lists of records of their fragments and chunks."""
    out = {name: columns[name] for name in EVENT_FIELDS}
    for group, fields in groups.items():
        offsets = ak.index.Index64(columns[f"{group}.offsets"])
        record = ak.contents.RecordArray(
            [ak.contents.NumpyArray(columns[name]) for name in fields], [name.partition(".")[2] for name in fields]
        )
        out[group] = ak.Array(ak.contents.ListOffsetArray(offsets, record))
    return out


if __name__ == "__main__":
    end(run(lambda: convert(names(), sys.argv[1], sys.argv[2])))
