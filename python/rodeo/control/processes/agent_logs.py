"""Logs of launched processes. A process writes straight to its file; the agent bounds the file, so that no flood stops a process or fills a disk."""

import os
from pathlib import Path

LONGEST_LOG = 64 * 1024 * 1024  # limit in bytes, checked once a second
KEPT = 16 * 1024 * 1024  # number of bytes at the end of a log that NAME.log.1 keeps
LONGEST_TAIL = 4 * 1024 * 1024  # number of bytes at the end of a log that tail() searches
MOST_LINES = 10_000
LONGEST_LINE = 4096  # limit of the shown characters of a line


def opened(path):
    """Opens the log of a process to append. The caller closes it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, 0o644)


def bound(path):
    """Cuts a log that is too long: moves its end to NAME.log.1, and begins it anew with a line that says how much was left out. Blocks
    for a copy of 16 MiB. Lines written during the copy are lost; this concerns processes that write tens of megabytes a second."""
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
            log.write(
                f"... {size - len(end)} bytes of this log were left out; the {len(end)} bytes before this line are in {path.name}.1\n".encode()
            )
    except OSError:
        return False
    return True


def tail(path, lines, search=""):
    """The last lines that contain `search`, oldest first; none without a log. Searches the last 4 MiB."""
    try:
        with open(path, "rb") as log:
            size = log.seek(0, os.SEEK_END)
            log.seek(max(0, size - LONGEST_TAIL))
            text = log.read(LONGEST_TAIL).decode(errors="replace")
    except OSError:
        return []
    found = text.splitlines()
    if size > LONGEST_TAIL:
        found = found[1:]  # the first line may be incomplete
    if search:
        found = [line for line in found if search.lower() in line.lower()]
    return [line[:LONGEST_LINE] for line in found[-max(0, min(lines, MOST_LINES)) :]] if lines > 0 else []
