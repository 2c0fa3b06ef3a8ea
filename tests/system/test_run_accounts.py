"""Whole runs with difficult data: resets, narrow ids, trigger lists, turns and lost links. Every sent chunk is built or counted as
lost, every trigger is an event or counted as skipped, and the verdict agrees."""

import json
import os
import signal
import time

import pytest
from conftest import scaled
from running_emulator import emulated, emulator_report
from running_readout import adds_up

VERIFY = {"type": "processor", "work": "verify"}
TTC_ELINK = 7 << 3 | 3


def toml(value):
    return str(value).lower() if isinstance(value, bool) else json.dumps(value)


def table(name, keys):
    return "\n".join([name, *(f"{key} = {toml(value)}" for key, value in keys.items())]) + "\n"


def configuration(rodeo, input, builder, robs, *, l1id_bits=32, consumers=(VERIFY,), card=None, trigger=None):
    """Writes the configuration of a readout, with an emulated FELIX if `card` is given."""
    text = ""
    if card is not None:
        text += table(
            "[[emulator.card]]",
            {"type": "felix", "name": "felix", "address": "0000:e1:00.0", "l1id_bits": l1id_bits, **card},
        )
        text += table("[emulator.trigger]", {"rate": 0, **trigger})
        input = {
            "type": "card",
            "cards": ["e1:00.0"],
            "memory": "16MiB",
            "superpage": "256KiB",
            "start_generator": True,
            **input,
        }
    else:
        input = {"type": "generator", "rate": 0, **({"l1id_bits": l1id_bits} if "file" not in input else {}), **input}
    text += (
        table("[readout]", {"name": "accounts"}) + table("[readout.input]", input) + table("[readout.builder]", builder)
    )
    text += table("[readout.extractor]", {"type": "rodeo", "l1id_bits": l1id_bits})
    text += "".join(
        table("[[readout.rob]]", {"source_id": f"0x{0x610000 + i:08x}", **rob}) for i, rob in enumerate(robs)
    )
    text += "".join(
        table("[[readout.consumer]]", {"l1id_bits": l1id_bits, **consumer} if consumer is VERIFY else consumer)
        for consumer in consumers
    )
    (rodeo.directory / "accounts.toml").write_text(text)
    return "accounts.toml"


def run(rodeo, name, *arguments):
    return json.loads(rodeo("readout", name, "--json", "-", *arguments, timeout=120).stdout)


def run_of_card(rodeo, name, triggers):
    """Reads the card until this number of triggers, all that it sends, is built."""
    with emulated(rodeo, name):
        report = run(rodeo, name, "--events", triggers, "--seconds", scaled(30))
        assert emulator_report(rodeo)["trigger"]["accepted"] == triggers
    return report


def expect_all_built(report, chunks, events):
    assert report["run"]["condition"] == "GOOD", report
    assert report["chunks"] == {"sent": chunks, "built": chunks, "lost": {}}
    assert report["verified"] == {"chunks": chunks, "mismatches": 0}
    assert (report["fragments"]["built"], report["fragments"]["incomplete"], report["fragments"]["skipped_events"]) == (
        events,
        0,
        0,
    )


def expect_events_lost(report, lost, chunks):
    """Checks that each lost event is an empty fragment, or counted as skipped."""
    fragments = report["fragments"]
    assert report["run"]["condition"] == "INCOMPLETE"
    assert report["chunks"] == {"sent": chunks, "built": chunks, "lost": {}}
    assert report["verified"] == {"chunks": chunks, "mismatches": 0}
    assert fragments["incomplete"] + fragments["skipped_events"] == lost


FULL_GROUPS = {"format": "full", "chunk_bytes": 200, "links": 4, "groups": 4, "events": 20000}
LONE_LINK = {"fids": ["0x1000000000000000+4"], "events": 20000}
SILENT = [(0, 0, 20000), (5000, 0, 15000), (5000, 5000, 5000), (5000, 65, 65)]


@pytest.mark.parametrize("silent_from, silent_for, lost", SILENT)
def test_what_a_group_of_a_full_run_does_not_bring_is_counted(rodeo, silent_from, silent_for, lost):
    silent = {"silent_link": 1, "silent_from": silent_from, "silent_for": silent_for}
    report = run(rodeo, configuration(rodeo, {**FULL_GROUPS, **silent}, {"type": "full"}, [{"links_per_group": 1}]))
    expect_events_lost(report, lost, 4 * 20000 - lost)


@pytest.mark.parametrize("silent_from, silent_for, lost", SILENT)
def test_what_the_only_link_of_a_rob_does_not_bring_is_counted(rodeo, silent_from, silent_for, lost):
    silent = {"silent_link": 3, "silent_from": silent_from, "silent_for": silent_for}
    robs = [{"links": ["0x1000000000000000+3"]}, {"links": ["0x1000000000030000"]}]
    report = run(rodeo, configuration(rodeo, {**LONE_LINK, **silent}, {"type": "gbt"}, robs))
    expect_events_lost(report, lost, 4 * 20000 - lost)


def test_the_only_link_of_a_rob_may_lose_one_chunk_in_a_hundred(rodeo):
    robs = [{"links": ["0x1000000000000000"]}]
    source = {"fids": ["0x1000000000000000"], "events": 20000, "fault_missing": 0.01}
    report = run(rodeo, configuration(rodeo, source, {"type": "gbt"}, robs))
    lost = report["input"]["fault_missing"]
    assert lost > 100
    expect_events_lost(report, lost, 20000 - lost)


@pytest.mark.parametrize("l1id_bits", [16, 24, 32])
def test_resets_of_a_card_with_narrow_ids_are_followed_by_the_list(rodeo, l1id_bits):
    card = {"links": 2, "elinks_per_link": 4, "ttc_link": True}
    trigger = {"ecr_triggers": 3410, "limit": 20000}
    robs = [{"links": ["0x1000000000000000+4", "0x1000000000400000+4"]}]
    name = configuration(
        rodeo,
        {"trigger_elink": TTC_ELINK},
        {"type": "gbt", "trigger_list": True},
        robs,
        l1id_bits=l1id_bits,
        card=card,
        trigger=trigger,
    )
    expect_all_built(run_of_card(rodeo, name, 20000), 8 * 20000, 20000)


def test_short_epochs_at_a_low_rate_lose_no_event(rodeo):
    """The rate is so low that the card sends every block because of its age. The run ends with the first event of an epoch."""
    card = {"links": 2, "elinks_per_link": 2, "ttc_link": True}
    trigger = {"rate": 60, "spacing": "periodic", "ecr_triggers": 5, "limit": 61}
    robs = [{"links": ["0x1000000000000000+2", "0x1000000000400000+2"]}]
    name = configuration(
        rodeo, {"trigger_elink": TTC_ELINK}, {"type": "gbt", "trigger_list": True}, robs, card=card, trigger=trigger
    )
    expect_all_built(run_of_card(rodeo, name, 61), 4 * 61, 61)


def test_a_full_run_with_ids_of_a_byte_is_right_by_the_list(rodeo):
    source = {
        "format": "full",
        "chunk_bytes": 200,
        "links": 3,
        "groups": 1,
        "events": 20000,
        "flush": "50ms",
        "run_length": 100,
    }
    writer = {"type": "file_writer", "directory": "files", "min_free": "1MiB"}
    name = configuration(
        rodeo,
        source,
        {"type": "full", "trigger_list": True},
        [{"links_per_group": 3}],
        l1id_bits=8,
        consumers=(VERIFY, writer),
    )
    report = run(rodeo, name)
    expect_all_built(report, 20000, 20000)
    rodeo("data", "verify", *report["files"])


def test_skipped_events_between_resets_that_ids_hide_are_right(rodeo):
    """Ids have one byte, and links have data for a quarter of the triggers."""
    source = {"links": 4, "occupancy": 0.26, "ecr_triggers": 90, "events": 20000}
    report = run(rodeo, configuration(rodeo, source, {"type": "gbt", "trigger_list": True}, [{}], l1id_bits=8))
    assert report["run"]["condition"] == "INCOMPLETE" and report["verified"]["mismatches"] == 0 and adds_up(report)
    assert report["chunks"]["lost"] == {} and set(report["fragments"]["incomplete_by_reason"]) <= {
        "missing",
        "empty",
        "run_ended",
    }


@pytest.mark.parametrize("links, listed", [(2, False), (3, False), (1, True), (3, True)])
def test_a_full_card_without_a_fault_loses_nothing_at_defaults(rodeo, links, listed):
    """Small chunks come at the highest rate. One link of a group, and the list, may lag by all triggers that the card holds."""
    card = {"mode": "full", "links": links, "links_per_group": links, "chunk_size": 40, "ttc_link": listed}
    source = {"trigger_elink": TTC_ELINK} if listed else {}
    name = configuration(
        rodeo,
        source,
        {"type": "full", "trigger_list": listed},
        [{"links_per_group": links}],
        card=card,
        trigger={"limit": 100000},
    )
    expect_all_built(run_of_card(rodeo, name, 100000), 100000, 100000)


def test_a_full_card_that_stands_still_loses_nothing(rodeo):
    card = {"mode": "full", "links": 3, "links_per_group": 3, "chunk_size": 40}
    name = configuration(rodeo, {}, {"type": "full"}, [{"links_per_group": 3}], card=card, trigger={"rate": "20kHz"})
    with emulated(rodeo, name) as emulator, rodeo.start("readout", name, "--json", "-") as reader:

        def wait_for(triggers):
            deadline = time.monotonic() + scaled(20)
            while emulator_report(rodeo)["trigger"]["accepted"] < triggers:
                assert reader.poll() is None and time.monotonic() < deadline
                time.sleep(0.02)

        wait_for(1000)
        os.kill(emulator.pid, signal.SIGSTOP)
        time.sleep(0.5)
        os.kill(emulator.pid, signal.SIGCONT)
        wait_for(emulator_report(rodeo)["trigger"]["accepted"] + 5000)
        reader.send_signal(signal.SIGINT)
        out, err = reader.communicate(timeout=scaled(60))
        triggers = emulator_report(rodeo)["trigger"]["accepted"]
    assert reader.returncode == 0, err
    expect_all_built(json.loads(out), triggers, triggers)


def test_a_full_recording_that_is_looped_loses_nothing_at_its_seams(rodeo):
    """6001 events over three links: at each seam another link has the turn. Chunks are flagged until the new turns are known."""
    rodeo(
        "data",
        "record",
        "full.felix",
        "--events",
        6001,
        "--set",
        "format=full",
        "--set",
        "links=3",
        "--set",
        "groups=1",
        "--set",
        "chunk_bytes=200",
    )
    source = {"type": "file", "file": "full.felix", "loop": True}
    report = run(rodeo, configuration(rodeo, source, {"type": "full"}, [{"links_per_group": 3}]), "--events", 30000)
    chunks, fragments = report["chunks"]["sent"], report["fragments"]
    assert chunks >= 30000
    assert report["chunks"] == {"sent": chunks, "built": chunks, "lost": {}}
    assert report["verified"] == {"chunks": chunks, "mismatches": 0}
    assert (fragments["built"], fragments["skipped_events"]) == (chunks, 0)
    assert set(fragments["incomplete_by_reason"]) <= {"doubtful_id"} and fragments["incomplete"] <= 30 * (
        chunks // 6001
    )


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["gbt", "full"])
def test_ids_of_24_bits_go_on_over_their_wrap(rodeo, mode):
    events = (1 << 24) + 5000
    name = configuration(rodeo, {"links": 1, "events": events, "chunk_bytes": 40}, {"type": mode}, [{}], l1id_bits=24)
    expect_all_built(run(rodeo, name), events, events)
