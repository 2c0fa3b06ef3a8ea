"""Logs of launched processes: what they say goes straight to a file, which is kept small, so that no flood of words stops a process or fills a disk."""

import os
from pathlib import Path

LONGEST_LOG = 64 * 1024 * 1024  # bytes; looked at once a second
KEPT = 16 * 1024 * 1024  # bytes of the end that stay, in NAME.log.1
LONGEST_TAIL = 4 * 1024 * 1024  # bytes of the end that are searched
MOST_LINES = 10_000
LONGEST_LINE = 4096  # characters of a line that are shown


def opened(path):
    """The log of a process, to append to; it goes on in what is there. Whoever calls closes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def bound(path):
    """Cuts a log that has become too long: its end goes to NAME.log.1, and it begins anew with a line that says how much was left out. Blocks
    for a copy of 16 MiB. Lines that are written meanwhile are lost, of a process that writes tens of megabytes a second."""
    path = Path(path)
    try:
        size = path.stat().st_size
        if size <= LONGEST_LOG:
            return False
        with open(path, "rb") as log:
            log.seek(size - KEPT)
            end = log.read(KEPT)
        Path(f"{path}.1").write_bytes(end)
        os.truncate(path, 0)
        with open(path, "ab") as log:
            log.write(f"... {size - len(end)} bytes of this log were left out; the {len(end)} bytes before this line are in {path.name}.1\n".encode())
    except OSError:
        return False
    return True


def tail(path, lines, search=""):
    """The last lines that hold `search`, oldest first; none if there is no log. Looks at the last 4 MiB."""
    try:
        with open(path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - LONGEST_TAIL))
            text = log.read(LONGEST_TAIL).decode(errors="replace")
    except OSError:
        return []
    found = text.splitlines()
    if size > LONGEST_TAIL:
        found = found[1:]  # the first begins in its middle
    if search:
        found = [line for line in found if search.lower() in line.lower()]
    return [line[:LONGEST_LINE] for line in found[-max(0, min(lines, MOST_LINES)):]] if lines > 0 else []
