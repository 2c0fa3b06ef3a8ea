"""Modes of the files that a system writes: the umask of the room, its agents and their processes, and the group of its directories."""

import grp
import os
import stat

from rodeo.control.refused import Refused

VARIABLE = "RODEO_UMASK"  # this environment variable carries the umask to agents and their processes


def set_umask(umask):
    """Sets the umask of the room's process, before it writes any file."""
    os.environ[VARIABLE] = f"{umask:04o}"
    os.umask(umask)


def set_umask_from_environment():
    """Sets the umask of an agent. An agent started by hand keeps the umask of its shell."""
    text = os.environ.get(VARIABLE, "")
    if text and len(text) <= 4 and all(each in "01234567" for each in text):
        os.umask(int(text, 8))


def give_group(directory, group):
    """Gives a directory, and all files made in it later, to the group. Refused(control.group): no such group, or this user is not in it."""
    try:
        number = grp.getgrnam(group).gr_gid
    except KeyError:
        raise Refused(
            "control.group",
            f"there is no group `{group}` here",
            "set control.group to one of `id -Gn`, or leave it out",
        ) from None
    try:
        if (found := os.stat(directory)).st_gid != number:
            os.chown(directory, -1, number)
        os.chmod(directory, stat.S_IMODE(found.st_mode) | stat.S_ISGID)
    except OSError as error:
        raise Refused(
            "control.group",
            f"{directory} cannot be given to the group `{group}`: {error.strerror}",
            "set control.group to one of `id -Gn`",
        ) from None
