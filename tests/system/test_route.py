"""`rodeo route`: links from a router to readouts in other processes, and the end, death and return of these processes."""

import csv
import json
import os
import re
import signal
import subprocess
import time
import urllib.request

import pytest
from conftest import scaled
from frozen import check_metrics
from running_emulator import emulated
from running_readout import adds_up
from running_router import READOUT, ROUTER, all_is_verified, has_built, readout, route_adds_up, router, sides
from terminal import on_a_terminal, screen


def listed(rodeo, bus="bus"):
    return {one["name"]: one for one in json.loads(rodeo("route", "list", "--bus", bus, "-o", "json").stdout)}


@pytest.mark.parametrize("provider", ["tcp", "shm"])
def test_every_chunk_of_the_router_is_built_and_verified(rodeo, sides, provider):
    routed = router(
        sides, "router.wait_for_subscribers=true", "router.input.events=3000", f"router.providers={provider}"
    )
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


SIX_CARDS = (
    """
[emulator]
name = "cards"
"""
    + "".join(
        f"""
[[emulator.card]]
type = "felix"
name = "felix{i}"
address = "0000:{0x40 + i:02x}:00.0"
serial = {700 + i}
mode = "gbt"
links = 24
elinks_per_link = 8
chunk_size = 40
seed = 1
"""
        for i in range(6)
    )
    + """
[emulator.trigger]
rate = "5kHz"
spacing = "periodic"
wait_for = 0

[router]
name = "felix"
bus = "bus"
wait_for_subscribers = true

[router.input]
type = "card"
cards = ["0000:40:00.0", "0000:41:00.0", "0000:42:00.0", "0000:43:00.0", "0000:44:00.0", "0000:45:00.0"]
start_generator = true
"""
)


@pytest.mark.parametrize("seconds", [2, pytest.param(60, marks=pytest.mark.slow)])
def test_six_cards_of_192_links_go_to_one_readout(rodeo, sides, seconds):
    triggers, links = 5000 * seconds, 6 * 192
    (rodeo.directory / "cards.toml").write_text(SIX_CARDS)
    with emulated(rodeo, rodeo.directory / "cards.toml", "--set", f"emulator.trigger.limit={triggers}"):
        felix = router(sides, text=SIX_CARDS)
        net = readout(sides)
        net.wait_until(
            lambda status: status["fragments"]["built"] == triggers, "it has built all triggers", 30 + 3 * seconds
        )
        routed, _ = felix.finish()
        report, _ = net.finish(how=None)
    assert routed["run"]["condition"] == report["run"]["condition"] == "GOOD"
    assert len(routed["readers"]) == 6
    assert report["fragments"]["incomplete"] == 0
    assert routed["chunks"]["sent"] == routed["chunks"]["published"] == report["chunks"]["built"] == triggers * links
    assert report["verified"] == {"chunks": triggers * links, "mismatches": 0}


CHANNELS = """
[emulator]
name = "cards"

[[emulator.card]]
type = "felix"
name = "felix0"
address = "0000:3b:00.0"
serial = 700
mode = "gbt"
links = 4
elinks_per_link = 8
ttc_link = true
chunk_size = 40
seed = 1

[emulator.trigger]
rate = "5kHz"
limit = 3000
wait_for = 0

[router]
name = "felix"
bus = "bus"
wait_for_subscribers = true

[router.input]
type = "card"
cards = ["3b:00.0"]
channels = [0, 1]
trigger_elink = 59
start_generator = true
"""


def test_two_dma_channels_of_one_card_have_a_reader_each_and_the_list_comes_by_its_own(rodeo, sides):
    (rodeo.directory / "cards.toml").write_text(CHANNELS)
    with emulated(rodeo, rodeo.directory / "cards.toml"):
        rodeo("card", "reg", "write", "--id", "3b:00.0", "link_channel[0]", "1")
        refused = rodeo(
            "route", rodeo.directory / "cards.toml", "--set", "router.input.channels=[0, 2]", exit_code=5
        ).stderr
        assert "card.no_links" in refused and "DMA channel 2" in refused
        felix = router(sides, text=CHANNELS)
        net = readout(sides, "readout.builder.trigger_list=true")
        net.wait_until(lambda status: status["fragments"]["built"] == 3000, "it has built all triggers")
        routed, said = felix.finish()
        report, _ = net.finish(how=None)
    assert routed["run"]["condition"] == report["run"]["condition"] == "GOOD", said
    assert [(one["name"], one["trigger_list"], one["links"]) for one in routed["readers"]] == [
        ("felix.0", False, 24),
        ("felix.1", False, 8),
        ("felix.2", True, 1),
    ]
    assert routed["readers"][2]["counters"]["chunks_read"] == 3000
    assert routed["chunks"]["sent"] == routed["chunks"]["published"] == report["chunks"]["built"] == 32 * 3000
    assert report["verified"] == {"chunks": 32 * 3000, "mismatches": 0} and report["fragments"]["incomplete"] == 0


def test_a_readout_reads_two_dma_channels_of_one_card(rodeo):
    configuration = rodeo.directory / "cards.toml"
    cards, card_input = CHANNELS.split("[router]")[0], CHANNELS.split("[router.input]")[1].strip()
    configuration.write_text(cards + READOUT.replace('type = "network"\nbus = "bus"', card_input))
    with emulated(rodeo, configuration):
        rodeo("card", "reg", "write", "--id", "3b:00.0", "link_channel[0]", "1")
        twice = rodeo("readout", configuration, "--set", "readout.input.channels=[1, 0, 1]", exit_code=3).stderr
        assert "DMA channel 1 is named twice" in twice
        report = json.loads(rodeo("readout", configuration, "--events", 3000, "--json", "-").stdout)
    assert report["run"]["condition"] == "GOOD" and report["links"] == 32
    assert report["verified"] == {"chunks": 32 * 3000, "mismatches": 0} and report["fragments"]["incomplete"] == 0


def test_a_router_without_subscribers_counts_what_nobody_wants(rodeo, sides):
    report, said = sides("route", "felix", ROUTER, "router.input.events=1000").finish(how=None)
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
    # The readout leaves between two pages, so links stop at different events. The last events lack some links.
    assert adds_up(built) and built["verified"]["mismatches"] == 0 and built["input"]["network_lost"] == 0
    routed.wait_until(lambda status: status["chunks"]["no_subscriber"] > 0, "no subscriber is left")
    sent, said = routed.finish()
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent)
    assert sent["chunks"]["published"] == built["chunks"]["sent"] and sent["chunks"]["pending"] == 0
    assert "readout (data) at" in said and "is gone" in said


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
    links = [
        one
        for one in csv.DictReader(rodeo("route", "list", "--bus", "bus", "--links", "-o", "csv").stdout.splitlines())
        if one["publisher"] == "felix.0"
    ]
    assert [one["fid"] for one in links] == [
        link["fid"] for link in net.wait_until(lambda _: True, "")["robs"][0]["links"]
    ] and links[0]["page_bytes"] == "65536"
    first.kill()
    assert not listed(rodeo)["felix.0"]["alive"]
    counts = []

    def all_has_come(status):
        counts.append(status["input"]["sent"])
        return len(counts) > 5 and counts[-5] == counts[-1]

    net.wait_until(all_has_come, "data in flight have arrived")
    before = counts[-1]
    second = router(sides)
    assert listed(rodeo)["felix.0"]["alive"]
    second.wait_until(lambda status: status["chunks"]["published"] > 1000, "the readout is its subscriber")
    after = net.wait_until(lambda status: status["input"]["sent"] > before, "chunks come from the second")
    assert after["run"]["condition"] in {"GOOD", "INCOMPLETE"}
    sent, _ = second.finish()
    assert route_adds_up(sent)
    assert not listed(rodeo)
    built, told = net.finish(exit_code=None)
    assert "publisher felix.0 is there again after a restart" in told
    # Chunks that the first router had read and not sent when it was killed are in no count: the second router's counts begin at 0.
    assert adds_up(built) and built["input"]["network_lost"] == 0
    assert built["verified"] == {"chunks": built["chunks"]["built"], "mismatches": 0}
    assert built["input"]["sent"] == before + sent["chunks"]["published"]
    assert built["run"]["condition"] == "INCOMPLETE" and built["input"]["network_cut_off"] == 1
    assert "1 network_cut_off" in told


def test_a_run_whose_router_was_killed_and_stayed_away_is_not_good(rodeo, sides):
    """All data received are in whole fragments. Only the missing end message of the router shows that data may be missing."""
    first = router(sides)
    net = readout(sides)
    net.wait_until(has_built(1000), "something is built")
    first.kill()
    built, told = net.finish(exit_code=None)
    assert built["run"]["condition"] == "INCOMPLETE" and built["input"]["network_cut_off"] == 1 and adds_up(built)
    assert "sent no END" in told and "1 network_cut_off" in told


def test_two_routers_of_one_name_are_refused(rodeo, sides):
    router(sides)
    refused = rodeo("route", rodeo.directory / "felix.toml", "--seconds", 1, exit_code=5).stderr
    assert "process.name_taken" in refused
    refused = rodeo(
        "route", rodeo.directory / "felix.toml", "--seconds", 1, "--set", "router.control=false", exit_code=5
    ).stderr
    assert "transport.name_taken" in refused


def test_a_subscriber_that_takes_nothing_is_not_waited_for_beyond_grace_at_the_end(rodeo, sides):
    routed = router(
        sides,
        "router.wait_for_subscribers=true",
        "router.grace=500ms",
        "router.pages=8",
        "router.input.rate=0",
        "router.input.links=192",
    )
    net = readout(sides)
    net.wait_until(has_built(1000), "something is built")
    net.process.send_signal(signal.SIGSTOP)
    stuck = routed.wait_until(lambda status: status["limited_by"] == "readout", "the reader waits for it")["chunks"][
        "published"
    ]
    time.sleep(0.3)
    assert routed.wait_until(lambda status: True, "")["chunks"]["published"] - stuck < 20_000_000
    sent, said = routed.finish(exit_code=6)
    assert sent["run"]["condition"] == "INCOMPLETE" and route_adds_up(sent)
    assert sent["chunks"]["not_taken"] + sent["chunks"]["pending"] > 0
    assert "NOT TAKEN" in said or "dropped, because" in said


def metrics_of(side):
    """Finds where a process serves its metrics; returns a function that reads them as {(name, labels): value}."""
    said = ""
    while not (found := re.search(r"metrics at (http://\S+)", said)):
        line = side.process.stderr.readline()
        assert line, said
        said += line

    def read():
        read.text = text = urllib.request.urlopen(found[1], timeout=scaled(10)).read().decode()
        samples = (
            re.fullmatch(r"(\w+)(?:\{(.*)\})? (\S+)", line) for line in text.splitlines() if not line.startswith("#")
        )
        return {(one[1], frozenset(re.findall(r'(\w+)="([^"]*)"', one[2] or ""))): float(one[3]) for one in samples}

    return read


def sum_of(metrics, name, **labels):
    return sum(value for (of, have), value in metrics.items() if of == name and labels.items() <= dict(have).items())


def test_metrics_of_links_readers_and_subscribers_agree(rodeo, sides):
    routed = router(sides, "router.metrics.listen=127.0.0.1:0", "router.wait_for_subscribers=true")
    read = metrics_of(routed)
    net = readout(sides, "readout.metrics.listen=127.0.0.1:0")
    read_net = metrics_of(net)
    net.wait_until(has_built(1000), "something is built")
    deadline = time.monotonic() + scaled(30)
    while sum_of(now := read(), "rodeo_router_link_chunks_total", reader="felix.0") < 1000:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    read_net()
    check_metrics("metrics-route", read.text)
    check_metrics("metrics-readout", read_net.text)
    links = {
        labels["fid"]
        for (name, have) in now
        if name == "rodeo_router_link_chunks_total" and (labels := dict(have))["reader"] == "felix.0"
    }
    assert len(links) == sum_of(now, "rodeo_router_links", reader="felix.0") == 24
    for link, reader in (("link_chunks", "chunks_read"), ("link_bytes", "bytes_read"), ("link_errors", "error_chunks")):
        assert sum_of(now, f"rodeo_router_{link}_total", reader="felix.0") == sum_of(
            now, f"rodeo_router_{reader}_total", reader="felix.0"
        )
    assert sum_of(now, "rodeo_router_link_errors_total") == 0
    assert sum_of(now, "rodeo_host_interrupts_total") > 0 and sum_of(now, "rodeo_host_context_switches_total") > 0
    assert (
        sum_of(now, "rodeo_host_cpu_busy_seconds_total") > 0
        and sum_of(now, "rodeo_host_network_sent_bytes_total", interface="lo") > 0
    )
    assert (
        sum_of(now, "rodeo_router_polls_total", reader="felix.0")
        >= sum_of(now, "rodeo_router_pages_read_total", reader="felix.0")
        > 0
    )
    (subscriber,) = {
        have for (name, have) in now if name == "rodeo_router_subscriber_pages" and dict(have)["reader"] == "felix.0"
    }
    assert (
        0 <= now["rodeo_router_subscriber_pages_filled", subscriber] <= now["rodeo_router_subscriber_pages", subscriber]
    )
    assert (
        now["rodeo_router_subscriber_page_memory_bytes", subscriber]
        >= now["rodeo_router_subscriber_pages", subscriber] * 4096
    )
    rodeo("route", "status", "--name", "felix", "--links", "-o", "csv")
    sent, _ = routed.finish()
    built, _ = net.finish(how=None)
    counters = next(one for one in sent["readers"] if one["name"] == "felix.0")["counters"]
    assert counters["chunks_read"] == built["chunks"]["built"] and counters["error_chunks"] == 0
    causes = sum(
        counters[cause]
        for cause in ("pages_full", "pages_by_time", "pages_of_clock", "pages_at_end", "pages_unbuffered")
    )
    assert causes == counters["pages_sent"] > 0


def test_status_shows_each_link_and_how_much_comes_in_a_second(rodeo, sides):
    routed = router(sides)
    routed.wait_until(lambda status: status["run"]["seconds"] > 0, "the input has started")
    rows = list(csv.DictReader(rodeo("route", "status", "--links", "-o", "csv").stdout.splitlines()))
    of_links = [row for row in rows if row["reader"] == "felix.0"]
    assert len(of_links) == 24 and all(
        float(row["chunk_rate_hz"]) > 0 and float(row["bytes_per_second"]) > 0 for row in of_links
    ), rows
    assert {row["errors"] for row in rows} == {"0"}
    counts = {link["fid"] for link in json.loads(rodeo("route", "status", "--links", "-o", "json").stdout)["by_link"]}
    assert counts == {row["fid"] for row in rows}
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
    """The libraries that the dynamic linker loads, at the start and later."""
    environment = {**rodeo.environment, "LD_DEBUG": "files"}
    done = subprocess.run(
        [str(rodeo.binary), *arguments],
        cwd=rodeo.directory,
        env=environment,
        text=True,
        capture_output=True,
        timeout=scaled(60),
    )
    return done.stderr


def test_who_uses_no_network_does_not_load_its_library(rodeo):
    (rodeo.directory / "empty").write_bytes(b"")
    assert "librodeo.so" in libraries(rodeo, "data", "info", "empty")
    for arguments in (["data", "info", "empty"], ["plugin", "list"], ["route", "list"], ["version"]):
        assert "libfabric" not in libraries(rodeo, *arguments)
    plugin = '[readout]\nplugins = ["calorimeter"]\n[readout.input]\ntype = "generator"\nlinks = 2\n[readout.extractor]\ntype = "calorimeter"\n[[readout.rob]]\nsource_id = "0x610001"\n'
    (rodeo.directory / "plugin.toml").write_text(plugin)
    loaded = libraries(rodeo, "readout", "plugin.toml", "--seconds", "0.2")
    assert "calorimeter" in loaded and "libfabric" not in loaded, "a plug-in is loaded, and needs no network"
    network = '[router]\nname = "loads"\nbus = "loads"\n[router.input]\ntype = "generator"\nlinks = 2\n'
    (rodeo.directory / "loads.toml").write_text(network)
    assert "libfabric" not in libraries(rodeo, "route", "loads.toml", "--seconds", "0.2"), "there is no subscriber"


def test_what_cannot_be_routed_is_refused(rodeo):
    file = rodeo.directory / "r.toml"
    file.write_text(ROUTER)
    rodeo("check", file)
    assert "router.readers" in rodeo("route", file, "--set", "router.readers=30", exit_code=3).stderr
    assert "transport.no_secret" in rodeo("route", file, "--set", "router.address=0.0.0.0", exit_code=None).stderr
    assert "router.flush" in rodeo("explain", "router.flush").stdout
    for wrong in ("foo", '["tcp", "tcp"]', '[""]'):
        assert (
            "error[transport.provider]"
            in rodeo("route", file, "--set", f"router.providers={wrong}", exit_code=None).stderr
        )
    os.mkfifo(rodeo.directory / "pipe", 0o600)
    assert (
        "error[transport.secret_file]"
        in rodeo("route", file, "--set", "router.secret_file=pipe", exit_code=None).stderr
    )
    assert "there is no such directory" in rodeo("route", "list", "--bus", "nowhere").stderr
    file.write_text("[router.input]\ntype = 'card'\ncards = ['3b:00']\n")
    assert "router.input.cards" in rodeo("check", file, exit_code=3).stderr
    file.write_text("[router]\nflash = '1ms'\n")
    assert "`flush`" in rodeo("check", file, exit_code=3).stderr
    file.write_text("[readout.input]\ntype = 'generator'\n")
    assert "the file has no [router]" in rodeo("route", file, exit_code=3).stderr
