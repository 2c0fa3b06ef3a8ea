"""The report of a demo: the keys of a readout's report over all processes (docs/reference/run-report.md), its text, and the exit status. Pure.

The sums come from the books of the run (state/balance.py)."""

from rodeo.control.cli.status_text import rate, size
from rodeo.control.state.numbers import DECIDED, total, value

HARDLY = 0.01  # dead time below this limits nothing
DONE, FAILED, PARTIAL, NOT_VERIFIED = 0, 1, 6, 7  # exit statuses


class Reports:
    """The reports of the processes of one kind: [(name, report or None)]."""

    def __init__(self, processes, kind):
        self.named = {name: report for name, its_kind, report in processes if its_kind == kind and report}
        self.all = list(self.named.values())

    def sum(self, *path):
        return total(value(report, *path) for report in self.all) or 0

    def largest(self, *path):
        return max((one for report in self.all if (one := value(report, *path)) is not None), default=None)

    def tables(self, *path):
        """The tables at `path`, joined: numbers of one name are added."""
        joined = {}
        for report in self.all:
            for name, one in (_at(report, *path) or {}).items():
                joined[name] = joined.get(name, 0) + one
        return joined

    def lists(self, *path):
        return [one for report in self.all for one in _at(report, *path) or ()]


def demo_report(name, processes, books, *, run, files, limited_by="", failure=""):
    """The report. `processes` [(name of a life, kind, report or None)] in the order of the data. `books`: Books of the run. `run` {number, condition}.
    `files`: paths of its event files. `limited_by`: the stage seen during the run, or empty. `failure`: why the run failed, or empty."""
    readouts, cards = Reports(processes, "readout"), Reports(processes, "emulator")
    trigger = _at(cards.all[-1], "trigger") if cards.all else {}
    offered, accepted = value(trigger, "offered"), value(trigger, "accepted")
    seconds = value(trigger, "offering_seconds")
    known = offered is not None and accepted is not None
    dead_time = None if not known else (offered - accepted) / offered if offered else 0.0
    farm = bool(books.farm)
    report = _of_all(readouts) if farm else dict(readouts.all[-1]) if readouts.all else _of_all(readouts)
    report["run"] = {
        "name": name,
        "number": run["number"],
        "seconds": readouts.largest("run", "seconds"),
        "condition": run["condition"],
        "failure": failure,
    }
    report["offered_rate_hz"] = offered / seconds if known and seconds else None
    report["trigger_rate_hz"] = accepted / seconds if known and seconds else None
    report["dead_time_fraction"] = dead_time
    report["chunks"] = {"sent": books.sent, "built": books.built, "lost": books.lost}
    report["limited_by"] = _limit(processes, dead_time, limited_by)
    report["cpu_seconds"] = _cpu(processes)
    report["files"] = files
    if not farm:
        if known:
            report["input"] = {**report["input"], "triggers": accepted, "vetoed": offered - accepted}
        return report
    recorders, nodes = Reports(processes, "recorder"), Reports(processes, "node")
    report["farm"] = {
        "triggers": books.farm.get("triggers"),
        **{key: books.farm.get(key, 0) for key in (*DECIDED, "undecided", "partial", "reassigned", "recorded")},
        "adds_up": _adds_up(books.farm),
        "latency_us": {
            key: nodes.largest("latency_us", key)
            for key in ("building_p50", "building_p99", "deciding_p50", "deciding_p99")
        },
    }
    report["bytes"] = {
        **books.bytes,
        "payload": readouts.sum("bytes", "payload"),
        "written": recorders.sum("bytes", "files"),
    }
    report["processes"] = [
        {
            "name": life,
            "kind": kind,
            "reported": one is not None,
            "condition": _at(one, "run", "condition"),
            "cpu_seconds": one and sum(_stages(one).values()),
        }
        for life, kind, one in processes
    ]
    return report


def _of_all(readouts):
    """The reports of several readouts as one: sums, and the largest value of what has no sum."""
    summed = ("built", "incomplete", "skipped_events", "without_removed_links", "chunks_in_doubt")
    counters = readouts.tables("input")
    return {
        "run": {},
        "links": readouts.sum("links"),
        **dict.fromkeys(("offered_rate_hz", "trigger_rate_hz", "dead_time_fraction", "chunks", "limited_by")),
        "fragments": {
            **{key: readouts.sum("fragments", key) for key in summed},
            "incomplete_by_reason": readouts.tables("fragments", "incomplete_by_reason"),
            **{key: readouts.lists("fragments", key) for key in ("missing_links", "removed_links", "doubtful_links")},
            "events": readouts.largest("fragments", "events"),
            "rate_hz": readouts.sum("fragments", "rate_hz"),
        },
        **dict.fromkeys(("farm", "bytes")),
        "latency_us": {key: readouts.largest("latency_us", key) for key in ("p50", "p99", "max")},
        **dict.fromkeys(("cpu_seconds", "processes")),
        "verified": {key: readouts.sum("verified", key) for key in ("chunks", "mismatches")},
        "files": [],
        "loss": {
            "fraction": readouts.largest("loss", "fraction") or 0.0,
            "allowed": readouts.largest("loss", "allowed"),
            "exceeded": any(_at(one, "loss", "exceeded") for one in readouts.all),
            "losses": [
                {**one, "what": f"{one['what']} ({name})"}
                for name, report in readouts.named.items()
                for one in _at(report, "loss", "losses") or ()
            ],
        },
        "consumers": {
            f"{name}.{consumer}": one
            for name, report in readouts.named.items()
            for consumer, one in (report.get("consumers") or {}).items()
        },
        # Every readout knows the same losses of a router: the largest count, not the sum.
        "input": {
            key: readouts.largest("input", key) if key.startswith("upstream_") else count
            for key, count in counters.items()
        },
    }


def _at(report, *path):
    for key in path:
        report = report.get(key) if isinstance(report, dict) else None
    return report


def _adds_up(farm):
    """Whether each trigger has at most one fate; None if this is not known."""
    if farm.get("triggers") is None or farm.get("undecided") is None:
        return None
    return sum(farm.get(key, 0) for key in DECIDED) <= farm["triggers"]


def _stages(report):
    """{stage: CPU seconds} of one process; an emulator is one stage."""
    seconds = report.get("cpu_seconds") or {}
    return seconds if isinstance(seconds, dict) else {"emulator": seconds}


def _cpu(processes):
    """{stage: CPU seconds} of all processes, upstream first."""
    joined = {}
    for _, _, report in processes:
        for stage, seconds in _stages(report or {}).items():
            joined[stage] = joined.get(stage, 0.0) + seconds
    return joined


def _limit(processes, dead_time, seen):
    """The stage that held back the trigger; `nothing` if the dead time is small. `dead_time` None: it is not known."""
    if dead_time is not None and dead_time < HARDLY:
        return "nothing"
    stages = [(seen, "")]
    stages += [(_at(one, "limited_by"), f" of {name}") for name, kind, one in processes if kind == "readout"]
    stages += [(_at(one, "limited_by"), "") for _, kind, one in processes if kind == "router"]
    return next((stage + of for stage, of in stages if stage and stage not in ("nothing", "input")), "input")


def files_verified(rows):
    """The key of this name, from the rows of `rodeo data verify -o json`. A chunk that is neither proven nor flagged counts as a mismatch."""

    def sum_of(key):
        return sum(row.get(key) or 0 for row in rows)

    unproven = sum(row.get("proven_chunks", 0) + row.get("flagged_chunks", 0) != row.get("chunks", 0) for row in rows)
    return {
        "files": len(rows),
        "events": sum_of("events"),
        "chunks": sum_of("proven_chunks"),
        "missing_links": sum_of("missing_links"),
        "removed_links": sum_of("removed_links"),
        "bytes": sum_of("size_bytes"),
        "mismatches": sum_of("findings_total") + unproven,
    }


def holds(report):
    """Whether each trigger is in one place, and all accepted and debug events are in files. Where the triggers are not known, only the files are checked."""
    farm, in_files = report["farm"], report["files_verified"]["events"]
    kept = farm["accepted"] + farm["debug"]
    if farm["adds_up"] is None:
        return kept <= in_files
    # An undecided event may be in a file: the run ended before the supervisor knew of it.
    return farm["adds_up"] and farm["triggers"] > 0 and kept <= in_files <= kept + farm["undecided"]


def judged(report, rows):
    """The report with the files that were read back: `rows` as of files_verified()."""
    report = {**report, "files_verified": files_verified(rows)}
    bad = report["files_verified"]["mismatches"] or "farm" in report and not holds(report)
    if bad and report["run"]["condition"] != "ABORTED":
        report["run"] = {**report["run"], "condition": "WRONG"}
    return report


def exit_status(report):
    """Of a judged report: first a failure of the run, then wrong bytes, then sums that do not hold."""
    condition, files, farm = report["run"]["condition"], report["files_verified"], report.get("farm") or {}
    if condition == "ABORTED" or report["run"]["failure"]:
        return FAILED
    if report["verified"]["mismatches"] or files["mismatches"]:
        return NOT_VERIFIED
    if condition == "WRONG":
        return FAILED
    if not files["events"] or not report["verified"]["chunks"]:
        return NOT_VERIFIED
    sure = not farm or farm["adds_up"] and not farm["readout_died"] + farm["undecided"]
    return DONE if sure and not report["loss"]["exceeded"] else PARTIAL


def text(report):
    """The judged report for people, one text of several lines."""
    run, chunks, bytes_, farm = report["run"], report["chunks"], report["bytes"], report.get("farm")
    wrong = "   THIS DOES NOT ADD UP"
    processes = report.get("processes") or ()
    silent = [one["name"] for one in processes if not one["reported"]]
    bad = [f"{one['name']} {one['condition']}" for one in processes if one["condition"] not in (None, "GOOD")]
    dead = "not known" if report["dead_time_fraction"] is None else f"{report['dead_time_fraction'] * 100:.2f} %"
    lost = ", ".join(f"{reason} {count}" for reason, count in chunks["lost"].items()) or "0"
    known = chunks["sent"] is not None and chunks["built"] is not None
    right = not known or chunks["sent"] == chunks["built"] + sum(chunks["lost"].values())
    lines = [f"{run['condition']}: run {run['number']} of {run['name']} took {run['seconds'] or 0:.1f} s"]
    lines += [f"  failure     {run['failure']}"] if run["failure"] else []
    lines += [f"  not good    {', '.join(bad)}"] if bad else []
    lines += [f"  no report   of {', '.join(silent)}"] if silent else []
    lines += [
        f"  triggers    {rate(report['offered_rate_hz'])} offered, {rate(report['trigger_rate_hz'])} accepted, "
        f"dead time {dead}",
        f"  chunks      {_known(chunks['sent'])} sent = {_known(chunks['built'])} in fragments + lost: {lost}{'' if right else wrong}",
        f"  bytes       {bytes_['in']} in = {bytes_['built']} built + {sum(bytes_['lost'].values())} lost"
        + ("" if bytes_.get("adds_up", True) else wrong),
        f"  fragments   {report['fragments']['built']}, {report['fragments']['incomplete']} incomplete",
    ]
    if farm:
        decided = " + ".join(f"{farm[key]} {key}" for key in DECIDED)
        if farm["adds_up"] is None:
            lines += [f"  events      {decided}; {_NOT_KNOWN}"]
        else:
            lines += [
                f"  events      {farm['triggers']} triggers = {decided} + {farm['undecided']} undecided{'' if farm['adds_up'] else wrong}"
            ]
        lines += [
            f"  of these    {farm['partial']} partial; {farm['reassigned']} times assigned again",
            f"  recorded    {farm['recorded']} events",
        ]
    lines += [
        f"  written     {size(bytes_['written'])} in {_counted(len(report['files']), 'file')}",
        f"  verified    {report['verified']['chunks']} chunks during the run, {report['verified']['mismatches']} mismatches",
    ]
    latency = (farm or {}).get("latency_us") or {}
    if latency.get("deciding_p50") is not None:
        lines += [
            "  latency     built p50 {building_p50:.0f} us, p99 {building_p99:.0f} us; decided p50 {deciding_p50:.0f} us, p99 {deciding_p99:.0f} us".format(
                **latency
            )
        ]
    lines += [
        "  CPU         " + ", ".join(f"{stage} {seconds:.1f} s" for stage, seconds in report["cpu_seconds"].items()),
        f"  limited by  {report['limited_by']}",
    ]
    return "\n".join([*lines, _sum_text(report)] if farm else lines)


def _sum_text(report):
    farm, in_files = report["farm"], report["files_verified"]["events"]
    if farm["adds_up"] is None:
        return (
            f"the triggers are not known: {farm['accepted']} accepted + {farm['debug']} debug (read back: {in_files}) + "
            f"{farm['rejected']} rejected + {farm['readout_died']} lost; {_NOT_KNOWN}"
        )
    return ("each trigger is in one place: " if holds(report) else "THE SUM DOES NOT HOLD: ") + (
        f"{farm['triggers']} triggers = {farm['accepted']} accepted + {farm['debug']} debug (both in files, read back: {in_files}) + "
        f"{farm['rejected']} rejected + {farm['readout_died'] + farm['undecided']} lost"
    )


_NOT_KNOWN = "this cannot be checked without the reports of the card and of all supervisors"


def read_back_text(files):
    """One line on the files that were read back."""
    bad = files["mismatches"]
    said = (
        "no written event could be verified"
        if not files["events"]
        else f"{_counted(bad, 'FINDING')}"
        if bad
        else "every byte verified"
    )
    counts = ", ".join(_counted(files[key], key.rstrip("s")) for key in ("files", "events", "chunks"))
    return f"files read back: {counts}, {size(files['bytes'])}: {said}"


def _known(count):
    return "an unknown number" if count is None else count


def _counted(count, word):
    return f"{count} {word}{'' if count == 1 else 's'}"
