"""Routers of cards: FULL mode, raw pages of a CRU, pinned readers, links without subscribers, and the status of each link."""

import json
import os
import re
import signal
import time
from pathlib import Path

import pytest
from frozen import check_document
from running_emulator import emulated, emulator_report
from running_router import READOUT, all_is_verified, has_built, readout, route_adds_up, router, sides

SYSTEM = """
[emulator]
name = "cards"
[[emulator.card]]
address = "0000:3b:00.0"
serial = 700
seed = 1
{card}
[emulator.trigger]
{trigger}
[router]
name = "felix"
bus = "bus"
{router}
[router.input]
type = "card"
cards = ["3b:00.0"]
memory = "64MiB"
start_generator = true
{input}
"""


def system(card, trigger, router="wait_for_subscribers = true", input=""):
    return SYSTEM.format(card=card, trigger=trigger, router=router, input=input)


FELIX = 'type = "felix"\nname = "felix0"\n'
GBT_CARD = FELIX + 'mode = "gbt"\nlinks = 4\nchunk_size = 40'
FULL = system(
    FELIX
    + 'mode = "full"\nlinks = 12\nlinks_per_group = 4\nchunk_size = 5000\nblock_size = "4KiB"\ntrailer_bits = "32"',
    'rate = "5kHz"\nlimit = 4000\nwait_for = 0',
    "wait_for_subscribers = true\ncpus = [0]",
)
GBT = system(GBT_CARD, 'rate = "5kHz"\nwait_for = 0')
GBT_AT_ONCE = system(GBT_CARD, 'rate = "5kHz"\nwait_for = 0', router="")
CRU = system(
    'type = "cru"\nname = "cru"\nlinks = 4\nframe_size = "4KiB"\noverflow = "busy"\nfirst_orbit = 8',
    'rate = "2kHz"\nlimit = 2000\nwait_for = 1',
    input='superpage = "32KiB"',
)


@pytest.fixture
def routed(rodeo, sides):
    """Emulated cards and their router. They always end with the test."""
    running = []

    def start(text, *settings):
        (rodeo.directory / "cards.toml").write_text(text)
        running.append(emulated(rodeo, rodeo.directory / "cards.toml"))
        running[-1].__enter__()
        return router(sides, *settings, text=text)

    yield start
    for one in running:
        one.__exit__(None, None, None)


@pytest.mark.slow
def test_a_card_and_a_router_that_stand_still_for_long_lose_nothing(rodeo, sides, routed):
    felix = routed(GBT)
    net = sides("readout", "net", READOUT.replace('timeout = "200ms"\n', ""))
    card = (
        net.wait_until(has_built(1000), "data come")
        and json.loads(rodeo("emulate", "status", "-o", "json").stdout)["process"]["pid"]
    )
    for pid in (card, felix.process.pid):
        os.kill(pid, signal.SIGSTOP)
        time.sleep(8)
        os.kill(pid, signal.SIGCONT)
        then = net.wait_until(lambda _: True, "it answers")["chunks"]["built"]
        net.wait_until(has_built(then + 10000), "data come again")
    sent, said = felix.finish()
    built, _ = net.finish(how=None)
    all_is_verified(built)
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent), said


def readers_on(process, cpu):
    """The threads of a process that are pinned to this CPU."""
    allowed = ((task / "status").read_text() for task in Path(f"/proc/{process.pid}/task").iterdir())
    return sum(f"Cpus_allowed_list:\t{cpu}\n" in status for status in allowed)


def test_full_mode_goes_through_the_router_and_its_reader_is_pinned(rodeo, sides, routed):
    felix = routed(FULL)
    assert readers_on(felix.process, 0) == 1
    net = sides(
        "readout",
        "net",
        READOUT.replace('type = "gbt"\ntimeout = "200ms"', 'type = "full"').replace(
            "[[readout.consumer]]", "links_per_group = 4\n\n[[readout.consumer]]"
        ),
    )
    net.wait_until(lambda status: status["fragments"]["built"] == 3 * 4000, "it has built all triggers")
    sent, said = felix.finish()
    built, _ = net.finish(how=None)
    all_is_verified(built)
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent), said
    assert sent["chunks"]["sent"] == sent["chunks"]["published"] == built["chunks"]["built"] == 3 * 4000


def test_pages_of_a_cru_go_through_the_router(rodeo, sides, routed):
    cru = routed(CRU)
    builder = (
        f"readout.builder.{setting}" for setting in ("chunk_size=8KiB", "window=4096", "buffers=4200", "timeout=10s")
    )
    net = readout(sides, *builder, "readout.extractor.type=rdh", "readout.consumer[0].work=verify_rdh")
    net.wait_until(lambda status: status["chunks"]["sent"] > 0, "data come")
    cru.wait_until(lambda _: emulator_report(rodeo)["functions"][0]["triggers"] == 2000, "the triggers are over")
    check_document("status-emulator", emulator_report(rodeo))
    for side in (cru, net):
        check_document(f"status-{side.verb}", side.wait_until(lambda _: True, "it answers"))
    sent, said = cru.finish()
    built, _ = net.finish(how=None)
    check_document("report-route", sent)
    check_document("report-readout", built)
    assert sent["run"]["condition"] == built["run"]["condition"] == "GOOD" and route_adds_up(sent), said
    assert (
        sent["chunks"]["sent"]
        == sent["chunks"]["published"]
        == built["chunks"]["built"]
        == built["verified"]["chunks"]
        > 0
    )
    assert built["verified"]["mismatches"] == 0 and built["fragments"]["incomplete"] == 0


def test_a_card_leaves_out_what_nobody_wants_and_has_it_again_for_who_does(rodeo, sides, routed):
    """Links without a subscriber are not decoded, so their chunks are in no count."""
    felix = routed(GBT_AT_ONCE)
    links = [one["fid"] for one in json.loads(rodeo("route", "status", "--links", "-o", "json").stdout)["by_link"]]
    assert len(links) == 32

    def came():
        return {
            one["fid"]: one["chunks"]
            for one in json.loads(rodeo("route", "status", "--links", "-o", "json").stdout)["by_link"]
        }

    def only(wanted):
        """Waits until only these links send data."""
        before = came()
        felix.wait_until(
            lambda _: all(came()[link] > before[link] + 100 for link in wanted), "links with subscribers have data"
        )
        now = came()
        return [link for link in links if now[link] > before[link]] == wanted

    assert only([]) and sum(came().values()) == 0
    net = readout(sides, f'readout.input.links=["{links[2]}", "{links[17]}"]')
    net.wait_until(has_built(1000), "two links are built")
    assert only([links[2], links[17]])
    other = readout(sides, f'readout.input.links=["{links[5]}"]', name="other")
    other.wait_until(has_built(1000), "a third is built")
    assert only([links[2], links[5], links[17]])
    built, _ = net.finish()
    felix.wait_until(
        lambda status: all(not one["connected"] or one["links"] == 1 for one in status["subscribers"]),
        "the first has left",
    )
    felix.wait_until(lambda _: only([links[5]]), "the cards' remaining data for the first have come")
    sent, said = felix.finish()
    last, _ = other.finish(how=None)
    assert sent["run"]["condition"] == "GOOD" and route_adds_up(sent), said
    for report in (built, last):
        assert (
            report["verified"] == {"chunks": report["chunks"]["built"], "mismatches": 0}
            and report["input"]["network_lost"] == 0
        )


def test_the_report_of_the_readout_names_the_router_that_lost_what_it_lacks(rodeo, sides, routed):
    felix = routed(GBT)
    net = readout(sides, "readout.builder.timeout=2s")
    net.wait_until(has_built(1000), "something is built")
    rodeo("emulate", "fault", "--id", "felix0", "dropped_superpage", "--link", 1)
    felix.wait_until(
        lambda status: status["input"].get("lost_blocks", 0) + status["input"].get("sequence_gaps", 0) > 0,
        "the router has noticed",
    )
    sent, _ = felix.finish(exit_code=None)
    built, said = net.finish(how=None)
    assert sent["run"]["condition"] == built["run"]["condition"] == "INCOMPLETE"
    told = {
        name.removeprefix("upstream_felix_"): value
        for name, value in built["input"].items()
        if name.startswith("upstream_felix_")
    }
    assert told and all(0 < value <= sent["input"][name] for name, value in told.items()), (told, sent["input"])
    assert re.search(r"^  upstream +lost there, on any link: felix_\w+ \d+", said, re.MULTILINE), said
    assert built["chunks"]["lost"] or built["fragments"]["incomplete"], "its own counts contain the missing data"


def test_the_status_of_a_chunk_goes_on_and_is_counted_by_link(rodeo, sides):
    """The input marks chunks as truncated. The router counts them as errors of their links, and the readout flags them."""
    faults = (
        "router.input.links=2",
        "router.input.events=20000",
        "router.input.rate=0",
        "router.input.fault_truncated=0.01",
    )
    felix = router(sides, "router.wait_for_subscribers=true", *faults)
    built, _ = readout(sides).finish(how=None)
    sent, _ = felix.finish(how=None)
    (reader,) = [one for one in sent["readers"] if one["name"] == "felix.0"]
    errors = reader["counters"]["error_chunks"]
    assert 300 < errors < 500 and route_adds_up(sent)
    assert built["chunks"]["built"] == sent["chunks"]["published"] == 40_000
    assert built["fragments"]["incomplete_by_reason"].keys() == {"corrupt"}
    assert errors / 2 <= built["fragments"]["incomplete"] <= errors, "some events have two"
