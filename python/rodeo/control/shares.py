"""How many requests and WebSockets may be under way at once, and how many connections may wait, so that no session or role takes the room of another. Pure."""

import contextlib
from collections import Counter

from rodeo.control.refused import Refused

OF_ONE = 32  # a browser session, all of whose windows share it; or all programs with the token of a role
OF_ROLE = {"viewer": 96, "shifter": 96, "expert": 96, "unix": 128}  # each has its own: viewers keep no shifter out
MOST_WAITING = 128  # connections of each way in


class Shares:
    """Of one way in. `role` of OF_ROLE; `who`: any key for one of a role, None where it has no share of its own (the Unix socket, which is one user's)."""

    def __init__(self):
        self._of_role, self._of_one = Counter(), Counter()

    @contextlib.contextmanager
    def taken(self, role, who):
        """For as long as the request is under way. Refused(control.too_many)."""
        if who is not None and self._of_one[role, who] >= OF_ONE:
            raise Refused("control.too_many", f"{OF_ONE} requests and WebSockets of this session or token are under way", "close some windows, or end programs")
        if self._of_role[role] >= OF_ROLE[role]:
            raise Refused("control.too_many", f"{OF_ROLE[role]} requests and WebSockets of {role}s are under way", "another role is not concerned; close windows, or end programs")
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
    """Connections without a request under way, as one that has sent half of one. Of too many, that one has to go which has waited longest."""

    def __init__(self, most=MOST_WAITING):
        self.most, self._all = most, {}

    def add(self, connection):
        """Returns the connection that has to go, or None."""
        self._all.pop(connection, None)
        self._all[connection] = None
        if len(self._all) <= self.most:
            return None
        oldest = next(iter(self._all))
        del self._all[oldest]
        return oldest

    def remove(self, connection):
        self._all.pop(connection, None)
