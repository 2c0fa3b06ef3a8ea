"""Runs the cells of the notebook in examples/, from a file to histograms, unchanged and in order."""

import json
import re
import subprocess
import sys

import nbformat
import pytest
from conftest import BUILD, ROOT, scaled
from running_readout import CONFIGURATION, write_configuration

RUNNER = """
import json, sys, traceback
for number, cell in enumerate(json.load(sys.stdin)):
    try:
        exec(compile(cell, f"cell {number}", "exec"), globals())
    except BaseException:
        traceback.print_exc()
        sys.exit(f"cell {number} failed")
"""


def test_the_notebook_goes_from_a_file_to_histograms(rodeo):
    if not list((BUILD / "python" / "rodeo").glob("_data.*")):
        pytest.skip("this build has no Python modules (sanitizers, or python3-dev or nanobind is missing)")
    report = json.loads(
        rodeo(
            "readout", write_configuration(rodeo, CONFIGURATION.replace("files", ".")), "--events", 200, "--json", "-"
        ).stdout
    )
    notebook = nbformat.read(ROOT / "examples" / "from_file_to_histogram.ipynb", as_version=4)
    nbformat.validate(notebook)
    cells = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    assert len(cells) >= 6 and not any(cell.get("outputs") for cell in notebook.cells)
    environment = {
        **rodeo.environment,
        "PYTHONPATH": str(BUILD / "python"),
        "MPLBACKEND": "Agg",
        "MPLCONFIGDIR": str(rodeo.directory),
    }
    done = subprocess.run(
        [sys.executable, "-B", "-c", RUNNER],
        input=json.dumps(cells),
        cwd=rodeo.directory,
        env=environment,
        text=True,
        capture_output=True,
        timeout=scaled(60),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    events, chunks, size = map(int, re.search(r"(\d+) events, (\d+) chunks, (\d+) bytes", done.stdout).groups())
    assert (events, chunks) == (report["fragments"]["built"], report["chunks"]["built"]) and size > 0
    assert f"histograms.root: {chunks} chunks, {events} events" in done.stdout
    assert "8 links, 0 of them missing" in done.stdout
