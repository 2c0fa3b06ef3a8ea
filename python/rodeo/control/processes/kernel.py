"""The kernel's view of processes: begin, state, memory and CPU time; adoption of orphans; the place of core files."""

import ctypes
import os
import resource
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
LONGEST_ENVIRONMENT = 256 * 1024  # limit of the bytes that are read of a process's environment


@dataclass(frozen=True)
class Seen:
    """One look at a process. `start_ticks` since boot identifies it together with the pid; `state`: the kernel's letter; CPU in seconds."""

    pid: int
    parent: int
    session: int
    state: str
    start_ticks: int
    cpu_seconds: float
    rss_bytes: int


def become_subreaper():
    """From now on orphaned descendants become children of this process. OSError if the kernel refuses."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def seen(pid):
    """The process as it is now, or None if it does not exist. A zombie counts as ended: None."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2 :].split()  # the process's name comes before, and may contain any characters
    state = fields[0].decode()
    if state in "ZX":
        return None
    return Seen(
        pid=pid,
        parent=int(fields[1]),
        session=int(fields[3]),
        state=state,
        start_ticks=int(fields[19]),
        cpu_seconds=(int(fields[11]) + int(fields[12])) / TICKS,
        rss_bytes=int(fields[21]) * PAGE,
    )


def boot_id():
    """The id of this boot: pids and start times of another boot are invalid. Empty if unknown."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def children():
    """Pids of this process's living children, including adopted orphans."""
    found = []
    for entry in Path("/proc").iterdir():
        process = seen(int(entry.name)) if entry.name.isdigit() else None
        if process is not None and process.parent == os.getpid():
            found.append(process.pid)
    return sorted(found)


def variable_of(pid, variable):
    """The value of a variable in the environment that a process was started with, or None."""
    mark = variable.encode() + b"="
    try:
        with open(f"/proc/{pid}/environ", "rb") as file:
            environment = file.read(LONGEST_ENVIRONMENT)
    except OSError:
        return None  # the process has ended, or belongs to another user
    return next(
        (one[len(mark) :].decode(errors="replace") for one in environment.split(b"\0") if one.startswith(mark)), None
    )


def marked(variable):
    """Yields (pid, value) of this user's processes that had the variable in their environment at exec; forked children inherit it."""
    for entry in Path("/proc").iterdir():
        value = variable_of(entry.name, variable) if entry.name.isdigit() else None
        if value is not None:
            yield int(entry.name), value


def processes_with(variable, value):
    """Pids of living processes that have `variable=value` in their environment, sorted."""
    return sorted(pid for pid, found in marked(variable) if found == value and seen(pid) is not None)


def sessions_with(variable, beginning):
    """Returns (rest of the value, pid) of session leaders whose variable begins with `beginning`; of several with one value the oldest."""
    oldest = {}
    for pid, value in marked(variable):
        found = seen(pid) if value.startswith(beginning) else None
        if found is not None and found.session == pid:
            rest = value[len(beginning) :]
            oldest[rest] = min(oldest.get(rest, (found.start_ticks, pid)), (found.start_ticks, pid))
    return [(rest, pid) for rest, (_, pid) in sorted(oldest.items())]


def allow_cores(allow=True, pid=0):
    """Lets a process (0: this one) and its later children leave core files, up to its hard limit."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (hard if allow else 0, hard))


def core_file(directory, pid):
    """The path of the core of a process that ran in `directory`; a sentence if the kernel pipes cores to a program; "" if not found."""
    try:
        pattern = Path("/proc/sys/kernel/core_pattern").read_text().strip()
    except OSError:
        return ""
    if pattern.startswith("|"):
        return f"given to {pattern[1:].split()[0]}" if pattern[1:].split() else ""
    folder, name = os.path.split(os.path.join(directory, pattern))
    for candidate in (f"{name}.{pid}", name):
        exact = candidate.replace("%p", str(pid))
        path = Path(folder) / exact
        if "%" not in exact and path.is_file():
            return str(path)
    try:
        named = [
            path
            for path in Path(folder).iterdir()
            if str(pid) in path.name and path.name.startswith(name.split("%")[0]) and path.is_file()
        ]
    except OSError:
        return ""
    return str(max(named, key=lambda path: path.stat().st_mtime_ns)) if named else ""
