"""README.md is short, its pictures are those of tools/screenshots, and its commands work as they are printed."""

import re
import sys
from pathlib import Path

import pytest
from conftest import BUILD, ROOT
from page import indented_blocks
from running import Reader

README = ROOT / "README.md"
LEFT_OUT = {
    "./run": "./test fresh runs it in a bare tree",
    "./test": "it is what runs this",
    "sudo ": "root; tools/test-packages runs it in a bare tree",
    "pip install ": "tools/test-packages runs it in a bare tree",
    "rodeo docs": "opens a browser",
}


def left_out(command):
    return next((reason for begin, reason in LEFT_OUT.items() if command.startswith(begin)), None)


def test_readme_has_at_most_120_lines_and_two_pictures():
    text = README.read_text()
    assert len(text.splitlines()) <= 120 and not indented_blocks(text)
    pictures = re.findall(r"!\[[^\]]+\]\(docs/screenshots/(\w+)\.png\)", text)
    assert pictures == ["running", "terminal"]


def test_tools_screenshots_makes_each_picture_and_none_is_large():
    makes = (ROOT / "tools" / "screenshots").read_text()
    for picture in (ROOT / "docs" / "screenshots").iterdir():
        assert picture.suffix == ".png" and re.search(rf'"{picture.stem}"', makes), picture
        assert picture.stat().st_size < 200_000, picture


@pytest.mark.slow
def test_the_commands_of_readme_work_as_they_are_printed():
    with Reader(left_out) as reader:
        # README speaks of the folder of a clone.
        for name, target in (("build", BUILD), (".venv", Path(sys.prefix))):
            (reader.folder / name).symlink_to(target)
        assert reader.read(README.read_text()) >= 6
