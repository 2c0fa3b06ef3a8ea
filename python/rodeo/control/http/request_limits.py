"""Limits on concurrent requests and WebSockets, and on waiting connections, so that no session or role displaces another. Pure."""

import contextlib
from collections import Counter

from rodeo.control.refused import Refused

OF_ONE = 32  # limit of one browser session with all its windows, or of all programs with one role's token
OF_ROLE = {"viewer": 96, "shifter": 96, "expert": 96, "unix": 128}  # separate limits: viewers do not block shifters
MOST_WAITING = 128  # limit of the waiting connections of each entrance


class Shares:
    """The limits of one entrance. `role` of OF_ROLE; `who`: any key for one client of a role, None without its own limit (the Unix socket: one user)."""

    def __init__(self):
        self._of_role, self._of_one = Counter(), Counter()

    @contextlib.contextmanager
    def taken(self, role, who):
        """Counts a request while it is in progress. Refused(control.too_many)."""
        if who is not None and self._of_one[role, who] >= OF_ONE:
            raise Refused(
                "control.too_many",
                f"{OF_ONE} requests and WebSockets of this session or token are in progress",
                "close some windows, or end programs",
            )
        if self._of_role[role] >= OF_ROLE[role]:
            raise Refused(
                "control.too_many",
                f"{OF_ROLE[role]} requests and WebSockets of {role}s are in progress",
                "close windows, or end programs; other roles are not affected",
            )
        self._of_role[role] += 1
        self._of_one[role, who] += 1
        try:
            yield
        finally:
            for counts, key in ((self._of_role, role), (self._of_one, (role, who))):
                counts[key] -= 1
                if not counts[key]:
                    del counts[key]


class Waiting:
    """Connections without a complete request. If they are too many, the one that has waited longest is closed."""

    def __init__(self, most=MOST_WAITING):
        self.most, self._all = most, {}

    def add(self, connection):
        """Adds a connection. Returns the connection to close, or None."""
        self._all.pop(connection, None)
        self._all[connection] = None
        if len(self._all) <= self.most:
            return None
        oldest = next(iter(self._all))
        del self._all[oldest]
        return oldest

    def remove(self, connection):
        self._all.pop(connection, None)
