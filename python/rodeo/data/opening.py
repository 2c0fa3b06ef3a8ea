"""Opens data files: those that exist, or also those still to be written."""

import os

from rodeo.data._module import data_error, module
from rodeo.data.follow import FollowedEvents
from rodeo.data.paths import expand
from rodeo.data.sequence import Events


def open(
    files, *, follow=False, damaged="raise", checksums=True, index=True, timeout_s=None, l1_id_offset=0, l1_id_bits=32
):
    """The events of data files: a path, a pattern ("*.data"), or a list of both.

    follow      also wait for events still to be written (in `*.writing`, and in new files that fit the pattern), until the run's last file is closed or
                nothing came for `timeout_s`
    damaged     "raise": a damaged event is an error when it is read; "skip": it is left out, and listed in .errors. A missing file, or one of unknown format,
                is an error in both
    checksums   check the Adler-32 of events and ROBs that have one
    index       keep an index next to event files (`<file>.index`), so that events[i] and by_l1_id() need not read the whole file again; if the directory
                is not writable, the index stays in memory
    l1_id_offset, l1_id_bits   the place of the L1 id in chunks of FELIX recordings (little-endian): chunks with the same id are an event

    DataError (a ValueError) if a file does not exist or holds no data."""
    if damaged not in ("raise", "skip"):
        raise ValueError(f'damaged is "raise" or "skip", not {damaged!r}')
    if not 1 <= l1_id_bits <= 32 or l1_id_offset < 0:
        raise ValueError(f"l1_id_bits must be 1 to 32 and l1_id_offset at least 0, not {l1_id_bits} and {l1_id_offset}")
    patterns = [files] if isinstance(files, (str, bytes, os.PathLike)) else list(files)
    paths = expand(patterns, follow)
    if not paths and not follow:
        shown = ", ".join(os.fsdecode(pattern) for pattern in patterns)
        raise data_error(
            "data.no_files",
            f"no file fits {shown}" if patterns else "no file is named",
            next="name files, or a pattern that fits some",
        )
    opened = module.Files.make(
        [os.fsencode(path) for path in paths],
        checksums=bool(checksums),
        keep_index=bool(index),
        skip=damaged == "skip",
        follow=bool(follow),
        l1_id_offset=l1_id_offset,
        l1_id_bits=l1_id_bits,
    )
    if follow:
        return FollowedEvents(opened, paths, damaged == "skip", patterns, timeout_s)
    # Errors of the first 8 files, and missing files, are reported at once; other errors when the file is read.
    for number, path in enumerate(paths):
        if number < 8 or not os.path.lexists(path):
            opened.check(number)
    return Events(opened, paths, damaged == "skip")
