"""The report of a demo: one over all processes, with the keys of a readout's report, and the exit status."""

import copy

import pytest
from rodeo.control.cli import demo_report
from rodeo.control.run.event_files import decided_in
from rodeo.control.state.balance import balance

KINDS = {
    "card": "emulator",
    "router": "router",
    "readout-1": "readout",
    "readout-2": "readout",
    "supervisor": "supervisor",
    "node-1": "node",
    "recorder": "recorder",
}


def readout(chunks):
    return {
        "run": {"condition": "GOOD", "seconds": 2.0, "name": "demo-readout", "number": 7, "failure": ""},
        "links": 4,
        "offered_rate_hz": None,
        "chunks": {"sent": chunks, "built": chunks, "lost": {}},
        "fragments": {"built": 10, "incomplete": 0, "events": 10},
        "bytes": {"in": 10 * chunks, "built": 10 * chunks, "lost": {}, "payload": 400, "written": 600},
        "latency_us": {"p50": None, "p99": 7.0},
        "cpu_seconds": {"readout": 0.5, "hlt": 0.25},
        "verified": {"chunks": chunks, "mismatches": 0},
        "limited_by": "nothing",
        "loss": {"fraction": 0, "allowed": 1, "exceeded": False, "losses": [{"what": "late", "count": 1}]},
        "consumers": {"processor": {"consumed": 10}},
        "input": {"sent": chunks, "upstream_felix_sequence_gaps": 3, "network_lost_pages": 2},
    }


def reports():
    events = {"in": 10, "accepted": 3, "rejected": 6, "debug": 1, "readout_died": 0, "partial": 0, "reassigned": 2}
    return {
        "card": {
            "cpu_seconds": 0.5,
            "trigger": {"offered": 20, "accepted": 10, "offering_seconds": 2.0},
            "functions": [{"chunks": 80, "counters": {"chunks_dropped": 0}}],
        },
        "router": {"chunks": {"sent": 80, "published": 80, "not_taken": 0}, "cpu_seconds": {"router": 0.125}},
        "readout-1": readout(40),
        "readout-2": readout(40),
        "supervisor": {"run": {"condition": "GOOD", "number": 7}, "events": events, "trigger": {"follows": "demo"}},
        "node-1": {"run": {"condition": "GOOD"}, "events": {"assigned": 10}, "latency_us": {"building_p50": 12.5}},
        "recorder": {"run": {"condition": "GOOD"}, "events": {"recorded": 4}, "bytes": {"files": 1000}},
    }


def report_of(told, only=None, **more):
    """The report of a run that left these reports; `only`: names of the processes of the system."""
    told = {name: one for name, one in told.items() if only is None or name in only}
    kinds = {name: KINDS[name.split("#")[0]] for name in told}
    per_run = {name: one for name, one in told.items() if kinds[name] not in ("emulator", "router")}
    router = {"chunks": {"sent": 0}}
    empty = {"trigger": {"accepted": 0}, "functions": [{"chunks": 0, "counters": {}}]}
    books = balance(
        per_run, {"card": empty}, {"card": told.get("card")}, {"router": (router, told.get("router"))}, kinds=KINDS
    )
    processes = [(name, kinds[name], one) for name, one in told.items()]
    run = {"number": 7, "condition": books.condition}
    return demo_report.demo_report("demo", processes, books, run=run, files=["a.data"], **more)


def rows(events=4, **more):
    return [
        {
            "events": events,
            "chunks": 10,
            "proven_chunks": 9,
            "flagged_chunks": 1,
            "size_bytes": 100,
            "findings_total": 0,
            **more,
        }
    ]


def test_a_chain_has_the_sums_of_its_readouts_and_says_where_each_trigger_is():
    report = report_of(reports())
    assert (report["run"]["condition"], report["run"]["seconds"], report["links"]) == ("GOOD", 2.0, 8)
    assert report["chunks"] == {"sent": 80, "built": 80, "lost": {}} and report["fragments"]["built"] == 20
    assert (report["dead_time_fraction"], report["offered_rate_hz"], report["trigger_rate_hz"]) == (0.5, 10, 5)
    farm = report["farm"]
    assert (farm["triggers"], farm["undecided"], farm["reassigned"], farm["recorded"]) == (10, 0, 2, 4)
    assert farm["adds_up"] and farm["latency_us"]["building_p50"] == 12.5
    assert report["cpu_seconds"] == {"emulator": 0.5, "router": 0.125, "readout": 1.0, "hlt": 0.5}
    assert report["loss"]["losses"][1] == {"what": "late (readout-2)", "count": 1}
    assert list(report["consumers"]) == ["readout-1.processor", "readout-2.processor"]
    assert report["bytes"]["written"] == 1000 and report["bytes"]["adds_up"]
    assert [one["name"] for one in report["processes"]] == list(KINDS)


def test_losses_that_every_readout_knows_of_a_router_count_once():
    report = report_of(reports())
    assert report["input"] == {"sent": 80, "upstream_felix_sequence_gaps": 3, "network_lost_pages": 4}


def test_every_accepted_event_must_be_in_a_file():
    report = report_of(reports())
    for in_files, condition, said in ((4, "GOOD", "each trigger is in one place: 10"), (3, "WRONG", "DOES NOT HOLD")):
        judged = demo_report.judged(report, rows(in_files))
        assert judged["run"]["condition"] == condition and said in demo_report.text(judged)


def test_the_exit_status_says_what_is_wrong():
    good = report_of(reports())
    assert demo_report.exit_status(demo_report.judged(good, rows())) == 0
    assert demo_report.exit_status(demo_report.judged(good, rows(findings_total=1))) == 7, "a byte differs"
    assert demo_report.exit_status(demo_report.judged(good, rows(proven_chunks=8))) == 7, "a chunk is not proven"
    assert demo_report.exit_status(demo_report.judged(good, rows(3))) == 1, "an event is in no file"
    told = reports()
    told["supervisor"]["events"]["rejected"] = 5
    assert demo_report.exit_status(demo_report.judged(report_of(told), rows())) == 6, "a trigger is undecided"
    told["supervisor"]["events"]["rejected"] = 7
    assert demo_report.exit_status(demo_report.judged(report_of(told), rows())) == 1, "there is an event too many"
    failed = demo_report.judged(report_of(reports(), failure="recorder ended"), rows())
    assert demo_report.exit_status(failed) == 1 and "failure     recorder ended" in demo_report.text(failed)
    unverified = copy.deepcopy(good)
    unverified["verified"]["chunks"] = 0
    assert demo_report.exit_status(demo_report.judged(unverified, rows())) == 7
    assert demo_report.exit_status(demo_report.judged(good, [])) == 1


def test_a_process_without_a_report_is_named():
    told = reports() | {"node-1": None, "readout-2": None}
    report = report_of(told)
    assert (report["run"]["condition"], report["chunks"]["lost"]) == ("INCOMPLETE", {"not_reported": 40})
    said = demo_report.text(demo_report.judged(report, rows()))
    assert "no report   of readout-2, node-1" in said and "DOES NOT" not in said


def test_triggers_that_no_process_counted_are_not_known():
    told = reports()
    told["supervisor#2"] = copy.deepcopy(told["supervisor"])
    told["supervisor#2"]["events"] = dict.fromkeys(told["supervisor"]["events"], 0)
    told["card"] = None
    report = report_of(told)
    assert [report["farm"][key] for key in ("triggers", "undecided", "adds_up")] == [None] * 3
    judged = demo_report.judged(report, rows())
    assert "cannot be checked" in demo_report.text(judged) and judged["run"]["condition"] != "WRONG"
    assert demo_report.exit_status(judged) == 6
    assert demo_report.judged(report, rows(3))["run"]["condition"] == "WRONG", "an accepted event is in no file"


def test_a_chain_without_a_farm_has_the_report_of_its_readout():
    told = reports() | {"readout-1": readout(80)}
    report = report_of(told, only=("card", "router", "readout-1"))
    assert set(report) == set(readout(1)) | {"trigger_rate_hz", "dead_time_fraction", "files"}
    assert (report["run"]["name"], report["trigger_rate_hz"], list(report["consumers"])) == ("demo", 5, ["processor"])
    assert report["cpu_seconds"] == {"emulator": 0.5, "router": 0.125, "readout": 0.5, "hlt": 0.25}
    assert (report["input"]["triggers"], report["input"]["vetoed"]) == (10, 10)
    judged = demo_report.judged(report, rows())
    assert demo_report.exit_status(judged) == 0 and "trigger is in one place" not in demo_report.text(judged)


@pytest.mark.parametrize(
    ("dead", "seen", "stage"),
    [(0, "readout-1: files", "nothing"), (10, "readout-1: files", "readout-1: files"), (10, "", "hlt of readout-2")],
)
def test_the_stage_that_held_back_the_trigger(dead, seen, stage):
    told = reports()
    told["card"]["trigger"]["offered"] = 10 + dead
    told["readout-2"]["limited_by"] = "hlt"
    assert report_of(told, limited_by=seen)["limited_by"] == stage


def test_a_restarted_supervisor_has_its_decisions_in_files(tmp_path):
    def decision(number, verdict):
        return number.to_bytes(8, "little") + bytes([verdict])

    def write(life, *decisions):
        (tmp_path / life).mkdir(exist_ok=True)
        (tmp_path / life / "decisions").write_bytes(b"".join(decisions))

    lives, kinds = {"s": None, "s#2": {"events": {}}}, {"s": "supervisor"}
    assert decided_in(tmp_path, lives, kinds) is None, "there is no file"
    write("s", decision(1, 0), decision(2, 1), decision(3, 2), b"half")
    write("s.2", decision(3, 0), decision(1 << 40, 3))
    told = {"accepted": 1, "rejected": 1, "debug": 1, "readout_died": 1}
    assert decided_in(tmp_path, lives, kinds) == told, "the first decision on an event counts"
    assert decided_in(tmp_path, {"s": {"events": {}}}, kinds) is None, "its report has all"
    write("s.2", decision(4, 0x7F))
    assert decided_in(tmp_path, lives, kinds) is None


def test_without_the_report_of_the_card_its_dead_time_is_not_known():
    told = reports()
    told["card"] = None
    report = report_of(told)
    assert (report["dead_time_fraction"], report["offered_rate_hz"], report["trigger_rate_hz"]) == (None, None, None)
    assert "- offered, - accepted, dead time not known" in demo_report.text(demo_report.judged(report, rows()))
