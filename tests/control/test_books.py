"""The balance of a run: sent = built + lost over all processes, and the verdict if the sum is wrong."""

import asyncio
import random

import pytest
from rodeo.control.processes.disks import Folders
from rodeo.control.run.open_run import OpenRun, collect_reports, reason_of, settle, unread_links
from rodeo.control.state.balance import CONDITIONS, balance


def report(sent, built=None, lost=None, condition="GOOD", failure="", fragments=None, **counters):
    lost = lost or {}
    return {
        "run": {"number": 7, "seconds": 1.0, "condition": condition, "failure": failure},
        "chunks": {"sent": sent, "built": sent - sum(lost.values()) if built is None else built, "lost": lost},
        "fragments": {"built": fragments if fragments is not None else sent // 2, "incomplete": 0},
        "input": {"sent": sent, **counters},
    }


def cards(chunks, *, type="FELIX", missed=0, triggers=0, **counters):
    return {
        "trigger": {"offered": 0, "accepted": 0, "followers": [{"name": "felix:0", "missed": missed}]},
        "functions": [{"name": "felix", "type": type, "triggers": triggers, "chunks": chunks, "counters": counters}],
    }


def router(sent, published=None, **counts):
    return {
        "chunks": {"sent": sent, "published": sent - sum(counts.values()) if published is None else published, **counts}
    }


def test_links_in_doubt_are_named():
    doubtful = report(100, condition="INCOMPLETE")
    doubtful["fragments"]["doubtful_links"] = [
        {"fid": "0x41", "in_doubt": 0, "moved": 0, "out_of_step": True, "bcid_offset": 5},
        {"fid": "0x40", "in_doubt": 12, "moved": 1, "out_of_step": False, "bcid_offset": None},
    ]
    reasons = balance({"a": doubtful}).reasons
    assert reasons[1:] == (
        "a: link 0x41 is out of step (BCIDs too large by 5)",
        "a: 12 chunks of link 0x40 are in doubt",
    )


def test_a_good_run_has_a_sum_that_holds():
    books = balance(
        {"a": report(100), "b": report(60)}, {"x": cards(1000), "y": cards(0)}, {"x": cards(1100), "y": cards(60)}
    )
    assert (books.sent, books.built, books.lost, books.rest) == (160, 160, {}, 0)
    assert (books.condition, books.flags, books.reasons, books.events) == ("GOOD", (), (), 30)


def test_the_emulator_counts_on_from_run_to_run_and_only_the_difference_is_this_runs():
    assert (
        balance({"a": report(10)}, {"x": cards(990, chunks_lost=5)}, {"x": cards(1000, chunks_lost=5)}).condition
        == "GOOD"
    )


def test_what_is_lost_has_a_name_and_makes_it_incomplete():
    books = balance(
        {"a": report(100, lost={"late": 3}, condition="INCOMPLETE")},
        {"x": cards(0)},
        {"x": cards(100, chunks_lost=2, chunks_cut_off=1, chunks_open=0)},
    )
    assert books.lost == {"late": 3, "card_lost": 2, "card_cut_off": 1}
    assert (books.sent, books.built, books.rest, books.condition) == (103, 97, 0, "INCOMPLETE")
    assert "lost: 1 card_cut_off, 2 card_lost, 3 late" in books.reasons


def test_chunks_that_are_nowhere_make_it_wrong():
    books = balance({"a": report(90)}, {"x": cards(0)}, {"x": cards(100)})
    assert (books.rest, books.condition) == (10, "WRONG") and "10 are in no count" in books.reasons[-1]
    books = balance({"a": report(110)}, {"x": cards(0)}, {"x": cards(100)})
    assert (books.rest, books.condition) == (-10, "WRONG") and "10 are too many" in books.reasons[-1]


def test_a_report_whose_own_sum_does_not_hold_is_wrong():
    books = balance({"a": report(100, built=90)}, {"x": cards(0)}, {"x": cards(100)})
    assert books.condition == "WRONG" and "a received 100 chunks, built 90 and lost 0" in books.reasons


def test_a_readout_that_left_no_report_took_the_rest_with_it():
    books = balance({"a": report(60), "b": None}, {"x": cards(0)}, {"x": cards(100)}, flags=("DEGRADED",))
    assert (books.lost, books.rest, books.condition) == ({"not_reported": 40}, 0, "INCOMPLETE")
    assert books.flags == ("DEGRADED",) and "b left no report" in books.reasons, (
        "the end of an earlier start does not show how the run ended"
    )


def test_no_readout_left_a_report():
    books = balance({"a": None}, {"x": cards(0)}, {"x": cards(100)})
    assert (books.sent, books.built, books.lost, books.condition) == (100, None, {"not_reported": 100}, "INCOMPLETE")


def test_cards_that_died_leave_the_sum_unknown():
    for after in (None, cards(5)):  # the emulator is gone, or was restarted
        books = balance({"a": report(100)}, {"x": cards(50)}, {"x": after})
        assert (books.sent, books.built, books.rest, books.condition) == (None, 100, None, "INCOMPLETE")
        assert "x did not report at the end how many chunks it had sent" in books.reasons


@pytest.mark.parametrize(
    ("condition", "expected"),
    [
        ("INCOMPLETE", "INCOMPLETE"),
        ("WRONG", "WRONG"),
        ("ABORTED", "ABORTED"),
        ("ODD", "INCOMPLETE"),
        (None, "INCOMPLETE"),
    ],
)
def test_the_worst_report_is_the_runs(condition, expected):
    books = balance(
        {"a": report(50, condition=condition, failure="because"), "b": report(50)}, {"x": cards(0)}, {"x": cards(100)}
    )
    assert books.condition == expected and f"a is {condition}: because" in books.reasons


def test_an_aborted_run_is_aborted_and_interrupted():
    books = balance({"a": report(100)}, {"x": cards(0)}, {"x": cards(100)}, aborted=True)
    assert (
        books.condition == "ABORTED" and books.flags == ("INTERRUPTED",) and books.reasons[0] == "the run was aborted"
    )
    assert balance({"a": report(90)}, {"x": cards(0)}, {"x": cards(100)}, aborted=True).condition == "WRONG", (
        "WRONG is the worst condition"
    )


def test_damage_that_an_input_found_accounts_for_what_did_not_come():
    books = balance({"a": report(95, condition="INCOMPLETE", sequence_gaps=2)}, {"x": cards(0)}, {"x": cards(100)})
    assert (books.lost, books.condition) == ({"damaged": 5}, "INCOMPLETE")


@pytest.mark.parametrize(
    ("damage", "missing", "damaged", "condition"),
    [
        ({"sequence_gaps": 1}, 5, 5, "INCOMPLETE"),
        ({"sequence_gaps": 1}, 10_000, 8192, "WRONG"),
        ({"sequence_gaps": 1, "lost_blocks": 1}, 10_000, 10_000, "INCOMPLETE"),
        ({"oversize": 1}, 1, 1, "INCOMPLETE"),
        ({"oversize": 1}, 100_000, 1, "WRONG"),
        ({"skipped_bytes": 64}, 100, 64, "WRONG"),
    ],
)
def test_damage_explains_what_its_places_can_hold_and_no_more(damage, missing, damaged, condition):
    books = balance(
        {"a": report(100_080 - missing, condition="INCOMPLETE", **damage)}, {"x": cards(0)}, {"x": cards(100_080)}
    )
    assert (books.lost, books.rest, books.condition) == ({"damaged": damaged}, missing - damaged, condition)


def test_damage_that_a_router_found_before_the_run_explains_nothing():
    before, after = router(0), router(100)
    before["input"] = after["input"] = {"sequence_gaps": 3}
    assert balance({"a": report(95)}, {"x": cards(0)}, {"x": cards(100)}, {"r": (before, after)}).condition == "WRONG"
    before = router(0)
    assert balance({"a": report(95)}, {"x": cards(0)}, {"x": cards(100)}, {"r": (before, after)}).lost == {"damaged": 5}


def test_frames_of_other_cards_need_not_be_chunks():
    books = balance({"a": report(400)}, {"x": cards(0, type="CRU")}, {"x": cards(100, type="CRU")})
    assert books.rest is None and books.condition == "GOOD" and "cannot be checked" in books.reasons[0]


def test_triggers_that_a_reader_missed_and_chunks_that_looped_back():
    books = balance({"a": report(100)}, {"x": cards(0)}, {"x": cards(100, missed=3)})
    assert books.condition == "INCOMPLETE" and "3 triggers" in books.reasons[0]
    assert balance({"a": report(100)}, {"x": cards(0)}, {"x": cards(107, chunks_looped_back=7)}).condition == "GOOD"


def test_a_router_between_cards_and_readouts():
    before, after = router(1000), router(1100, no_subscriber=3, not_taken=2)
    books = balance(
        {"a": report(94, condition="INCOMPLETE", network_lost=1)},
        {"x": cards(0)},
        {"x": cards(100)},
        {"r": (before, after)},
    )
    assert books.lost == {"router_no_subscriber": 3, "router_not_taken": 2, "network_lost": 1} and books.rest == 0
    assert balance({"a": report(100)}, None, None, {"r": (router(0), router(100))}).sent == 100, (
        "a router may generate its data"
    )
    assert (
        balance(
            {"a": report(100)}, {"x": cards(0)}, {"x": cards(100)}, {"r": (router(0), router(100, published=90))}
        ).condition
        == "WRONG"
    )
    gone = balance({"a": report(100)}, None, None, {"r": (router(0), None)})
    assert gone.rest is None and gone.condition == "INCOMPLETE" and "r did not report" in gone.reasons[0]


def test_what_a_readout_had_not_taken_from_a_router_when_it_left_is_undelivered():
    """A run is stopped with a backlog: 40 chunks are in the router's pages, and 25 more come after the router's subscriber has left."""
    before, after = router(1000, pending=7, published=1000), router(1100, no_subscriber=25, pending=47, published=1075)
    books = balance(
        {"a": report(35, condition="INCOMPLETE")}, {"x": cards(0)}, {"x": cards(100)}, {"r": (before, after)}
    )
    assert books.lost == {"router_no_subscriber": 25, "router_undelivered": 40}
    assert (books.rest, books.condition) == (
        0,
        "INCOMPLETE",
    ) and "lost: 25 router_no_subscriber, 40 router_undelivered" in books.reasons


def test_undelivered_is_never_more_than_what_is_missing_and_does_not_hide_more():
    def backlog(built):
        return balance(
            {"a": report(built)},
            {"x": cards(0)},
            {"x": cards(100)},
            {"r": (router(0), router(100, pending=20, published=100))},
        )

    assert (backlog(95).lost, backlog(95).condition) == ({"router_undelivered": 5}, "INCOMPLETE"), (
        "its acknowledgement of the others was in flight"
    )
    assert (backlog(100).lost, backlog(100).condition) == ({}, "GOOD")
    assert (backlog(70).rest, backlog(70).condition) == (10, "WRONG") and "10 are in no count" in " ".join(
        backlog(70).reasons
    )


def test_a_router_that_was_killed_took_the_rest_with_it():
    for after in (None, router(5)):  # the router is gone, or was restarted
        books = balance(
            {"a": report(60)},
            {"x": cards(0)},
            {"x": cards(100)},
            {"r": (router(10), after), "s": (router(0), router(30, no_subscriber=3))},
        )
        assert (books.lost, books.rest, books.condition) == (
            {"not_reported": 37, "router_no_subscriber": 3},
            0,
            "INCOMPLETE",
        )
        assert (
            "37 chunks are missing with the reports of r" in books.reasons
            and "r did not report at the end how many chunks it had published" in books.reasons
        )
    assert balance({"a": report(100)}, {"x": cards(0)}, {"x": cards(100)}, {"r": (router(0), None)}).lost == {}


def test_what_cards_sent_for_links_that_nobody_wanted_is_left_out_by_routers_and_named():
    """A stream drops the data of links without a subscriber before decoding: the router does not count their chunks."""
    before = {"r": {"0x1": 7, "0x2": 5, "0x3": 5}, "s": {"0x9": 1}}
    unread = unread_links(
        before, {"r": {"0x1": 67, "0x2": 5, "0x3": 5, "0x1000000800000000": 0}, "s": {"0x9": 2}, "t": {}}
    )
    assert unread == {"r": (2, 3)}
    routers = {"r": (router(17), router(77)), "s": (router(1), router(1))}
    books = balance(
        {"a": report(60)}, {"x": cards(0, triggers=5)}, {"x": cards(100, triggers=25)}, routers, unread=unread
    )
    assert (books.lost, books.rest, books.condition) == ({"router_left_out": 40}, 0, "INCOMPLETE")
    assert "2 of 3 links of r had no subscriber, and it read nothing from them" in books.reasons
    books = balance(
        {"a": report(53)}, {"x": cards(0, triggers=5)}, {"x": cards(100, triggers=25)}, routers, unread=unread
    )
    assert (books.lost, books.rest, books.condition) == ({"router_left_out": 40}, 7, "WRONG"), (
        "two links had at most 40 chunks"
    )
    books = balance(
        {"a": report(53), "b": None},
        {"x": cards(0, triggers=5)},
        {"x": cards(100, triggers=25)},
        routers,
        unread=unread,
    )
    assert (books.lost, books.rest, books.condition) == ({"router_left_out": 40, "not_reported": 7}, 0, "INCOMPLETE")
    assert (
        balance(
            {"a": report(60)}, {"x": cards(0)}, {"x": cards(60)}, {"r": (router(17), router(77))}, unread=unread
        ).condition
        == "GOOD"
    ), "cards sent nothing for them"


def test_two_readouts_of_the_same_links():
    books = balance(
        {"a": report(100), "b": report(100)}, {"x": cards(0)}, {"x": cards(100)}, {"r": (router(0), router(100))}
    )
    assert books.rest is None and books.condition == "GOOD" and "same links" in books.reasons[0]


def test_readouts_that_generate_their_data_are_believed():
    assert balance({"a": report(100), "b": report(50)}).sent == 150
    assert balance({"a": report(100), "b": None}).sent is None
    nothing = balance({})
    assert (nothing.condition, nothing.events, nothing.rest) == ("GOOD", None, 0)


def test_events_are_fragments_of_each_rob():
    both = {"a": report(100, fragments=60), "b": report(100, fragments=20)}
    assert balance(both, per_event={"a": 3, "b": 1}).events == 20
    both["a"]["fragments"]["events"] = 15  # this report counts events, also without a status
    assert balance(both).events == 15


def test_events_of_a_readout_are_those_of_all_its_lives():
    reports = {"a": report(100, fragments=60), "b": report(50, fragments=10), "b#2": report(50, fragments=12)}
    assert balance(reports, per_event={"a": 3, "b": 2}).events == 11


def test_acceptance_11_sent_is_built_and_lost_over_all_processes_whatever_they_count():
    random_ = random.Random(18)
    for _ in range(2_000):

        def count():
            return random_.choice((0, 1, 7, 100))

        reports = {
            name: random_.choice(
                (None, report(count(), built=count(), lost={"late": count()}, condition=random_.choice(CONDITIONS)), {})
            )
            for name in ("a", "b")[: random_.randint(0, 2)]
        }
        before = {name: random_.choice((None, {}, cards(count()))) for name in ("x", "y")[: random_.randint(0, 2)]}
        after = {
            name: random_.choice(
                (None, {}, cards(count(), chunks_lost=count(), chunks_cut_off=count(), missed=count()))
            )
            for name in before
        }
        routers = random_.choice(
            (
                {},
                {
                    "r": (
                        random_.choice((None, {}, router(count()))),
                        random_.choice((None, {}, router(count(), no_subscriber=count()))),
                    )
                },
            )
        )
        books = balance(reports, before, after, routers, aborted=random_.random() < 0.2)
        assert books.condition in CONDITIONS and all(one > 0 for one in books.lost.values())
        if books.condition == "GOOD":
            assert not books.lost and not books.rest and all(reports.values())
        if books.rest is not None and books.condition != "WRONG":
            assert books.rest == 0 and books.sent == (books.built or 0) + sum(books.lost.values())
        books.as_json()


KINDS = {"a": "readout", "s": "supervisor", "n": "node", "r": "recorder"}


def farm(accepted=20, rejected=70, debug=10, recorded=30, condition="GOOD", read_back=0):
    events = {
        "in": accepted + rejected + debug,
        "accepted": accepted,
        "rejected": rejected,
        "debug": debug,
        "readout_died": 0,
        "partial": 0,
    }
    return {
        "a": report(100),
        "s": {"run": {"condition": condition}, "events": events},
        "n": {"run": {"condition": "GOOD"}, "events": {"assigned": accepted + rejected + debug}},
        "r": {"run": {"condition": "GOOD"}, "events": {"recorded": recorded, "read_back": read_back}},
    }


def test_the_books_of_a_farm_count_whole_events_beside_chunks():
    books = balance(farm(), {"x": cards(0)}, {"x": cards(100)}, kinds=KINDS)
    assert (books.sent, books.built, books.condition, books.reasons) == (100, 100, "GOOD", ("10 events are debug",))
    assert (books.farm["in"], books.farm["accepted"], books.farm["rejected"], books.farm["recorded"]) == (
        100,
        20,
        70,
        30,
    )
    assert books.as_json()["farm"] == books.farm and "farm" not in balance({"a": report(100)}).as_json()


def test_an_accepted_event_that_is_in_no_file_is_a_defect():
    books = balance(farm(recorded=29), kinds=KINDS)
    assert (
        books.condition == "WRONG"
        and "30 events were accepted or kept for debugging, but recorders have 29" in books.reasons
    )
    assert balance(farm(recorded=9, read_back=21), kinds=KINDS).condition == "GOOD", (
        "its counts before the restart are included"
    )


def test_of_a_farm_the_worst_condition_counts_and_who_left_no_report():
    books = balance(farm(condition="INCOMPLETE"), kinds=KINDS)
    assert books.condition == "INCOMPLETE" and "s is INCOMPLETE" in books.reasons
    books = balance({**farm(recorded=3), "r": None}, kinds=KINDS)
    assert books.condition == "INCOMPLETE" and "r left no report" in books.reasons and books.flags == ()
    books = balance({**farm(), "n#2": None}, kinds=KINDS)
    assert "n#2 left no report" in books.reasons and books.events == 50


def chain(**report_of_supervisor):
    """A farm whose supervisor follows a trigger authority with 100 triggers."""
    reports = farm()
    reports["s"] |= {"trigger": {"follows": "x"}, **report_of_supervisor}
    card = {"trigger": {"accepted": 1100, "link": None}, "functions": [{"name": "felix", "chunks": 100}]}
    return reports, {"x": {"trigger": {"accepted": 1000}, "functions": [{"name": "felix", "chunks": 0}]}}, {"x": card}


def test_each_trigger_of_the_authority_has_one_fate():
    reports, before, after = chain()
    books = balance(reports, before, after, kinds=KINDS)
    assert (books.farm["triggers"], books.farm["undecided"], books.condition) == (100, 0, "GOOD")
    reports["s"]["events"]["rejected"] = 69
    books = balance(reports, before, after, kinds=KINDS)
    assert (books.farm["undecided"], books.condition) == (1, "INCOMPLETE") and "1 events are undecided" in books.reasons
    reports["s"]["events"]["rejected"] = 71
    books = balance(reports, before, after, kinds=KINDS)
    assert books.condition == "WRONG" and "100 triggers were accepted, and 101 events are decided" in books.reasons


def test_without_the_cards_triggers_are_those_that_came_to_the_supervisor():
    reports, before, _ = chain()
    books = balance(reports, before, {"x": None}, kinds=KINDS)
    assert (books.farm["triggers"], books.farm["undecided"], books.condition) == (100, 0, "INCOMPLETE")
    reports["s"]["events"]["rejected"] = 71
    assert balance(reports, before, {"x": None}, kinds=KINDS).condition == "WRONG"


def test_fates_that_no_process_has_counted_are_not_known():
    reports, before, after = chain()
    again = {**reports, "s#2": reports["s"]}  # in two lives, of which neither has all events
    for reported in (again, {**again, "s": None}):
        books = balance(reported, before, after, kinds=KINDS)
        assert (books.farm["triggers"], books.farm["undecided"]) == (100, None)
        assert "it is not known whether each trigger was decided" in books.reasons
    decided = {"accepted": 30, "rejected": 60, "debug": 0, "readout_died": 9}  # from the file of decisions
    books = balance(again, before, after, kinds=KINDS, decided=decided)
    assert (books.farm["accepted"], books.farm["undecided"], books.condition) == (30, 1, "INCOMPLETE")
    assert books.farm["in"] == max(99, 2 * reports["s"]["events"]["in"])
    books = balance(again, before, {"x": None}, kinds=KINDS, decided=decided)
    assert (books.farm["triggers"], books.farm["undecided"]) == (None, None), "nothing has counted the triggers"
    books.as_json()


def test_bytes_of_chunks_add_up_from_routers_to_fragments():
    def books(built=(440, 440), published=900, **of_b):
        reports = {"a": report(40), "b": report(40)}
        for each, made in zip(reports.values(), built):
            each["bytes"] = {"in": 450, "built": made, "lost": {"late": 6, "cut": 4}}
        reports["b"]["input"] |= of_b
        after = router(80)
        after["bytes"] = {"published": published + 1000}
        before = router(0)
        before["bytes"] = {"published": 1000}
        return balance(reports, {"x": cards(0)}, {"x": cards(80)}, {"r": (before, after)})

    good = books()
    assert good.condition == "GOOD"
    assert good.bytes == {"in": 900, "published": 900, "built": 880, "lost": {"late": 12, "cut": 8}, "adds_up": True}
    wrong = books(built=(440, 439))
    assert wrong.condition == "WRONG" and "b received 450 bytes, built 439 and lost 10" in wrong.reasons
    assert books(built=(440, None)).condition == "GOOD", "a plug-in's builder does not count them"
    wrong = books(published=901)
    assert wrong.condition == "WRONG" and "routers published 901 bytes, and readouts received 900" in wrong.reasons
    assert books(published=901, network_cut_chunks=1).bytes["adds_up"], "a chunk came in part"
    lost = books(published=901, network_lost=1)
    assert lost.bytes["adds_up"]


def test_without_a_cards_report_the_sum_begins_with_what_routers_took():
    def books(built, **of_y):
        routers = {"r": (router(0), router(80))}
        return balance(
            {"a": report(built)}, {"x": cards(0), "y": cards(0)}, {"x": None, "y": cards(80, **of_y)}, routers
        )

    assert (books(80).sent, books(80).rest, books(80).condition) == (80, 0, "INCOMPLETE")
    assert (books(79).rest, books(79).condition) == (1, "WRONG")
    assert (books(80, chunks_lost=2).sent, books(80, chunks_lost=2).rest) == (82, 0)


def test_the_reason_of_a_run_says_each_thing_once_and_the_first_cause_first(tmp_path):
    run = OpenRun(
        7,
        trouble="the run takes no data: node: has failed",
        reason="node ended by signal 9, and no choice was made for 30 s",
        lives={name: [str(tmp_path / f"{name}.json")] for name in ("readout", "node", "recorder")},
    )
    (tmp_path / "recorder.json").write_text("{")
    kinds = {"node": "node", "recorder": "recorder"}
    reports, missing = asyncio.run(collect_reports(Folders(tmp_path / "runs"), run, kinds))
    said = reason_of(
        run, settle(run, reports, {}, {}, kinds=kinds, missing=missing), ("node/a.writing was left open",)
    ).split("; ")
    assert (
        said[:2] == [run.trouble, run.reason]
        and said[-1] == "node/a.writing was left open"
        and len(said) == len(set(said))
    )
    assert [each for each in said if "report" in each] == [
        "readout left no report",
        "node left no report",
        next(each for each in said if each.startswith("recorder left a report that is not JSON")),
    ]


def test_a_good_run_has_no_trouble():
    run = OpenRun(7, trouble="the run takes no data: node: does not answer")
    assert reason_of(run, balance({"a": report(100)})) == "" and reason_of(
        run, balance({"a": report(100, condition="INCOMPLETE")})
    ).startswith(run.trouble)
