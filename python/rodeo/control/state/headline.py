"""The health of the data in one word for page, shell and Python, and the first cause of a problem. Pure.

The state says what the system does. The headline says whether the run takes data: a run that is RUNNING without data has its own word and colour. Only this
module derives the first cause: so the picture, the alarms and the reason of the run name the same one.
"""

from dataclasses import dataclass

from rodeo.control.state.kinds import kind_of
from rodeo.control.state.losses import SilentLinks, lacking
from rodeo.control.state.numbers import card_losses, grown, growth_of, total, value

NO_DATA, NO_TRIGGERS, LOSES_DATA, LOSES_TRIGGERS = "NO DATA", "NO TRIGGERS", "LOSES DATA", "LOSES TRIGGERS"
OF_STATES = {
    "OFF": "idle",
    "LAUNCHING": "busy",
    "READY": "ready",
    "STARTING": "busy",
    "RUNNING": "good",
    "PAUSED": "warning",
    "STOPPING": "busy",
    "CLOSING": "busy",
    "ERROR": "alarm",
}
SEVERITIES = ("idle", "ready", "busy", "good", "warning", "alarm")
BLOCKED_S = 2.0  # Seconds without data before NO DATA.
UNBUILT_LOOKS = 3  # NO DATA also needs this many looks, because cards and readouts answer at different moments.
IDLE_S = 10.0  # NO TRIGGERS comes after this time without an offered trigger, or with an unknown offer
GOOD_S = 60.0  # Seconds of a good headline after which the trouble is over.
ALL = ""  # stands for all readouts together
ON_PURPOSE = ("link_removed", "card_link_down")  # Losses of removed and dead links; DEGRADED reports them.
SILENT_POLLS = 2  # after this number of missing answers a process counts as the cause of a standstill
_DEAD = {
    "failed": "has failed",
    "lost": "does not answer",
    "absent": "is not there",
    "done": "has ended",
    "launching": "is being started again",
}


@dataclass(frozen=True)
class Headline:
    """`word`: a state, or one of the four words above. `severity`: one of SEVERITIES. `cause`: {"process", "stage"} of the first cause; None if unknown."""

    word: str
    severity: str
    cause: dict | None = None

    def as_json(self):
        return {"word": self.word, "severity": self.severity, "cause": self.cause}

    @property
    def what(self):
        """A sentence for alarms and for the reason of the run."""
        said = {
            NO_DATA: "the run takes no data",
            NO_TRIGGERS: "no trigger comes",
            LOSES_DATA: "the run loses data",
            LOSES_TRIGGERS: "the run loses triggers",
        }
        return f"{said[self.word]}: {cause_text(self.cause)}" if self.word in said else self.word


def cause_text(cause):
    return f"{cause['process']}: {cause['stage']}" if cause else "the cause is not known yet"


@dataclass(frozen=True)
class Flow:
    """The flow of data at one look; unknown numbers are None.

    `zero_s`: seconds without data, in which no trigger is accepted, or no readout builds an event while triggers come; None while data flow. `offered`:
    triggers are offered or accepted, or it is unknown while no event is built. `stalled`: the readout that has built nothing for the longest time while
    others build. `incomplete_ppm`, `lost_ppm`, `partial_ppm`: incomplete fragments, lost chunks, and whole events that lack fragments, per million of this
    look. `dead_time`: the fraction of this look's triggers that were lost. `lacking`: the readout whose fragments whole events lack most. `silent`: the
    Silent links."""

    zero_s: float | None = None
    offered: bool = False
    incomplete_ppm: float | None = None
    lost_ppm: float | None = None
    dead_time: float | None = None
    stalled: str | None = None
    partial_ppm: float | None = None
    lacking: str | None = None
    silent: tuple = ()


class FlowMeter:
    """Makes a Flow from the numbers of each look. The caller passes the time."""

    def __init__(self):
        self._zero_since_s = None
        self._silent_links = SilentLinks()
        self._unbuilt = {}  # readout, or ALL -> (begin, number of looks) in which triggers came and it built nothing

    def update(self, now_s, numbers, before, after):
        rate, offered = numbers.get("trigger_rate_hz"), numbers.get("offered_rate_hz")
        self._zero_since_s = None if rate != 0 else now_s if self._zero_since_s is None else self._zero_since_s
        built = incomplete = lost = None
        if before is not None:
            self._count_unbuilt(now_s, rate is None or bool(rate or offered), before, after)
            built = growth_of(before, after, "readout", _built)
            incomplete = growth_of(before, after, "readout", lambda status: value(status, "fragments", "incomplete"))
            lost = _lost_ppm(before, after)
        unaccepted_s = None if self._zero_since_s is None else now_s - self._zero_since_s
        unbuilt_s = self._unbuilt_s(now_s, ALL)
        return Flow(
            zero_s=max((one for one in (unaccepted_s, unbuilt_s) if one is not None), default=None),
            offered=bool(offered or rate) or (rate is None and unbuilt_s is not None),
            incomplete_ppm=1e6 * incomplete / built if built and incomplete is not None else None,
            lost_ppm=lost,
            dead_time=numbers.get("dead_time_fraction"),
            stalled=self._stalled(now_s) if unbuilt_s is None else None,
            partial_ppm=numbers.get("partial_ppm"),
            lacking=lacking(before, after) if before is not None else None,
            silent=self._silent_links.update(now_s, before, after),
        )

    def _count_unbuilt(self, now_s, triggers_come, before, after):
        """Counts looks in which a readout that answers has built nothing, and those in which no readout has. Such a look without a trigger does not count."""
        growths = {
            name: grown(_built(before.statuses.get(name, (None, None))[1]), _built(status))
            for name, status in after.statuses_of("readout").items()
        }
        whole = total(growths.values()) if growths else 0 if after.all_of("readout") else None
        answering = {
            name: growth
            for name, growth in growths.items()
            if name not in after.answered_s or after.answered_s[name] != before.answered_s.get(name)
        }
        self._unbuilt = {name: one for name, one in self._unbuilt.items() if name == ALL or name in answering}
        for name, growth in {**answering, ALL: whole}.items():
            if growth:
                self._unbuilt.pop(name, None)
            elif growth == 0 and triggers_come:
                since_s, looks = self._unbuilt.get(name, (now_s, 0))
                self._unbuilt[name] = since_s, looks + 1

    def _stalled(self, now_s):
        since = {
            name: seconds
            for name in self._unbuilt
            if name != ALL and (seconds := self._unbuilt_s(now_s, name) or 0.0) >= BLOCKED_S
        }
        return max(since, key=since.get, default=None)

    def _unbuilt_s(self, now_s, name):
        since_s, looks = self._unbuilt.get(name, (now_s, 0))
        return now_s - since_s if looks >= UNBUILT_LOOKS else None


def _built(status):
    return value(status, "fragments", "built")


def _lost_ppm(before, after):
    """Lost chunks of a million between two moments, without those that were left out on purpose; None if unknown."""
    built, lost = (
        growth_of(before, after, "readout", lambda status: value(status, "chunks", "built")),
        growth_of(before, after, "readout", _lost),
    )
    cards = card_losses(before.statuses_of("emulator"), after.statuses_of("emulator"))
    sum_lost = total([lost, *(count for reason, count in cards.items() if reason not in ON_PURPOSE)])
    return 1e6 * sum_lost / (sum_lost + (built or 0)) if sum_lost else None if built is None else 0.0


def _lost(status):
    return total(
        count
        for reason, count in (((status or {}).get("chunks") or {}).get("lost") or {}).items()
        if reason not in ON_PURPOSE
    )


def loss(flow, partial_limit_ppm):
    """Returns {"process", "stage"} of a loss that stops nothing: a link is silent, or whole events lack the fragments of a readout. None without a loss."""
    if flow.silent:
        first = flow.silent[0]
        return {"process": first.process, "stage": first.what}
    if _over(flow.partial_ppm, partial_limit_ppm) and flow.lacking:
        return {"process": flow.lacking, "stage": "events lack its fragments"}
    return None


def first_cause(derived, looks, limited, *, run, standing, stalled=None, lost=None):
    """Returns the {"process", "stage"} that delays the data; None if no process delays them, or if the cause is unknown. A process of the data path that is
    gone or silent takes precedence over the reports of waiting processes, because they wait for it. Of several, the first to go is the cause. A process that
    is left out delays nothing. `limited`: numbers.limited_by(). `lost`: loss(); it takes precedence over reports, because processes may wait for the lost
    data. `standing`: the data are delayed now. `stalled`: the readout that builds nothing while others build; it counts only if no other cause is known."""
    if run is None:
        return limited
    ours = [
        look
        for look in looks
        if kind_of(look.member.kind).order and look.member.kind != "program" and look.name not in derived.left_out
    ]
    dead = [
        look for look in ours if derived.phases.get(look.name) in _DEAD and (look.name in derived.broken or standing)
    ]
    if dead:
        first = min(
            dead,
            key=lambda look: (look.since_ns is None, look.since_ns or 0, kind_of(look.member.kind).order, look.name),
        )
        return {"process": first.name, "stage": _DEAD[derived.phases[first.name]]}
    if standing:
        silent = [look for look in ours if look.alive and look.unanswered >= SILENT_POLLS]
        if silent:
            first = max(silent, key=lambda look: (look.answered_age_s or 0, -kind_of(look.member.kind).order))
            return {"process": first.name, "stage": "does not answer"}
    return lost or limited or ({"process": stalled, "stage": "builds nothing"} if stalled else None)


def standing(flow):
    """Whether triggers come, but no data."""
    return flow.zero_s is not None and flow.zero_s >= BLOCKED_S and flow.offered


def troubled(flow, *, dead_time_limit, partial_limit_ppm):
    """Whether triggers come without data, or are lost, or data are lost: then a process that is gone or silent counts as the cause."""
    return (
        (flow.zero_s is not None and flow.offered)
        or flow.stalled is not None
        or bool(flow.silent)
        or _over(flow.partial_ppm, partial_limit_ppm)
        or _over(flow.dead_time, dead_time_limit)
    )


def headline(derived, flow, cause, *, run, incomplete_limit_ppm, partial_limit_ppm, dead_time_limit):
    """The Headline of this moment. `flow`: Flow. `cause`: from first_cause()."""
    if run is not None and derived.state == "PAUSED" and derived.broken:  # triggers are held for a process that is gone
        return Headline(NO_DATA, "alarm", cause)
    if run is None or derived.state != "RUNNING":
        return Headline(derived.state, OF_STATES.get(derived.state, "alarm"))
    if flow.zero_s is not None and flow.zero_s >= BLOCKED_S and (flow.offered or derived.broken or cause):
        return Headline(NO_DATA, "alarm", cause)
    if flow.zero_s is not None and flow.zero_s >= IDLE_S:
        return Headline(NO_TRIGGERS, "warning", cause)
    if derived.broken or flow.stalled is not None:
        return Headline(LOSES_DATA, "alarm", cause)
    if (
        _over(flow.incomplete_ppm, incomplete_limit_ppm)
        or _over(flow.lost_ppm, incomplete_limit_ppm)
        or _over(flow.partial_ppm, partial_limit_ppm)
        or flow.silent
    ):
        return Headline(LOSES_DATA, "warning", cause)
    if _over(flow.dead_time, dead_time_limit):
        return Headline(LOSES_TRIGGERS, "warning", cause)
    return Headline("RUNNING", "good")


def _over(number, limit):
    return number is not None and number > limit


class Trouble:
    """The sentence with the first cause for which a run takes no data or loses them: of the first alarm with a cause, until the headline was good for a
    while. A run that first loses data and then takes none for the same cause takes none."""

    def __init__(self):
        self._good_since_s = None

    def update(self, now_s, said, trouble):
        """The trouble of the run after this headline; `trouble`: before it."""
        if said.severity != "good":
            self._good_since_s = None
            named = said.what if said.severity == "alarm" and said.cause else ""
            worse = said.word == NO_DATA and trouble.endswith(f": {cause_text(said.cause)}")
            return named if worse or not trouble else trouble
        self._good_since_s = now_s if self._good_since_s is None else self._good_since_s
        return "" if now_s - self._good_since_s >= GOOD_S else trouble
