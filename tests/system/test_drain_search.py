"""All states of small farms and walks through larger ones, too many for the fast suite: the farm drains from each state after the faults."""

import os
import subprocess

import pytest

from conftest import BUILD


@pytest.mark.slow
def test_every_state_of_a_farm_drains():
    done = subprocess.run(
        [BUILD / "tests" / "farm" / "farm_tests", "--gtest_filter=DrainSearch.*"],
        env={**os.environ, "RODEO_DRAIN_SEARCH": "1"},
        capture_output=True,
        text=True,
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout
    assert done.stdout.count(" states, ") >= 9 and done.stdout.count(" walks, ") == 3
