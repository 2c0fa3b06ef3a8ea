"""Alarm rules: the built-in ones, changes by a system file, and rules of the system file. Pure.

`src/process/alarm_configuration.cpp` checks the rules in a system file; a test compares the two lists of names."""

import math
from dataclasses import dataclass, replace

SEVERITIES = ("alarm", "warning")  # the most severe first
COMPARISONS = {
    ">": lambda value, limit: value > limit,
    ">=": lambda value, limit: value >= limit,
    "<": lambda value, limit: value < limit,
    "<=": lambda value, limit: value <= limit,
    "==": lambda value, limit: value == limit,
    "!=": lambda value, limit: value != limit,
}


@dataclass(frozen=True)
class Rule:
    """An alarm rule. `needs` (n, m): the condition must hold in n of the last m looks, one a second. `severity` None: it depends on the role of the process,
    or on the value. `about`: the condition as a sentence. `expression`: the condition for Prometheus with {limit}, made of the room's metrics
    (state/room_metrics.py); for a rule of the system file it is generated from `value`. Only rules of the system file use the fields after `own`."""

    name: str
    severity: str | None = "warning"
    needs: tuple = (1, 1)
    limit: float | None = None
    do: str = ""
    about: str = ""
    expression: str = ""
    enabled: bool = True
    own: bool = False
    of: str = ""
    value: str = ""
    per_second: bool = False
    comparison: str = ">"
    text: str = ""
    when: str = "running"
    gone: str = "warning"

    def holds(self, value):
        """Whether a number raises the alarm."""
        return COMPARISONS[self.comparison](value, self.limit)

    def worst(self, values):
        """The value nearest to the limit, or furthest beyond it; None without values."""
        if not values:
            return None
        if self.comparison in ("==", "!="):
            return next((value for value in values if self.holds(value)), values[0])
        return min(values) if self.comparison in ("<", "<=") else max(values)

    def said(self, value, subject=""):
        """The text for a value."""
        if self.text:
            known = {"value": number(value), "limit": number(self.limit), "process": subject}
            text = self.text
            for name, word in known.items():
                text = text.replace("{" + name + "}", word)
            return text
        return f"{subject or 'the system'}: {self.value} is {number(value)}{' a second' if self.per_second else ''} ({self.comparison} {number(self.limit)})"


def number(value):
    """A number for people."""
    if value is None:
        return "-"
    return str(int(value)) if float(value).is_integer() and abs(value) < 1e15 else f"{value:.4g}"


RUNNING = 'rodeo_room_state{state="RUNNING"} == 1'
LEFT_OUT = "unless on (system, process) (rodeo_room_process_left_out == 1)"
BUILT_IN = {
    rule.name: rule
    for rule in (
        Rule(
            "process_failed",
            None,
            about="a process has ended badly, or reports a failure",
            do="look at its log",
            expression='rodeo_room_process_phase{phase="failed"} == 1',
        ),
        Rule(
            "process_given_up",
            "alarm",
            about="a process was restarted three times in ten minutes and failed again",
            do="find out why it fails; it is no longer restarted automatically",
        ),
        Rule(
            "process_lost",
            None,
            about="a process lives and does not answer",
            do="look at its log",
            expression='rodeo_room_process_phase{phase="lost"} == 1',
        ),
        Rule(
            "process_ended",
            None,
            about="a process of the run has ended without an order",
            do="stop the run, or go_on without it",
        ),
        Rule(
            "process_status",
            "warning",
            (2, 3),
            about="the answer of a process is invalid",
            do="versions of the processes may differ; invalid values are ignored",
        ),
        Rule(
            "foreign",
            "alarm",
            about="a process does not belong to this system or this run",
            do="end the foreign processes, or abort; then recover",
        ),
        Rule(
            "host_silent",
            "alarm",
            (3, 3),
            about="a host does not answer",
            do="no process was ended: data taking may continue; check the network and the host",
            expression="rodeo_room_host_silent == 1",
        ),
        Rule(
            "database",
            None,
            (2, 3),
            about="the run database is gone; a warning while its server is gone and run numbers are left",
            do="an open run continues, and its records follow when the database is back; runs start while run numbers are left",
            expression="rodeo_room_database_good == 0",
        ),
        Rule(
            "file_left_open",
            "warning",
            about="a `.writing` file of the last run is still there: not recovered, or damaged inside",
            do="rodeo data recover saves its events, if it has whole ones; then remove it",
        ),
        Rule(
            "overdue",
            "warning",
            about="a command takes longer than its limit",
            do="no process is ended for this; wait, or abort",
            expression='rodeo_room_flag{flag="OVERDUE"} == 1',
        ),
        Rule(
            "disk",
            None,
            about="the disk has less free than control.disk_warn, or than control.disk_stop (alarm)",
            do="move or remove data",
            expression="rodeo_room_disk_free_bytes < rodeo_room_disk_warn_bytes",
        ),
        Rule(
            "disk_time",
            None,
            (2, 3),
            about="the disk is full in less than three times control.disk_time, or than control.disk_time (alarm)",
            do="move data; the run stops in order",
            expression="rodeo_room_disk_seconds_left < 3 * rodeo_room_disk_time_seconds",
        ),
        Rule(
            "metric_gone",
            "warning",
            (3, 4),
            about="a running process no longer reports a metric that it reported before",
            do="no data is not good data: look at its status and its log",
            expression=f"(rodeo_room_process_rate_hz offset 1m unless rodeo_room_process_rate_hz) and on (system) ({RUNNING}) {LEFT_OUT}",
        ),
        Rule(
            "no_data",
            "alarm",
            about="a run takes no data",
            do="look at the first cause that is named",
            expression='rodeo_room_headline{word="NO DATA"} == 1',
        ),
        Rule(
            "no_triggers",
            "warning",
            (10, 12),
            about="no trigger is accepted, and triggers are not held",
            do="rodeo emulate status shows whether a card is busy or waited for",
            expression=f"rodeo_room_trigger_rate_hz == 0 and on (system) ({RUNNING})",
        ),
        Rule(
            "stall",
            "alarm",
            (5, 6),
            about="triggers come, and a readout builds nothing",
            do="look at its links and its log",
            expression=f'rodeo_room_process_rate_hz{{kind="readout"}} == 0 and on (system) (rodeo_room_trigger_rate_hz > 0) and on (system) ({RUNNING}) {LEFT_OUT}',
        ),
        Rule(
            "dead_time",
            "warning",
            (5, 6),
            0.05,
            "see what the run is limited by",
            "a larger share of the triggers is lost to dead time",
            f"rodeo_room_dead_time_fraction > {{limit}} and on (system) ({RUNNING})",
        ),
        Rule(
            "incomplete",
            "warning",
            (3, 4),
            1000.0,
            "see the worst links",
            "more of a million fragments are incomplete",
            f"rodeo_room_incomplete_ppm > {{limit}} and on (system) ({RUNNING})",
        ),
        Rule(
            "partial",
            "warning",
            (3, 4),
            1000.0,
            "look at the readout that is named, and at the filter nodes that ask it",
            "more of a million whole events lack fragments",
            f"rodeo_room_partial_ppm > {{limit}} and on (system) ({RUNNING})",
        ),
        Rule(
            "back_pressure",
            "warning",
            (8, 10),
            about="data wait: the first cause is named",
            do="give it more threads, a faster disk or less work",
            expression=f"rodeo_room_limited_by == 1 and on (system) ({RUNNING})",
        ),
        Rule(
            "link",
            "warning",
            about="a link that takes part is not active, or brings nothing while others do",
            do="look at its light; rodeo readout link restore",
            expression="rodeo_room_link_bad == 1",
        ),
        Rule(
            "out_of_step",
            "warning",
            about="the BCIDs of a link's chunks agree with no event where the link can be",
            do="resynchronise its front-end",
            expression="rodeo_room_link_out_of_step == 1",
        ),
        Rule(
            "clock",
            "alarm",
            (2, 3),
            0.001,
            "check chrony or ntpd of this host; no run can start before",
            "the clock of a host differs by more from this host's [s]",
            "rodeo_room_host_clock_offset_seconds > {limit}",
        ),
        Rule(
            "temperature",
            "warning",
            (5, 6),
            85.0,
            "check its fans and the cooling of the room",
            "a sensor of a host is hotter [degrees Celsius]",
            "rodeo_room_host_temperature_celsius > {limit}",
        ),
        Rule(
            "external",
            "warning",
            (3, 3),
            about="an external program does not answer, or its answer is invalid",
            do="its values are unknown: check the program",
            expression="rodeo_room_external_up == 0",
        ),
    )
}


@dataclass(frozen=True)
class Rules:
    """All rules of a system by name, built-in ones first."""

    by_name: dict

    def __getitem__(self, name):
        return self.by_name[name]

    def __iter__(self):
        return iter(self.by_name.values())

    @property
    def own(self):
        return tuple(rule for rule in self if rule.own)

    def rule_of(self, cause):
        """The rule that raises alarms of this cause, or None. Causes: `dead_time`, `process.lost:NAME`, `OWN:NAME`, `test:NAME`."""
        head = cause.removeprefix("test:").split(":", 1)[0]
        return (
            self.by_name.get(head)
            or self.by_name.get(head.replace(".", "_"))
            or self.by_name.get({"no_answer": "external"}.get(head, ""))
        )


def as_json(rule):
    """The members of a rule that users see."""
    shown = (
        "name",
        "severity",
        "limit",
        "do",
        "about",
        "enabled",
        "own",
        "of",
        "value",
        "per_second",
        "comparison",
        "when",
        "gone",
    )
    told = {name: getattr(rule, name) for name in shown}
    if rule.own:
        told["about"] = (
            f"{f'{rule.of}: ' if rule.of else ''}{rule.value}{' a second' if rule.per_second else ''} {rule.comparison} {number(rule.limit)}"
        )
    return {**told, "times": rule.needs[0], "of_last": rule.needs[1]}


def rules_of(tables=()):
    """The Rules of a system file. `tables`: its [[control.alarm]], each {key: value} with the given keys, durations in seconds."""
    rules = dict(BUILT_IN)
    for table in tables:
        name = table["name"]
        known = rules.get(name)
        changed = {"severity" if key == "priority" else key: value for key, value in table.items() if key in _KEYS}
        if known is None:
            changed = {"severity": "warning", **changed, "own": True}
        if (needs := _needs(table)) is not None:
            changed["needs"] = needs
        rules[name] = replace(known or Rule(name), **changed)
    return Rules(rules)


_KEYS = ("priority", "limit", "do", "enabled", "of", "value", "per_second", "comparison", "text", "when", "gone")


def _needs(table):
    if table.get("of_last"):
        return (int(table.get("times") or table["of_last"]), int(table["of_last"]))
    if "hold" in table:
        looks = max(1, math.ceil(table["hold"]) + (table["hold"] > 0))  # the number of looks in this time
        return (looks, looks)
    return None


DEFAULT = rules_of()
