"""The soak test of the farm: its checks, and short runs (tests/soak/README.md)."""

import sys

import numpy
import pytest

from conftest import BUILD, ROOT

sys.path[:0] = [str(ROOT / "tests" / "soak"), str(BUILD / "python")]
import books  # noqa: E402
import faults  # noqa: E402
import soak as soaks  # noqa: E402

PROCESSES = ["supervisor", "router", "readout1", "readout2", "node1", "node2", "recorder1", "recorder2"]


of_data_files = pytest.mark.skipif(
    not list((BUILD / "python" / "rodeo").glob("_data*.so")),
    reason="this build has no Python modules (sanitizers), which read the files",
)


def plan(seconds, seed):
    return faults.schedule(seconds, seed, PROCESSES, ["recorder1", "recorder2"], ["node2"])


def ids(*values):
    return numpy.array(values, numpy.uint64)


def settled(triggered, recorded=(), debug=(), rejected=(), died=()):
    return books.settle(ids(*triggered), ids(*recorded), ids(*debug), ids(*rejected), {"readout_died": ids(*died)})


def test_the_same_seed_gives_the_same_faults():
    assert plan(600, 7) == plan(600, 7)
    assert plan(600, 7) != plan(600, 8)


@pytest.mark.parametrize("seed", range(50))
def test_each_kind_of_fault_occurs_three_times_and_none_overlaps(seed):
    made = plan(60, seed)
    for kind in faults.KINDS:
        assert sum(fault.kind == kind for fault in made) >= 3, kind
    assert {fault.target for fault in made if fault.kind == faults.KILL} == set(PROCESSES)
    assert all(faults.FIRST <= fault.at and fault.at + fault.lasts <= 60 - faults.LAST + 0.01 for fault in made)
    for name in PROCESSES:
        mine = [fault for fault in made if fault.target == name]
        assert all(a.at + a.lasts < b.at for a, b in zip(mine, mine[1:]))


def test_a_long_run_stops_and_kills_each_process_for_up_to_a_minute():
    made = faults.schedule(3600, 4, PROCESSES, ["recorder1", "recorder2"], ["node2"], only_stopped=["emulator"])
    for kind, targets in {faults.STOP: {*PROCESSES, "emulator"}, faults.KILL: {*PROCESSES}}.items():
        long = [fault for fault in made if fault.kind == kind and fault.lasts > 10]
        assert {fault.target for fault in made if fault.kind == kind} == targets
        assert {fault.target for fault in long} == targets and max(fault.lasts for fault in long) > 50


def test_what_is_counted_and_what_files_have_is_compared():
    assert not books.decided_otherwise(ids(1, 2), ids(1, 2, 3), "debug")
    assert books.decided_otherwise(ids(1, 2), ids(2, 3), "debug") == [
        "events that count as debug and are in no debug file, 1: 0x1"
    ]


def test_events_in_one_place_each_are_well():
    found = settled([1, 2, 3, 4], recorded=[1], debug=[2], rejected=[3, 3], died=[4])
    assert not found.wrong
    assert (found.accepted, found.debug, found.rejected, found.lost) == (1, 1, 1, {"readout_died": 1})


@pytest.mark.parametrize(
    "places, complaint",
    [
        ({"recorded": [1]}, "nowhere, 1: 0x2"),
        ({"recorded": [1, 1, 2]}, "twice in accepted files, 1: 0x1"),
        ({"recorded": [1, 2], "rejected": [2]}, "in rejected and elsewhere (accepted), 1: 0x2"),
        ({"recorded": [1, 2], "debug": [1]}, "in debug and elsewhere (accepted), 1: 0x1"),
        ({"recorded": [1, 2, 3]}, "no trigger was given for, 1: 0x3"),
        ({"recorded": [1, 2], "died": [2]}, "lost (readout_died) and elsewhere"),
    ],
)
def test_what_is_wrong_is_named(places, complaint):
    found = settled([1, 2], **places)
    assert any(complaint in one for one in found.wrong), found.wrong


def soak(tmp_path, seconds, seed, **options):
    said = []
    run = soaks.Soak(seconds, seed, 1000, tmp_path, build=BUILD, say=said.append, **options)
    assert run.run(), "\n".join([*said, *run.findings])
    assert run.books.accepted > 0 and run.books.rejected > 0, said
    return run


@of_data_files
def test_a_farm_under_faults_loses_nothing(tmp_path):
    soak(tmp_path, 10, 1)


def test_what_an_authority_that_died_told_others_alone_follows_its_list():
    assert books.told_at_the_end(ids(5, 6), ids(5, 6, 7, 8, 10), 10).tolist() == [5, 6, 7, 8]
    assert books.told_at_the_end(ids(5, 6), ids(8), 10).tolist() == [5, 6]


def test_what_an_authority_that_died_told_the_checker_alone_is_gone_with_it():
    assert books.gone_with(ids(*range(100)), ids(*range(97), 98), 10).tolist() == [97, 99]
    assert books.gone_with(ids(*range(100)), ids(*range(3), *range(4, 99)), 10).tolist() == [99], "3 was not in flight"
    assert not len(books.gone_with(ids(1, 2), ids(1, 2), 10))


def test_only_the_last_events_may_be_lost_with_an_authority():
    assert not books.lost_before(ids(*range(100)), ids(95, 99), 10)
    assert "0x3" in books.lost_before(ids(*range(100)), ids(3, 99), 10)[0]


@of_data_files
def test_a_farm_whose_trigger_and_cards_die_ends_with_what_it_holds(tmp_path):
    run = soak(tmp_path, 5, 3, kinds=[], python=False, authority_dies=True)
    assert run.triggers.accepted > 0


@pytest.mark.slow
@of_data_files
def test_a_farm_under_faults_for_a_minute_loses_nothing(tmp_path):
    run = soak(tmp_path, 60, 2)
    assert all(count >= 3 for count in run.counts.values()), run.counts
