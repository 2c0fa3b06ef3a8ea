"""A router and a readout, connected by a network that delays, stalls, and breaks in the middle of a page."""

from network_proxy import network_proxy
from running_router import all_is_verified, has_built, readout, route_adds_up, router, sides

LINKS = 24


def behind(rodeo):
    return network_proxy(rodeo.directory / "bus", rodeo.directory / "seen")


def net_of(sides):
    return readout(sides, "readout.input.bus=seen", "readout.input.provider=tcp")


def start(sides, events):
    return router(sides, "router.wait_for_subscribers=true", f"router.input.events={events}")


def test_a_network_that_delays_invents_no_loss(rodeo, sides):
    routed = start(sides, 2000)
    with behind(rodeo) as network:
        network.delay = 0.02
        built, _ = net_of(sides).finish(how=None)
        assert network.page_bytes > 0
    sent, _ = routed.finish(how=None)
    all_is_verified(built)
    assert sent["chunks"]["published"] == built["chunks"]["built"] == 2000 * LINKS


def test_a_network_that_stands_still_pushes_back_and_loses_nothing(rodeo, sides):
    routed = start(sides, 0)
    with behind(rodeo) as network:
        net = net_of(sides)
        net.wait_until(has_built(1000), "something is built")
        network.flowing.clear()
        counts = []

        def nothing_goes(status):
            counts.append(status["chunks"]["sent"])
            return len(counts) > 5 and counts[-5] == counts[-1]

        routed.wait_until(nothing_goes, "the router waits for the readout")
        network.flowing.set()
        net.wait_until(has_built(counts[-1] + 1), "the run goes on")
        sent, _ = routed.finish()
        built, _ = net.finish(how=None)
    all_is_verified(built)
    assert sent["chunks"]["published"] == built["chunks"]["built"]


def test_a_connection_that_breaks_in_the_middle_of_a_page_is_made_anew_and_nothing_is_lost(rodeo, sides):
    routed = start(sides, 0)
    with behind(rodeo) as network:
        net = net_of(sides)
        net.wait_until(has_built(1000), "something is built")
        for cut in range(1, 4):
            network.cut_after = network.page_bytes + 10_000
            net.wait_until(lambda status: status["input"]["network_connections"] > cut, "it is connected again")
        sent, _ = routed.finish()
        built, _ = net.finish(how=None)
    all_is_verified(built)
    assert route_adds_up(sent) and sent["chunks"]["published"] == built["chunks"]["built"]
    assert built["input"]["network_lost"] == built["input"]["network_repeated_pages"] == 0
