"""All automatic steps: mark a run, hold or release the trigger, restart a process, stop in order, finish the act of a former controller.

The controller never automatically starts a run after an error, restarts an essential process in a run, kills a process that drains or writes, changes a
configuration, takes control, clears an alarm, or deletes data. No Reaction has such a kind.
"""

from dataclasses import dataclass, replace

from rodeo.control.state.snapshots import Choice, Memory

KINDS = ("mark", "hold", "release", "restart", "stop", "undo_start", "relaunch", "close")
MOST_RESTARTS = 3
RESTART_WINDOW_S = 600.0
BACK_OFF_S = (1.0, 4.0, 16.0)


@dataclass(frozen=True)
class Reaction:
    """One automatic step; the caller keeps their order. "mark": adds `flags` to the run's row. "hold", "release": of the trigger. "restart": of `process`,
    once. The others are acts: at most one in an answer, and none during another act. `why` is for the audit and the page."""

    kind: str
    why: str
    process: str | None = None
    flags: tuple = ()


@dataclass(frozen=True)
class Disk:
    """The disk of the run's files; unknown values are None (then no rule applies)."""

    free_bytes: int | None = None
    seconds_left: float | None = None
    stop_bytes: int = 0
    least_seconds: float = 0.0

    @property
    def too_full(self):
        """Why the run must stop, or None."""
        if self.free_bytes is not None and self.free_bytes < self.stop_bytes:
            return f"disk: {self.free_bytes / 1e9:.2f} GB are free, the limit is {self.stop_bytes / 1e9:.2f} GB"
        if self.seconds_left is not None and self.seconds_left < self.least_seconds:
            return f"disk: full in {self.seconds_left:.0f} s, the limit is {self.least_seconds:.0f} s"
        return None


def react(derived, looks, *, run=None, act=None, memory=None, now_s, choose_limit_s=60.0, disk=None):
    """Returns (tuple of Reactions, the new Memory). Called at each look; the caller carries them out in order, and also keeps the Memory in the database.
    `now_s`: monotonic."""
    memory = memory or Memory()
    reactions = []
    memory = _about_the_lost(derived, run, act, memory, now_s, reactions)
    memory = _restarts(derived, looks, run, act, memory, now_s, choose_limit_s, reactions)
    if act is None:
        one = _act(derived, run, memory, now_s, choose_limit_s, disk or Disk())
        if one:
            reactions.append(one)
    if run is not None and derived.flags and "DEGRADED" in derived.flags and "DEGRADED" not in run.flags:
        reactions.append(Reaction("mark", derived.what, flags=("DEGRADED",)))
    return tuple(reactions), memory


def _about_the_lost(derived, run, act, memory, now_s, reactions):
    """Holds the trigger when an essential process is lost in a run, asks for a choice, and releases the trigger when the process is back."""
    if run is None:
        return replace(memory, choice=None, held_for=None, without=frozenset())
    if (
        run.stopping
        or derived.state not in ("RUNNING", "PAUSED")
        or (act is not None and act.name not in ("pause", "resume", "advance", "go_on"))
    ):
        return memory
    if derived.broken:
        name = (
            memory.choice.process
            if memory.choice and memory.choice.process in derived.broken
            else next(iter(derived.broken))
        )
        if memory.choice is None or memory.choice.process != name:
            since = memory.choice.since_s if memory.choice else now_s
            memory = replace(memory, choice=Choice(name, since, derived.broken[name]))
        if derived.held is False:
            reactions.append(Reaction("hold", f"{name} {derived.broken[name]}", process=name))
            memory = replace(memory, held_for=name)
        return memory
    if memory.choice is not None:  # the process answers again, or the run continues without it
        memory = replace(memory, choice=None)
    if memory.held_for is not None:
        if derived.held and act is None:
            reactions.append(
                Reaction(
                    "release",
                    f"{memory.held_for} is back"
                    if memory.held_for not in memory.without
                    else f"the run continues without {memory.held_for}",
                )
            )
        elif derived.held is False:
            memory = replace(memory, held_for=None)
    return memory


def _restarts(derived, looks, run, act, memory, now_s, choose_limit_s, reactions):
    failed_s, gone = {}, set()
    restarts = memory.restarts
    for look in looks:
        name, one = look.name, look.member.process_class
        recent = tuple(at for at in restarts.get(name, ()) if now_s - at < RESTART_WINDOW_S)
        phase = derived.phases.get(name)
        ended = (
            phase == "failed" or phase == "done" and not one.per_run or phase == "absent" and recent
        )  # "absent" means that its host could not restart it
        silent = phase == "lost" and (look.answered_age_s or look.launched_age_s or 0.0) >= choose_limit_s
        if run is not None and (phase == "done" and one.per_run or silent):
            gone.add(name)
        if not ended:
            continue
        failed_s[name] = min(memory.failed_s.get(name, now_s), now_s)
        if (
            run is not None
            and (one.restart != "in_run" or len(recent) >= MOST_RESTARTS)
            and (phase != "absent" or now_s - failed_s[name] >= BACK_OFF_S[0])
        ):
            gone.add(name)
        if act is not None or not _may_restart(derived, one, name, run, memory):
            continue
        if len(recent) >= MOST_RESTARTS or now_s - failed_s[name] < BACK_OFF_S[len(recent)]:
            continue
        restarts = {**restarts, name: (*recent, now_s)}
        del failed_s[name]
        reactions.append(Reaction("restart", f"restart {len(recent) + 1} of {MOST_RESTARTS}", process=name))
    return replace(memory, failed_s=failed_s, restarts=restarts, gone=frozenset(gone))


def _may_restart(derived, one, name, run, memory):
    if one.restart == "never" or memory.wanted == "off" or derived.foreign or name in memory.without:
        return False
    if run is None:
        return memory.wanted == "ready" and derived.state in ("READY", "ERROR", "LAUNCHING")
    if one.restart != "in_run" or one.role == "essential" or name in derived.broken:
        return False  # an operator must choose: the process is essential, or its class would have too few
    return derived.state in ("RUNNING", "PAUSED") and not run.stopping


def continue_without(memory, lost):
    """The Memory after the choice to continue without the processes `lost`. The caller, or the next reaction, releases the trigger for the others.
    Processes lost after the choice need another choice."""
    return replace(memory, without=memory.without | frozenset(lost), choice=None)


def given_up(memory, name, now_s):
    """Whether a failed process is no longer restarted automatically."""
    return sum(now_s - at < RESTART_WINDOW_S for at in memory.restarts.get(name, ())) >= MOST_RESTARTS


def _act(derived, run, memory, now_s, choose_limit_s, disk):
    if derived.heal == "stop":
        orderly = run.stopping or all(derived.phases[name] == "done" for name in derived.broken)
        return Reaction("stop", derived.what, flags=() if orderly else ("INTERRUPTED",))
    if derived.heal is not None:
        return Reaction(derived.heal, derived.what)
    if run is None or derived.state not in ("RUNNING", "PAUSED"):
        return None
    if disk.too_full:
        return Reaction("stop", disk.too_full)
    if memory.choice is not None and now_s - memory.choice.since_s >= choose_limit_s:
        ended = set(derived.broken) <= set(derived.ended)
        return Reaction(
            "stop",
            f"{memory.choice.process} {memory.choice.what}, and no choice was made for {choose_limit_s:.0f} s",
            flags=() if ended else ("INTERRUPTED",),
        )
    return None
