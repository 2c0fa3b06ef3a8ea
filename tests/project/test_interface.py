"""Promises of stability: the version is stated once, and the public interface has no unintended changes (docs/reference/stability.md)."""

import json
import os
import re
import subprocess
import sys

import pytest
from conftest import BUILD, ROOT

LIST = ROOT / "docs" / "reference" / "public-interface.txt"


@pytest.fixture(scope="module")
def version():
    return re.search(r"project\(rodeo VERSION (\d+\.\d+\.\d+)", (ROOT / "CMakeLists.txt").read_text())[1]


def test_command_and_python_have_the_version_of_the_project(rodeo, version):
    assert json.loads(rodeo("version", "-o", "json").stdout)["version"] == version
    python = subprocess.run(
        [sys.executable, "-c", "import rodeo; print(rodeo.__version__)"],
        env={**os.environ, "PYTHONPATH": str(BUILD / "python")},
        capture_output=True,
        text=True,
        check=True,
    )
    assert python.stdout.strip() == version


def test_the_newest_changes_are_those_of_this_version(version):
    headings = re.findall(r"^## (\S+)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == version
    as_numbers = [tuple(map(int, each.split("."))) for each in headings]
    assert as_numbers == sorted(set(as_numbers), reverse=True)


def test_the_public_interface_is_the_one_on_the_list():
    now = subprocess.run(
        [ROOT / "tools" / "public-interface", "--build", BUILD], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    listed = LIST.read_text().splitlines()
    gone = [line for line in listed if line not in now]
    new = [line for line in now if line not in listed]
    assert now == listed, (
        "the public interface is not the one of docs/reference/public-interface.txt\n"
        f"  gone or changed: {gone}\n  new: {new}\n"
        "  on purpose? tools/public-interface --write, CHANGELOG.md, and kPluginAbi in rodeo/plugin.h if anything changed or went"
    )


def test_a_removed_function_and_a_grown_type_are_both_seen(tmp_path):
    """The list must notice changes: the same headers with one virtual function less and one member more."""
    (tmp_path / "tools").mkdir()
    (tmp_path / "src").symlink_to(ROOT / "src")
    script = tmp_path / "tools" / "public-interface"
    script.write_bytes((ROOT / "tools" / "public-interface").read_bytes())
    include = tmp_path / "include" / "rodeo"
    include.mkdir(parents=True)
    for header in (ROOT / "include" / "rodeo").glob("*.h"):
        (include / header.name).write_bytes(header.read_bytes())
    gone = "virtual double cpu_seconds() const"
    input = include / "input.h"
    text = re.sub(rf"^ +{re.escape(gone)}.*\n", "", input.read_text(), flags=re.MULTILINE)
    input.write_text(text.replace("struct StreamCounters {", "struct StreamCounters {\n  std::uint64_t more = 0;"))
    changed = subprocess.run(
        [sys.executable, script, "--build", BUILD], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    listed = LIST.read_text().splitlines()
    assert f"  {gone}" in listed and f"  {gone}" not in changed
    size = next(line for line in listed if line.startswith("rodeo::StreamCounters "))
    assert size not in changed
