"""`rodeo net figures`: pictures, table and numbers that agree with each other, from a quick run."""

import json
import sys

import pytest

from conftest import BUILD

if not list((BUILD / "python" / "rodeo").glob("_network*.so")):
    pytest.skip(
        "this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)", allow_module_level=True
    )


@pytest.fixture
def figures(rodeo):
    rodeo.environment["RODEO_PYTHON"] = sys.executable

    def make(methods, timeout=60):
        rodeo("net", "figures", "--quick", "--methods", methods, "--out", "out", timeout=timeout)
        out = rodeo.directory / "out"
        for number in (3, 4, 5, 6):
            assert (out / f"figure{number}.png").read_bytes().startswith(b"\x89PNG")
        return json.loads((out / "figures.json").read_text()), (out / "table.md").read_text()

    return make


def test_without_runs_there_are_the_formulas_lines_and_rows(figures):
    data, table = figures("formula")
    rows = {row["what"]: row for row in data["table"]}
    assert any(what.startswith("71 MB") and row["ours"] == "70.5" for what, row in rows.items())
    assert any(what.startswith("115 MB: bound") and row["ours"] == "116.2" for what, row in rows.items())
    assert table.count("\n") == len(rows) + 2


@pytest.mark.slow
def test_simulation_and_formula_tell_one_story(figures, rodeo):
    data, _ = figures("formula,simulation", timeout=400)
    for row in data["grid"]:
        assert row["cells_mb"] > row["frames_mb"]
    means = {
        traffic: [row["frames_mb"] for row in data["target"] if row["traffic"] == traffic and row["readouts"] == 48]
        for traffic in ("even", "scatter", "Poisson")
    }
    assert means["even"][0] == pytest.approx(51.8, rel=0.01)  # the value of the exact formula
    assert max(means["even"]) < min(means["scatter"]) and max(means["Poisson"]) <= 81.04 * 1.002  # the bound
    again = json.loads(
        rodeo("net", "figures", "--quick", "--methods", "formula,simulation", "--out", "out", "--json", "-").stdout
    )
    assert again["runs"]["done"] == 0 and again["table"] == data["table"]


def test_an_unknown_method_is_a_usage_error(rodeo):
    rodeo.environment["RODEO_PYTHON"] = sys.executable
    assert "guessing" in rodeo("net", "figures", "--methods", "guessing", exit_code=2).stderr
