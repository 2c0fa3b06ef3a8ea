"""The controller's observations at one moment, as plain values: the only input of the deciding modules. No clock, no I/O."""

from dataclasses import dataclass, field

from rodeo.control.state.status_schema import checked
from rodeo.control.state.system import Member

LOST_AFTER_POLLS = 3  # a living process is lost after this number of polls (one a second) without an answer
SILENT_AFTER_S = 30.0  # a process on an unreachable host is lost after this time without an answer

# Orderly ends: done; done with data lost; done with wrong bytes. The report has the details; none of them makes the process failed.
ORDERLY_EXITS = (0, 6, 7)

PHASES = ("absent", "launching", "ready", "running", "draining", "done", "failed", "lost")


@dataclass(frozen=True)
class Exit:
    """How a process ended, from its launcher. One of `status` and `signal` is None."""

    status: int | None = None
    signal: int | None = None
    core: str | None = None
    said: str = ""  # the last error in the log of the process

    @property
    def orderly(self):
        return self.signal is None and self.status in ORDERLY_EXITS

    def text(self):
        if self.signal is not None:
            return f"ended by signal {self.signal}" + (f", core {self.core}" if self.core else "")
        return (
            "ended"
            if self.status is None
            else f"ended with status {self.status}" + (f": {self.said}" if self.said and not self.orderly else "")
        )


@dataclass(frozen=True)
class Look:
    """One look at a process. `alive` comes from the launcher: True, False, None if its host does not answer. Ages are seconds on the monotonic clock.

    `status` is the last answer after status_schema.checked(), None before the first. Readers must not change it.
    """

    member: Member
    alive: bool | None = False
    phase_said: str | None = None  # the phase in the last status
    exit: Exit | None = None
    answered_age_s: float | None = None  # the age of the last answer; None: the process has never answered
    unanswered: int = 0  # polls since the last answer
    launched_age_s: float | None = None
    status: dict | None = None
    problems: tuple = ()  # the problems that status_schema.checked() found in the last status
    pid: int | None = None
    build: str | None = None
    configuration_sha256: str | None = None
    expected_sha256: str | None = None  # None: unknown
    expected_build: str | None = None
    run_number: int | None = None  # the process reports it in the phases running and draining
    restarts: int = 0
    since_ns: int | None = None  # UTC, for display: the begin of the present phase
    seen_ns: int | None = None  # UTC, for display: the time of the last answer
    cpu: float | None = None  # cores
    rss_bytes: int | None = None
    left: tuple = ()  # pids of descendants that outlived the process

    @property
    def name(self):
        return self.member.name


@dataclass(frozen=True)
class RunRow:
    """The open row of a run. `stopping`: a stop or abort has been ordered."""

    number: int
    type: str = ""
    state: str = "STARTING"
    stopping: bool = False
    condition: str | None = None
    flags: tuple = ()
    asked_ns: int | None = None
    first_event_ns: int | None = None
    stopped_ns: int | None = None
    seconds: float | None = None
    holder: str | None = None
    comment: str = ""
    directory: str = ""
    reason: str = ""


@dataclass(frozen=True)
class Act:
    """The act in progress: launch, start, pause, resume, stop, abort, recover, close, go_on. `age_s` on the monotonic clock, `began_ns` UTC for display."""

    name: str
    actor: str = ""
    age_s: float = 0.0
    limit_s: float | None = None
    began_ns: int | None = None

    @property
    def overdue(self):
        return self.limit_s is not None and self.age_s > self.limit_s


@dataclass(frozen=True)
class Choice:
    """An essential process was lost in a run: an operator must choose. `since_s` is on the monotonic clock, which all processes of a boot share."""

    process: str
    since_s: float
    what: str = ""


@dataclass(frozen=True)
class Memory:
    """The few facts that cannot be derived. The database keeps them (as_json, from_json) for the next controller.

    `wanted`: the last wish of the holder of control: "ready" (launch, start, stop), "off" (close, abort), None if unknown.
    `without`: members without which the run continues. `held_for`: the process for which rules hold the trigger. `restarts`: monotonic seconds of each
    restart. `gone`: members that failed in this run and are not restarted automatically, or have not answered for `choose_limit`. The database does not
    keep `gone`, because the next look derives it again.
    """

    wanted: str | None = None
    choice: Choice | None = None
    without: frozenset = frozenset()
    held_for: str | None = None
    restarts: dict = field(default_factory=dict)  # name -> tuple of seconds
    failed_s: dict = field(default_factory=dict)  # name -> time of the first look that saw it failed
    gone: frozenset = frozenset()

    def as_json(self):
        choice = self.choice and {
            "process": self.choice.process,
            "since_s": self.choice.since_s,
            "what": self.choice.what,
        }
        return {
            "wanted": self.wanted,
            "choice": choice,
            "without": sorted(self.without),
            "held_for": self.held_for,
            "restarts": {name: list(times) for name, times in self.restarts.items()},
        }

    @staticmethod
    def from_json(value, now_s):
        """The Memory that as_json wrote; ignores invalid members. Times after `now_s` are from another boot: they become `now_s`."""
        value = value if isinstance(value, dict) else {}
        choice = value.get("choice")
        if isinstance(choice, dict) and isinstance(choice.get("process"), str):
            choice = Choice(choice["process"], _second(choice.get("since_s"), now_s), str(choice.get("what") or ""))
        else:
            choice = None
        without = value.get("without")
        restarts = value.get("restarts")
        return Memory(
            wanted=value.get("wanted") if value.get("wanted") in ("ready", "off") else None,
            choice=choice,
            without=frozenset(name for name in without if isinstance(name, str))
            if isinstance(without, list)
            else frozenset(),
            held_for=value.get("held_for") if isinstance(value.get("held_for"), str) else None,
            restarts={
                name: tuple(_second(at, now_s) for at in times)
                for name, times in restarts.items()
                if isinstance(times, list)
            }
            if isinstance(restarts, dict)
            else {},
        )


def _second(value, now_s):
    return (
        min(float(value), now_s)
        if isinstance(value, (int, float)) and not isinstance(value, bool) and value == value
        else now_s
    )


def phase_of(look):
    """The phase of a process in the system's view, one of PHASES."""
    if look.alive is False:
        if look.exit is not None:
            return "done" if look.exit.orderly else "failed"
        return "absent"
    if look.alive is None:  # the host does not answer: the last phase holds until the silence is too long
        if look.answered_age_s is None:
            return (
                "absent"
                if look.launched_age_s is None
                else ("lost" if look.launched_age_s >= SILENT_AFTER_S else "launching")
            )
        if look.answered_age_s >= SILENT_AFTER_S:
            return "lost"
        return _said(look)
    if look.member.kind == "program":
        return "running"
    if look.answered_age_s is None:
        return "launching"
    if look.unanswered >= LOST_AFTER_POLLS and look.answered_age_s >= LOST_AFTER_POLLS:
        return "lost"
    return _said(look)


def _said(look):
    said = look.phase_said
    if said in ("launching", "ready", "running", "draining", "failed"):
        return said
    if said in ("stopped", "done"):  # the process is about to exit, and its exit status will follow
        return "draining"
    if said == "prepared":
        return "launching"
    if look.member.per_run:
        return "lost"  # the phase is invalid, so the process is unreliable
    return "running"  # a card or a router that answers is running


def look_at(member, raw_status, **seen):
    """The Look of one process: `raw_status` is its last answer, unchecked (None: it has never answered), `seen` are the other fields."""
    if raw_status is None:
        return Look(member, **seen)
    status, problems = checked(member.kind, raw_status)
    said = status.get("process") or {}
    run = status.get("run") or {}
    phase = said.get("phase") or status.get("phase")
    return Look(
        member,
        phase_said=phase,
        status=status,
        problems=problems,
        build=said.get("build"),
        configuration_sha256=said.get("configuration_sha256"),
        run_number=(run.get("number") or None) if phase in ("running", "draining") else None,
        **{"pid": said.get("pid"), **seen},
    )
