"""Where this user's control rooms are: the runtime directory, its sockets and locks; and the `rodeo` command."""

import contextlib
import fcntl
import importlib
import os
import shutil
import stat
import time
from pathlib import Path

from rodeo.control.refused import Refused
from rodeo.missing import remedy

ROOM = ".room"  # the Unix socket of a control room is SYSTEM.room; the running room holds the lock SYSTEM.room.lock
LONGEST_SOCKET = 107  # the kernel's limit for the path of a Unix socket, in bytes


def is_own_directory(path):
    try:
        found = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid()


def runtime_directory(make=True) -> Path:
    """The directory of this user's sockets, as in C++: $RODEO_RUNTIME_DIR, else $XDG_RUNTIME_DIR/rodeo if $XDG_RUNTIME_DIR is the user's own directory,
    else /tmp/rodeo-UID.
    Made with mode 0700 unless `make` is false. Refused(base.runtime_dir) if another user owns it or others may write to it."""
    if own := os.environ.get("RODEO_RUNTIME_DIR"):
        directory = Path(own)
    elif (session := os.environ.get("XDG_RUNTIME_DIR")) and is_own_directory(
        session
    ):  # under `sudo`, XDG_RUNTIME_DIR belongs to the calling user
        directory = Path(session) / "rodeo"
    else:
        directory = Path(f"/tmp/rodeo-{os.geteuid()}")
    next = "set RODEO_RUNTIME_DIR to a directory of your own"
    try:
        if make:
            with contextlib.suppress(FileExistsError):
                directory.mkdir(mode=0o700)
        found = directory.lstat()
    except FileNotFoundError:
        if make:
            raise Refused(
                "base.runtime_dir", f"cannot use the runtime directory {directory}: no such directory above it", next
            ) from None
        return directory
    except OSError as error:
        raise Refused(
            "base.runtime_dir", f"cannot use the runtime directory {directory}: {error.strerror}", next
        ) from None
    why = None
    if not stat.S_ISDIR(found.st_mode):
        why = "it is not a directory"
    elif found.st_uid != os.geteuid():
        why = f"it belongs to user {found.st_uid}, not to you"
    elif found.st_mode & 0o022:
        why = f"others may write to it (mode {stat.S_IMODE(found.st_mode):04o})"
    if why:
        raise Refused("base.runtime_dir", f"cannot use the runtime directory {directory}: {why}", next)
    return directory


def runtime_socket(file_name) -> Path:
    """The path of a socket in the runtime directory. Refused(base.runtime_dir) if the name has a slash or the path is too long for the kernel."""
    if not file_name or "/" in file_name:
        raise Refused("base.runtime_dir", f"`{file_name}` cannot be the name of a socket", "use a name without a slash")
    path = runtime_directory() / file_name
    if len(os.fsencode(path)) > LONGEST_SOCKET:
        raise Refused(
            "base.runtime_dir",
            f"a socket's path may have at most {LONGEST_SOCKET} characters, and {path} has {len(os.fsencode(path))}",
            "use a shorter name, or a shorter RODEO_RUNTIME_DIR",
        )
    return path


def room_socket(system) -> Path:
    """The Unix socket of the control room of a system."""
    return runtime_socket(system + ROOM)


def is_held(lock) -> bool:
    """Whether a living process holds the lock file. Tries a brief shared lock; never blocks."""
    try:
        with open(lock, "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False
    return False


def hold(path):
    """Takes the exclusive lock `path`.lock and returns its open file, or None if a living process holds it. Closing the file releases the
    lock; remove_held() also removes the files."""
    lock = Path(f"{path}.lock")
    for _ in range(100):  # the former holder may remove the file; then our lock is on a file without a name
        file = os.fdopen(os.open(lock, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600), "r+b")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.samestat(os.fstat(file.fileno()), os.stat(lock)):
                return file
        except BlockingIOError:
            if not _shared_only(file):
                file.close()
                return None
        except FileNotFoundError:
            pass
        file.close()
        time.sleep(0.005)
    return None


def _shared_only(file) -> bool:
    """Whether only is_held() of another process holds the lock: briefly, so another try is worthwhile."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def remove_held(path, file):
    """Removes a socket and its lock, in this order, and releases the lock."""
    for each in (Path(path), Path(f"{path}.lock")):
        with contextlib.suppress(OSError):
            each.unlink()
    file.close()


def rooms() -> list[str]:
    """Names of the systems with a running control room of this user, sorted."""
    directory = runtime_directory(make=False)
    return sorted(lock.name.removesuffix(ROOM + ".lock") for lock in directory.glob(f"*{ROOM}.lock") if is_held(lock))


def rodeo_command() -> str:
    """The `rodeo` command of this package: $RODEO, else from the build or installation with this file, else from the PATH.
    Refused(control.command) if it is not found."""
    if (named := os.environ.get("RODEO")) and os.access(named, os.X_OK):
        return named
    here = Path(__file__)
    # Build, source, and installation: PREFIX/lib/rodeo/python, or PREFIX/lib/ARCHITECTURE/rodeo/python.
    for above in (here.parents[3], here.parents[3] / "build", *(each / "bin" for each in here.parents[5:7])):
        if os.access(above / "rodeo", os.X_OK) and (above / "rodeo").is_file():
            return str(above / "rodeo")
    if found := shutil.which("rodeo"):
        return found
    raise Refused(
        "control.command", "the command `rodeo` was not found", "set RODEO to its path, or build it: tools/setup run"
    )


def needed(name):
    """Imports a package of .venv on first use. Refused(control.package) names a missing package."""
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise Refused(
            "control.package", f"the Python package `{(error.name or name).split('.')[0]}` is missing", remedy()
        ) from None
