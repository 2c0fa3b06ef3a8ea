"""Simulator against laboratory on the same small scenarios: where drops begin, and how deep the rate falls when the buffer is too small. Slow and for
root. A laboratory that the machine disturbs too much (three vetoes in a row) skips the test: nothing was measured."""

import json
import os
import shutil

import pytest

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.geteuid() != 0 or shutil.which("tc") is None, reason="network namespaces and eBPF need root and iproute2"),
]

# 8 readouts; nothing but the last link is slow for one port, and 16 x 50 Mb/s fill the uplink for many.
ONE_PORT = {"readouts": 8, "nodes": 1, "node-link": "250Mbps", "uplink": "10Gbps", "rto-min": "200ms"}
MANY_PORTS = {"readouts": 8, "nodes": 16, "node-link": "50Mbps", "uplink": "800Mbps", "event-size": "500kB", "rto-min": "200ms"}
LIKE_THE_LABORATORY = {"uplinks": 1, "readout-link": "10Gbps", "propagation": "20us", "request-size": 24, "slow-start-after-idle": "false"}


@pytest.fixture(autouse=True)
def both_methods(rodeo):
    verbs = rodeo("net", "--help").stdout
    if "simulate" not in verbs.replace("simulation", ""):
        pytest.skip("this build has no `rodeo net simulate`")


def words(options):
    return [word for name, value in options.items() for word in (f"--{name}", str(value))]


def simulated(rodeo, options, buffer, in_flight, seconds=20):
    given = {**options, **LIKE_THE_LABORATORY, "events-in-flight": in_flight, "duration": f"{seconds}s", "buffer": "infinite" if buffer is None else int(buffer)}
    result = json.loads(rodeo("net", "simulate", *words(given), "--json", "-").stdout)
    return {"drops": result["drops"], "rate_hz": result["events_completed"] / result["virtual_seconds"], "max_buffer_bytes": result["max_buffer_bytes"]}


def measured(rodeo, options, buffer, in_flight, seconds=5):
    given = {**options, "in-flight": in_flight, "duration": f"{seconds}s", "buffer": "infinite" if buffer is None else f"shared:{int(buffer)}"}
    done = rodeo("net", "lab", *words(given), "--json", "-", exit_code=None, timeout=120)
    if "network.vetoed" in done.stderr:
        pytest.skip("the machine is too busy to measure: " + done.stderr.splitlines()[0])
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def first_buffer_without_drops(rodeo, options, in_flight):
    """Of the simulator, to 0.5 %."""
    low, high = 0, simulated(rodeo, options, None, in_flight)["max_buffer_bytes"] + 2000
    while high - low > 0.005 * high:
        middle = (low + high) // 2
        low, high = (low, middle) if simulated(rodeo, options, middle, in_flight, seconds=5)["drops"] == 0 else (middle, high)
    return high


@pytest.mark.parametrize("options, in_flight", [
    ({**ONE_PORT, "event-size": "100kB", "rate": 200}, 1),
    ({**ONE_PORT, "event-size": "500kB", "rate": 50}, 1),
    ({**MANY_PORTS, "rate": 40}, 32),
    ({**MANY_PORTS, "rate": 120}, 32),
], ids=["one_port_100kB", "one_port_500kB", "many_ports_40Hz", "many_ports_120Hz"])
def test_drops_begin_at_the_same_buffer_to_15_percent(rodeo, options, in_flight):
    threshold = first_buffer_without_drops(rodeo, options, in_flight)
    ratio = measured(rodeo, options, None, in_flight)["max_buffer_bytes"] / threshold
    print(f"laboratory / simulator: largest occupancy {ratio:.3f} of {threshold} bytes")
    assert 0.85 < ratio < 1.15
    assert measured(rodeo, options, 0.85 * threshold, in_flight)["drops"] > 0
    assert measured(rodeo, options, 1.15 * threshold, in_flight)["drops"] == 0


@pytest.mark.parametrize("event_size, rate, share", [("100kB", 290, 0.75), ("100kB", 290, 0.5), ("100kB", 290, 0.16), ("100kB", 290, 0.08), ("500kB", 58, 0.2)])
def test_a_collapse_is_as_deep_to_a_factor_of_two(rodeo, event_size, rate, share):
    options = {**ONE_PORT, "event-size": event_size, "rate": rate}
    buffer = share * 1000 * int(event_size.removesuffix("kB"))
    lab = measured(rodeo, options, None, 1)["rate_hz"] / measured(rodeo, options, buffer, 1, seconds=10)["rate_hz"]
    simulation = simulated(rodeo, options, None, 1)["rate_hz"] / simulated(rodeo, options, buffer, 1)["rate_hz"]
    print(f"collapse by {lab:.2f} in the laboratory, {simulation:.2f} in the simulator: ratio {lab / simulation:.2f}")
    assert 0.5 < lab / simulation < 2
