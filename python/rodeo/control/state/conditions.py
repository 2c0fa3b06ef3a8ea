"""The faults at one moment: those of the built-in rules, named as in state/rules.py, and those found by the rules of the system file. Pure."""

from dataclasses import replace

from rodeo.control.state.alarms import Condition
from rodeo.control.state.headline import NO_DATA, Flow, cause_text, loss
from rodeo.control.state.kinds import kind_of
from rodeo.control.state.numbers import named_link
from rodeo.control.state.reactions import MOST_RESTARTS, given_up
from rodeo.control.state.rules import DEFAULT, SEVERITIES

LINKS = 16  # limit of the bad links with an alarm each
FEW_RUN_NUMBERS = 100  # a warning
TEST_S = 10.0  # the length of a test alarm


def conditions(
    derived,
    looks,
    numbers=None,
    *,
    run=None,
    act=None,
    memory=None,
    now_s=0.0,
    process_numbers=None,
    known=frozenset(),
    limited_by=None,
    flow=None,
    headline=None,
    links=None,
    silent_hosts=(),
    database_good=True,
    journal=0,
    run_numbers=None,
    disk_warn_bytes=0,
    disk_stop_bytes=0,
    disk_time_s=0.0,
    clocks=None,
    temperatures=None,
    externals=(),
    left_open=None,
    watch=None,
    tests=(),
    rules=DEFAULT,
):
    """All Conditions of this moment. The document has `numbers`, `process_numbers` {name: numbers}, `limited_by` and `links`. `flow`: a Flow. `known`: the
    (process, metric) pairs that had a value before (Book.known). `clocks` {host: seconds off}. `temperatures` {host: {sensor: degrees}}. `externals`: an
    External for each program. `left_open` {file: sentence}: `.writing` files of the last run that are still there, because they were not recovered or are
    damaged. `watch`: the system_rules.Watch after its update(). `tests`: pairs (rule, user) of tested alarms."""
    numbers, process_numbers = numbers or {}, process_numbers or {}
    found = []
    found += _of_processes(derived, looks, run, memory, now_s)
    found += _of_hosts(silent_hosts, derived, act)
    found += _of_the_database(database_good, journal, run_numbers)
    found += _of_host_looks(clocks or {}, temperatures or {}, rules)
    found += _of_externals(externals)
    found += [Condition(f"file.left_open:{name}", "warning", sentence) for name, sentence in (left_open or {}).items()]
    found += _of_the_disk(numbers, disk_warn_bytes, disk_stop_bytes, disk_time_s, run)
    found += _vanished(derived, looks, process_numbers, known)
    if headline is not None and headline.word == NO_DATA:
        first = headline.cause["process"] if headline.cause else None
        found.append(
            Condition(
                "no_data", "alarm", headline.what, 0, do=f"look at {first} and its log" if first else "", process=first
            )
        )
    if run is not None and derived.state == "RUNNING":
        found += _of_the_data(derived, looks, numbers, process_numbers, limited_by, flow or Flow(), headline, rules)
    if run is not None:
        found += _of_links(links)
    found = [ruled for one in found if (ruled := as_ruled(one, rules)) is not None]
    found += _of_own_rules(watch)
    found += [tested(rules, name, who) for name, who in tests]
    return tuple(sorted(found, key=lambda one: (SEVERITIES.index(one.severity), one.cause)))


def as_ruled(one, rules):
    """A Condition of a built-in rule with the duration and the action of its rule, as changed by the system file; None if the rule is disabled."""
    name = one.cause.split(":", 1)[0].replace(".", "_")
    rule, before = rules[name], DEFAULT[name]
    if not rule.enabled:
        return None
    severity = one.severity if rule.severity == before.severity else rule.severity
    return replace(
        one, severity=severity, needs=rule.needs, do=one.do if one.do and rule.do == before.do else rule.do, rule=name
    )


def tested(rules, name, who):
    """A test alarm of this rule, raised by the user `who`."""
    rule = rules[name]
    return Condition(
        f"test:{name}",
        rule.severity or "alarm",
        f"TEST by {who} of the alarm {name}: {rule.about or rule.said(None)}",
        None,
        rule.limit,
        rule.do,
        rule=name,
    )


def _of_own_rules(watch):
    for one in watch.found if watch is not None else ():
        rule, cause = one.rule, one.rule.name + (f":{one.subject}" if one.subject else "")
        if one.value is not None and rule.holds(one.value):
            yield Condition(
                cause,
                rule.severity,
                rule.said(one.value, one.subject),
                one.value,
                rule.limit,
                rule.do,
                one.subject or None,
                rule.needs,
                rule.name,
            )
        elif rule.gone != "nothing" and watch.is_gone(one):
            yield Condition(
                f"metric.gone:{cause}",
                rule.gone,
                f"{one.subject or 'the system'} does not report {rule.value}, which the alarm {rule.name} checks",
                do="no data is not good data: check the name and its source",
                process=one.subject or None,
                needs=(3, 4),
                rule=rule.name,
            )


def _of_host_looks(clocks, temperatures, rules):
    for host, seconds in sorted(clocks.items()):
        if seconds is not None and seconds > rules["clock"].limit:
            yield Condition(
                f"clock:{host}",
                "alarm",
                f"the clock of host {host} is off by {seconds * 1e3:.1f} ms at least",
                seconds,
                rules["clock"].limit,
            )
    for host, sensors in sorted(temperatures.items()):
        hot = [(celsius, sensor) for sensor, celsius in sensors.items() if celsius > rules["temperature"].limit]
        if hot:
            celsius, sensor = max(hot)
            yield Condition(
                f"temperature:{host}",
                "warning",
                f"{sensor} of host {host} has {celsius:.0f} degrees",
                celsius,
                rules["temperature"].limit,
            )


def _of_externals(externals):
    for one in externals:
        if one.asked and not one.answers:
            yield Condition(
                f"external:{one.name}",
                "warning",
                f"{one.name} ({one.entry.address}) gives no values: {one.problem}",
                process=one.name,
            )


def _of_processes(derived, looks, run, memory, now_s):
    for look in looks:
        phase, name = derived.phases.get(look.name), look.name
        needed = name in derived.broken
        severity = "alarm" if needed else "warning"
        reason = derived.broken.get(name) or derived.degraded.get(name) or f"is {phase}"
        do = kind_of(look.member.kind).do if run is not None else "look at its log; then recover"
        if name in derived.left_out:
            do = "look at its log; the run continues without it"
        if phase == "failed":
            core = look.exit.core if look.exit else None
            yield Condition(
                f"process.failed:{name}",
                severity,
                f"{name} {reason}",
                do=f"core file {core}; {do}" if core else do,
                process=name,
            )
            if memory is not None and look.member.process_class.restart != "never" and given_up(memory, name, now_s):
                what = f"{name} was restarted {MOST_RESTARTS} times in 10 min and failed again"
                yield Condition(f"process.given_up:{name}", "alarm", what, MOST_RESTARTS, MOST_RESTARTS, process=name)
        elif phase == "lost":
            yield Condition(
                f"process.lost:{name}", severity, f"{name} {reason}", do=f"it may answer again; else {do}", process=name
            )
        elif name in derived.ended and not (
            run is not None and run.stopping
        ):  # while the run stops, processes end as they should
            yield Condition(f"process.ended:{name}", severity, f"{name} {reason}", process=name)
        if look.problems:
            what = f"{name}: its status is invalid: {look.problems[0]}"
            yield Condition(f"process.status:{name}", "warning", what, len(look.problems), 0, process=name)
    for sentence in derived.foreign:
        yield Condition("foreign:" + sentence.split(" ", 1)[0], "alarm", sentence)


def _of_hosts(silent_hosts, derived, act):
    for host in silent_hosts:
        yield Condition(f"host.silent:{host}", "alarm", f"host {host} does not answer")
    if "OVERDUE" in derived.flags and act is not None:
        waits = ", ".join(derived.waiting_for[:3]) or "an unknown cause"
        what = f"{act.name} takes longer than {act.limit_s:g} s; it waits for {waits}"
        yield Condition(f"overdue:{act.name}", "warning", what, round(act.age_s), act.limit_s)


def _of_the_database(good, journal, run_numbers):
    if not good:
        severity = (
            "warning" if run_numbers else "alarm"
        )  # with run numbers left, its server is gone and no record is at risk
        yield Condition("database", severity, f"the run database is gone; {journal} records wait for it", journal, 0)
    if run_numbers is not None and run_numbers <= FEW_RUN_NUMBERS:
        what = f"{run_numbers} run numbers are left; the server of control.database has the next ones"
        yield Condition("database:run_numbers", "warning", what, run_numbers, FEW_RUN_NUMBERS)


def _of_the_disk(numbers, warn_bytes, stop_bytes, time_s, run):
    free, left = numbers.get("disk_free_bytes"), numbers.get("disk_seconds_left")
    if free is not None and free < stop_bytes:
        do = "move or remove data; runs stop in order and cannot start"
        yield Condition("disk", "alarm", f"{free / 1e9:.2f} GB are free on the disk", free, stop_bytes, do)
    elif free is not None and free < warn_bytes:
        yield Condition("disk", "warning", f"{free / 1e9:.2f} GB are free on the disk", free, warn_bytes)
    if run is not None and left is not None and left < 3 * time_s:
        yield Condition(
            "disk.time",
            "alarm" if left < time_s else "warning",
            f"the disk is full in {left:.0f} s",
            round(left),
            time_s,
        )


def _vanished(derived, looks, process_numbers, known):
    silent = {look.name for look in looks if look.alive is None}  # nothing is known about silent hosts
    for name, metric in sorted(known):
        if (
            derived.phases.get(name) == "running"
            and name not in silent | derived.left_out
            and process_numbers.get(name, {}).get(metric) is None
        ):
            yield Condition(
                f"metric.gone:{name}:{metric}", "warning", f"{name} no longer reports its {metric}", process=name
            )


def _of_the_data(derived, looks, numbers, process_numbers, limited_by, flow, headline, rules):
    triggers, dead, ppm = (
        numbers.get("trigger_rate_hz"),
        numbers.get("dead_time_fraction"),
        numbers.get("incomplete_ppm"),
    )
    if triggers == 0 and (headline is None or headline.word != NO_DATA):
        yield Condition("no_triggers", "warning", "no trigger is accepted, and triggers are not held", 0)
    for name in (look.name for look in looks if look.member.kind == "readout" and look.name not in derived.left_out):
        if triggers and derived.phases.get(name) == "running" and process_numbers.get(name, {}).get("rate_hz") == 0:
            what = f"{name} builds nothing, but triggers come at {triggers:.0f} Hz"
            do = ""
            if limited_by is not None and limited_by["process"] != name:
                what, do = f"{what}; {cause_text(limited_by)}", f"look at {limited_by['process']} and its log"
            yield Condition(f"stall:{name}", "alarm", what, 0, triggers, do, process=name)
    if dead is not None and dead > (limit := rules["dead_time"].limit):
        yield Condition(
            "dead_time", "warning", f"{dead * 100:.1f} % of the triggers are lost to dead time", dead, limit
        )
    if ppm is not None and ppm > (limit := rules["incomplete"].limit):
        yield Condition("incomplete", "warning", f"{ppm:.0f} of a million fragments are incomplete", ppm, limit)
    partial, limit = numbers.get("partial_ppm"), rules["partial"].limit
    if partial is not None and partial > limit:
        most = f", most of them those of {flow.lacking}" if flow.lacking else ""
        what = f"{partial:.0f} of a million events lack fragments{most}"
        yield Condition("partial", "warning", what, partial, limit, process=flow.lacking)
    if limited_by is not None and limited_by != loss(flow, limit):
        what = f"data wait for {limited_by['process']}: {limited_by['stage']}"
        yield Condition(f"back_pressure:{limited_by['process']}", "warning", what, process=limited_by["process"])


def _of_links(links):
    for one in ((links or {}).get("bad") or ())[:LINKS]:
        if one.get("state") not in (None, "active"):
            what = f"link {named_link(one)} of {one['process']} is {one['state']}"
            yield Condition(f"link:{one['process']}:{one['fid']}", "warning", what, process=one["process"])
            continue
        if one.get("silent"):
            what = f"link {named_link(one)} of {one['process']} brings nothing, and others do"
            yield Condition(f"link:{one['process']}:{one['fid']}", "warning", what, process=one["process"])
        if one.get("out_of_step"):
            offset = f"; they are too large by {one['bcid_offset']}" if one.get("bcid_offset") is not None else ""
            what = f"link {named_link(one)} of {one['process']} is out of step: the BCIDs of its chunks agree with no event where it can be{offset}"
            yield Condition(f"out_of_step:{one['process']}:{one['fid']}", "warning", what, process=one["process"])
