"""The lease of control: one holder at a time, renewed within 30 s; every change raises the fencing number; a request is granted after 60 s.

Pure: time is an argument, in seconds of a monotonic clock. A lost lease does not affect the run."""

from dataclasses import dataclass

from rodeo.control.refused import Refused

LEASE_S = 30.0  # without a renewal control becomes free after this time
GRANT_S = 60.0  # a request is granted after this time, whatever the holder does


@dataclass
class Lease:
    """`fence` begins above the last controller's numbers, so that commands with those numbers are stale."""

    fence: int = 0
    holder: str | None = None
    until_s: float = 0.0
    asked_by: str | None = None
    asked_s: float = 0.0

    def due(self, now_s):
        """Changes that depend on time alone, as (what, who): lapsed (the holder did not renew) or granted (to the user who asked). Called before all else."""
        changes = []
        if self.asked_by and (now_s >= self.asked_s + GRANT_S or (self.holder and now_s >= self.until_s)):
            changes.append(("granted", self.asked_by))
            self._give(self.asked_by, now_s)
        elif self.holder and now_s >= self.until_s:
            changes.append(("lapsed", self.holder))
            self._free()
        return changes

    def acquire(self, who, now_s, *, at_once=False) -> int:
        """Gives `who` control if it is free or already theirs, or with `at_once` (experts). Returns the fencing number."""
        if self.holder == who:
            self.until_s = now_s + LEASE_S
        elif self.holder is None or at_once:
            self._give(who, now_s)
        else:
            raise Refused(
                "control.lease_held",
                f"{self.holder} has control",
                "ask for it (rodeo control ask): you get it after 60 s at most",
            )
        return self.fence

    def ask(self, who, now_s) -> float:
        """Asks for control. Returns the seconds until `who` gets it; 0 if `who` has it now."""
        if self.holder is None or self.holder == who:
            self.acquire(who, now_s)
            return 0.0
        if self.asked_by not in (None, who):
            raise Refused(
                "control.lease_asked",
                f"{self.asked_by} has asked for control already, and {self.holder} has it",
                "talk to them",
            )
        if self.asked_by is None:
            self.asked_by, self.asked_s = who, now_s
        return max(0.0, self.asked_s + GRANT_S - now_s)

    def release(self, who, now_s):
        """Gives control back, or to the user who asked for it. If `who` only asked for control, withdraws the request."""
        if self.asked_by == who:
            self.asked_by = None
            return
        if self.holder != who:
            raise Refused("control.not_holder", f"{self.holder or 'no user'} has control, not {who}", "")
        if self.asked_by:
            self._give(self.asked_by, now_s)
        else:
            self._free()

    def renew(self, who, fence, now_s):
        """Renews the lease of the holder. Refused if control has changed hands since."""
        self.check(who, fence)
        self.until_s = now_s + LEASE_S

    def check(self, who, fence=None):
        """Refused unless `who` has control, and has had it since the number `fence` (None: not checked)."""
        if fence is not None and fence != self.fence:
            raise Refused(
                "control.stale_lease",
                f"control has changed hands since: fencing number {fence}, now {self.fence}"
                + (f", {self.holder} has it" if self.holder else ", it is free"),
                "take control again (rodeo control take)",
            )
        if self.holder != who:
            raise Refused(
                "control.not_holder",
                f"{self.holder} has control, not {who}" if self.holder else f"control is free, {who} does not have it",
                "ask for it (rodeo control ask)" if self.holder else "take it (rodeo control take)",
            )

    def _give(self, who, now_s):
        self.holder, self.until_s, self.asked_by = who, now_s + LEASE_S, None
        self.fence += 1

    def _free(self):
        self.holder, self.asked_by = None, None
        self.fence += 1
