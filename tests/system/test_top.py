"""`rodeo top`: all processes of this user on this host, found by their control sockets; processes that do not answer are listed, too."""

import json
import os
import signal
import time

from conftest import ROOT, scaled
from running_emulator import emulated
from running_readout import running
from terminal import on_a_terminal


def top(rodeo, *arguments):
    return json.loads(rodeo("top", "-o", "json", "--interval", "200ms", *arguments).stdout)


def test_nothing_runs(rodeo):
    assert top(rodeo) == {"processes": [], "worst_links": [], "more_bad_links": 0, "control_rooms": []}
    assert "no process of Rodeo runs here" in rodeo("top").stdout


def test_each_process_has_its_verdict_rate_and_losses(rodeo):
    with running(rodeo) as readout, emulated(rodeo, ROOT / "examples" / "cru.toml"):
        readout.wait_until(lambda status: status["fragments"]["built"] > 100, "it has built events")
        seen = {one["kind"]: one for one in top(rodeo)["processes"]}
        assert set(seen) == {"readout", "emulator"}
        one = seen["readout"]
        assert (one["name"], one["phase"], one["run"], one["verdict"]) == ("test", "running", 7, "GOOD")
        assert (
            one["pid"] == readout.process.pid
            and one["rate_hz"] > 0
            and one["lost"] == {}
            and one["rss_bytes"] > 1e6
            and one["cpu"] >= 0
        )
        text = rodeo("top", "--interval", "10ms").stdout
        assert "GOOD" in text and "nothing" in text and "\x1b" not in text
        assert rodeo("top", "-o", "csv", "--interval", "10ms").stdout.startswith("name,kind,pid")


def test_the_worst_links_are_named(rodeo):
    with running(rodeo) as readout:
        fid = readout.links()[3]["fid"]
        readout.ask("link", "remove", fid)
        readout.wait_until(
            lambda status: any(link["state"] == "removed" for rob in status["robs"] for link in rob["links"]),
            "it is removed",
        )
        worst = top(rodeo)["worst_links"]
        assert [(one["fid"], one["process"], one["state"]) for one in worst] == [(fid, "test", "removed")]
        assert fid in rodeo("top", "--interval", "10ms").stdout


def test_one_that_stands_still_is_silent_and_holds_nobody_up(rodeo):
    with running(rodeo) as readout:
        os.kill(readout.process.pid, signal.SIGSTOP)
        try:
            one = top(rodeo)["processes"][0]
            assert one["verdict"] == "SILENT" and one["pid"] == readout.process.pid and one["rate_hz"] is None
        finally:
            os.kill(readout.process.pid, signal.SIGCONT)


def test_what_a_dead_process_left_is_no_process(rodeo):
    with running(rodeo) as readout:
        readout.process.kill()
        readout.process.wait()
        deadline = time.monotonic() + scaled(20)
        while top(rodeo)["processes"]:
            assert time.monotonic() < deadline


def test_on_a_terminal_it_is_drawn_with_colours(rodeo):
    rodeo.environment.pop("NO_COLOR", None)
    with running(rodeo) as readout:
        readout.wait_until(lambda status: status["fragments"]["built"] > 10, "it has built events")
        assert "\x1b[" in on_a_terminal(rodeo, "top", "--once", "--interval", "10ms", columns=160)
