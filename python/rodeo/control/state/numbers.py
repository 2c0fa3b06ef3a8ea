"""Rates and sums of the whole system from two looks at its processes. Unknown values are None, never 0."""

from dataclasses import dataclass, field

from rodeo.control.state.kinds import kind_of

LEAST_SECONDS = 0.5  # a rate needs two looks at least this far apart
LEAST_BETWEEN_ANSWERS_S = 0.25  # a rate also needs two answers at least this far apart
LEAST_WRITING_SECONDS = 5.0  # the speed of files is unknown before this time, because files are written in bursts
FARM_EVENTS = ("in", "accepted", "rejected", "debug", "readout_died", "partial", "reassigned")
DECIDED = ("accepted", "rejected", "debug", "readout_died")  # every fate of a whole event
LACKING = ("partial", "readout_died")  # the fates of events that lack fragments, and of events without any
CARD_LOSSES = (
    "chunks_dropped",
    "chunks_lost",
    "chunks_corrupted",
    "chunks_unmapped",
    "chunks_link_down",
    "frames_dropped",
    "frames_lost",
    "frames_corrupted",
    "frames_link_down",
)


@dataclass(frozen=True)
class Moment:
    """Statuses at one moment: {process: (kind, its status after status_schema.checked(), or None)}. `time_s` is monotonic. `answered_s` {process: time of its
    status}: a process that has not answered since keeps status and time, and has no rate. A process that is not in it answered at this moment. `left_out`:
    processes without which the run continues; the numbers of the system leave them out, as if they were gone."""

    time_s: float
    statuses: dict
    disk_free_bytes: int | None = None
    answered_s: dict = field(default_factory=dict)
    left_out: frozenset = frozenset()

    def statuses_of(self, kind):
        """Returns {name: status} of the processes of a kind that have a status and are not left out."""
        return {name: status for name, status in self.all_of(kind).items() if status}

    def all_of(self, kind):
        """Like statuses_of(), with the processes that have no status."""
        return {
            name: status
            for name, (its_kind, status) in self.statuses.items()
            if its_kind == kind and name not in self.left_out
        }


def value(status, *path):
    """The number at `path` of a status, None if missing."""
    for key in path:
        status = status.get(key) if isinstance(status, dict) else None
    return status if isinstance(status, (int, float)) and not isinstance(status, bool) else None


def total(values):
    """The sum of the known values, None without any."""
    known = [one for one in values if one is not None]
    return sum(known) if known else None


def grown(before, after):
    """The growth of a counter; None if one value is unknown, or the counter was reset."""
    return None if before is None or after is None or after < before else after - before


def growth_of(before, after, kind, counter):
    """The growth of counter(status) over all processes of a kind, None if unknown."""
    return total(
        grown(counter(before.statuses.get(name, (None, None))[1]), counter(status))
        for name, status in after.statuses_of(kind).items()
    )


def groups_of(rob):
    """Fragments that a ROB of a readout's status has of an event: 1, in FULL mode the number of its groups. Readouts of earlier versions do not say it."""
    return value(rob, "groups") or 1


def fragments_per_event(status):
    """Fragments that a readout builds of an event, in all its ROBs."""
    return sum(map(groups_of, (status or {}).get("robs") or ())) or 1


def events_of(status, per_event=None):
    """Events that a readout has built, by its status or report. A readout of an earlier version reports only fragments: `per_event` of an event."""
    events, built = value(status, "fragments", "events"), value(status, "fragments", "built")
    if events is not None or built is None:
        return events
    return int(built // (per_event or fragments_per_event(status)))


def authorities(moment):
    """Returns {emulator: status} of the emulators that assign triggers and follow no other."""
    return {
        name: status
        for name, status in moment.statuses_of("emulator").items()
        if isinstance(status.get("trigger"), dict) and not status["trigger"].get("link")
    }


def numbers(before, after, *, cards_at_start=None):
    """The `numbers` of the document. `before`: the earlier Moment for rates, or None (then no rate is known).
    `cards_at_start`: {emulator: status when the run began}, None outside of a run."""
    readouts = after.statuses_of("readout")
    chosen = authorities(after)
    offered, accepted = (
        _rates(before, after, chosen, ("trigger", "offered")),
        _rates(before, after, chosen, ("trigger", "accepted")),
    )
    rate = max((one for one in accepted.values() if one is not None), default=None)
    if rate is None and not chosen:  # a readout that is left out sees the triggers, too
        seen = [_event_rate(before, after, name) for name, (kind, _) in after.statuses.items() if kind == "readout"]
        rate = max((one for one in seen if one is not None), default=None)
    both = [
        (offered[name], accepted[name]) for name in chosen if offered[name] is not None and accepted[name] is not None
    ]
    said = [
        status for status in readouts.values() if not chosen
    ]  # without an authority, inputs that generate their own triggers report the vetoed ones
    offered_sum, accepted_sum = sum(one for one, _ in both), sum(one for _, one in both)
    events = min((one for one in map(events_of, readouts.values()) if one is not None), default=None)
    built = total(value(status, "fragments", "built") for status in readouts.values())
    incomplete = total(value(status, "fragments", "incomplete") for status in readouts.values())
    recorders = after.statuses_of("recorder")
    written = total(
        [
            *(value(status, "bytes", "written") for status in readouts.values()),
            *(value(status, "bytes", "events") for status in recorders.values()),
        ]
    )
    return {
        "trigger_rate_hz": rate,
        "offered_rate_hz": max(
            (
                one
                for one in [*offered.values(), *(value(status, "offered_rate_hz") for status in said)]
                if one is not None
            ),
            default=None,
        ),
        "dead_time_fraction": max(0.0, 1 - accepted_sum / offered_sum)
        if offered_sum > 0
        else max(
            (one for one in (value(status, "dead_time_fraction") for status in said) if one is not None), default=None
        ),
        "events": events,
        "incomplete": incomplete,
        "incomplete_ppm": 1e6 * incomplete / built if built and incomplete is not None else None,
        "bytes_in_per_second": total(_rates(before, after, readouts, ("bytes", "in")).values()),
        "bytes_written_per_second": total(
            [
                *_rates(before, after, readouts, ("bytes", "written")).values(),
                *_rates(before, after, recorders, ("bytes", "events")).values(),
            ]
        ),
        "bytes_written": written,
        "recording": True if recorders else _recording(readouts),
        "disk_free_bytes": after.disk_free_bytes,
        "disk_seconds_left": _seconds_left(readouts, recorders, after.disk_free_bytes),
        "chunks": _chunks(readouts, after, cards_at_start),
        "farm": farm_of(after),
        "partial_ppm": _partial_ppm(before, after),
    }


def farm_of(moment):
    """Whole events by fate: in = accepted + rejected + debug + readout_died + under_way; partial: of these; reassigned: assignments that ended without
    a decision; recorded: by all recorders. None without a status of a supervisor; unknown numbers are None."""
    said = list(moment.statuses_of("supervisor").values())
    if not said:
        return None
    events = {key: total(value(status, "events", key) for status in said) for key in FARM_EVENTS}
    under_way = total(value(status, "events", key) for status in said for key in ("waiting", "assigned"))
    recorded = [
        total([value(status, "events", "recorded"), value(status, "events", "read_back")])
        for status in moment.statuses_of("recorder").values()
    ]
    return {
        **events,
        "under_way": under_way,
        "recorded": total(recorded),
        "lumi_block": max((one.get("lumi_block") or 0 for one in said), default=None),
    }


def _partial_ppm(before, after):
    """The events that lack fragments, of a million that the supervisors have decided between two moments; None if none was decided."""
    if before is None:
        return None
    grew = {
        key: growth_of(before, after, "supervisor", lambda status, key=key: value(status, "events", key))
        for key in {*DECIDED, *LACKING}
    }
    decided, short = (total(grew[key] for key in keys) for keys in (DECIDED, LACKING))
    return 1e6 * min(1.0, (short or 0) / decided) if decided else None


def _rates(before, after, statuses, path):
    """Returns {name: counter per second or None}."""
    return {name: _rate(before, after, name, lambda one: value(one, *path)) for name in statuses}


def _event_rate(before, after, name):
    return _rate(before, after, name, events_of)


def _rate(before, after, name, counter):
    """Growth of counter(status) per second between two answers of a process; None without two answers that are far enough apart."""
    if before is None or not after.time_s - before.time_s >= LEAST_SECONDS:
        return None
    seconds = after.answered_s.get(name, after.time_s) - before.answered_s.get(name, before.time_s)
    growth = grown(counter(before.statuses.get(name, (None, None))[1]), counter(after.statuses[name][1]))
    return growth / seconds if growth is not None and seconds >= LEAST_BETWEEN_ANSWERS_S else None


def _recording(readouts):
    """True if a consumer of a readout writes files; None if no readout has reported its consumers."""
    said = [status["consumers"] for status in readouts.values() if isinstance(status.get("consumers"), dict)]
    return (
        any(value(one, "counters", "bytes_written") is not None for consumers in said for one in consumers.values())
        if said
        else None
    )


def _seconds_left(readouts, recorders, free_bytes):
    """Seconds until the disk is full at the mean speed of the run: files are written in bursts of megabytes."""
    speed = 0.0
    for status, counter in [
        *((one, "written") for one in readouts.values()),
        *((one, "events") for one in recorders.values()),
    ]:
        seconds, written = value(status, "run", "seconds"), value(status, "bytes", counter)
        if seconds is None or written is None or seconds < LEAST_WRITING_SECONDS:
            continue
        speed += written / seconds
    return free_bytes / speed if free_bytes is not None and speed > 0 else None


def _chunks(readouts, after, cards_at_start):
    lost = {}
    for status in readouts.values():
        for reason, count in ((status.get("chunks") or {}).get("lost") or {}).items():
            lost[reason] = lost.get(reason, 0) + count
    sent = total(value(status, "chunks", "sent") for status in readouts.values())
    if cards_at_start is not None:
        for reason, count in card_losses(cards_at_start, after.statuses_of("emulator")).items():
            lost[reason] = lost.get(reason, 0) + count
            sent = None if sent is None else sent + count
    return {
        "sent": sent,
        "built": total(value(status, "chunks", "built") for status in readouts.values()),
        "lost": {name: count for name, count in lost.items() if count},
    }


def card_losses(before, after):
    """Returns {reason: chunks} that emulated cards lost between two statuses {emulator: status}, with the names of the demo: card_dropped and so on."""
    lost = {}
    for name, status in after.items():
        if not before.get(name):
            continue
        for counter in CARD_LOSSES:
            growth = grown(functions_sum(before[name], "counters", counter), functions_sum(status, "counters", counter))
            if growth:
                reason = "card_" + counter.split("_", 1)[1]
                lost[reason] = lost.get(reason, 0) + int(growth)
    return lost


def functions_sum(status, *path):
    """The sum over the functions of an emulator; a missing counter counts as 0; None without functions."""
    functions = (status or {}).get("functions")
    if not isinstance(functions, list):
        return None
    return sum(value(one, *path) or 0 for one in functions)


def of_process(name, before, after):
    """The `numbers` of one process in the document: rate_hz (events, or triggers of a card), events, incomplete, fill (0 to 1, of its fullest queue)."""
    kind, status = after.statuses.get(name, (None, None))
    answer = {"rate_hz": None, "events": None, "incomplete": None, "fill": None}
    if not status:
        return answer
    if kind == "readout":
        fills = [one for one in (status.get("queue_fill") or {}).values()] + [
            one["pool_fill"] for one in status.get("robs") or () if "pool_fill" in one
        ]
        incomplete = value(status, "fragments", "incomplete")
        answer.update(
            rate_hz=_event_rate(before, after, name),
            events=events_of(status),
            incomplete=incomplete,
            fill=min(1.0, max(fills)) if fills else None,
        )
    elif kind == "emulator":
        answer.update(
            rate_hz=_rates(before, after, {name: status}, ("trigger", "accepted"))[name],
            events=value(status, "trigger", "accepted"),
        )
    elif kind == "router":
        rate, links = _rates(before, after, {name: status}, ("chunks", "sent"))[name], value(status, "links")
        fills = [
            one["pages_filled"] / one["page_slots"]
            for one in status.get("subscribers") or ()
            if one.get("page_slots") and "pages_filled" in one
        ]
        answer.update(
            rate_hz=rate / links if rate is not None and links else None, fill=min(1.0, max(fills)) if fills else None
        )
    elif counted := kind_of(kind).counted:
        answer.update(rate_hz=_rates(before, after, {name: status}, counted)[name], events=value(status, *counted))
        answer.update(incomplete=value(status, "events", "partial"))
    return answer


def limited_by(before, after):
    """{"process", "stage"} that limits the system by the reports of processes, else by a part that stands still; None if there is neither."""
    return _limited_by(before, after) or _stands(after)


def _stands(after):
    """The process furthest downstream with a part that waits and makes no progress (`standing` of its status), or None."""
    for kind in ("recorder", "node", "supervisor", "readout", "router", "emulator"):
        for name, status in after.statuses_of(kind).items():
            for part in status.get("standing") or ():
                return {"process": name, "stage": f"{part['name']} waits for {part['waits_for']}"}
    return None


def _limited_by(before, after):
    """Returns {"process", "stage"} or None, from the processes' reports on what they wait for. Of several causes it chooses the one furthest downstream,
    because that one delays all stages before it. A busy card is the cause only without readouts and routers, because later stages make it busy."""
    for name, status in after.statuses_of("supervisor").items():
        if status.get("limited_by") not in (None, "", "nothing"):
            slow = _slow_recorder(before, after) if status["limited_by"] == "filter nodes" else None
            return {"process": slow, "stage": "disk"} if slow else {"process": name, "stage": status["limited_by"]}
    for name, status in after.statuses_of("readout").items():
        if status.get("limited_by_now") not in (None, "", "nothing"):
            return {"process": name, "stage": status["limited_by_now"]}
    if before is None:
        return None
    for name, status in after.statuses_of("router").items():
        earlier = before.statuses.get(name, (None, None))[1] or {}
        waits = {one["name"]: one.get("waits", 0) for one in earlier.get("subscribers") or ()}
        longest = max(
            status.get("subscribers") or (),
            key=lambda one: one.get("waits", 0) - waits.get(one["name"], 0),
            default=None,
        )
        if longest and waits.get(longest["name"]) is not None and longest.get("waits", 0) > waits[longest["name"]]:
            if longest["name"] in after.statuses:
                return {"process": longest["name"], "stage": f"takes less than {name} has"}
            return {"process": name, "stage": f"waits for {longest['name']}"}
    if after.statuses_of("readout") or after.statuses_of("router"):
        return None
    for name, status in authorities(after).items():
        earlier = before.statuses.get(name, (None, None))[1]
        if grown(value(earlier, "trigger", "vetoed", "busy"), value(status, "trigger", "vetoed", "busy")):
            return {"process": name, "stage": f"busy: {status['trigger'].get('busy_card') or 'a card'}"}
    return None


def _slow_recorder(before, after):
    """The recorder for which full nodes wait: at both moments, most of their events are at recorders and not safe yet. None if this is not so."""
    slowest = None
    for moment in (before, after):
        waiting = (
            {name: value(status, "events", "waiting") or 0 for name, status in moment.statuses_of("recorder").items()}
            if moment
            else {}
        )
        at_nodes = (
            total(value(status, "events", "under_way") for status in moment.statuses_of("node").values())
            if moment
            else None
        )
        if not at_nodes or 2 * sum(waiting.values()) <= at_nodes:
            return None
        slowest = max(waiting, key=waiting.get)
    return slowest


def named_link(link):
    """A link for people: its FID, with the name that its owner gave it."""
    return f"{link['fid']} ({link['name']})" if link.get("name") else link["fid"]


def links_of(moment, silent=(), most=16):
    """The `links` of the document: totals, and the worst `most` (removed ones first, then those out of step, then silent ones, then by missing, bad and
    doubtful chunks). `silent`: the Silent links."""
    brings_nothing = {(one.process, one.fid) for one in silent}
    readouts = {name: status for name, status in moment.statuses_of("readout").items() if "robs" in status}
    if not readouts:
        return {"total": None, "active": None, "removed": None, "bad": []}
    bad, count, active, removed = [], 0, 0, 0
    for name, status in readouts.items():
        for rob in status["robs"]:
            for one in rob.get("links") or ():
                state, quiet = one.get("state"), (name, one["fid"]) in brings_nothing
                count, active, removed = count + 1, active + (state == "active"), removed + (state == "removed")
                wrong = any(one.get(key) for key in ("missing", "bad", "in_doubt", "out_of_step"))
                if wrong or quiet or state not in (None, "active"):
                    keys = ("name", "missing", "bad", "in_doubt", "out_of_step", "bcid_offset")
                    known = {"process": name, "fid": one["fid"], "state": state, **{key: one.get(key) for key in keys}}
                    bad.append({**known, "silent": quiet})
    harm = ("missing", "bad", "in_doubt")
    bad.sort(
        key=lambda row: (
            row["state"] in (None, "active"),
            not row["out_of_step"],
            not row["silent"],
            -sum(row[key] or 0 for key in harm),
            row["fid"],
        )
    )
    return {"total": count, "active": active, "removed": removed, "bad": bad[:most]}


def counters_of(report):
    """Returns {name: value} of a report: chunks by fate, fragments, bytes, a farm's events by fate, and the input's own counters."""
    if not report:
        return {}
    found = (
        {"chunks_sent": report["chunks"].get("sent"), "chunks_built": report["chunks"].get("built")}
        if isinstance(report.get("chunks"), dict)
        else {}
    )
    found.update({f"lost_{name}": value for name, value in ((report.get("chunks") or {}).get("lost") or {}).items()})
    found.update({f"fragments_{name}": (report.get("fragments") or {}).get(name) for name in ("built", "incomplete")})
    found.update({f"bytes_{name}": value for name, value in (report.get("bytes") or {}).items()})
    found.update({f"events_{name}": value for name, value in (report.get("events") or {}).items()})
    found.update({f"input_{name}": value for name, value in (report.get("input") or {}).items()})
    return {
        name: value for name, value in found.items() if isinstance(value, (int, float)) and not isinstance(value, bool)
    }
