"""The shell's verbs: their requests, output and exit status, in a room without processes. test_client_verbs.py has a whole system."""

import io
import json
import logging
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import httpx
import pytest
from conftest import BUILD, ROOT, scaled
from idle_room import DOCUMENT, IdleRoom
from rodeo.control import log_setup
from rodeo.control.cli import demo, init, runs_verbs, status_text, verbs
from rodeo.control.client import Client, _settings
from rodeo.control.http.room import farewell
from rodeo.control.refused import Refused

HERE = Path(__file__).resolve().parent


@pytest.fixture(scope="module")
def runtime(tmp_path_factory):
    before = {name: os.environ.pop(name, None) for name in ("RODEO_RUNTIME_DIR", "RODEO_OPERATOR")}
    os.environ["RODEO_RUNTIME_DIR"] = str(tmp_path_factory.mktemp("r"))
    yield
    os.environ.pop("RODEO_RUNTIME_DIR")
    os.environ.update({name: value for name, value in before.items() if value is not None})


@pytest.fixture(scope="module")
def room(runtime):
    with IdleRoom() as room:
        yield room


@pytest.fixture(autouse=True)
def nobody_has_control(request):
    if "room" in request.fixturenames:
        room = request.getfixturevalue("room")
        for _ in range(2):
            room.clock_s += 120.0
            room.run(room.room.desk.tick())


def last_row(room):
    return room.rows[-1]


@pytest.mark.parametrize(
    ("argv", "command", "arguments"),
    [
        (["start", "--type", "cosmics", "--comment", "night"], "start", {"run_type": "cosmics", "comment": "night"}),
        (["launch", "--set", "a=1", "--set", "cards:b=2"], "launch", {"set": ["a=1", "cards:b=2"]}),
        (["stop"], "stop", {"reason": ""}),
        (["go-on"], "go_on", {}),
        (["abort", "--confirm"], "abort", {"confirm": True}),
        (["recover"], "recover", {}),
        (["close"], "close", {}),
        (["take"], "take", {"at_once": False}),
        (["take", "--at-once"], "take", {"at_once": True}),
        (["ask"], "ask", {}),
        (["ack", "process lost readout-1"], "ack", {"cause": "process lost readout-1"}),
        (["note", "--", "-5 V on the second crate"], "note", {"text": "-5 V on the second crate", "run": None}),
        (["note", "--run", "3", "x"], "note", {"text": "x", "run": 3}),
        (
            ["quality", "muons", "bad", "--run", "3", "--from", "2026-11-24T12:00", "--confirm"],
            "quality",
            {
                "subsystem": "muons",
                "verdict": "bad",
                "run": 3,
                "from_ns": 1795521600 * 10**9,
                "to_ns": None,
                "confirm": True,
            },
        ),
        (["taint", "--run", "3", "the wrong mask"], "taint", {"text": "the wrong mask", "run": 3, "back": False}),
    ],
)
def test_a_verb_is_a_command(room, capsys, argv, command, arguments):
    assert verbs.main(argv) == 0, capsys.readouterr().err
    assert last_row(room)[1:6] == ("shell", "expert", command, arguments, "done")


def test_start_with_a_setting_launches_with_it_first(room, capsys):
    assert verbs.main(["start", "--set", "cards:emulator.trigger.rate=2kHz"]) == 0, capsys.readouterr().err
    assert [row[3:5] for row in room.rows[-2:]] == [
        ("launch", {"set": ["cards:emulator.trigger.rate=2kHz"]}),
        ("start", {"run_type": "physics", "comment": ""}),
    ]


def test_what_is_refused_is_said_with_what_to_do(room, capsys):
    assert verbs.main(["pause"]) == 5
    assert capsys.readouterr().err == "error[control.state]: no run is open\n  rodeo control start\n"


def test_abort_wants_to_be_confirmed(room, capsys):
    assert verbs.main(["abort"]) == 2
    assert "--confirm" in capsys.readouterr().err


def test_names_of_operators_go_along(room, monkeypatch):
    assert verbs.main(["take", "--as", "Jürgen ☺"]) == 0 and last_row(room)[0] == "Jürgen ☺"
    monkeypatch.setenv("RODEO_OPERATOR", "ana")
    assert verbs.main(["take"]) == 5 and last_row(room)[0] == "ana"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["strat"], "did you mean `start`?"),
        (["stat"], "did you mean"),
        (["xyzzy"], "--help"),
        (["start", "--coment", "x"], "--help"),
        (["note"], "TEXT"),
        (["logs", "--lines", "many"], "--lines"),
        (["ack"], "--all"),
    ],
)
def test_what_is_wrong_is_told_with_what_was_meant(room, capsys, argv, said):
    assert verbs.main(argv) == 2
    error = capsys.readouterr().err
    assert error.startswith("error[control.") and said in error


def test_the_state_is_text_or_json(room, capsys):
    assert verbs.main(["status"]) == 0
    assert re.search("idle  READY.*control: free", capsys.readouterr().out)
    assert verbs.main(["status", "-o", "json"]) == 0
    assert set(json.loads(capsys.readouterr().out)) == set(DOCUMENT)


def test_addresses_are_printed_by_role(room, capsys):
    assert verbs.main(["status", "--addresses"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == ["viewer", "shifter", "expert"] and all(
        f":{room.port}/?token=" in line for line in lines
    )


def test_logs_are_of_a_process_or_of_all(room, capsys):
    assert (
        verbs.main(
            [
                "logs",
                "cards",
                "--lines",
                "1",
                "--search",
                "x",
                "--run",
                "7",
                "--level",
                "warning",
                "--audience",
                "operator",
                "--no-fold",
            ]
        )
        == 0
    )
    asked = '{"search": "x", "run": 7, "level": "warning", "audience": "operator", "since_ns": null, "fold": false}'
    assert capsys.readouterr().out == f"01:46:40.005 warning cards  run 7: {asked}  [code=x.y]  (x3)\n"
    assert verbs.main(["logs", "--search", "x", "-o", "json"]) == 0
    assert json.loads(capsys.readouterr().out)[0]["process"] == "cards"
    assert verbs.main(["logs", "--level", "loud"]) == 2


def test_waiting_ends_with_4_if_it_does_not_come(room, capsys):
    assert verbs.main(["wait", "--state", "ready"]) == 0
    assert verbs.main(["wait", "--state", "running", "--timeout", "0.1"]) == 4


def test_a_room_is_named_if_several_run(room, capsys):
    with IdleRoom("other", listen=None):
        assert verbs.main(["status"]) == 2
        assert "idle, other" in capsys.readouterr().err
        assert verbs.main(["status", "--system", "other"]) == 0
        assert verbs.main(["status", "--addresses", "--system", "other"]) == 0 and "no page" in capsys.readouterr().out
    assert verbs.main(["status", "--system", "other"]) == 4
    assert "idle does" in capsys.readouterr().err


def test_nobody_there_is_4(tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path))
    assert verbs.main(["stop"]) == 4
    assert "rodeo control SYSTEM starts one" in capsys.readouterr().err


def test_help_is_there_for_every_verb(capsys):
    assert verbs.main(["--help"]) == 0 and all(f"  {verb} " in capsys.readouterr().out for verb in ["start"])
    for verb in verbs.VERBS:
        with pytest.raises(SystemExit) as ended:
            verbs.dispatch([verb, "--help"])
        assert ended.value.code == 0
        assert verb in capsys.readouterr().out
    assert verbs.main([]) == 2


def test_a_lease_that_is_held_is_given_back(room):
    with Client(room.socket, "idle", name="ana") as client:
        client.take()
        assert client.status()["lease"]["holder"] == "ana"
    assert room.call(room.controller.document)["lease"]["holder"] is None


def test_settings_are_written_as_in_a_configuration():
    assert (
        _settings({"a": True, "cards:b": "2kHz", "c": 3}) == ["a=true", "cards:b=2kHz", "c=3"]
        and _settings(["x=1"]) == ["x=1"]
        and _settings(()) == []
    )


RUN = {
    "number": 12,
    "type": "physics",
    "state": "RUNNING",
    "condition": None,
    "flags": [],
    "seconds": 72.4,
    "comment": "night",
    "choice": None,
}
NUMBERS = {
    "trigger_rate_hz": 99_800.0,
    "dead_time_fraction": 0.002,
    "events": 1234567,
    "incomplete": 3,
    "incomplete_ppm": 2.43,
    "bytes_in_per_second": 10.1e9,
    "bytes_written_per_second": 412e6,
    "bytes_written": 5e9,
    "recording": True,
    "disk_free_bytes": 1e12,
    "disk_seconds_left": 33_480.0,
    "chunks": {"sent": 100, "built": 98, "lost": {"late": 2, "network": 0}},
}


def test_the_text_has_what_a_shifter_looks_at():
    document = {
        **DOCUMENT,
        "state": "RUNNING",
        "flags": ["DEGRADED"],
        "run": RUN,
        "numbers": NUMBERS,
        "limited_by": {"process": "readout-1", "stage": "file_writer"},
        "time_ns": 10**18,
        "waiting_for": ["readout-1: draining 3.2 s"],
        "processes": [
            {
                "name": "readout-1",
                "kind": "readout",
                "host": "local",
                "phase": "lost",
                "pid": 7,
                "seen_ns": 10**18 - 4 * 10**9,
                "exit": None,
                "restarts": 0,
                "what": "",
                "numbers": None,
            },
            {
                "name": "cards",
                "kind": "emulator",
                "host": "local",
                "phase": "failed",
                "pid": None,
                "seen_ns": None,
                "exit": {"status": None, "signal": "SIGSEGV", "core": True},
                "restarts": 2,
                "what": "",
                "numbers": {"rate_hz": 1e5},
            },
        ],
        "alarms": [
            {
                "cause": "process lost readout-1",
                "severity": "alarm",
                "raised_ns": 10**18 - 10**9,
                "acked_by": None,
                "acked_ns": None,
                "cleared_ns": None,
                "what": "silent",
                "value": 4,
                "limit": 3,
                "do": "look at its log",
                "process": "readout-1",
            }
        ],
    }
    text = status_text.text(document)
    for part in (
        "RUNNING  DEGRADED  run 12 (physics) 00:01:12",
        "rate 99.8 kHz | dead 0.2 % | events 1 234 567 | incomplete 3 (2.43 ppm) | in 10.1 GB/s | written 5 GB, 412 MB/s | disk 09:18:00",
        "100 sent, 98 built, lost late 2",
        "limited by readout-1 (file_writer)",
        "waiting for readout-1: draining",
        "silent for 4.0 s",
        "signal SIGSEGV core",
        "restarted 2 x",
        "!! process lost readout-1",
        "do: look at its log",
    ):
        assert part in text, text


def test_a_farm_has_a_line_of_its_own():
    farm = {
        "in": 1200,
        "accepted": 300,
        "rejected": 880,
        "debug": 0,
        "readout_died": 0,
        "partial": 1,
        "reassigned": 2,
        "under_way": 20,
        "recorded": None,
        "lumi_block": 3,
    }
    text = status_text.text(
        {**DOCUMENT, "state": "RUNNING", "run": RUN, "numbers": {**NUMBERS, "farm": farm}, "time_ns": 10**18}
    )
    assert (
        "farm: in 1 200 | accepted 300 | rejected 880 | debug 0 | partial 1 | assigned again 2 | under way 20 | recorded - | luminosity block 3"
        in text
    )
    assert "farm" not in status_text.text(
        {**DOCUMENT, "state": "RUNNING", "run": RUN, "numbers": {**NUMBERS, "farm": None}, "time_ns": 10**18}
    )
    ended = verbs.said(
        "stop",
        {"farm": {"in": 2, "accepted": 1, "rejected": 0, "debug": 0, "partial": 0, "readout_died": 1, "recorded": 1}},
        {**DOCUMENT, "last_run": RUN},
    )
    assert "farm: in 2 | accepted 1 | rejected 0 | debug 0 | partial 0 | readout_died 1 | recorded 1" in ended


def test_what_nobody_knows_is_no_zero():
    nothing = {name: None for name in NUMBERS} | {"chunks": {"sent": None, "built": None, "lost": {}}}
    assert "0" not in status_text.numbers(nothing) and status_text.numbers(nothing).startswith(
        "rate - | dead - | events -"
    )
    assert "nothing yet" in status_text.numbers({**nothing, "recording": True})


@pytest.mark.parametrize(
    ("value", "text"), [(None, "-"), (0.04, "0.0 s"), (59.94, "59.9 s"), (72.0, "00:01:12"), (3 * 86400.0, "3.0 d")]
)
def test_spans(value, text):
    assert status_text.span(value) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [(None, "-"), (0, "0 B"), (999, "999 B"), (1000, "1 kB"), (999_600, "1 MB"), (2.5e18, "2.5e+03 PB")],
)
def test_sizes(value, text):
    assert status_text.size(value) == text


def test_the_room_says_what_goes_on_without_it():
    alive = {**DOCUMENT, "processes": [{"name": "a", "phase": "running"}, {"name": "b", "phase": "failed"}]}
    assert (
        "run 12 continues" in farewell({**alive, "run": RUN})
        and "1 process (a)" in farewell({**alive, "run": RUN})
        and "rodeo control stop" in farewell({**alive, "run": RUN})
    )
    assert "rodeo control close" in farewell(alive)
    assert "no process runs" in farewell({**DOCUMENT, "processes": [{"name": "a", "phase": "absent"}]})


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_room_in_order(tmp_path, monkeypatch, number):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path / "r"))
    code = f"import sys; sys.path[:0] = {[str(BUILD / 'python'), str(HERE)]!r}; from idle_room import serve_idle; serve_idle('short', ('127.0.0.1', 0))"
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        try:
            address = process.stdout.readline().strip()
            assert re.fullmatch(r"http://127\.0\.0\.1:\d+/\?token=\S+", address), process.stderr.read()
            assert httpx.get(address, timeout=scaled(60)).status_code == 303
            with Client(tmp_path / "r" / "short.room", "short") as client:
                assert client.status()["state"] == "READY"
                process.send_signal(number)
                out, said = process.communicate(timeout=scaled(60))
        finally:
            process.kill()
    assert (
        process.returncode == 0
        and out == ""
        and "1 process (cards) continues without the control room" in said
        and "Traceback" not in said
    ), said
    assert list((tmp_path / "r").iterdir()) == []


def test_init_writes_over_nothing_and_takes_what_it_wrote(tmp_path, rodeo, capsys):
    assert verbs.main(["init", str(tmp_path / "my Lab")]) == 0
    assert verbs.main(["init", str(tmp_path / "my Lab")]) == 5
    assert 'name = "my-lab"' in (tmp_path / "my Lab" / "system.toml").read_text()
    for file in ("emulator.toml", "readout.toml"):
        rodeo("check", tmp_path / "my Lab" / file)
    assert verbs.main(["init", str(tmp_path / "x"), "--name", "no name"]) == 2


def test_init_fits_small_and_large_machines():
    small, large = init.texts("a", 1, 10 * 10**9), init.texts("b", 64, 10 * 10**12)
    assert (
        'disk_stop = "500MB"' in small["system.toml"]
        and 'disk_stop = "3GB"' in large["system.toml"]
        and 'rate = "1kHz"' in small["emulator.toml"]
    )
    address = re.search(r'address = "(.*)"', small["emulator.toml"])[1]
    assert (
        address in small["readout.toml"]
        and address not in large["readout.toml"]
        and re.fullmatch(r"0000:[0-9a-f]{2}:00\.0", address)
    )


def test_every_code_that_is_refused_with_is_explained():
    explained = dict(
        re.findall(r"(?m)^### (\S+) \(exit (\d)\)$", (ROOT / "src/cli/explain/error_codes.md").read_text())
    )
    used = set()
    for file in (ROOT / "python/rodeo/control").rglob("*.py"):
        used |= set(re.findall(r'Refused\(\s*"([a-z_]+\.[a-z_]+)"', file.read_text()))
    assert {"control.role", "control.no_room"} <= used
    assert used - set(explained) == set()
    assert {code: int(explained[code]) for code in verbs.EXITS} == verbs.EXITS


def test_the_exit_status_of_a_code_is_what_is_explained(monkeypatch):
    monkeypatch.setenv("RODEO", str(BUILD / "rodeo"))
    assert [
        verbs.exit_status(code)
        for code in ("config.bad_override", "base.runtime_dir", "control.no_room", "control.nobody_knows")
    ] == [2, 1, 4, 5]


def test_an_error_shows_what_to_do():
    assert str(Refused("control.x", "what", "next")) == "error[control.x]: what\n  next"


def test_progress_names_whom_is_waited_for_once(room, monkeypatch):
    from rodeo.control.cli import progress

    monkeypatch.setattr(progress, "FIRST_S", 0.0)
    said = io.StringIO()
    room.call(lambda: room.controller.put(state="STOPPING", waiting_for=["readout-1: draining 1 s"]))
    try:
        with progress.shown(lambda: Client(room.socket, "idle"), said):
            for n in range(2, 200):
                room.call(lambda n=n: room.controller.put(waiting_for=[f"readout-1: draining {n} s"]))
                if said.getvalue():
                    break
                time.sleep(0.1)
        assert said.getvalue().startswith("STOPPING: readout-1: draining") and said.getvalue().count("\n") == 1
    finally:
        room.call(lambda: room.controller.put(state="READY", waiting_for=[]))


SEQUENCES = "\x1b]0;title\x07 \x1b]52;c;Y2xpcA==\x1b\\ \x9b31m \x85 \r"


def test_what_a_process_says_reaches_no_terminal_as_a_control_sequence(capsys):
    """Removes sequences for the title, the clipboard and colours, C1 characters and carriage returns. A line break cannot fake another process's line."""
    record = {
        "time_ns": 10**18,
        "level": "info",
        "process": "cards",
        "run": 7,
        "message": f"a{SEQUENCES}b\n12:00:00.000 error forged",
        "fields": {"x": SEQUENCES},
        "repeats": 0,
    }
    line = status_text.log_line(record)
    assert not [each for each in line if each != "\n" and (each < " " or "\x7f" <= each < "\xa0")]
    assert "a?]0;title? ?]52;c;Y2xpcA==?\\ ?31m ?  b\n    12:00:00.000 error forged" in line


def test_what_verbs_and_the_room_print_has_no_control_sequence_either(capsys, monkeypatch):
    verbs.show(SimpleNamespace(output="text"), {}, f"one{SEQUENCES}\ntwo")
    monkeypatch.setattr(
        verbs, "dispatch", lambda argv: (_ for _ in ()).throw(Refused("control.argument", f"x{SEQUENCES}", ""))
    )
    assert verbs.main([]) == 2
    record = logging.LogRecord("x", logging.WARNING, "", 0, f"y{SEQUENCES}\nz", (), None)
    printed = capsys.readouterr()
    said = printed.out + printed.err + log_setup.Plain("%(message)s").format(record)
    assert (
        "one?]0;title?" in said
        and "\x1b" not in said
        and "\x9b" not in said
        and "\x07" not in said
        and said.endswith("\n  z")
    )


def test_a_warning_during_a_demo_stands_before_the_block_that_is_redrawn():
    out = io.StringIO()
    out.isatty = lambda: True
    view = demo.Shown(out)
    logger = logging.getLogger("test of a demo")
    logger.addHandler(demo.Warnings(view))
    view.show(DOCUMENT)
    drawn = out.getvalue().count("\n")
    logger.warning("the disk is full in %d s", 610)
    view.show(DOCUMENT)
    block, warned = out.getvalue().split(f"\x1b[{drawn}F\x1b[J")
    assert warned == "the disk is full in 610 s\n" + block


def test_foreign_text_in_a_failure_does_not_reach_the_terminal_as_commands(monkeypatch, capsys):
    evil, options = (
        "the card said \x1b]0;owned\x07\x1b[2J",
        ["system.toml", "--seconds", "1"],
    )

    async def refused(*_):
        raise Refused("control.gone", evil, evil)

    async def failed(*_):
        return demo.Ended(failure=evil)

    for one in (refused, failed):
        monkeypatch.setattr(demo, "demo", one)
        demo.main(options)
    monkeypatch.setitem(runs_verbs.VERBS, "list", (lambda _: (_ for _ in ()).throw(Refused("control.gone", evil)), ""))
    runs_verbs.main(["list"])
    shown = io.StringIO()
    shown.isatty = lambda: True
    demo.Shown(shown).show({**DOCUMENT, "what": evil})
    failures, picture = capsys.readouterr().err, shown.getvalue()
    said = failures + picture
    assert (
        (failures.count("the card said"), picture.count("the card said")) == (4, 1)
        and "\x1b" not in said
        and "\x07" not in said
    )
