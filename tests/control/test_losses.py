"""Partial events: how many of the last look, and the readout whose fragments they lack most."""

from rodeo.control.state.losses import lacking
from rodeo.control.state.numbers import Moment, numbers


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
        del one["lost_fragments"]  # a node of an earlier version
    assert lacking(before, after) is None
