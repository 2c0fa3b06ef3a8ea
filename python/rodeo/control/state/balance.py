"""The balance of a run over all its processes: the sent chunks must be equal to the built ones plus the lost ones. The verdict follows from it.

    cards       sent = chunks that hosts can read + what a card lost (card_...)
    routers     sent = published + no_subscriber + not_taken (router_...); published chunks that readouts had not taken when they left are router_undelivered
    readouts    sent = built + lost by reason; chunks lost on the network are network_lost
    the run     sent by the cards = built + lost by all reasons; where a card did not report, sent is what the routers took
    bytes       of each readout: in = built + lost by reason; published by the routers = in, where no chunk was lost between them
    the farm    triggers = accepted + rejected + debug + readout_died + undecided; recorded = accepted + debug

A page that a readout has taken may still count as undelivered while its acknowledgement is on its way to the router. So router_undelivered is at most the
rest. A router leaves out links without a subscriber and does not count their chunks. Cards sent at most one chunk for each trigger on each of these links, so
router_left_out is at most that. The rest is then `not_reported` if a process (a readout, a router) left no report, else `damaged` if an input found damage, at
most the chunks that fit into the damaged places (blocks, pages, bytes). Any other rest is WRONG: chunks are in no count. Cards that count heartbeat frames
(CRU, C-RORC) may count differently from readouts: then the rest is unknown. A value that cannot be checked is None: not known.
"""

from dataclasses import dataclass, field

from rodeo.control.state.kinds import FARM
from rodeo.control.state.numbers import DECIDED, card_losses, events_of, functions_sum, grown, named_link, total, value

CONDITIONS = ("GOOD", "INCOMPLETE", "ABORTED", "WRONG")  # the worst last
FLAGS = ("DEGRADED", "INTERRUPTED", "TAINTED")
_OF_A_BLOCK = 8192  # chunks: a block or page of 64 KiB is full of chunks of 8 bytes with their trailers
_DAMAGE = {  # Upper bound of the chunks that one count of damage can lose.
    "sequence_gaps": _OF_A_BLOCK,
    "lost_blocks": _OF_A_BLOCK,
    "bad_marker": _OF_A_BLOCK,
    "bad_trailer": _OF_A_BLOCK,
    "page_gaps": _OF_A_BLOCK,
    "packet_gaps": _OF_A_BLOCK,
    "lost_pages": _OF_A_BLOCK,
    "bad_rdh": _OF_A_BLOCK,
    "damaged": _OF_A_BLOCK,
    "skipped_bytes": 1,
    "network_cut_chunks": 1,
    "list_network_lost": 1,
    "list_network_cut_chunks": 1,
    "oversize": 1,
}
_CUT_OFF = ("chunks_cut_off", "frames_cut_off")
_CUT_ON_THE_WAY = (
    "network_cut_chunks",
    "network_cut_off",
    "network_bad_pages",
)  # in bytes of chunks that did not come whole
_OF_THE_FARM = ("in", *DECIDED, "partial", "reassigned", "undecided", "uncleared")


@dataclass(frozen=True)
class Books:
    """`sent`: chunks of the sources in this run, including their losses; `built` into fragments; `lost` {reason: chunks}. Unknown values are None.
    `rest` is sent - built - lost, or None if unknown. `condition` is one of CONDITIONS, `flags` are some of FLAGS. `reasons` are sentences
    that say why the run is not GOOD. `events`: the number that every readout has built. `farm`: {fate of whole events (in, accepted, rejected, debug,
    readout_died, partial, reassigned, uncleared, recorded), `triggers`, and `undecided` of them: number}, empty without a farm. `bytes` of chunks: in,
    published (None without routers), built, lost by reason, and whether it `adds_up`."""

    sent: int | None
    built: int | None
    lost: dict
    rest: int | None
    condition: str
    flags: tuple
    reasons: tuple
    events: int | None = None
    farm: dict = field(default_factory=dict)
    bytes: dict = field(default_factory=dict)

    def as_json(self):
        return {
            "sent": self.sent,
            "built": self.built,
            "lost": dict(self.lost),
            "rest": self.rest,
            "condition": self.condition,
            "flags": list(self.flags),
            "reasons": list(self.reasons),
            "events": self.events,
            **({"farm": dict(self.farm)} if self.farm else {}),
        }


def balance(
    reports,
    cards_before=None,
    cards_after=None,
    routers=None,
    *,
    per_event=None,
    kinds=None,
    unread=None,
    missing=None,
    decided=None,
    flags=(),
    aborted=False,
):
    """Returns the Books. Pure.

    `reports`: {launch of a readout in the run (NAME, NAME#2): its end-of-run report, None without one}. `cards_before`, `cards_after`: {emulator: status
    at the begin, at the end of the run, or None}. `routers`: {router: (status before, status after)}. status_schema.checked() has checked all of them.
    `kinds`: {process: kind}, others are readouts; `reports` includes those of a farm. `per_event`: {readout: fragments of an event}
    (default 1), for reports without the number of events. `unread` {router: (number of links from which it read nothing, number of links)}. `missing`
    {launch without a report: sentence}. `decided` {fate: events} from the supervisor's file of decisions, where its reports do not have all of them.
    `flags`: of the run's row. `aborted`: the run was ended by force.
    """
    reasons, conditions, flags = [], ["GOOD"], [flag for flag in FLAGS if flag in flags]
    cards_before, cards_after, routers = cards_before or {}, cards_after or {}, routers or {}
    farm = {name: report for name, report in reports.items() if (kinds or {}).get(name.split("#")[0]) in FARM}
    reports = {name: report for name, report in reports.items() if name not in farm}
    written = {name: report for name, report in reports.items() if report}
    absent = [name for name in reports if not reports[name]]
    lost, received, built, lost_in_readouts = {}, 0, 0, 0

    def add(reason, count):
        if count:
            lost[reason] = lost.get(reason, 0) + int(count)

    for name, report in written.items():
        sent, made, by_reason = (
            value(report, "chunks", "sent") or 0,
            value(report, "chunks", "built") or 0,
            (report.get("chunks") or {}).get("lost") or {},
        )
        received, built, lost_in_readouts = received + sent, built + made, lost_in_readouts + sum(by_reason.values())
        for reason, count in by_reason.items():
            add(reason, count)
        if sent != made + sum(by_reason.values()):
            conditions.append("WRONG")
            reasons.append(f"{name} received {sent} chunks, built {made} and lost {sum(by_reason.values())}")
        add("network_lost", value(report, "input", "network_lost"))
        condition = (report.get("run") or {}).get("condition")
        if condition != "GOOD":
            conditions.append(condition if condition in CONDITIONS else "INCOMPLETE")
            failure = (report.get("run") or {}).get("failure")
            reasons.append(f"{name} is {condition}" + (f": {failure}" if failure else ""))
        reasons += _doubts(name, report)
    for name in absent:
        conditions.append("INCOMPLETE")
        reasons.append((missing or {}).get(name, f"{name} left no report"))

    routed, undelivered, silent = _routers(routers, add, reasons, conditions)
    sent = _cards(cards_before, cards_after, add, reasons, conditions)
    if sent is None and routed is not None:
        sent = routed + sum(count for reason, count in lost.items() if reason.startswith("card_"))
    elif sent is None and not cards_after and not routers and not absent:
        sent = received + lost.get("network_lost", 0)
    rest = None if sent is None else sent - built - sum(lost.values())
    left_out = sum(few for few, _ in (unread or {}).values()) * _triggers(cards_before, cards_after)
    for reason, most in (("router_undelivered", undelivered), ("router_left_out", left_out)):
        if rest is not None and rest > 0 and most:
            held = min(rest, int(most))
            add(reason, held)
            rest -= held
    if "router_left_out" in lost:
        reasons += [
            f"{few} of {all_} links of {name} had no subscriber, and it read nothing from them"
            for name, (few, all_) in sorted(unread.items())
        ]
    silent += absent
    if rest is not None and rest < 0 and len(written) > 1 and routers:
        # Several readouts may take the same links from a router: then more chunks are built than sent, and only the sum of each readout can be checked.
        reasons.append("several readouts took the same links: the sum over all processes is unknown")
        rest = None
    elif rest is not None and rest > 0 and silent:
        add("not_reported", rest)
        reasons.append(f"{rest} chunks are missing with the reports of {', '.join(silent)}")
        rest = 0
    elif rest is not None and rest > 0:
        held = min(rest, _most_damaged(written.values(), routers))
        add("damaged", held)
        rest -= held
    if rest and _frames(cards_after):
        reasons.append(
            f"the cards count {sent} frames, the readouts {built + sum(lost.values())} chunks: the sum cannot be checked"
        )
        rest = None
    elif rest:
        conditions.append("WRONG")
        reasons.append(
            f"{sent} chunks were sent, {built} built and {sum(lost.values())} lost: {abs(rest)} are {'in no count' if rest > 0 else 'too many'}"
        )
    whole_way = rest == 0 and not absent and not silent and sum(lost.values()) == lost_in_readouts
    of_bytes = _bytes(written, routers, whole_way, reasons, conditions)
    accepted = _accepted(cards_before, cards_after)
    of_farm = _farm(farm, kinds or {}, missing or {}, accepted, decided, reasons, conditions)
    if lost and "WRONG" not in conditions:
        conditions.append("INCOMPLETE")
    if any(lost.values()):
        reasons.append("lost: " + ", ".join(f"{count} {reason}" for reason, count in sorted(lost.items())))
    if not written and reports:
        built = None
    if aborted:
        conditions.append("ABORTED")
        reasons.insert(0, "the run was aborted")
    if aborted:  # a missing report alone does not mean that the run was interrupted
        flags = [flag for flag in FLAGS if flag in (*flags, "INTERRUPTED")]
    events = {}  # events of each readout, summed over its launches
    for life, report in written.items():
        name = life.split("#")[0]
        built_here = events_of(report, (per_event or {}).get(name, 1))
        if built_here is not None:
            events[name] = events.get(name, 0) + built_here
    events = min(events.values(), default=None)
    condition = max(conditions, key=CONDITIONS.index)
    return Books(sent, built, lost, rest, condition, tuple(flags), tuple(reasons), events, of_farm, of_bytes)


def _doubts(name, report, most=4):
    """Returns sentences on links of a readout whose event assignment was not proven, the worst first."""
    links = (report.get("fragments") or {}).get("doubtful_links") or []
    told = []
    for one in links[:most]:
        if one.get("in_doubt"):
            told.append(f"{name}: {one['in_doubt']} chunks of link {named_link(one)} are in doubt")
        if one.get("out_of_step"):
            offset = f" (BCIDs too large by {one['bcid_offset']})" if one.get("bcid_offset") is not None else ""
            told.append(f"{name}: link {named_link(one)} is out of step{offset}")
    return told + ([f"{name}: {len(links) - most} more links were in doubt"] if len(links) > most else [])


def _bytes(reports, routers, whole_way, reasons, conditions):
    """Checks and returns the bytes of chunks. Each readout must have built or lost the bytes that it received. If no chunk was lost on the way (`whole_way`),
    readouts received all bytes that routers published. A process that does not report its part (a plug-in's builder) is not checked."""
    lost, built, holds = {}, 0, True
    for name, report in reports.items():
        by_reason = (report.get("bytes") or {}).get("lost") or {}
        for reason, count in by_reason.items():
            lost[reason] = lost.get(reason, 0) + count
        came, made = value(report, "bytes", "in"), value(report, "bytes", "built")
        built += made or 0
        if came is not None and made is not None and came != made + sum(by_reason.values()):
            holds = False
            reasons.append(f"{name} received {came} bytes, built {made} and lost {sum(by_reason.values())}")
    received = [value(report, "bytes", "in") for report in reports.values()]
    published = [
        grown(value(before, "bytes", "published") or 0, value(after, "bytes", "published"))
        for before, after in routers.values()
    ]
    published = sum(published) if published and None not in published else None
    cut = any(value(report, "input", name) for report in reports.values() for name in _CUT_ON_THE_WAY)
    if whole_way and not cut and published is not None and None not in received and published > sum(received):
        holds = False
        reasons.append(f"routers published {published} bytes, and readouts received {sum(received)}")
    if not holds:
        conditions.append("WRONG")
    return {"in": total(received) or 0, "published": published, "built": built, "lost": lost, "adds_up": holds}


def _accepted(before, after):
    """Returns the triggers that the trigger authorities among the cards accepted in the run; None if this is not known."""
    told = [
        grown(value(before.get(name), "trigger", "accepted"), value(status, "trigger", "accepted"))
        for name, status in after.items()
        if not ((status or before.get(name) or {}).get("trigger") or {}).get("link")
    ]
    return int(sum(told)) if told and None not in told else None


def _farm(reports, kinds, missing, accepted, decided, reasons, conditions):
    """Counts whole events by fate, and checks that each trigger has one, and that recorders have all accepted events. A restarted recorder has read back its
    earlier events; the reports of a restarted supervisor do not have all events, its file of decisions has (`decided`)."""
    if not reports:
        return {}
    counts, recorded, silent = {}, {}, []
    for name, report in reports.items():
        process = name.split("#")[0]
        if report is None:
            silent.append(name)
            continue
        condition = (report.get("run") or {}).get("condition")
        if condition != "GOOD":
            conditions.append(condition if condition in CONDITIONS else "INCOMPLETE")
            reasons.append(f"{name} is {condition}" + (f": {report['trouble']}" if report.get("trouble") else ""))
        events = report.get("events") or {}
        if kinds[process] == "supervisor":
            for key in _OF_THE_FARM:
                counts[key] = counts.get(key, 0) + (value(events, key) or 0)
        elif kinds[process] == "recorder":
            recorded[process] = max(
                recorded.get(process, 0), (value(events, "recorded") or 0) + (value(events, "read_back") or 0)
            )
    for name in silent:
        conditions.append("INCOMPLETE")
        reasons.append(missing.get(name, f"{name} left no report"))
    supervisors = [report for name, report in reports.items() if kinds[name.split("#")[0]] == "supervisor"]
    if supervisors:
        counts.update(_fates(counts, supervisors, accepted, decided, reasons, conditions))
        if decided:
            counts["in"] = max(counts.get("in", 0), sum(decided.values()))
    if recorded:
        counts["recorded"] = sum(recorded.values())
    kept = counts.get("accepted", 0) + counts.get("debug", 0)
    last = {name.split("#")[0]: report for name, report in reports.items()}  # launches are in order
    all_said = all(report is not None for process, report in last.items() if kinds[process] == "recorder")
    if "in" in counts and recorded and all_said and counts["recorded"] < kept:
        conditions.append("WRONG")
        reasons.append(f"{kept} events were accepted or kept for debugging, but recorders have {counts['recorded']}")
    for key in ("debug", "partial", "readout_died", "undecided", "uncleared"):
        if counts.get(key):
            reasons.append(f"{counts[key]} events are {key}")
    return counts


def _fates(counts, supervisors, accepted, decided, reasons, conditions):
    """Returns the fates of all triggers: {triggers, undecided, and those of `decided`}. Unknown values are None."""
    whole = len(supervisors) == 1 and supervisors[0] is not None
    fates = decided or ({key: counts[key] for key in DECIDED} if whole else None)
    triggers = accepted if any((one or {}).get("trigger") for one in supervisors) else None
    if triggers is None and whole:
        triggers = counts["in"]
    if triggers is None or fates is None:
        reasons.append("it is not known whether each trigger was decided")
        return {"triggers": triggers, **(fates or {}), "undecided": None}
    rest = triggers - sum(fates.values())
    if rest < 0:
        conditions.append("WRONG")
        reasons.append(f"{triggers} triggers were accepted, and {sum(fates.values())} events are decided")
    elif rest > 0:
        conditions.append("INCOMPLETE")
    return {"triggers": triggers, **fates, "undecided": max(0, rest)}


def _cards(before, after, add, reasons, conditions):
    """Returns the chunks that the cards sent in a run, including lost ones; None if a card did not report."""
    if not after and not before:
        return None
    sent = 0
    for name in sorted({*before, *after}):
        growth = grown(functions_sum(before.get(name), "chunks"), functions_sum(after.get(name), "chunks"))
        if growth is None:
            conditions.append("INCOMPLETE")
            reasons.append(f"{name} did not report at the end how many chunks it had sent")
            sent = None
        elif sent is not None:
            looped = (
                grown(
                    functions_sum(before[name], "counters", "chunks_looped_back"),
                    functions_sum(after[name], "counters", "chunks_looped_back"),
                )
                or 0
            )
            sent += int(growth) - int(looped)
        if growth is None:
            continue
        cut = total(
            grown(functions_sum(before[name], "counters", one), functions_sum(after[name], "counters", one))
            for one in _CUT_OFF
        )
        if cut:
            add("card_cut_off", cut)
            sent = None if sent is None else sent + int(cut)
        missed = grown(_missed(before[name]), _missed(after[name]))
        if missed:
            conditions.append("INCOMPLETE")
            reasons.append(f"{int(missed)} triggers were given to a reader of {name} that did not accept them")
    for reason, count in card_losses(before, after).items():
        add(reason, count)
        sent = None if sent is None else sent + count
    return sent


def _most_damaged(reports, routers):
    """Returns the largest number of chunks that the unreadable data of this run can have had."""

    def found(counter, before, after):
        had, has = value(before, "input", counter) or 0, value(after, "input", counter) or 0
        return has - had if has >= had else has  # a restarted router counts anew

    statuses = [
        *((None, report) for report in reports),
        *((before, after) for before, after in routers.values() if after),
    ]
    return int(sum(found(counter, *status) * most for status in statuses for counter, most in _DAMAGE.items()))


def _frames(cards):
    return any(
        one.get("type") not in (None, "FELIX")
        for status in cards.values()
        for one in (status or {}).get("functions") or ()
    )


def _triggers(before, after):
    """Returns the largest number of triggers of a card in the run. A link has one chunk for each of them."""
    grew = [0]
    for name, status in after.items():
        old = {one.get("name"): one.get("triggers", 0) for one in ((before.get(name) or {}).get("functions") or ())}
        for one in (status or {}).get("functions") or ():
            had = old.get(one.get("name"), 0)
            grew.append(one.get("triggers", 0) - had if one.get("triggers", 0) >= had else one.get("triggers", 0))
    return max(grew)


def _missed(status):
    followers = ((status or {}).get("trigger") or {}).get("followers")
    return sum(one.get("missed", 0) for one in followers) if isinstance(followers, list) else None


def _routers(routers, add, reasons, conditions):
    """Returns (chunks that routers took from their inputs, None without routers or if one did not report; chunks in pages that subscribers of data had not
    taken when they left; names of routers that did not report)."""
    taken, undelivered, silent = 0, 0, []
    for name, (before, after) in sorted(routers.items()):
        counts = {
            key: grown(value(before, "chunks", key) or 0 if before else None, value(after, "chunks", key))
            for key in ("sent", "published", "no_subscriber", "not_taken", "pending")
        }
        if counts["sent"] is None:
            conditions.append("INCOMPLETE")
            reasons.append(f"{name} did not report at the end how many chunks it had published")
            silent.append(name)
            continue
        for reason in ("no_subscriber", "not_taken"):
            add(f"router_{reason}", counts[reason])
        accounted = sum(counts[key] or 0 for key in ("published", "no_subscriber", "not_taken"))
        if counts["published"] is not None and counts["sent"] != accounted:
            conditions.append("WRONG")
            reasons.append(f"{name} took {counts['sent']} chunks and accounts for {accounted}")
        taken, undelivered = taken + counts["sent"], undelivered + (counts["pending"] or 0)
    return (taken if routers and not silent else None), undelivered, silent
