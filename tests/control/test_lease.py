"""Control has one holder at a time: it is taken, renewed, requested, released or lapses; every change increases the fencing number."""

import pytest
from rodeo.control.http.lease import GRANT_S, LEASE_S, Lease
from rodeo.control.refused import Refused


def refused(call, *arguments, **named):
    with pytest.raises(Refused) as found:
        call(*arguments, **named)
    return found.value.code


def test_who_takes_free_control_has_it_and_nobody_else():
    lease = Lease()
    fence = lease.acquire("ana", 0.0)
    assert lease.holder == "ana" and fence == 1
    assert refused(lease.acquire, "ben", 1.0) == "control.lease_held"
    assert lease.holder == "ana" and lease.fence == 1


def test_who_takes_again_keeps_the_number_and_renews():
    lease = Lease()
    fence = lease.acquire("ana", 0.0)
    assert lease.acquire("ana", 20.0) == fence
    assert lease.due(LEASE_S + 1.0) == [] and lease.holder == "ana"


def test_an_expert_takes_at_once_and_the_old_number_is_stale():
    lease = Lease()
    old = lease.acquire("ana", 0.0)
    new = lease.acquire("eve", 1.0, at_once=True)
    assert new > old and lease.holder == "eve"
    assert refused(lease.check, "ana", old) == "control.stale_lease"
    assert refused(lease.check, "ana") == "control.not_holder"
    assert refused(lease.check, "eve", old) == "control.stale_lease"
    lease.check("eve", new)


def test_a_holder_who_says_nothing_loses_it():
    lease = Lease()
    fence = lease.acquire("ana", 0.0)
    assert lease.due(LEASE_S - 0.1) == []
    assert lease.due(LEASE_S) == [("lapsed", "ana")]
    assert lease.holder is None
    assert refused(lease.renew, "ana", fence, LEASE_S) == "control.stale_lease"
    assert refused(lease.check, "ana") == "control.not_holder"


def test_a_renewal_moves_the_end():
    lease = Lease()
    fence = lease.acquire("ana", 0.0)
    lease.renew("ana", fence, 25.0)
    assert lease.due(25.0 + LEASE_S - 0.1) == [] and lease.due(25.0 + LEASE_S) == [("lapsed", "ana")]


@pytest.mark.parametrize("way", ["released", "lapsed", "60 s"])
def test_who_asked_has_it_when_it_is(way):
    lease = Lease()
    fence = lease.acquire("ana", 0.0)
    assert lease.ask("ben", 5.0) == GRANT_S and lease.holder == "ana"
    assert refused(lease.ask, "eve", 6.0) == "control.lease_asked"
    if way == "released":
        lease.release("ana", 7.0)
    elif way == "lapsed":
        assert lease.due(LEASE_S) == [("granted", "ben")]
    else:
        for now in range(10, 60, 10):
            lease.renew("ana", fence, float(now))
        assert lease.due(5.0 + GRANT_S - 0.1) == []
        assert lease.due(5.0 + GRANT_S) == [("granted", "ben")]
    assert lease.holder == "ben" and lease.fence > fence and lease.asked_by is None


def test_asking_twice_does_not_move_the_time():
    lease = Lease()
    lease.acquire("ana", 0.0)
    lease.ask("ben", 5.0)
    assert lease.ask("ben", 25.0) == GRANT_S - 20.0


def test_asking_for_what_is_free_takes_it():
    lease = Lease()
    assert lease.ask("ana", 0.0) == 0.0 and lease.holder == "ana"


def test_who_only_asked_takes_the_question_back():
    lease = Lease()
    lease.acquire("ana", 0.0)
    lease.ask("ben", 1.0)
    lease.release("ben", 2.0)
    assert lease.asked_by is None and lease.holder == "ana"


def test_nobody_gives_back_what_is_somebody_elses():
    lease = Lease()
    assert refused(lease.release, "ben", 0.0) == "control.not_holder"
    lease.acquire("ana", 0.0)
    assert refused(lease.release, "ben", 0.0) == "control.not_holder" and lease.holder == "ana"


def test_numbers_only_grow():
    lease, seen = Lease(fence=41), []
    for now, step in enumerate(
        [
            lambda t: lease.acquire("a", t),
            lambda t: lease.acquire("b", t, at_once=True),
            lambda t: lease.release("b", t),
            lambda t: lease.ask("c", t),
            lambda t: lease.due(t + LEASE_S),
        ]
    ):
        step(float(now))
        seen.append(lease.fence)
    assert seen == sorted(set(seen)) and seen[0] == 42
