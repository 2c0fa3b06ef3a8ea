"""rodeo.network as a user imports it: functions of plain settings, arrays out."""

import subprocess
import sys

import numpy as np
import pytest

from conftest import BUILD, ROOT

if not list((BUILD / "python" / "rodeo").glob("_network*.so")):
    pytest.skip("this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True)
sys.path.insert(0, str(BUILD / "python"))
from rodeo import network  # noqa: E402


def test_the_formula_takes_numbers_and_text_with_units():
    by_text = network.formula("5MB", "12kHz", input="800Gbps", output="25Gbps")
    assert by_text == network.formula(5e6, 12e3, input=800e9, output=25e9)
    assert (by_text.paper_bytes, by_text.exact_bytes, by_text.bound_bytes) == pytest.approx((47.03125e6, 47.5e6, 77.5e6))
    assert network.formula(mtu=1500).event_wire_bytes == pytest.approx(5e6 * 1514 / 1448, rel=1e-4)
    assert network.formula(rate="21kHz").exact_bytes is None


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
    done = subprocess.run([sys.executable, "-B", "-c", "import rodeo.network"], env={"PYTHONPATH": str(ROOT / "python")}, text=True, capture_output=True)
    assert done.returncode == 1 and "tools/setup" in done.stderr
