"""`rodeo route`: links from a router to readouts in other processes, and what happens when one of them ends, dies or comes back."""

import contextlib
import json
import re
import signal
import subprocess
import time
import urllib.request

import pytest
from conftest import scaled
from running_readout import adds_up
from terminal import on_a_terminal, screen

ROUTER = """
[router]
name = "felix"
bus = "bus"

[router.input]
type = "generator"
links = 24
rate = "2kHz"
"""

READOUT = """
[run]
number = 7

[readout]
name = "net"

[readout.input]
type = "network"
bus = "bus"

[readout.builder]
type = "gbt"
timeout = "200ms"

[readout.extractor]
type = "rodeo"

[[readout.rob]]
source_id = "0x00610001"

[[readout.consumer]]
type = "processor"
work = "verify"
"""


class Side:
    """A router or a readout in a process of its own."""

    def __init__(self, rodeo, verb, name, text, *settings):
        self.rodeo, self.verb, self.name = rodeo, verb, name
        configuration = rodeo.directory / f"{name}.toml"
        configuration.write_text(text)
        arguments = [part for setting in settings for part in ("--set", setting)]
        self.process = rodeo.start(verb, configuration, "--json", "-", *arguments)

    def wait_until(self, condition, what):
        deadline = time.monotonic() + scaled(30)
        status = None
        while True:
            assert self.process.poll() is None, f"it ended while we waited until {what}: {self.process.communicate()}"
            asked = self.rodeo(self.verb, "status", "--name", self.name, "-o", "json", exit_code=None)
            if asked.returncode == 0:
                status = json.loads(asked.stdout)
                if condition(status):
                    return status
            assert time.monotonic() < deadline, f"waited in vain until {what}: {status}"
            time.sleep(0.05)

    def finish(self, how=signal.SIGINT, exit_code=0):
        if how is not None:
            self.process.send_signal(how)
        out, err = self.process.communicate(timeout=scaled(60))
        assert exit_code is None or self.process.returncode == exit_code, err
        return json.loads(out), err

    def kill(self):
        self.process.kill()
        self.process.communicate(timeout=scaled(10))


@pytest.fixture
def sides(rodeo):
    """Starts sides; whatever happens, they are gone afterwards."""
    started = []

    def start(verb, name, text, *settings):
        started.append(Side(rodeo, verb, name, text, *settings))
        return started[-1]

    yield start
    for side in started:
        if side.process.poll() is None:
            side.process.send_signal(signal.SIGCONT)
            side.process.kill()
            with contextlib.suppress(subprocess.TimeoutExpired):
                side.process.communicate(timeout=scaled(10))


def router(sides, *settings, text=ROUTER):
    side = sides("route", "felix", text, *settings)
    side.wait_until(lambda status: status["phase"] == "running", "it is on the bus")
    return side


def readout(sides, *settings, name="net"):
    return sides("readout", name, READOUT.replace('"net"', f'"{name}"'), *settings)


def has_built(count):
    return lambda status: status["chunks"]["built"] > count


def route_adds_up(report):
    chunks = report["chunks"]
    return chunks["sent"] == chunks["published"] + chunks["no_subscriber"] + chunks["not_taken"]


def all_is_verified(report):
    assert report["run"]["condition"] == "GOOD", report
    assert adds_up(report) and report["chunks"]["lost"] == {} and report["fragments"]["incomplete"] == 0
    assert report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}


def listed(rodeo, bus="bus"):
    return {one["name"]: one for one in json.loads(rodeo("route", "list", "--bus", bus, "-o", "json").stdout)}


@pytest.mark.parametrize("provider", ["tcp", "shm"])
def test_every_chunk_of_the_router_is_built_and_verified(rodeo, sides, provider):
    routed = router(sides, "router.wait_for_subscribers=true", "router.input.events=3000")
    assert routed.wait_until(lambda status: True, "")["waiting_for_subscribers"]
    built, _ = readout(sides, f"readout.input.provider={provider}").finish(how=None)
    sent, said = routed.finish(how=None)
    all_is_verified(built)
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent), said
    assert sent["chunks"]["sent"] == built["chunks"]["built"] == 24 * 3000
    assert sent["chunks"]["no_subscriber"] == 0 and sent["chunks"]["pending"] == 0
    (subscriber,) = [one for one in sent["subscribers"] if one["reader"] == "felix.0"]
    assert subscriber["provider"] == provider and subscriber["chunks"] == 24 * 3000 and subscriber["kind"] == "data"
    assert list(sent["cpu_seconds"]) == ["router", "emulator"]
    assert "every link has a subscriber" in said


def test_a_router_without_subscribers_counts_what_nobody_wants(rodeo, sides):
    report, said = router(sides, "router.input.events=1000").finish(how=None)
    assert report["chunks"] == {"sent": 24000, "published": 0, "no_subscriber": 24000, "not_taken": 0, "pending": 0}
    assert report["run"]["condition"] == "GOOD" and report["limited_by"] == "nothing"
    assert "24000 sent = 0 published + 24000 no_subscriber" in said


def test_ctrl_c_on_the_router_ends_both_and_nothing_is_lost(rodeo, sides):
    routed = router(sides, "router.wait_for_subscribers=true")
    net = readout(sides)
    net.wait_until(has_built(1000), "something is built")
    sent, said = routed.finish()
    built, _ = net.finish(how=None)
    assert "ending the run in order" in said
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent)
    all_is_verified(built)
    assert sent["chunks"]["sent"] == built["chunks"]["built"]


def test_ctrl_c_on_the_readout_leaves_the_router_and_what_comes_then_is_nobodys(rodeo, sides):
    routed = router(sides, "router.wait_for_subscribers=true")
    net = readout(sides)
    net.wait_until(has_built(1000), "something is built")
    routed.wait_until(lambda status: any(one["connected"] for one in status["subscribers"]), "its subscriber is seen")
    built, _ = net.finish()
    # It leaves between two pages: links stop at different events, and the last of them lack some.
    assert adds_up(built) and built["verified"]["mismatches"] == 0 and built["input"]["network_lost"] == 0
    routed.wait_until(lambda status: status["chunks"]["no_subscriber"] > 0, "nobody wants it any more")
    sent, said = routed.finish()
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent)
    assert sent["chunks"]["published"] == built["chunks"]["sent"] and sent["chunks"]["pending"] == 0
    assert "readout (data) at" in said and "has gone" in said


def test_a_readout_that_is_killed_and_started_again_goes_on(rodeo, sides):
    routed = router(sides, "router.grace=300ms")
    first = readout(sides)
    first.wait_until(has_built(1000), "something is built")
    first.kill()
    routed.wait_until(lambda status: status["chunks"]["no_subscriber"] > 0, "the time of grace is over")
    second = readout(sides)
    second.wait_until(has_built(1000), "the second builds")
    built, _ = second.finish()
    assert adds_up(built) and built["verified"]["mismatches"] == 0 and built["fragments"]["built"] > 0
    sent, said = routed.finish(exit_code=6)
    assert route_adds_up(sent) and sent["run"]["condition"] == "INCOMPLETE"
    killed, left = [one for one in sent["subscribers"] if one["reader"] == "felix.0"]
    assert killed["pending_chunks"] == sent["chunks"]["pending"] > 0 and left["pending_chunks"] == 0
    assert "NOT TAKEN" in said and "wait for 0.3 s" in said


def test_a_router_that_is_killed_leaves_an_entry_which_the_next_takes_over(rodeo, sides):
    first = router(sides)
    net = readout(sides)
    net.wait_until(has_built(1000), "something is built")
    assert listed(rodeo)["felix.0"]["alive"] and listed(rodeo)["felix.0"]["links"] == 24
    first.kill()
    assert not listed(rodeo)["felix.0"]["alive"]
    before = net.wait_until(lambda status: True, "")["chunks"]["built"]
    second = router(sides)
    assert listed(rodeo)["felix.0"]["alive"]
    second.wait_until(lambda status: status["chunks"]["published"] > 1000, "the readout is its subscriber")
    after = net.wait_until(lambda status: status["input"]["sent"] > before, "chunks come from the second")
    assert after["run"]["condition"] in {"GOOD", "INCOMPLETE"}
    sent, _ = second.finish()
    assert route_adds_up(sent)
    assert not listed(rodeo)
    built, _ = net.finish(exit_code=None)
    assert adds_up(built)


def test_two_routers_of_one_name_are_refused(rodeo, sides):
    router(sides)
    refused = rodeo("route", rodeo.directory / "felix.toml", "--seconds", 1, exit_code=5).stderr
    assert "process.name_taken" in refused
    refused = rodeo("route", rodeo.directory / "felix.toml", "--seconds", 1, "--set", "router.control=false", exit_code=5).stderr
    assert "transport.name_taken" in refused


def test_a_subscriber_that_takes_nothing_is_not_waited_for_beyond_grace_at_the_end(rodeo, sides):
    routed = router(sides, "router.wait_for_subscribers=true", "router.grace=500ms", "router.pages=8", "router.input.rate=0", "router.input.links=192")
    net = readout(sides)
    net.wait_until(has_built(1000), "something is built")
    net.process.send_signal(signal.SIGSTOP)
    stuck = routed.wait_until(lambda status: status["limited_by"] == "readout", "the reader waits for it")["chunks"]["published"]
    time.sleep(0.3)
    assert routed.wait_until(lambda status: True, "")["chunks"]["published"] - stuck < 20_000_000
    sent, said = routed.finish(exit_code=6)
    assert sent["run"]["condition"] == "INCOMPLETE" and route_adds_up(sent)
    assert sent["chunks"]["not_taken"] + sent["chunks"]["pending"] > 0
    assert "NOT TAKEN" in said or "went to nobody" in said


def test_metrics_are_served(rodeo, sides):
    routed = router(sides, "router.metrics.listen=127.0.0.1:0")
    said = ""
    while not (found := re.search(r"metrics at (http://\S+)", said)):
        line = routed.process.stderr.readline()
        assert line, said
        said += line
    text = urllib.request.urlopen(found[1], timeout=scaled(10)).read().decode()
    assert 'rodeo_router_chunks_read_total{router="felix",reader="felix.0"}' in text
    routed.finish()


def test_the_view_shows_readers_fits_the_terminal_and_leaves_only_the_report(rodeo):
    file = rodeo.directory / "felix.toml"
    file.write_text(ROUTER)
    text = on_a_terminal(rodeo, "route", file, "--seconds", 2.5, columns=60)
    frames = [part.split("rodeo felix", 1)[1] for part in text.split("\x1b[J") if "rodeo felix" in part]
    assert frames, text
    for frame in frames:
        block = re.sub(r"\x1b\[\d+F.*", "", frame, flags=re.DOTALL)
        assert all(len(line) <= 60 for line in block.splitlines())
        assert "felix.0" in block and "trigger list" in block and "limited by: nothing" in block
    last = "\n".join(screen(text))
    assert "Ctrl-C ends it" not in last and "verdict " in last


def test_stop_ends_a_router_in_order(rodeo, sides):
    routed = router(sides)
    rodeo("route", "stop", "--name", "felix")
    report, _ = routed.finish(how=None)
    assert report["run"]["condition"] in {"GOOD", "INCOMPLETE"} and route_adds_up(report)


def libraries(rodeo, *arguments):
    """What the dynamic linker loads, at the start and later."""
    environment = {**rodeo.environment, "LD_DEBUG": "files"}
    done = subprocess.run([str(rodeo.binary), *arguments], cwd=rodeo.directory, env=environment, text=True, capture_output=True, timeout=scaled(60))
    return done.stderr


def test_who_uses_no_network_does_not_load_its_library(rodeo):
    (rodeo.directory / "empty").write_bytes(b"")
    assert "librodeo.so" in libraries(rodeo, "data", "info", "empty")
    for arguments in (["data", "info", "empty"], ["plugin", "list"], ["route", "list"], ["version"]):
        assert "libfabric" not in libraries(rodeo, *arguments)
    network = "[router]\nname = \"loads\"\nbus = \"loads\"\n[router.input]\ntype = \"generator\"\nlinks = 2\n"
    (rodeo.directory / "loads.toml").write_text(network)
    assert "libfabric" not in libraries(rodeo, "route", "loads.toml", "--seconds", "0.2"), "nobody has subscribed"


def test_what_cannot_be_routed_is_refused(rodeo):
    file = rodeo.directory / "r.toml"
    file.write_text(ROUTER)
    rodeo("check", file)
    assert "router.readers" in rodeo("route", file, "--set", "router.readers=30", exit_code=3).stderr
    assert "transport.no_secret" in rodeo("route", file, "--set", "router.address=0.0.0.0", exit_code=None).stderr
    assert "router.flush" in rodeo("explain", "router.flush").stdout
    file.write_text("[router]\nflash = '1ms'\n")
    assert "`flush`" in rodeo("check", file, exit_code=3).stderr
    file.write_text("[readout.input]\ntype = 'generator'\n")
    assert "there is no [router]" in rodeo("route", file, exit_code=3).stderr
