"""Silent links: compared with their own earlier share of the chunks, so that links that seldom bring a chunk are not blamed."""

import random

import pytest

from rodeo.control.state.losses import BREAKS, KNOWN_LOOKS, NEVER_S, SILENT_S, SilentLinks, lacking
from rodeo.control.state.numbers import Moment, links_of, numbers

STEP_S = 0.9


class Links:
    """The status of a readout whose links grow look by look. `robs` {ROB: (groups, links)}."""

    def __init__(self, robs):
        self.robs = robs
        self.chunks = {fid: 0 for _, fids in robs.values() for fid in fids}
        self.states = dict.fromkeys(self.chunks, "active")
        self.watch, self.now_s, self.before = SilentLinks(), 0.0, None
        self.names = {}

    def moment(self):
        robs = [
            {
                "source_id": rob,
                "groups": groups,
                "links": [
                    {
                        "fid": fid,
                        "name": self.names.get(fid, ""),
                        "state": self.states[fid],
                        "chunks": self.chunks[fid],
                    }
                    for fid in fids
                ],
            }
            for rob, (groups, fids) in self.robs.items()
        ]
        return Moment(self.now_s, {"r": ("readout", {"robs": robs})}, answered_s={"r": self.now_s})

    def look(self, **grow):
        """What is silent after a look: {link: text}."""
        self.now_s += STEP_S
        for fid, count in grow.items():
            self.chunks[fid] += count
        after = self.moment()
        silent = self.watch.update(self.now_s, self.before, after)
        assert {one["fid"] for one in links_of(after, silent)["bad"] if one["silent"]} == {one.fid for one in silent}
        self.before = after
        return {one.fid: one.what for one in silent}

    def looks(self, count, **grow):
        return [self.look(**grow) for _ in range(count)][-1]


def test_a_link_that_stops_is_silent_and_is_not_when_it_is_back():
    links = Links({"0x1": (1, ("a", "b"))})
    assert links.looks(KNOWN_LOOKS + 1, a=900, b=900) == {}
    assert links.looks(int(SILENT_S / STEP_S), a=900) == {}
    assert links.looks(2, a=900) == {"b": "link b brings nothing"}
    assert links.look(a=900, b=1) == {}


def test_a_silent_link_is_shown_with_its_name():
    links = Links({"0x1": (1, ("a", "b"))})
    links.names["b"] = "BIL-A12"
    links.looks(KNOWN_LOOKS + 1, a=900, b=900)
    assert links.looks(int(SILENT_S / STEP_S) + 2, a=900) == {"b": "link b (BIL-A12) brings nothing"}
    links.states["b"] = "removed"
    [bad] = links_of(links.moment())["bad"]
    assert bad["fid"] == "b" and bad["name"] == "BIL-A12"


def test_nothing_is_silent_while_no_link_brings_anything():
    links = Links({"0x1": (1, ("a", "b"))})
    links.looks(20, a=900, b=900)
    assert links.looks(100) == {}, "no triggers"
    assert links.look(a=1, b=0) == {}, "one chunk that the other will bring soon"


def test_a_removed_link_is_not_silent_and_is_known_anew_when_it_is_restored():
    links = Links({"0x1": (1, ("a", "b"))})
    links.looks(20, a=900, b=900)
    links.states["b"] = "removed"
    assert links.looks(20, a=900) == {}
    links.states["b"] = "active"
    assert links.looks(KNOWN_LOOKS, a=900) == {} and links.looks(20, a=900, b=900) == {}
    assert links.looks(8, a=900) == {"b": "link b brings nothing"}


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("mean", [0.02, 0.3, 2.0])
def test_a_link_that_seldom_brings_a_chunk_is_not_blamed_until_its_break_is_far_too_long(mean, seed):
    random_, links = random.Random(seed), Links({"0x1": (1, ("a",)), "0x2": (1, ("seldom",))})
    links.look(a=900, seldom=1)
    for _ in range(500):
        assert links.look(a=900, seldom=int(random_.random() < mean) * random_.randint(1, 3)) == {}
    if mean >= 0.3:
        assert links.looks(40 * BREAKS, a=900) == {"seldom": "link seldom brings nothing"}


def test_a_link_that_works_in_spills_is_not_blamed_between_them():
    links = Links({"0x1": (1, ("a", "spills"))})
    for _ in range(20):
        links.looks(3, a=900, spills=900)
        assert links.looks(5, a=900) == {}


def test_a_rob_that_never_brought_anything_is_silent_if_others_do():
    links = Links({"0x1": (1, ("a", "b")), "0x2": (1, ("c", "d"))})
    assert links.looks(int(NEVER_S / STEP_S), a=900, b=900) == {}
    assert links.looks(2, a=900, b=900) == dict.fromkeys("cd", "ROB 0x2 brings nothing")
    assert links.look(a=900, b=900, c=1) == {}, "the others may bring less"
    assert Links({"0x1": (1, ("a", "b"))}).looks(100) == {}


@pytest.mark.parametrize(("groups", "silent"), [(2, {"b": "link b brings nothing"}), (1, {})])
def test_a_link_that_is_a_group_of_its_own_owes_a_chunk_of_each_event(groups, silent):
    links = Links({"0x1": (groups, ("a", "b"))})
    assert links.looks(20, a=900) == silent, "in a group of two, one link may have the chunks of all events"


def test_a_readout_that_does_not_answer_has_no_silent_link():
    links = Links({"0x1": (1, ("a", "b"))})
    links.looks(20, a=900, b=900)
    assert [links.watch.update(links.now_s + second, links.before, links.before) for second in range(60)] == [()] * 60


def farm(*readouts, decided=0, **fates):
    events = {"accepted": decided - sum(fates.values()), "debug": 0, "rejected": 0, **fates}
    return {
        "s": ("supervisor", {"events": events}),
        "n": ("node", {"readouts": [{"name": name, "lost_fragments": lost} for name, lost in readouts]}),
    }


def test_partial_events_are_those_of_the_last_look_and_have_a_readout():
    before = Moment(1.0, farm(("one.hlt", 500), ("two.x.hlt", 0), decided=1000, partial=0))
    after = Moment(2.0, farm(("one.hlt", 510), ("two.x.hlt", 12), decided=3000, partial=0))
    assert numbers(before, after)["partial_ppm"] == 0.0 and lacking(before, after) == "two.x"
    events = after.statuses["s"][1]["events"]
    events.update(accepted=2900, debug=100, partial=100)
    assert numbers(before, after)["partial_ppm"] == 50_000
    events.update(debug=0, readout_died=100, partial=0)
    before.statuses["s"][1]["events"]["readout_died"] = 0
    assert numbers(before, after)["partial_ppm"] == 50_000, "events of which nothing is left"
    assert numbers(before, before)["partial_ppm"] is None is lacking(before, before)
    assert numbers(None, after)["partial_ppm"] is None
    for one in after.statuses["n"][1]["readouts"]:
        del one["lost_fragments"]  # nodes of earlier versions do not report this
    assert lacking(before, after) is None
