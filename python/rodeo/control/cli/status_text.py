"""The document as text for a terminal: the state first, then numbers, processes, alarms. Pure."""

import time

from rodeo.control import printed
from rodeo.control.printed import Cell, folded, plain_lines
from rodeo.control.state.numbers import named_link

SHAPES = {"good": ">", "warning": "!", "alarm": "X"}  # the shapes of headlines that are not a state
GLYPHS = {
    "OFF": "o",
    "LAUNCHING": "^",
    "READY": "=",
    "STARTING": "^",
    "RUNNING": ">",
    "PAUSED": "|",
    "STOPPING": "v",
    "CLOSING": "v",
    "ERROR": "X",
}


def text(document: dict, now_ns: int | None = None, columns: int = 0) -> str:
    """The document as several lines of at most `columns`; 0 is unlimited. `now_ns` (UTC) for ages; None: the document's time."""
    now_ns = now_ns or document["time_ns"]
    lines = [headline(document)]
    lines += [f"  {document['what']}"] if document.get("what") else []
    lines += [f"  waiting for {each}" for each in document.get("waiting_for") or []]
    if (run := document.get("run")) is not None:
        if run.get("comment"):
            lines.append(f"  {run['comment']}")
        if run.get("choice"):
            left = max(0, round((run["choice"]["until_ns"] - now_ns) / 1e9))
            lines.append(
                f"  {run['choice']['process']} is lost: continue without it (rodeo control go-on), or the run stops in {left} s"
            )
    if document["state"] not in ("OFF", "LAUNCHING") or run:
        lines.append("  " + numbers(document["numbers"]))
        lines += [f"  {farm(known)}"] if (known := document["numbers"].get("farm")) else []
    if (limited := document.get("limited_by")) is not None:
        lines.append(f"  limited by {limited['process']}" + (f" ({limited['stage']})" if limited.get("stage") else ""))
    if document["processes"]:
        lines += [
            "",
            *table(
                [
                    ["process", "kind", "host", "phase", "pid", "rate", "what"],
                    *(_process(each, now_ns) for each in document["processes"]),
                ],
                columns,
            ),
        ]
    if standing := alarms(document, now_ns):
        lines += ["", "alarms", *standing]
    links = document.get("links") or {}
    if links.get("bad"):
        lines += [
            "",
            f"links: {links['active']} of {links['total']} active; the worst",
            *(
                f"  {each['process']} {named_link(each)} {each.get('state') or ''} missing {count(each.get('missing'))}, "
                f"bad {count(each.get('bad'))}{_doubt(each)}"
                for each in links["bad"][:5]
            ),
        ]
    if not run and (last := document.get("last_run")) is not None:
        lines += ["", f"last run: {ended(last)}"]
    if document["database"]["state"] != "good":
        lines += [
            "",
            f"the run database is gone: {document['database'].get('journal') or 0} records wait for it",
        ]
    return folded("\n".join(lines), columns)


def _doubt(link: dict) -> str:
    """The doubts about a link and its assignment to events; empty without any."""
    chunks = f", in doubt {count(link['in_doubt'])}" if link.get("in_doubt") else ""
    return chunks + (", out of step" if link.get("out_of_step") else "") + (", silent" if link.get("silent") else "")


def alarms(document: dict, now_ns: int) -> list:
    """The standing alarms, two lines each."""
    standing = [each for each in document["alarms"] if not each.get("cleared_ns") or not each.get("acked_ns")]
    return [line for each in standing for line in _alarm(each, now_ns)]


def rules(listed: list, columns: int = 0) -> list:
    """The alarm rules as a table."""
    rows = [["rule", "priority", "limit", "in looks", "when", "do"]]
    for each in listed:
        looks = f"{each['times']} of {each['of_last']}" if each["of_last"] > 1 else "1"
        limit = "-" if each["limit"] is None else f"{each['limit']:g}"
        rows.append(
            [
                each["name"],
                "off" if not each["enabled"] else each["severity"] or "by role",
                limit,
                looks,
                each["about"],
                each["do"],
            ]
        )
    return table(rows, columns)


def history(listed: list, columns: int = 0) -> list:
    """Past alarms as a table."""
    rows = [["raised (UTC)", "over (UTC)", "run", "by", "what"]]
    for each in listed:
        rows.append(
            [
                _utc(each["raised_ns"]),
                _utc(each["cleared_ns"]),
                str(each["run"] or "-"),
                each["acked_by"] or "-",
                each["what"],
            ]
        )
    return table(rows, columns) if listed else []


def _utc(ns):
    return "-" if ns is None else time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(ns / 1e9))


def headline(document: dict) -> str:
    """Name, state, flags, run and holder of control, in one line."""
    run, lease, said = (
        document.get("run"),
        document.get("lease") or {},
        document.get("headline") or {"word": document["state"]},
    )
    word = document["state"] if said["word"] in GLYPHS else f"{document['state']}  {said['word']}"
    glyph = GLYPHS.get(document["state"], "?") if said["word"] in GLYPHS else SHAPES.get(said.get("severity"), "?")
    parts = [f"[{glyph}] {document['system']['name']}  {word}", *document.get("flags", [])]
    if run is not None:
        parts.append(f"run {run['number']} ({run['type']}) {span(run.get('seconds'))}")
    parts.append(
        f"control: {lease.get('holder') or 'free'}" + (f", {lease['asked_by']} asks" if lease.get("asked_by") else "")
    )
    return "  ".join(parts)


def numbers(values: dict) -> str:
    """The main numbers for a shifter, in one line."""
    dead = values.get("dead_time_fraction")
    written = values.get("bytes_written_per_second")
    parts = [
        f"rate {rate(values.get('trigger_rate_hz'))}",
        "dead - " if dead is None else f"dead {dead * 100:.2g} %",
        f"events {count(values.get('events'))}",
        f"incomplete {count(values.get('incomplete'))}"
        + (f" ({values['incomplete_ppm']:.3g} ppm)" if values.get("incomplete_ppm") is not None else ""),
        f"in {size(values.get('bytes_in_per_second'))}/s",
        "written nothing yet, what came is in memory"
        if values.get("recording") and not values.get("bytes_written")
        else f"written {size(values.get('bytes_written'))}" + (f", {size(written)}/s" if written else ""),
        f"disk {span(values.get('disk_seconds_left'))}"
        if values.get("disk_seconds_left") is not None
        else f"disk {size(values.get('disk_free_bytes'))} free",
    ]
    chunks = values.get("chunks") or {}
    if chunks.get("sent") is not None:
        lost = ", ".join(f"{reason} {count(number)}" for reason, number in (chunks.get("lost") or {}).items() if number)
        parts.append(f"chunks {count(chunks['sent'])} sent, {count(chunks.get('built'))} built, lost {lost or '0'}")
    return " | ".join(part.strip() for part in parts)


FARM = (
    ("in", "in"),
    ("accepted", "accepted"),
    ("rejected", "rejected"),
    ("debug", "debug"),
    ("partial", "partial"),
    ("reassigned", "assigned again"),
    ("under_way", "under way"),
    ("readout_died", "readout_died"),
    ("undecided", "undecided"),
    ("uncleared", "uncleared"),
    ("recorded", "recorded"),
)
RARE = ("under_way", "readout_died", "undecided", "uncleared")  # these fates are shown only if not 0


def farm(values: dict) -> str:
    """The whole events by fate, in one line: of the open run, or from the sums of an ended one."""
    parts = [f"{name} {count(values[key])}" for key, name in FARM if key in values and (values[key] or key not in RARE)]
    return "farm: " + " | ".join(
        parts + ([f"luminosity block {values['lumi_block']}"] if values.get("lumi_block") is not None else [])
    )


def log_line(record: dict) -> str:
    """A log record as one line: time (UTC), level, process, run, message. Further lines of the message are indented; control characters become ?."""
    when = (
        "-"
        if record["time_ns"] is None
        else time.strftime("%H:%M:%S", time.gmtime(record["time_ns"] / 1e9))
        + f".{record['time_ns'] // 1_000_000 % 1000:03d}"
    )
    fields = " ".join(f"{name}={value}" for name, value in record["fields"].items() if value)
    parts = [f"{when:12} {record['level']:7} {record['process']}", *([f"run {record['run']}"] if record["run"] else [])]
    line = (
        "  ".join(parts)
        + f": {record['message']}"
        + (f"  [{fields}]" if fields else "")
        + (f"  (x{record['repeats'] + 1})" if record["repeats"] else "")
    )
    return plain_lines(line, "    ")


def ended(run: dict) -> str:
    """How a run ended, in one line."""
    flags = " ".join(run.get("flags") or [])
    return (
        f"run {run['number']} ({run['type']}) {run.get('condition') or run.get('state') or '-'}{' ' + flags if flags else ''} after {span(run.get('seconds'))}"
        + (f": {run['reason']}" if run.get("reason") else "")
    )


def _process(each, now_ns):
    what, left = each.get("what") or "", each.get("exit")
    if left:
        how = (
            f"signal {left['signal']}{' core' if left.get('core') else ''}"
            if left.get("signal")
            else f"exit {left.get('status')}"
        )
        what = f"{how}{': ' if what else ''}{what}"
    elif each.get("phase") == "lost" and each.get("seen_ns"):
        what = f"silent for {span(max(0.0, (now_ns - each['seen_ns']) / 1e9))}" + (f": {what}" if what else "")
    if each.get("restarts"):
        what = f"restarted {each['restarts']} x{'; ' if what else ''}{what}"
    return [
        each["name"],
        each["kind"],
        each["host"],
        each["phase"],
        str(each.get("pid") or "-"),
        rate((each.get("numbers") or {}).get("rate_hz")),
        what,
    ]


def _alarm(each, now_ns):
    mark = "  " if each.get("shelved_by") else "!!" if each["severity"] == "alarm" else " !"
    state = f"acknowledged by {each['acked_by']}" if each.get("acked_by") else "not acknowledged"
    if each.get("shelved_by"):
        state = f"shelved by {each['shelved_by']} until {time.strftime('%H:%M', time.gmtime(each['shelved_until_ns'] / 1e9))} UTC"
    gone = ", over" if each.get("cleared_ns") else ""
    yield f"{mark} {each['cause']}  {each['what']}  {span(max(0.0, (now_ns - each['raised_ns']) / 1e9))}, {state}{gone}"
    if each.get("value") is not None and each.get("limit") is not None:
        yield f"     {each['value']} (limit {each['limit']})"
    if each.get("do"):
        yield f"     do: {each['do']}"


def table(rows: list[list[str]], columns: int = 0) -> list[str]:
    """Rows below the titles in the first one, in at most `columns`; 0 is unlimited."""
    return printed.table(rows[0], [[Cell(text) for text in row] for row in rows[1:]], styled=False, columns=columns)


def _scaled(value, unit, steps=("", "k", "M", "G", "T", "P")):
    if value is None:
        return "-"
    for step in steps[:-1]:
        if abs(value) < 999.5:
            break
        value /= 1000.0
    else:
        step = steps[-1]
    return f"{value:.3g} {step}{unit}"


def rate(value) -> str:
    return _scaled(value, "Hz")


def size(value) -> str:
    return _scaled(value, "B")


def count(value) -> str:
    return "-" if value is None else f"{value:,}".replace(",", " ") if isinstance(value, int) else f"{value:g}"


def span(seconds) -> str:
    """A duration: 12.3 s, 00:01:12, 3.4 d."""
    if seconds is None:
        return "-"
    if seconds < 60:
        return f"{seconds:.1f} s"
    if seconds < 2 * 86400:
        whole = int(seconds)
        return f"{whole // 3600:02}:{whole // 60 % 60:02}:{whole % 60:02}"
    return f"{seconds / 86400:.1f} d"
