"""What the kernel knows of processes: their begin, state, memory and CPU time; who takes in orphans; where core files go."""

import ctypes
import os
import resource
from dataclasses import dataclass
from pathlib import Path

PR_SET_CHILD_SUBREAPER = 36
TICKS = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")
LONGEST_ENVIRONMENT = 256 * 1024  # bytes of a process's environment that are looked at


@dataclass(frozen=True)
class Seen:
    """One look at a process. `start_ticks` since boot, with the pid its identity; `state` the kernel's letter; CPU in seconds."""

    pid: int
    parent: int
    session: int
    state: str
    start_ticks: int
    cpu_seconds: float
    rss_bytes: int


def become_subreaper():
    """From now on orphans below this process are its children. OSError if the kernel will not."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl(PR_SET_CHILD_SUBREAPER)")


def seen(pid):
    """The process as it is now, or None if there is none. A zombie is none: it has ended."""
    try:
        text = Path(f"/proc/{pid}/stat").read_bytes()
    except OSError:
        return None
    fields = text[text.rindex(b")") + 2:].split()  # the name before it may hold anything
    state = fields[0].decode()
    if state in "ZX":
        return None
    return Seen(pid=pid, parent=int(fields[1]), session=int(fields[3]), state=state, start_ticks=int(fields[19]),
                cpu_seconds=(int(fields[11]) + int(fields[12])) / TICKS, rss_bytes=int(fields[21]) * PAGE)


def boot_id():
    """Names this boot of the machine: pids and start times of another one mean nothing. Empty if the kernel does not say."""
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    except OSError:
        return ""


def children():
    """Pids of this process's living children, orphans that it took in among them."""
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
        return None  # somebody else's, or gone
    return next((one[len(mark):].decode(errors="replace") for one in environment.split(b"\0") if one.startswith(mark)), None)


def marked(variable):
    """(pid, value) of this user's processes whose environment, as they were started, has the variable, however often they have forked since."""
    for entry in Path("/proc").iterdir():
        value = variable_of(entry.name, variable) if entry.name.isdigit() else None
        if value is not None:
            yield int(entry.name), value


def processes_with(variable, value):
    """Pids of living processes that have `variable=value` in their environment, sorted."""
    return sorted(pid for pid, found in marked(variable) if found == value and seen(pid) is not None)


def sessions_with(variable, beginning):
    """(rest of the value, pid) of the processes whose variable begins so and that lead a session; of several with one value the oldest."""
    oldest = {}
    for pid, value in marked(variable):
        found = seen(pid) if value.startswith(beginning) else None
        if found is not None and found.session == pid:
            rest = value[len(beginning):]
            oldest[rest] = min(oldest.get(rest, (found.start_ticks, pid)), (found.start_ticks, pid))
    return [(rest, pid) for rest, (_, pid) in sorted(oldest.items())]


def allow_cores(allow=True, pid=0):
    """Lets a process (0: this one) and what it starts from then on leave core files, as far as its hard limit goes."""
    _, hard = resource.prlimit(pid, resource.RLIMIT_CORE)
    resource.prlimit(pid, resource.RLIMIT_CORE, (hard if allow else 0, hard))


def core_file(directory, pid):
    """Where the core of a process that ran in `directory` is: its path, or a sentence if the kernel gives it to a program, or "" if it is not found."""
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
        named = [path for path in Path(folder).iterdir() if str(pid) in path.name and path.name.startswith(name.split("%")[0]) and path.is_file()]
    except OSError:
        return ""
    return str(max(named, key=lambda path: path.stat().st_mtime_ns)) if named else ""
