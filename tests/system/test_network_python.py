"""rodeo.network as a user imports it: functions with plain settings that return arrays."""

import os
import subprocess
import sys

import numpy as np
import pytest

from conftest import BUILD, ROOT, scaled

if not list((BUILD / "python" / "rodeo").glob("_network*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )
sys.path.insert(0, str(BUILD / "python"))
from rodeo import network  # noqa: E402
from rodeo.network import scenario  # noqa: E402


def test_the_formula_takes_numbers_and_text_with_units():
    by_text = network.formula("5MB", "12kHz", input="800Gbps", output="25Gbps")
    assert by_text == network.formula(5e6, 12e3, input=800e9, output=25e9)
    assert (by_text.paper_bytes, by_text.exact_bytes, by_text.bound_bytes) == pytest.approx(
        (47.03125e6, 47.5e6, 77.5e6)
    )
    assert network.formula(mtu=1500).event_wire_bytes == pytest.approx(5e6 * 1514 / 1448, rel=1e-4)
    assert network.formula(rate="21kHz").exact_bytes is None


def test_an_event_comes_in_no_faster_than_the_readouts_links_together():
    slow = scenario.formula_arguments({"readouts": 12, "readout_link": "10Gbps", "uplink": "800Gbps"})
    assert slow["input"] == 120e9 and scenario.formula_arguments({"uplink": "800Gbps"})["input"] == 800e9


def test_a_superposition_is_an_occupancy_over_time():
    found = network.superposition("periodic", "5MB", "12kHz")
    assert found["max_bytes"] == pytest.approx(network.formula().exact_bytes)
    assert found["occupancy_bytes"].max() == pytest.approx(found["max_bytes"])
    assert np.all(np.diff(found["time_s"]) >= 0) and found["time_s"].shape == found["occupancy_bytes"].shape


def test_a_sequence_of_ones_own():
    found = network.superposition([0.0, 0.0], [1e6, 2e6], input="80Mbps", output="8Mbps", ports=2, assigned=[0, 1])
    assert found["max_bytes"] == pytest.approx(0.9e6 + 1.8e6 - 0.2e6)
    with pytest.raises(ValueError, match="sizes for"):
        network.superposition([0.0, 0.0, 1.0], [1e6, 2e6])


def test_the_highest_rate_of_a_buffer_is_where_the_exact_form_fills_it():
    rate = network.highest_rate("27MB")
    assert network.formula(rate=rate).exact_bytes == pytest.approx(27e6)
    assert network.highest_rate("4.8MB") is None


@pytest.mark.parametrize("wrong", [dict(event_size="5XB"), dict(rate=0), dict(output="25GB"), dict(mtu=10)])
def test_what_cannot_be_is_a_value_error_with_the_reason(wrong):
    with pytest.raises(ValueError, match="error\\["):
        network.formula(**wrong)


def test_a_python_without_the_module_says_what_to_do():
    done = subprocess.run(
        [sys.executable, "-B", "-c", "from rodeo.network import simulate"],
        env={"PYTHONPATH": str(ROOT / "python")},
        text=True,
        capture_output=True,
    )
    assert done.returncode == 1 and "tools/setup" in done.stderr


def test_a_simulation_has_numbers_and_arrays():
    done = network.simulate(
        preset="lab-2023", event_size="1MB", rate="12kHz", duration="5ms", occupancy="50us", flows=True, engine="train"
    )
    assert done.settings["readouts"] == "48" and done.numbers["drops"] == done.drops == 0
    assert done.occupancy["max_bytes"].max() == done.max_buffer_bytes
    assert done.occupancy["time_s"].shape == done.occupancy["max_bytes"].shape == (100,)
    assert len(done.flows["readout"]) == 48 * 32 and done.flows["segments_sent"].sum() == done.packets_data
    again = network.simulate(preset="lab-2023", event_size=1e6, rate=12e3, duration=0.005, engine="train")
    assert again.max_buffer_bytes == done.max_buffer_bytes


def test_the_simulator_agrees_with_the_exact_form_where_its_premises_hold():
    for size, rate in (("2MB", "4kHz"), ("1MB", "12kHz")):
        exact = network.formula(size, rate, mtu=9000, readouts=48).exact_bytes
        assert network.simulate(
            event_size=size, rate=rate, mtu=9000, duration="10ms", engine="train"
        ).max_buffer_bytes == pytest.approx(exact, rel=0.02)


@pytest.mark.parametrize(
    "wrong, says",
    [
        (dict(evnt_size=1), "event_size"),
        (dict(rate="40kHz"), "overload"),
        (dict(nodes=0), "network.zero"),
        (dict(engine="fast"), "packet, train"),
    ],
)
def test_a_simulation_that_cannot_be_is_a_value_error(wrong, says):
    with pytest.raises(ValueError, match=says):
        network.simulate(**wrong)


def test_the_example_runs(tmp_path):
    done = subprocess.run(
        [sys.executable, "-B", str(ROOT / "examples" / "network" / "notebook.py"), str(tmp_path)],
        cwd=tmp_path,
        text=True,
        capture_output=True,
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
        timeout=scaled(120),
    )
    assert done.returncode == 0, done.stderr
    assert "MB" in done.stdout and (tmp_path / "occupancy.png").read_bytes().startswith(b"\x89PNG")
