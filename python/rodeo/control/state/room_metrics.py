"""The control room's metrics for Prometheus: each declared once, with its help; text, dashboard and reference are generated from the table. Pure."""

from dataclasses import dataclass
from types import SimpleNamespace

from rodeo.control.state.snapshots import PHASES
from rodeo.control.state.system_state import STATES

FLAGS = ("DEGRADED", "OVERDUE", "BLIND")
PROCESS = ("process", "class", "kind", "host")


@dataclass(frozen=True)
class Metric:
    """`samples(view)` yields (label values, number or None); None is omitted. `labels`: in addition to `system`. `unit`: Grafana's name of the unit.
    `panel`: its panel on the dashboard, empty: none; `legend` names its line there."""

    name: str
    kind: str
    help: str
    samples: object
    labels: tuple = ()
    unit: str = "short"
    panel: str = ""
    legend: str = ""


def _number(key):
    return lambda view: [((), view.numbers.get(key))]


def _of_processes(value):
    return lambda view: [
        ((each["name"], each["class"], each["kind"], each["host"]), value(each)) for each in view.document["processes"]
    ]


METRICS = (
    Metric(
        "rodeo_room_state",
        "gauge",
        "1 for the state of the system, 0 for the others",
        lambda v: [((state,), state == v.document["state"]) for state in STATES],
        ("state",),
        panel="State",
        legend="{{state}}",
    ),
    Metric(
        "rodeo_room_flag",
        "gauge",
        "1 if the flag is set",
        lambda v: [((flag,), flag in v.document["flags"]) for flag in FLAGS],
        ("flag",),
        panel="State",
        legend="{{flag}}",
    ),
    Metric(
        "rodeo_room_run_number",
        "gauge",
        "Number of the open run, 0 if none is open",
        lambda v: [((), (v.document["run"] or {}).get("number", 0))],
        panel="Run",
        legend="run",
    ),
    Metric(
        "rodeo_room_run_seconds",
        "gauge",
        "Seconds since the first event of the run",
        lambda v: [((), (v.document["run"] or {}).get("seconds"))],
        unit="s",
    ),
    Metric(
        "rodeo_room_trigger_rate_hz",
        "gauge",
        "Accepted triggers a second",
        _number("trigger_rate_hz"),
        unit="hertz",
        panel="Triggers",
        legend="accepted",
    ),
    Metric(
        "rodeo_room_offered_rate_hz",
        "gauge",
        "Offered triggers a second",
        _number("offered_rate_hz"),
        unit="hertz",
        panel="Triggers",
        legend="offered",
    ),
    Metric(
        "rodeo_room_dead_time_fraction",
        "gauge",
        "Fraction of the offered triggers lost to dead time",
        _number("dead_time_fraction"),
        unit="percentunit",
        panel="Dead time",
        legend="dead time",
    ),
    Metric("rodeo_room_events", "gauge", "Events of the run that every readout has built", _number("events")),
    Metric(
        "rodeo_room_incomplete_ppm",
        "gauge",
        "Incomplete fragments per million",
        _number("incomplete_ppm"),
        panel="Incomplete fragments",
        legend="ppm",
    ),
    Metric(
        "rodeo_room_partial_ppm",
        "gauge",
        "Whole events that lack fragments, per million of the last look",
        _number("partial_ppm"),
        panel="Partial events",
        legend="ppm",
    ),
    Metric(
        "rodeo_room_bytes_in_per_second",
        "gauge",
        "Bytes a second into the readouts",
        _number("bytes_in_per_second"),
        unit="Bps",
        panel="Bytes",
        legend="in",
    ),
    Metric(
        "rodeo_room_bytes_written_per_second",
        "gauge",
        "Bytes a second into files",
        _number("bytes_written_per_second"),
        unit="Bps",
        panel="Bytes",
        legend="written",
    ),
    Metric(
        "rodeo_room_disk_free_bytes",
        "gauge",
        "Free bytes on the disk of the files",
        _number("disk_free_bytes"),
        unit="bytes",
        panel="Disk",
        legend="free",
    ),
    Metric(
        "rodeo_room_disk_seconds_left",
        "gauge",
        "Seconds until the disk is full at the speed of the run",
        _number("disk_seconds_left"),
        unit="s",
    ),
    Metric(
        "rodeo_room_disk_warn_bytes",
        "gauge",
        "control.disk_warn",
        lambda v: [((), v.system.disk_warn_bytes)],
        unit="bytes",
        panel="Disk",
        legend="warns below",
    ),
    Metric(
        "rodeo_room_disk_time_seconds", "gauge", "control.disk_time", lambda v: [((), v.system.disk_time_s)], unit="s"
    ),
    Metric(
        "rodeo_room_chunks_sent",
        "gauge",
        "Chunks that the cards have sent in the run",
        lambda v: [((), (v.numbers.get("chunks") or {}).get("sent"))],
    ),
    Metric(
        "rodeo_room_chunks_lost",
        "gauge",
        "Chunks of the run in no fragment",
        lambda v: [((reason,), count) for reason, count in ((v.numbers.get("chunks") or {}).get("lost") or {}).items()],
        ("reason",),
        panel="Lost chunks",
        legend="{{reason}}",
    ),
    Metric(
        "rodeo_room_limited_by",
        "gauge",
        "1 for the stage that limits the run: the first cause of back-pressure",
        lambda v: (
            [((v.document["limited_by"]["process"], v.document["limited_by"]["stage"]), 1)]
            if v.document["limited_by"]
            else []
        ),
        ("process", "stage"),
        panel="Limited by",
        legend="{{process}}: {{stage}}",
    ),
    Metric(
        "rodeo_room_headline",
        "gauge",
        "1 for the word of the headline: a state, NO DATA, NO TRIGGERS, LOSES DATA or LOSES TRIGGERS",
        lambda v: [((v.document["headline"]["word"], v.document["headline"]["severity"]), 1)],
        ("word", "severity"),
    ),
    Metric(
        "rodeo_room_links",
        "gauge",
        "Links of the readouts",
        lambda v: [((state,), v.document["links"].get(state)) for state in ("total", "active", "removed")],
        ("state",),
        panel="Links",
        legend="{{state}}",
    ),
    Metric(
        "rodeo_room_link_bad",
        "gauge",
        "1 for a link that is not active, or is silent while others bring data; at most 16 of them",
        lambda v: [
            ((one["process"], one["fid"], "silent" if one.get("silent") else one["state"]), 1)
            for one in v.document["links"].get("bad") or ()
            if one.get("silent") or one.get("state") not in (None, "active")
        ],
        ("process", "fid", "state"),
    ),
    Metric(
        "rodeo_room_link_out_of_step",
        "gauge",
        "1 for a link whose BCIDs agree with no event where it can be",
        lambda v: [
            ((one["process"], one["fid"]), 1) for one in v.document["links"].get("bad") or () if one.get("out_of_step")
        ],
        ("process", "fid"),
    ),
    Metric(
        "rodeo_room_process_phase",
        "gauge",
        "1 for the phase of a process",
        lambda v: [
            ((each["name"], each["class"], each["kind"], each["host"], each["phase"]), 1)
            for each in v.document["processes"]
            if each["phase"] in PHASES
        ],
        (*PROCESS, "phase"),
        panel="Processes",
        legend="{{process}} {{phase}}",
    ),
    Metric(
        "rodeo_room_process_rate_hz",
        "gauge",
        "Events a second of a readout, triggers of a card, chunks a link of a router",
        _of_processes(lambda p: (p["numbers"] or {}).get("rate_hz")),
        PROCESS,
        "hertz",
        "Rate by process",
        "{{process}}",
    ),
    Metric(
        "rodeo_room_process_fill_ratio",
        "gauge",
        "Fill of the fullest queue of a process, 0 to 1",
        _of_processes(lambda p: (p["numbers"] or {}).get("fill")),
        PROCESS,
        "percentunit",
        "Fill by process",
        "{{process}}",
    ),
    Metric(
        "rodeo_room_process_cpu_cores",
        "gauge",
        "CPU cores used by a process",
        _of_processes(lambda p: p["cpu"]),
        PROCESS,
        panel="CPU by process",
        legend="{{process}}",
    ),
    Metric(
        "rodeo_room_process_rss_bytes",
        "gauge",
        "Memory of a process",
        _of_processes(lambda p: p["rss_bytes"]),
        PROCESS,
        "bytes",
        "Memory by process",
        "{{process}}",
    ),
    Metric(
        "rodeo_room_process_restarts",
        "gauge",
        "Restarts of a process by a rule",
        _of_processes(lambda p: p["restarts"]),
        PROCESS,
    ),
    Metric(
        "rodeo_room_process_left_out",
        "gauge",
        "1 if the run continues without the process",
        _of_processes(lambda p: p["left_out"]),
        PROCESS,
    ),
    Metric(
        "rodeo_room_host_silent",
        "gauge",
        "1 if a host does not answer",
        lambda v: [((host["name"],), host["state"] == "silent") for host in v.document["hosts"]],
        ("host",),
    ),
    Metric(
        "rodeo_room_host_clock_offset_seconds",
        "gauge",
        "Least possible offset of a host's clock",
        lambda v: [((host,), off) for host, off in v.clocks.items()],
        ("host",),
        "s",
        "Clocks",
        "{{host}}",
    ),
    Metric(
        "rodeo_room_host_temperature_celsius",
        "gauge",
        "Temperature from a sensor of a host",
        lambda v: [
            ((host, sensor), one) for host, sensors in v.temperatures.items() for sensor, one in sensors.items()
        ],
        ("host", "sensor"),
        "celsius",
        "Temperatures",
        "{{host}} {{sensor}}",
    ),
    Metric(
        "rodeo_room_external_up",
        "gauge",
        "1 if an external program answers",
        lambda v: [
            ((one["name"],), one["state"] == "good") for one in v.document["externals"] if one["state"] != "unknown"
        ],
        ("external",),
        panel="External programs",
        legend="{{external}}",
    ),
    Metric(
        "rodeo_room_database_good",
        "gauge",
        "0 if the run database is gone",
        lambda v: [((), v.document["database"]["state"] == "good")],
        panel="Run database",
        legend="good",
    ),
    Metric(
        "rodeo_room_database_journal",
        "gauge",
        "Records that wait for the run database",
        lambda v: [((), v.document["database"]["journal"])],
        panel="Run database",
        legend="records that wait",
    ),
    Metric(
        "rodeo_room_run_numbers_left",
        "gauge",
        "Run numbers that are left without the server of control.database",
        lambda v: [((), left)] if (left := v.document["database"].get("run_numbers")) is not None else [],
        panel="Run database",
        legend="run numbers left",
    ),
    Metric(
        "rodeo_room_rule_value",
        "gauge",
        "Current value of an alarm rule of the system file",
        lambda v: [((one.rule.name, one.subject), one.value) for one in v.found],
        ("rule", "subject"),
        panel="Values of alarm rules",
        legend="{{rule}} {{subject}}",
    ),
    Metric(
        "rodeo_room_rule_gone",
        "gauge",
        "1 if the value of an alarm rule is gone",
        lambda v: [((one.rule.name, one.subject), 1) for one in v.gone],
        ("rule", "subject"),
    ),
    Metric(
        "rodeo_room_alarms_left_out",
        "gauge",
        "Causes of alarms without a place beside 500 standing alarms",
        lambda v: [((), v.left_out)],
    ),
    Metric(
        "rodeo_room_alarm",
        "gauge",
        "1 for a standing alarm; asks: it is neither acknowledged nor shelved",
        lambda v: [
            (
                (
                    one["cause"],
                    (v.rules.rule_of(one["cause"]) or _NO_RULE).name,
                    one["severity"],
                    str(not one["acked_by"] and not one["shelved_by"]).lower(),
                ),
                1,
            )
            for one in v.document["alarms"]
        ],
        ("cause", "rule", "severity", "asks"),
        panel="Alarms",
        legend="{{cause}}",
    ),
)
_NO_RULE = SimpleNamespace(name="")
MOST_SAMPLES = 20_000  # the limit per metric


def text(document, *, rules, system, found=(), gone=(), clocks=None, temperatures=None, left_out=0):
    """All metrics in Prometheus' text format (0.0.4)."""
    view = SimpleNamespace(
        document=document,
        numbers=document.get("numbers") or {},
        rules=rules,
        found=found,
        gone=gone,
        clocks=clocks or {},
        temperatures=temperatures or {},
        system=system,
        left_out=left_out,
    )
    lines = []
    if document.get("state") is None:  # the controller has not looked yet
        return ""
    for metric in METRICS:
        lines += [f"# HELP {metric.name} {metric.help}", f"# TYPE {metric.name} {metric.kind}"]
        for values, number in list(metric.samples(view))[:MOST_SAMPLES]:
            if number is not None:
                labels = ",".join(
                    f'{name}="{_escaped(value)}"'
                    for name, value in zip(("system", *metric.labels), (system.name, *values))
                )
                lines.append(f"{metric.name}{{{labels}}} {float(number):.17g}")
    return "\n".join(lines) + "\n"


def _escaped(value):
    return str(value).replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
