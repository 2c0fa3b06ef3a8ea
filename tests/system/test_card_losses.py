"""Losses of an emulated card: each lost chunk is counted by name at the card or in the readout, not as sent; the run is not GOOD and names the place."""

import json
import re
import signal
import time

import pytest
from conftest import scaled
from running_emulator import emulated, emulator_report
from running_readout import adds_up

FELIX = """
[emulator]
name = "cards"
[[emulator.card]]
type = "felix"
name = "card"
address = "0000:3b:00.0"
links = {links}
elinks_per_link = {elinks}
chunk_size = {chunk_size}
[emulator.trigger]
rate = "4kHz"

[readout]
name = "reader"
[readout.input]
type = "card"
cards = ["3b:00.0"]
memory = "16MiB"
superpage = "256KiB"
start_generator = true
[readout.builder]
type = "gbt"
chunk_size = "4KiB"
timeout = "2s"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify"
seed = 1
"""


def configure(rodeo, text):
    (rodeo.directory / "losses.toml").write_text(text)
    return "losses.toml"


def felix(rodeo, links=2, elinks=4, chunk_size=40):
    return configure(rodeo, FELIX.format(links=links, elinks=elinks, chunk_size=chunk_size))


def function_of(rodeo):
    return emulator_report(rodeo)["functions"][0]


def fault(rodeo, kind, *arguments, link=0):
    rodeo("emulate", "fault", "--id", "card", kind, "--link", link, *arguments)


def wait_for(condition):
    deadline = time.monotonic() + scaled(30)
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def end_in_order(process):
    process.send_signal(signal.SIGINT)
    return process.communicate(timeout=scaled(60))


def read(rodeo, configuration, during=lambda: None, goes_on=True):
    """A run with a fault of its card after the first data, and data after the fault. Returns the report, stderr, and the card's report."""
    with rodeo.start("readout", configuration, "--seconds", 600, "--json", "-") as reader:

        def more(triggers):
            begin = function_of(rodeo)["triggers"]
            wait_for(lambda: reader.poll() is not None or function_of(rodeo)["triggers"] > begin + triggers)

        more(200)
        during()
        more(600 if goes_on else 0)  # the fault meets at least one trigger
        out, err = end_in_order(reader)
    assert reader.returncode == 0, err
    report = json.loads(out)
    assert adds_up(report), err
    return report, err, function_of(rodeo)


def lost(card):
    names = [
        "chunks_dropped",
        "chunks_lost",
        "chunks_corrupted",
        "chunks_unmapped",
        "chunks_link_down",
        "chunks_cut_off",
    ]
    return sum(card["counters"].get(name, 0) for name in names)


def check_books(report, card, links):
    """Every chunk of every trigger is sent or counted as lost; every sent chunk is built or counted as lost."""
    assert card["triggers"] * links == card["chunks"] + lost(card), card
    assert card["chunks"] == report["chunks"]["built"] + sum(report["chunks"]["lost"].values()), (card, report)
    assert report["verified"]["mismatches"] == 0


# Chunks of 40 bytes are in one block or two; chunks of 3000 bytes are in several, so each lost block cuts one short.
@pytest.mark.parametrize("chunk_size", [40, 3000])
@pytest.mark.parametrize(
    "kind, name, said", [("dropped_superpage", "lost", "lost_blocks"), ("corrupt_rdh", "corrupted", "bad_marker")]
)
def test_chunks_in_a_block_that_a_felix_card_loses_were_not_sent(rodeo, kind, name, said, chunk_size):
    configuration = felix(rodeo, chunk_size=chunk_size)
    with emulated(rodeo, configuration):

        def during():
            fault(rodeo, kind, link=0)
            fault(rodeo, kind, link=1)

        report, err, card = read(rodeo, configuration, during)
    check_books(report, card, 8)
    assert card["counters"][f"blocks_{name}"] == 2
    # Each lost block has the begin of a chunk (40 bytes), or only the middle of a chunk, which is then cut short.
    assert card["counters"].get(f"chunks_{name}", 0) + card["counters"].get("chunks_cut_short", 0) > 0
    assert report["run"]["condition"] == "INCOMPLETE" and report["fragments"]["incomplete"] > 0, err
    assert "data were lost before they came here" in err and said in err
    if kind == "dropped_superpage":
        assert report["input"]["card_lost_packets"] == 2


@pytest.mark.parametrize("kind, counter", [("dropped_superpage", "card_lost_packets"), ("corrupt_rdh", "bad_marker")])
def test_the_first_block_of_the_only_link_is_missed_though_no_other_link_has_its_events(rodeo, kind, counter):
    configuration = felix(rodeo, links=1, elinks=1)
    with emulated(rodeo, configuration):
        fault(rodeo, kind)
        report, err, card = read(rodeo, configuration)
    check_books(report, card, 1)
    assert lost(card) > 0 and report["input"][counter] == 1
    assert report["run"]["condition"] == "INCOMPLETE" and counter in err, err


def test_the_last_report_of_an_emulator_that_ends_during_a_readout_adds_up(rodeo):
    configuration = felix(rodeo)
    with (
        emulated(rodeo, configuration, "--json", "emulator.json") as process,
        rodeo.start("readout", configuration, "--seconds", 60, "--json", "-") as reader,
    ):
        wait_for(lambda: reader.poll() is not None or function_of(rodeo)["triggers"] > 200)
        end_in_order(process)
        out, err = reader.communicate(timeout=scaled(60))
    assert json.loads(out)["run"]["condition"] == "ABORTED", err
    card = json.loads((rodeo.directory / "emulator.json").read_text())["functions"][0]
    assert card["triggers"] * 8 == card["chunks"] + lost(card) and card["chunks"] > 0 and not card["running"], card


def test_chunks_of_a_link_that_is_down_are_counted_and_missing(rodeo):
    configuration = felix(rodeo)
    with emulated(rodeo, configuration):
        report, err, card = read(rodeo, configuration, lambda: fault(rodeo, "link_down", "--duration", "100ms", link=1))
    check_books(report, card, 8)
    assert card["counters"]["chunks_link_down"] > 0 and card["counters"]["chunks_link_down"] % 4 == 0
    assert report["run"]["condition"] == "INCOMPLETE" and report["fragments"]["incomplete"] > 0, err


@pytest.mark.parametrize("kind", ["felix", "cru"])
def test_the_only_link_that_is_down_for_a_moment_is_missed_though_no_other_link_has_its_events(rodeo, kind):
    configuration = felix(rodeo, links=1, elinks=1) if kind == "felix" else cru(rodeo)
    with emulated(rodeo, configuration):
        if kind == "cru":
            enable_links(rodeo, 1)
        report, err, card = read(rodeo, configuration, lambda: fault(rodeo, "link_down", "--duration", "200ms"))
        assert card["counters"]["chunks_link_down" if kind == "felix" else "frames_link_down"] > 0
    assert (
        report["run"]["condition"] == "INCOMPLETE"
        and report["input"]["card_links_down"] == 1
        and "card_links_down" in err
    ), err


def test_blocks_for_a_channel_that_nobody_has_enabled_were_not_sent(rodeo):
    configuration = felix(rodeo)
    with emulated(rodeo, configuration):
        rodeo("card", "reg", "write", "--id", "3b:00.0", "link_channel[1]", "2")
        report, err, card = read(rodeo, configuration)
    check_books(report, card, 8)
    # The run has the links of its channel, and reports that these links are not part of it.
    assert report["links"] == 4 and report["run"]["condition"] == "GOOD", err
    assert card["counters"]["chunks_dropped"] == 4 * card["triggers"] and card["counters"]["blocks_dropped"] > 0


def test_a_truncated_chunk_is_sent_and_flagged(rodeo):
    configuration = felix(rodeo)
    with emulated(rodeo, configuration):
        report, err, card = read(rodeo, configuration, lambda: fault(rodeo, "truncated_page"))
    check_books(report, card, 8)
    assert lost(card) == 0 and report["run"]["condition"] == "INCOMPLETE" and report["fragments"]["incomplete"] == 1, (
        err
    )


def test_a_channel_that_stands_still_loses_nothing(rodeo):
    configuration = felix(rodeo)
    with emulated(rodeo, configuration):

        def during():
            fault(rodeo, "stuck_fifo")
            time.sleep(0.2)
            fault(rodeo, "stuck_fifo")

        report, err, card = read(rodeo, configuration, during)
    check_books(report, card, 8)
    assert lost(card) == 0 and report["run"]["condition"] == "GOOD", err


def test_each_function_says_how_long_it_was_busy_and_what_it_cost(rodeo):
    """Two cards have one trigger, and one card stalls: it causes the dead time."""
    text = FELIX.format(links=2, elinks=4, chunk_size=40)
    card = text[text.index("[[emulator.card]]") : text.index("[emulator.trigger]")]
    other = card.replace('"card"', '"other"').replace("3b:00.0", "3c:00.0") + "serial = 713\nconnector = 1\n"
    text = text.replace("[emulator.trigger]", other + "[emulator.trigger]\nwait_for = 2").replace(
        '["3b:00.0"]', '["3b:00.0", "3c:00.0"]'
    )
    text = text.replace("serial = 713", "serial = 713\nfifo_triggers = 100").replace(
        'timeout = "2s"', 'timeout = "20s"'
    )
    configuration = configure(rodeo, text)
    with emulated(rodeo, configuration):

        def during():
            rodeo("emulate", "fault", "--id", "other", "stuck_fifo")
            time.sleep(0.3)
            rodeo("emulate", "fault", "--id", "other", "stuck_fifo")

        report, err, card = read(rodeo, configuration, during)
        whole = emulator_report(rodeo)
        shown = rodeo("emulate", "status").stdout
    assert report["run"]["condition"] == "GOOD", err
    other = whole["functions"][1]
    assert other["name"] == "other" and other["busy_seconds"] > 0.1 and other["vetoed"] >= other["vetoed_alone"] > 400
    assert other["dead_time_fraction"] == other["vetoed"] / whole["trigger"]["offered"] > 0
    assert (
        card["busy_seconds"] < other["busy_seconds"]
        and card["vetoed_alone"] == whole["trigger"]["vetoed"]["busy"] - other["vetoed"]
    )
    assert "busy [s]" in shown


def test_the_demo_names_what_its_card_lost(rodeo):
    with rodeo.start("demo", "--links", 16, "--rate", "5kHz", "--seconds", 600) as demo:

        def demo_card():
            done = rodeo("emulate", "status", "-o", "json", exit_code=None)
            return json.loads(done.stdout)["functions"][0] if done.returncode == 0 else None

        wait_for(lambda: demo.poll() is not None or (demo_card() or {"triggers": 0})["triggers"] > 200)
        rodeo("emulate", "fault", "--id", "felix", "dropped_superpage", "--link", 0)
        rodeo("emulate", "fault", "--id", "felix", "corrupt_rdh", "--link", 1)
        begin = demo_card()["triggers"]
        wait_for(lambda: demo.poll() is not None or demo_card()["triggers"] > begin + 600)
        demo.send_signal(signal.SIGTERM)  # the command passes it on
        _, err = demo.communicate(timeout=scaled(90))
    chunks = re.search(r"chunks +(\d+) sent = (\d+) in fragments \+ lost: (.+)", err)
    assert chunks and "INCOMPLETE: run" in err and "DOES NOT ADD UP" not in err, err
    lost = {reason: int(count) for reason, count in (each.rsplit(" ", 1) for each in chunks[3].split(", "))}
    assert lost["card_lost"] > 0 and lost["card_corrupted"] > 0
    assert int(chunks[1]) == int(chunks[2]) + sum(lost.values())
    assert demo.returncode == 0 and "every byte verified" in err, err


CRU = """
[emulator]
name = "cards"
[[emulator.card]]
type = "cru"
name = "card"
address = "0000:af:00.0"
links = 12
frame_size = "{frame}"
overflow = "{overflow}"
first_orbit = 8
fifo_triggers = {held}
[emulator.trigger]
rate = "2kHz"

[readout]
name = "reader"
[readout.input]
type = "card"
cards = ["af:00.0"]
memory = "64MiB"
superpage = "64KiB"
start_generator = true
[readout.builder]
type = "gbt"
chunk_size = "32KiB"
window = 2048
buffers = 2200
timeout = "2s"
[readout.extractor]
type = "rdh"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "processor"
name = "processor"
work = "verify_rdh"
seed = 1
"""


def cru(rodeo, frame="4KiB", overflow="busy", held=4096):
    return configure(rodeo, CRU.format(frame=frame, overflow=overflow, held=held))


def enable_links(rodeo, links):
    """Other links take no part in a run."""
    rodeo("card", "reg", "write", "--id", "af:00.0", "datapath_enable[0]", str((1 << links) - 1))


def check_frames(rodeo, report, card, links):
    """Every frame of every trigger is sent or counted as lost; every sent frame is built or counted as lost. Here a chunk is a frame."""
    triggers = emulator_report(rodeo)["trigger"]["followers"][0]["triggers"]
    names = ["frames_dropped", "frames_lost", "frames_corrupted", "frames_cut_off", "frames_link_down"]
    by_name = {name: card["counters"].get(name, 0) for name in names}
    assert triggers * links == card["chunks"] + sum(by_name.values()), (triggers, card)
    assert card["chunks"] == report["chunks"]["built"] + sum(report["chunks"]["lost"].values()), (card, report)
    assert report["verified"]["mismatches"] == 0
    return sum(by_name.values())


def read_cru(rodeo, links, kind, wait=None, **options):
    configuration = cru(rodeo, **options)
    with emulated(rodeo, configuration):
        enable_links(rodeo, links)

        def inject():
            fault(rodeo, kind)
            if wait is not None:
                time.sleep(wait)
                fault(rodeo, kind)

        report, err, card = read(rodeo, configuration, inject)
        return report, err, card, check_frames(rodeo, report, card, links)


# Frames of 4 KiB are in one superpage; frames of 20 KiB have several pages, some in two superpages.
@pytest.mark.parametrize("links", [1, 3])
@pytest.mark.parametrize("frame", ["4KiB", "20KiB"])
def test_frames_in_a_superpage_that_a_cru_loses_were_not_sent(rodeo, links, frame):
    report, err, card, lost = read_cru(rodeo, links, "dropped_superpage", frame=frame)
    assert lost == card["counters"]["frames_lost"] > 0 and card["counters"]["superpages_lost"] == 1
    assert report["run"]["condition"] == "INCOMPLETE" and "data were lost before they came here" in err, err
    assert report["input"]["card_lost_packets"] == card["counters"]["pages_lost"] > 0
    assert report["input"]["packet_gaps"] == 1 and report["input"]["lost_pages"] == card["counters"]["pages_lost"]
    assert report["input"]["card_bytes"] == card["bytes"]


@pytest.mark.parametrize("kind", ["corrupt_rdh", "truncated_page"])
def test_frames_behind_a_page_that_nobody_can_read_were_not_sent(rodeo, kind):
    report, err, card, lost = read_cru(rodeo, 2, kind)
    assert lost == card["counters"].get("frames_corrupted", 0)
    assert report["run"]["condition"] == "INCOMPLETE" and report["input"]["bad_rdh"] == 1 and "bad_rdh" in err, err


def test_frames_of_a_link_that_is_down_are_counted(rodeo):
    configuration = cru(rodeo)
    with emulated(rodeo, configuration):
        enable_links(rodeo, 2)
        report, err, card = read(rodeo, configuration, lambda: fault(rodeo, "link_down", "--duration", "100ms", link=1))
        assert check_frames(rodeo, report, card, 2) == card["counters"]["frames_link_down"] > 0
    assert report["run"]["condition"] == "INCOMPLETE" and report["fragments"]["incomplete"] > 0, err


def test_a_stuck_link_of_a_card_that_waits_loses_nothing(rodeo):
    report, err, card, lost = read_cru(rodeo, 2, "stuck_fifo", wait=0.2)
    assert lost == 0 and report["run"]["condition"] == "GOOD", err


@pytest.mark.parametrize("links", [1, 2])
def test_a_stuck_link_of_a_card_that_does_not_wait_drops_frames_by_name(rodeo, links):
    report, err, card, lost = read_cru(rodeo, links, "stuck_fifo", wait=0.4, overflow="drop", held=64)
    assert lost == card["counters"]["frames_dropped"] > 0
    assert report["run"]["condition"] == "INCOMPLETE" and "card_lost_packets" in err, err
    assert report["input"]["card_lost_packets"] == card["counters"]["pages_dropped"]


def test_a_skipped_packet_counter_makes_a_run_incomplete_and_loses_no_frame(rodeo):
    report, err, card, lost = read_cru(rodeo, 1, "bad_packet_counter")
    assert lost == 0 and report["run"]["condition"] == "INCOMPLETE" and report["input"]["packet_gaps"] == 1, err


def test_a_stuck_link_at_the_end_of_the_run_is_cut_off_by_name(rodeo):
    configuration = cru(rodeo, held=256)
    with emulated(rodeo, configuration):
        enable_links(rodeo, 2)
        report, err, card = read(rodeo, configuration, lambda: fault(rodeo, "stuck_fifo", link=1), goes_on=False)
        assert check_frames(rodeo, report, card, 2) == card["counters"]["frames_cut_off"] > 0
    assert report["run"]["condition"] == "INCOMPLETE", err


@pytest.mark.parametrize(
    "configure_card, kind",
    [(felix, "card_reset"), (felix, "removal"), (cru, "card_reset"), (cru, "removal"), (cru, "size_index_mismatch")],
)
def test_a_card_that_breaks_the_rules_or_goes_ends_the_run(rodeo, configure_card, kind):
    configuration = configure_card(rodeo)
    with (
        emulated(rodeo, configuration),
        rodeo.start("readout", configuration, "--seconds", 60, "--json", "-") as reader,
    ):
        wait_for(lambda: reader.poll() is not None or function_of(rodeo)["triggers"] > 200)
        fault(rodeo, kind)
        out, err = reader.communicate(timeout=scaled(60))
    assert reader.returncode == 1, err
    report = json.loads(out)
    assert report["run"]["condition"] == "ABORTED" and "card" in report["run"]["failure"], err


def test_wrong_numbers_of_a_card_are_flagged_and_name_the_link(rodeo):
    """A flipped L1 id, and a card link with four E-links whose BCIDs are one too large: they are out of step, and their offset is reported."""
    text = (
        FELIX.format(links=3, elinks=4, chunk_size=40)
        .replace('work = "verify"', 'work = "release"')
        .replace("seed = 1\n", "")
    )
    configuration = configure(rodeo, text)

    def out_of_step():
        status = json.loads(rodeo("readout", "status", "--name", "reader", "-o", "json").stdout)
        return [link["bcid_offset"] for link in status["robs"][0]["links"] if link["out_of_step"]]

    def during():
        assert out_of_step() == []
        fault(rodeo, "flipped_l1id")
        fault(rodeo, "wrong_bcid", "--duration", "600s", link=1)
        wait_for(lambda: out_of_step() == [1] * 4)

    with emulated(rodeo, configuration):
        report, err, card = read(rodeo, configuration, during)
    assert card["counters"]["l1ids_flipped"] == 1 and card["counters"]["bcids_shifted"] > 4 * 600, card
    lost = report["chunks"]["lost"]
    assert report["run"]["condition"] == "INCOMPLETE" and lost in ({"out_of_sequence": 1}, {"duplicate": 1}), (
        err
    )  # the flipped bit decides: the wrong id may be that of an earlier event
    assert report["fragments"]["incomplete_by_reason"]["bcid_mismatch"] > 600, err
    assert err.count("is out of step (BCIDs too large by 1)") == 4, err
