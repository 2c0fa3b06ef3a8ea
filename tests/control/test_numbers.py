"""Numbers of the whole system: rates need two observations, sums contain known values, and unknown values are None."""

import copy

import pytest
from rodeo.control.run.trigger import Settling
from rodeo.control.state.numbers import (
    Moment,
    card_losses,
    farm_of,
    fragments_per_event,
    limited_by,
    links_of,
    numbers,
    of_process,
)


def readout(
    built=0,
    *,
    sent=0,
    lost=None,
    robs=1,
    incomplete=0,
    bytes_in=0,
    written=0,
    seconds=10.0,
    recorder=True,
    by="nothing",
    fill=0.0,
    links=(),
):
    consumers = (
        {"recorder": {"consumed": built, "stalls": 0, "counters": {"bytes_written": written}}}
        if recorder
        else {"verify": {"counters": {}}}
    )
    return "readout", {
        "run": {"number": 7, "seconds": seconds, "condition": "GOOD"},
        "chunks": {"sent": sent, "built": sent - sum((lost or {}).values()), "lost": lost or {}},
        "fragments": {"built": built * robs, "incomplete": incomplete},
        "bytes": {"in": bytes_in, "written": written},
        "limited_by_now": by,
        "robs": [{"pool_fill": 0.1, "links": list(links)} for _ in range(robs)],
        "queue_fill": {"recorder": fill},
        "consumers": consumers,
    }


def cards(accepted=0, offered=None, *, busy=0, chunks=0, link=None, **counters):
    trigger = {
        "offered": accepted if offered is None else offered,
        "accepted": accepted,
        "vetoed": {"busy": busy},
        "busy_card": "felix:0",
    }
    return "emulator", {
        "trigger": trigger | ({"link": link} if link else {}),
        "functions": [{"name": "felix", "triggers": accepted, "chunks": chunks, "counters": counters}],
    }


def of(before, after, seconds=2.0, **given):
    return numbers(Moment(10.0, before), Moment(10.0 + seconds, after, given.pop("free", None)), **given)


def test_rates_are_of_the_time_between_two_looks():
    got = of(
        {"cards": cards(100, 110), "r": readout(90, bytes_in=1000, written=100)},
        {"cards": cards(300, 360), "r": readout(290, bytes_in=5000, written=500)},
    )
    assert (
        got["trigger_rate_hz"] == 100
        and got["offered_rate_hz"] == 125
        and got["dead_time_fraction"] == pytest.approx(0.2)
    )
    assert got["bytes_in_per_second"] == 2000 and got["bytes_written_per_second"] == 200
    assert got["events"] == 290 and got["bytes_written"] == 500 and got["recording"] is True


def test_what_nobody_knows_is_none_and_never_zero():
    empty = numbers(None, Moment(1.0, {}))
    assert all(one is None for key, one in empty.items() if key != "chunks") and empty["chunks"] == {
        "sent": None,
        "built": None,
        "lost": {},
    }
    one = numbers(None, Moment(1.0, {"cards": cards(5), "r": ("readout", None)}))
    assert one["trigger_rate_hz"] is None and one["events"] is None and one["recording"] is None


def test_who_has_not_answered_between_two_looks_has_no_rate_and_then_that_of_all_the_time():
    def look(time_s, built, answered_s):
        return Moment(
            time_s,
            {"r": readout(built, bytes_in=built), "cards": cards(int(100 * time_s))},
            answered_s={"r": answered_s},
        )

    first, second, third = look(10.0, 100, 10.0), look(11.0, 100, 10.0), look(12.0, 500, 12.0)
    assert of_process("r", first, second)["rate_hz"] is None and numbers(first, second)["bytes_in_per_second"] is None
    assert of_process("r", first, second)["events"] == 100 and of_process("cards", first, second)["rate_hz"] == 100
    assert of_process("r", second, third)["rate_hz"] == 200 and numbers(second, third)["bytes_in_per_second"] == 200


def test_two_looks_too_near_give_no_rate():
    before, after = {"cards": cards(100)}, {"cards": cards(200)}
    assert of(before, after, 0.4)["trigger_rate_hz"] is None and of(before, after, 0.5)["trigger_rate_hz"] == 200
    assert (
        of(before, after, -1.0)["trigger_rate_hz"] is None
        and of(before, after, float("nan"))["trigger_rate_hz"] is None
    )


def test_a_counter_that_began_anew_has_no_rate():
    got = of(
        {"cards": cards(1000), "a": readout(500, bytes_in=9000), "b": readout(500, bytes_in=9000)},
        {"cards": cards(10), "a": readout(3, bytes_in=10), "b": readout(600, bytes_in=9400)},
    )
    assert got["trigger_rate_hz"] is None and got["dead_time_fraction"] is None
    assert got["bytes_in_per_second"] == 200, "only the known value counts"
    assert of_process("a", Moment(10.0, {"a": readout(500)}), Moment(12.0, {"a": readout(3)}))["rate_hz"] is None


def test_no_trigger_is_a_rate_of_zero_and_no_dead_time():
    got = of({"cards": cards(100)}, {"cards": cards(100)})
    assert got["trigger_rate_hz"] == 0 and got["dead_time_fraction"] is None


def test_only_who_assigns_triggers_is_asked_for_them():
    before = {"a": cards(100), "b": cards(100, link={"follows": "a"})}
    after = {"a": cards(300), "b": cards(900, link={"follows": "a"})}
    assert of(before, after)["trigger_rate_hz"] == 100


def test_without_emulated_cards_the_readouts_say_what_they_know():
    kind, status = readout(290)
    got = of({"r": readout(90)}, {"r": (kind, {**status, "dead_time_fraction": 0.25, "offered_rate_hz": 133.0})})
    assert got["trigger_rate_hz"] == 100 and got["dead_time_fraction"] == 0.25 and got["offered_rate_hz"] == 133.0


def test_events_are_those_that_every_readout_has_built_by_all_of_its_robs():
    got = of({}, {"a": readout(100, robs=2, incomplete=3), "b": readout(90, incomplete=1)})
    assert got["events"] == 90 and got["incomplete"] == 4 and got["incomplete_ppm"] == pytest.approx(1e6 * 4 / 290)


FULL_MODE = {  # the status of a real readout of examples/full-mode.toml
    "fragments": {"built": 180_000, "events": 60_000, "incomplete": 0},
    "robs": [{"source_id": "0x00610100", "groups": 3, "open_events": 0, "links": []}],
}


@pytest.mark.parametrize("says_events", [True, False])
def test_a_group_of_links_in_full_mode_has_a_fragment_of_each_event(says_events):
    before, after = copy.deepcopy(FULL_MODE), copy.deepcopy(FULL_MODE)
    before["fragments"].update(built=120_000, events=40_000)
    if not says_events:
        del before["fragments"]["events"], after["fragments"]["events"]
    got = of({"r": ("readout", before)}, {"r": ("readout", after)})
    assert (got["events"], got["trigger_rate_hz"]) == (60_000, 10_000)
    del after["robs"][0]["groups"], after["fragments"]
    assert fragments_per_event(after) == 1 == fragments_per_event(None), "a readout of an earlier version"


def test_a_run_waits_for_all_fragments_of_its_events():
    """The readout has three groups, so an event has three fragments."""
    said = [
        Settling().done({"r": {**FULL_MODE, "fragments": {"built": built}}}, 20_000, 0.0)
        for built in (20_000, 59_999, 60_000)
    ]
    assert said == [(False, ["r: 20000 built of 60000"]), (False, ["r: 59999 built of 60000"]), (True, [])]


def test_a_disk_lasts_for_as_long_as_the_mean_of_the_run_says():
    after = {"a": readout(1, written=10**9, seconds=100.0), "b": readout(1, written=3 * 10**9, seconds=100.0)}
    assert of({}, after, free=4 * 10**9)["disk_seconds_left"] == pytest.approx(100.0)
    assert of({}, {"a": readout(1, written=10**9, seconds=1.0)}, free=4 * 10**9)["disk_seconds_left"] is None, (
        "too early to say"
    )
    assert (
        of({}, {"a": readout(1, seconds=100.0)}, free=4 * 10**9)["disk_seconds_left"] is None
        and of({}, after)["disk_seconds_left"] is None
    )


def test_recording_is_known_before_anything_is_written():
    assert of({}, {"a": readout(0)})["recording"] is True and of({}, {"a": readout(0)})["bytes_written"] == 0
    assert of({}, {"a": readout(0, recorder=False)})["recording"] is False


def test_chunks_are_sent_and_built_and_lost_with_what_the_cards_lost_since_the_run_began():
    _, begin = cards(5, chunks=10, chunks_lost=3, frames_dropped=1)
    after = {
        "cards": cards(9, chunks=30, chunks_lost=5, frames_dropped=1, chunks_open=7),
        "r": readout(4, sent=20, lost={"late": 2, "corrupt": 0}),
    }
    assert of({}, after, cards_at_start={"cards": begin})["chunks"] == {
        "sent": 22,
        "built": 18,
        "lost": {"late": 2, "card_lost": 2},
    }
    assert of({}, after)["chunks"] == {"sent": 20, "built": 18, "lost": {"late": 2}}
    assert card_losses({}, {"cards": after["cards"][1]}) == {}


def router(waits, filled=0, sent=0):
    return "router", {
        "links": 2,
        "chunks": {"sent": sent, "published": sent},
        "subscribers": [
            {"name": "r", "waits": waits, "page_slots": 64, "pages_filled": filled},
            {"name": "monitor", "waits": 0},
        ],
    }


def test_the_first_cause_of_back_pressure_is_named():
    def cause(before, after):
        return limited_by(Moment(1.0, before), Moment(2.0, after))

    well = {"cards": cards(1), "router": router(5), "r": readout()}
    assert cause(well, well) is None and limited_by(None, Moment(1.0, well)) is None
    busy = {**well, "cards": cards(1, busy=9)}
    assert cause(well, busy) is None, "the card suffers from a later stage"
    alone = {"cards": well["cards"]}
    assert cause(alone, {"cards": busy["cards"]}) == {"process": "cards", "stage": "busy: felix:0"}
    waits = {**busy, "router": router(6)}
    assert cause(well, waits) == {"process": "r", "stage": "takes less than router has"}
    elsewhere = {name: one for name, one in waits.items() if name != "r"}
    assert cause({name: well[name] for name in elsewhere}, elsewhere) == {"process": "router", "stage": "waits for r"}
    slow = {**waits, "r": readout(by="recorder")}
    assert cause(well, slow) == {"process": "r", "stage": "recorder"}
    assert cause({}, waits) is None, "a single counter value does not show the present"


def test_each_process_has_its_own_numbers():
    before = Moment(1.0, {"r": readout(100, robs=2), "router": router(0, sent=100), "cards": cards(50)})
    after = Moment(
        3.0,
        {
            "r": readout(200, robs=2, incomplete=1, fill=0.7),
            "router": router(0, 32, sent=300),
            "cards": cards(70),
            "silent": ("readout", None),
        },
    )
    assert of_process("r", before, after) == {"rate_hz": 50, "events": 200, "incomplete": 1, "fill": 0.7}
    assert of_process("router", before, after) == {"rate_hz": 50, "events": None, "incomplete": None, "fill": 0.5}
    assert of_process("cards", before, after) == {"rate_hz": 10, "events": 70, "incomplete": None, "fill": None}
    nothing = {"rate_hz": None, "events": None, "incomplete": None, "fill": None}
    assert of_process("silent", before, after) == nothing and of_process("nobody", before, after) == nothing


def test_the_worst_links_come_first():
    links = [{"fid": f"0x{index:02x}", "state": "active", "missing": 0, "bad": 0} for index in range(40)]
    links[7].update(missing=5)
    links[9].update(bad=50)
    links[11].update(in_doubt=3)
    links[13].update(out_of_step=True, bcid_offset=5)
    links[30].update(state="removed")
    got = links_of(Moment(1.0, {"r": readout(links=links)}))
    assert (got["total"], got["active"], got["removed"]) == (40, 39, 1)
    assert [one["fid"] for one in got["bad"]] == ["0x1e", "0x0d", "0x09", "0x07", "0x0b"] and got["bad"][0][
        "process"
    ] == "r"
    assert got["bad"][1]["bcid_offset"] == 5 and got["bad"][4]["in_doubt"] == 3
    for one in links:
        one["missing"] = 1
    assert len(links_of(Moment(1.0, {"r": readout(links=links)}))["bad"]) == 16
    assert links_of(Moment(1.0, {})) == {"total": None, "active": None, "removed": None, "bad": []}


def farm(events, recorded=0, by="nothing"):
    return {
        "s": ("supervisor", {"run": {}, "events": {"in": events, "partial": 3}, "limited_by": by}),
        "n": ("node", {"run": {}, "events": {"assigned": events // 2}}),
        "r": (
            "recorder",
            {"run": {"seconds": 10.0}, "events": {"recorded": recorded}, "bytes": {"events": 1000 * recorded}},
        ),
    }


def test_processes_of_a_farm_have_rates_of_whole_events_and_the_recorder_writes():
    before, after = Moment(0.0, farm(1000, 100)), Moment(2.0, farm(3000, 300, by="filter nodes"), disk_free_bytes=10**6)
    assert [of_process(name, before, after)["rate_hz"] for name in "snr"] == [1000, 500, 100]
    assert of_process("s", before, after)["incomplete"] == 3 and of_process("r", before, after)["events"] == 300
    all_of_it = numbers(before, after)
    assert (all_of_it["recording"], all_of_it["bytes_written"], all_of_it["bytes_written_per_second"]) == (
        True,
        300_000,
        100_000,
    )
    assert all_of_it["disk_seconds_left"] == pytest.approx(10**6 / 30_000)
    assert limited_by(before, after) == {"process": "s", "stage": "filter nodes"} and limited_by(None, before) is None


def test_nodes_that_wait_for_a_recorder_are_not_the_first_cause():
    def seen(unsafe, at_nodes=32, by="filter nodes"):
        return {
            **farm(100, by=by),
            "n": ("node", {"events": {"under_way": at_nodes}}),
            "r": ("recorder", {"events": {"waiting": unsafe}}),
        }

    def cause(before, after):
        return limited_by(Moment(0.0, before), Moment(1.0, after))

    assert cause(seen(30), seen(31)) == {"process": "r", "stage": "disk"}
    for before, after in ((seen(0), seen(31)), (seen(31), seen(16)), (seen(0, 0), seen(0, 0))):
        assert cause(before, after) == {"process": "s", "stage": "filter nodes"}
    assert cause(seen(31, by="nothing"), seen(31, by="nothing")) is None, "decisions in flight become safe soon enough"
    assert limited_by(None, Moment(1.0, seen(31))) == {"process": "s", "stage": "filter nodes"}


def test_what_became_of_whole_events_is_of_supervisor_and_recorders():
    events = {
        "in": 100,
        "accepted": 30,
        "rejected": 50,
        "debug": 1,
        "readout_died": 0,
        "partial": 2,
        "reassigned": 4,
        "waiting": 9,
        "assigned": 10,
    }
    recorders = {
        name: ("recorder", {"events": {"recorded": recorded, "read_back": 3}})
        for name, recorded in (("a", 10), ("b", 15))
    }
    got = farm_of(Moment(1.0, {"s": ("supervisor", {"events": events, "lumi_block": 4}), **recorders}))
    assert got == {
        "in": 100,
        "accepted": 30,
        "rejected": 50,
        "debug": 1,
        "readout_died": 0,
        "partial": 2,
        "reassigned": 4,
        "under_way": 19,
        "recorded": 31,
        "lumi_block": 4,
    }
    assert of({}, {"r": readout(1)})["farm"] is None
    alone = farm_of(Moment(1.0, {"s": ("supervisor", {"events": {"in": 1}})}))
    assert alone["recorded"] is None and alone["accepted"] is None and alone["in"] == 1


def test_what_stands_is_the_cause_where_no_process_says_that_it_is_limited():
    stands = {
        "run": {},
        "events": {"recorded": 0},
        "standing": [{"name": "events that are not safe", "waits_for": "the disk", "seconds": 9.0}],
    }
    seen = {"r": ("recorder", stands), "x": ("router", {"run": {}, "chunks": {}, "standing": []})}
    assert limited_by(None, Moment(1.0, seen)) == {
        "process": "r",
        "stage": "events that are not safe waits for the disk",
    }
    assert limited_by(None, Moment(1.0, {"r": ("recorder", stands | {"standing": []})})) is None
