"""The committed page is the build of web/; it is small, contains its licences, and its lock file names no registry."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from conftest import BUILD, ROOT, scaled
from rodeo.control.state.commands import RUN_TYPES

WEB = ROOT / "web"
PAGE = ROOT / "python" / "rodeo" / "control" / "page"
LONG_S = 600.0  # the packages may have to be downloaded first


def node():
    """The path of Node, which is a package of the tests' Python."""
    return Path(os.environ.get("RODEO_NODE", Path(sys.executable).parent))


def build(*arguments):
    return subprocess.run(
        [WEB / "build", *arguments],
        env={**os.environ, "RODEO_BUILD_DIR": str(BUILD), "RODEO_NODE": str(node())},
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        timeout=scaled(LONG_S),
    )


def test_what_is_committed_is_what_the_sources_make(tmp_path):
    done = build("--check")
    assert done.returncode == 0, done.stderr
    other = tmp_path / "page"
    shutil.copytree(PAGE, other)
    (other / "page.css").write_text((PAGE / "page.css").read_text() + "\n")
    done = build("--check", str(other))
    assert done.returncode == 1 and "page.css" in done.stderr, done


def test_what_decides_on_the_page_decides_right():
    done = subprocess.run(
        [node() / "node", "--test", *sorted(str(path) for path in (WEB / "tests").glob("*.test.js"))],
        capture_output=True,
        text=True,
        timeout=scaled(LONG_S),
    )
    assert done.returncode == 0, done.stdout
    assert "fail 0" in done.stdout and "pass 0" not in done.stdout


def test_acceptance_24_the_page_is_small():
    sizes = {path.name: path.stat().st_size for path in PAGE.iterdir()}
    assert sum(sizes.values()) < 300_000, sizes


def test_licences_are_shipped_with_it():
    text = (PAGE / "licences.txt").read_text()
    for library in ("svelte", "uplot"):
        version = json.loads((WEB / "package.json").read_text())["devDependencies"][library]
        assert f"{library} {version} (MIT)" in text
    assert text.count("Permission is hereby granted, free of charge") >= 2


def test_every_package_has_one_version_and_no_registry():
    wanted = json.loads((WEB / "package.json").read_text())["devDependencies"]
    locked = json.loads((WEB / "package-lock.json").read_text())["packages"]
    assert wanted and all(locked[f"node_modules/{name}"]["version"] == version for name, version in wanted.items())
    assert not [name for name, entry in locked.items() if name and ("resolved" in entry or "integrity" not in entry)]


@pytest.mark.parametrize("file", ["index.html", "page.css"])
def test_nothing_of_it_is_fetched_from_elsewhere(file):
    text = (PAGE / file).read_text()
    assert "//" not in text.replace("</", "") and "@import" not in text


def test_the_page_offers_the_types_of_runs_that_the_command_takes():
    offered = re.search(r"const TYPES = \[(.*?)\]", (WEB / "src" / "parts" / "Start.svelte").read_text())[1]
    assert sorted(re.findall(r"'(\w+)'", offered)) == sorted(RUN_TYPES)
