"""The health of the data in one word for page, shell and Python, and the first cause of a problem. Pure.

The state says what the system does. The headline says whether the run takes data: a run that is RUNNING without data has its own word and colour. Only this
module derives the first cause: so the picture, the alarms and the reason of the run name the same one.
"""

from dataclasses import dataclass

from .kinds import kind_of
from .numbers import growth_of, value

NO_DATA, NO_TRIGGERS, LOSES_DATA, LOSES_TRIGGERS = "NO DATA", "NO TRIGGERS", "LOSES DATA", "LOSES TRIGGERS"
OF_STATES = {"OFF": "idle", "LAUNCHING": "busy", "READY": "ready", "STARTING": "busy", "RUNNING": "good", "PAUSED": "warning", "STOPPING": "busy", "CLOSING": "busy",
             "ERROR": "alarm"}
SEVERITIES = ("idle", "ready", "busy", "good", "warning", "alarm")
BLOCKED_S = 2.0  # NO DATA after offered triggers without an accepted one for so long: a run of a few hertz has single seconds without any
IDLE_S = 10.0  # NO TRIGGERS after so long without an offered trigger, or with an unknown offer
SILENT_POLLS = 2  # after so many missing answers a process counts as the cause of a standstill
_DEAD = {"failed": "has failed", "lost": "does not answer", "absent": "is not there", "done": "has ended", "launching": "is being started again"}


@dataclass(frozen=True)
class Headline:
    """`word`: a state, or one of the four above. `severity`: one of SEVERITIES. `cause`: {"process", "stage"} of the first cause, None if unknown."""

    word: str
    severity: str
    cause: dict | None = None

    def as_json(self):
        return {"word": self.word, "severity": self.severity, "cause": self.cause}

    @property
    def what(self):
        """A sentence for alarms and for the reason of the run."""
        said = {NO_DATA: "the run takes no data", NO_TRIGGERS: "no trigger comes", LOSES_DATA: "the run loses data", LOSES_TRIGGERS: "the run loses triggers"}
        return f"{said[self.word]}: {told(self.cause)}" if self.word in said else self.word


def told(cause):
    return f"{cause['process']}: {cause['stage']}" if cause else "the cause is not known yet"


@dataclass(frozen=True)
class Flow:
    """`zero_s`: seconds without an accepted trigger, None while triggers come or their rate is unknown. `offered`: triggers are offered.
    `incomplete_ppm`: of the fragments of the last look. `dead_time`: the fraction of triggers lost in the last look; both None if unknown."""

    zero_s: float | None = None
    offered: bool = False
    incomplete_ppm: float | None = None
    dead_time: float | None = None


class FlowMeter:
    """Makes a Flow from the numbers of each look. The caller passes the time."""

    def __init__(self):
        self._zero_since_s = None

    def look(self, now_s, numbers, before, after):
        rate = numbers.get("trigger_rate_hz")
        self._zero_since_s = None if rate != 0 else now_s if self._zero_since_s is None else self._zero_since_s
        built = incomplete = None
        if before is not None:
            built = growth_of(before, after, "readout", lambda status: value(status, "fragments", "built"))
            incomplete = growth_of(before, after, "readout", lambda status: value(status, "fragments", "incomplete"))
        return Flow(zero_s=None if self._zero_since_s is None else now_s - self._zero_since_s, offered=bool(numbers.get("offered_rate_hz")),
                    incomplete_ppm=1e6 * incomplete / built if built and incomplete is not None else None, dead_time=numbers.get("dead_time_fraction"))


def first_cause(derived, looks, limited, *, run, standing):
    """{"process", "stage"} that delays the data, None if nothing does or the cause is unknown. A process of the data path that is gone or silent takes
    precedence over the reports of waiting processes, because they wait for it; of several, the one that went first. `limited`: numbers.limited_by().
    `standing`: the data are delayed now."""
    if run is None:
        return limited
    ours = [look for look in looks if kind_of(look.member.kind).order and look.member.kind != "program"]
    dead = [look for look in ours if derived.phases.get(look.name) in _DEAD and (look.name in derived.broken or standing)]
    if dead:
        first = min(dead, key=lambda look: (look.since_ns is None, look.since_ns or 0, kind_of(look.member.kind).order, look.name))
        return {"process": first.name, "stage": _DEAD[derived.phases[first.name]]}
    if standing:
        silent = [look for look in ours if look.alive and look.unanswered >= SILENT_POLLS]
        if silent:
            first = max(silent, key=lambda look: (look.answered_age_s or 0, -kind_of(look.member.kind).order))
            return {"process": first.name, "stage": "does not answer"}
    return limited


def standing(flow):
    """Whether triggers are offered, but none is accepted."""
    return flow.zero_s is not None and flow.zero_s >= BLOCKED_S and flow.offered


def troubled(flow, dead_time_limit):
    """Whether triggers are lost, or offered without an accepted one: then a process that is gone or silent counts as the cause."""
    return standing(flow) or (flow.zero_s is not None and flow.offered) or (flow.dead_time is not None and flow.dead_time > dead_time_limit)


def headline(derived, flow, cause, *, run, incomplete_limit_ppm, dead_time_limit):
    """The Headline of this moment. `flow`: Flow. `cause`: from first_cause()."""
    if run is None or derived.state != "RUNNING":
        return Headline(derived.state, OF_STATES.get(derived.state, "alarm"))
    if standing(flow) or (flow.zero_s is not None and flow.zero_s >= BLOCKED_S and derived.broken):
        return Headline(NO_DATA, "alarm", cause)
    if flow.zero_s is not None and flow.zero_s >= IDLE_S:
        return Headline(NO_TRIGGERS, "warning", cause)
    if derived.broken:
        return Headline(LOSES_DATA, "alarm", cause)
    if flow.incomplete_ppm is not None and flow.incomplete_ppm > incomplete_limit_ppm:
        return Headline(LOSES_DATA, "warning", cause)
    if flow.dead_time is not None and flow.dead_time > dead_time_limit:
        return Headline(LOSES_TRIGGERS, "warning", cause)
    return Headline("RUNNING", "good")
