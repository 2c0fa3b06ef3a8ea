"""The one document that shell, Python and page see: the controller's knowledge as JSON."""

import math

from rodeo.control.state.headline import OF_STATES, Headline

ROW_KEYS = (
    "number",
    "type",
    "state",
    "condition",
    "flags",
    "asked_ns",
    "first_event_ns",
    "stopped_ns",
    "seconds",
    "holder",
    "comment",
    "directory",
    "reason",
)
NUMBERS = (
    "trigger_rate_hz",
    "offered_rate_hz",
    "dead_time_fraction",
    "events",
    "incomplete",
    "incomplete_ppm",
    "partial_ppm",
    "bytes_in_per_second",
    "bytes_written_per_second",
    "bytes_written",
    "recording",
    "disk_free_bytes",
    "disk_seconds_left",
    "farm",
)
MOST_ALARMS = 100


def build(
    *,
    sequence,
    time_ns,
    system,
    build,
    derived,
    since_ns,
    looks,
    run=None,
    act=None,
    memory=None,
    last_run=None,
    numbers=None,
    process_numbers=None,
    limited_by=None,
    headline=None,
    links=None,
    alarms=(),
    lease=None,
    refusals=None,
    hosts=(),
    externals=(),
    database=None,
    now_s=0.0,
):
    """Builds the document from its arguments alone. Unknown values are null; no value is infinite or NaN.

    `system` is a System, `build` the controller's revision. `run` and `last_run` are a RunRow or None, `act` is an Act or None. `headline` is a Headline,
    by default the state. `alarms` are the standing ones, `hosts` dicts in the document's form. `now_s` is monotonic, for `choice.until_ns`.
    """
    process_numbers = process_numbers or {}
    headline = headline or Headline(derived.state, OF_STATES[derived.state])
    return clean(
        {
            "sequence": sequence,
            "time_ns": time_ns,
            "system": {
                "name": system.name,
                "file": str(system.file),
                "directory": str(system.directory),
                "build": build,
                "sha256": system.sha256,
            },
            "state": derived.state,
            "flags": list(derived.flags),
            "since_ns": since_ns,
            "what": derived.what if headline.word in OF_STATES else headline.what,
            "waiting_for": list(derived.waiting_for),
            "act": act and {"name": act.name, "actor": act.actor, "began_ns": act.began_ns, "limit_s": act.limit_s},
            "run": run
            and _row(run, derived.state) | {"choice": _choice(memory, system.choose_limit_s, time_ns, now_s)},
            "last_run": last_run and _row(last_run, last_run.state),
            "numbers": {key: (numbers or {}).get(key) for key in NUMBERS}
            | {"chunks": (numbers or {}).get("chunks") or {"sent": None, "built": None, "lost": {}}},
            "limited_by": limited_by,
            "headline": headline.as_json(),
            "processes": [_process(look, derived, process_numbers.get(look.name)) for look in looks],
            "links": links or {"total": None, "active": None, "removed": None, "bad": []},
            "alarms": [alarm.as_json() for alarm in alarms[:MOST_ALARMS]],
            "lease": lease or {"holder": None, "fence": 0, "until_ns": None, "asked_by": None},
            "commands": dict(refusals or {}),
            "hosts": list(hosts),
            "externals": list(externals),
            "database": database or {"state": "gone", "journal": 0, "run_numbers": None},
        }
    )


def _row(row, state):
    return {key: getattr(row, key) for key in ROW_KEYS} | {"state": state, "flags": list(row.flags)}


def _choice(memory, limit_s, time_ns, now_s):
    """The lost process, and the end of the time to choose; the limit itself uses the monotonic clock."""
    if memory is None or memory.choice is None:
        return None
    left_s = max(0.0, memory.choice.since_s + limit_s - now_s)
    return {"process": memory.choice.process, "what": memory.choice.what, "until_ns": time_ns + int(left_s * 1e9)}


def _process(look, derived, numbers):
    member = look.member
    phase = derived.phases.get(look.name)
    return {
        "name": look.name,
        "class": member.process_class.name,
        "kind": member.kind,
        "host": member.host,
        "role": member.role,
        "needed": member.process_class.needed,
        "phase": phase,
        "pid": look.pid,
        "since_ns": look.since_ns,
        "seen_ns": look.seen_ns,
        "exit": look.exit and {"status": look.exit.status, "signal": look.exit.signal, "core": look.exit.core},
        "restarts": look.restarts,
        "left_out": look.name in derived.left_out,
        "build": look.build,
        "configuration_sha256": look.configuration_sha256,
        "what": derived.broken.get(look.name)
        or derived.degraded.get(look.name)
        or (look.problems[0] if look.problems else _stands(look)),
        "numbers": numbers or {"rate_hz": None, "events": None, "incomplete": None, "fill": None},
        "cpu": look.cpu,
        "rss_bytes": look.rss_bytes,
    }


def _stands(look):
    """The parts of a process that wait without progress, and for how long; empty without any."""
    parts = (look.status or {}).get("standing") or ()
    return "; ".join(
        f"{part['name']} has waited for {part['waits_for']} for {part['seconds']:.0f} s" for part in parts[:2]
    )


def clean(value):
    """`value` for JSON: infinite numbers and NaN become null, tuples become lists, keys become text."""
    if isinstance(value, dict):
        return {str(key): clean(one) for key, one in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [clean(one) for one in value]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if value is None or isinstance(value, (str, int, bool)) else str(value)


def delta(before, after):
    """The top-level members of `after` that differ from `before`, always with `sequence` and `time_ns`; all members if `before` is None."""
    if before is None:
        return dict(after)
    return {
        key: one
        for key, one in after.items()
        if key in ("sequence", "time_ns") or key not in before or before[key] != one
    }
