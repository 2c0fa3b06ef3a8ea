"""Routers continue to read when the readouts are gone: the moment at which their counters show the result of a run."""

from rodeo.control.state.draining import MOST_S, QUIET_S, Draining, unread


def card(chunks, looped=0):
    return {"functions": [{"name": "felix", "chunks": chunks, "counters": {"chunks_looped_back": looped}}]}


def router(sent, pending=0, kind="data"):
    return {
        "chunks": {"sent": sent, "published": sent},
        "subscribers": [{"name": "a", "kind": kind, "pending_chunks": pending}],
    }


BEFORE = {"x": card(1000)}, {"r": router(1000)}


def test_a_run_without_a_backlog_waits_for_nothing():
    assert Draining(*BEFORE).done({"x": card(1100)}, {"r": router(1100)}, 5.0) == (True, [])
    assert Draining(*BEFORE).done({"x": card(1100, looped=20)}, {"r": router(1080)}, 5.0) == (True, [])
    assert Draining(*BEFORE).done({"x": card(1100)}, {"r": router(1100, pending=9, kind="monitor")}, 5.0) == (True, [])


def test_a_router_is_waited_for_while_it_reads():
    draining = Draining(*BEFORE)
    for step in range(20):
        assert draining.done({"x": card(1100)}, {"r": router(1000 + 5 * step)}, 0.4 * step) == (
            False,
            [f"routers: {100 - 5 * step} chunks not read"],
        )
    assert draining.done({"x": card(1100)}, {"r": router(1100)}, 8.0) == (True, [])


def test_what_does_not_change_any_more_is_waited_for_no_longer():
    draining = Draining(*BEFORE, patience=2.0)
    assert not draining.done({"x": card(1100)}, {"r": router(1090, pending=4)}, 1.0)[0]
    assert draining.done({"x": card(1100)}, {"r": router(1090, pending=4)}, 0.9 + 2 * QUIET_S) == (
        False,
        ["routers: 10 chunks not read", "r: 4 chunks not taken"],
    )
    assert draining.done({"x": card(1100)}, {"r": router(1090, pending=4)}, 1.0 + 2 * QUIET_S)[0]


def test_there_is_an_end_even_if_counters_never_stand_still():
    draining = Draining(*BEFORE)
    over = [
        draining.done({"x": card(1100 + step)}, {"r": router(1000)}, 0.1 * step)[0]
        for step in range(int(10 * MOST_S) + 2)
    ]
    assert over.index(True) >= 10 * MOST_S - 1 and over[-1]


def test_where_a_card_or_a_router_does_not_say_only_pages_are_waited_for():
    assert unread(*({"x": card(0)}, {}, {"r": router(0)}, {"r": router(9)})) is None
    assert unread(*({"x": card(0)}, {"x": card(9)}, {"r": router(0)}, {})) is None
    assert Draining(*BEFORE).done({}, {"r": router(1050)}, 0.0) == (True, [])
    assert not Draining(*BEFORE).done({}, {"r": router(1050, pending=3)}, 0.0)[0]
