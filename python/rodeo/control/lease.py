"""Who has control: one holder at a time, renewed within 30 s, a fencing number that every change raises; asked for, granted after 60 s.

Pure: time is an argument, in seconds of a monotonic clock. A lost lease changes nothing in a run."""

from dataclasses import dataclass

from rodeo.control.refused import Refused

LEASE_S = 30.0  # without a renewal of the holder control is free again
GRANT_S = 60.0  # whoever asked has it then, whatever the holder does


@dataclass
class Lease:
    """`fence` begins where the last controller ended, so that what was sent to that one is stale for this one."""

    fence: int = 0
    holder: str | None = None
    until_s: float = 0.0
    asked_by: str | None = None
    asked_s: float = 0.0

    def due(self, now_s):
        """What time alone has changed, as (what, who): lapsed (the holder said nothing) or granted (to whoever asked). Called before all else."""
        changes = []
        if self.asked_by and (now_s >= self.asked_s + GRANT_S or (self.holder and now_s >= self.until_s)):
            changes.append(("granted", self.asked_by))
            self._give(self.asked_by, now_s)
        elif self.holder and now_s >= self.until_s:
            changes.append(("lapsed", self.holder))
            self._nobody()
        return changes

    def take(self, who, now_s, *, at_once=False) -> int:
        """Control if it is free, or already theirs, or at once (an expert's right). Returns the fencing number."""
        if self.holder == who:
            self.until_s = now_s + LEASE_S
        elif self.holder is None or at_once:
            self._give(who, now_s)
        else:
            raise Refused("control.lease_held", f"{self.holder} has control", "ask for it (rodeo control ask): it is yours after 60 s at most")
        return self.fence

    def ask(self, who, now_s) -> float:
        """Asks for control. Returns the seconds until it is theirs: 0 if it is theirs now."""
        if self.holder is None or self.holder == who:
            self.take(who, now_s)
            return 0.0
        if self.asked_by not in (None, who):
            raise Refused("control.lease_asked", f"{self.asked_by} has asked for control already, and {self.holder} has it", "talk to them")
        if self.asked_by is None:
            self.asked_by, self.asked_s = who, now_s
        return max(0.0, self.asked_s + GRANT_S - now_s)

    def release(self, who, now_s):
        """Gives control back; to whoever asked for it, if somebody did. Somebody who only asked takes the question back."""
        if self.asked_by == who:
            self.asked_by = None
            return
        if self.holder != who:
            raise Refused("control.not_holder", f"{self.holder or 'nobody'} has control, not {who}", "")
        if self.asked_by:
            self._give(self.asked_by, now_s)
        else:
            self._nobody()

    def renew(self, who, fence, now_s):
        """The holder is there. Refused if control has changed hands since."""
        self.check(who, fence)
        self.until_s = now_s + LEASE_S

    def check(self, who, fence=None):
        """Refused unless `who` has control and has not lost it since it was given the number `fence` (None: not told)."""
        if fence is not None and fence != self.fence:
            raise Refused("control.stale_lease", f"control has changed hands since: fencing number {fence}, now {self.fence}"
                          + (f", {self.holder} has it" if self.holder else ", nobody has it"), "take control again (rodeo control take)")
        if self.holder != who:
            raise Refused("control.not_holder", f"{self.holder} has control, not {who}" if self.holder else f"nobody has control, so {who} has not either",
                          "ask for it (rodeo control ask)" if self.holder else "take it (rodeo control take)")

    def _give(self, who, now_s):
        self.holder, self.until_s, self.asked_by = who, now_s + LEASE_S, None
        self.fence += 1

    def _nobody(self):
        self.holder, self.asked_by = None, None
        self.fence += 1
