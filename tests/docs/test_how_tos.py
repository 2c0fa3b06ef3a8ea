"""The how-tos work as they are printed, in a folder with the examples, as in a clone. The commands that need another host, root or hardware are listed."""

import re
import shutil

import pytest
from conftest import BUILD, ROOT
from page import Block, commands, indented_blocks, steps
from running import Reader

HOW_TOS = [page for page in sorted((ROOT / "docs" / "how-to").glob("*.md")) if page.stem != "index"]

# Of pages: how a command begins, and why it does not run here.
GUEST = "in a guest of QEMU; guest.whole_stack runs the steps"
LEFT_OUT = {
    "cards-in-a-guest": {
        "export RODEO_RUNTIME_DIR=/tmp/cards": "one folder of the machine",
        "qemu-system-x86_64 ": GUEST,
        "modprobe ": GUEST,
        "echo ": GUEST,
        "rodeo card ": GUEST,
        "RODEO_UIO=1 ": "needs a real card",
    },
    "cards-on-a-host": {"rodeo card status ": "needs a real card"},
    "network-sizing": {
        "rodeo net sweep examples/network/farm.toml --set network.sweep.method=laboratory ": "root, and some minutes",
        "rodeo net sweep examples/network/farm.toml --set network.sweep.method=farm ": "root, and some minutes",
        "rodeo net plot simulation --beside formula --beside laboratory ": "needs the results of these two",
        "rodeo net lab ": "root; system.net_lab runs it",
        "rodeo net figures\n": "half an hour",
    },
}


def left_out(page):
    def reason(command):
        return next((why for begin, why in LEFT_OUT.get(page.stem, {}).items() if command.startswith(begin)), None)

    return reason


def blocks(page):
    return [step for step in steps(page.read_text()) if isinstance(step, Block)]


@pytest.mark.slow
@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.stem)
def test_a_how_to_works_as_it_is_printed(page):
    with Reader(left_out(page), paths=[BUILD / "installed" / "bin"]) as reader:
        shutil.copytree(ROOT / "examples", reader.folder / "examples", ignore=shutil.ignore_patterns("data", "*.data"))
        reader.read(page.read_text())


@pytest.mark.parametrize("page", HOW_TOS, ids=lambda page: page.stem)
def test_commands_of_a_how_to_are_in_blocks_that_run(page):
    assert not indented_blocks(page.read_text())
    hidden = [
        line
        for block in blocks(page)
        if block.language == ""
        for line in block.text.splitlines()
        if re.match(r"(\S+ )?(rodeo|\./run|sudo|python3|pip) ", line)
    ]
    assert not hidden


@pytest.mark.parametrize("name", LEFT_OUT)
def test_each_command_that_is_left_out_is_on_its_page(name):
    page = next(page for page in HOW_TOS if page.stem == name)
    typed = [each for block in blocks(page) if block.language == "sh" for each in commands(block.text)]
    assert [begin for begin in LEFT_OUT[name] if not any(each.startswith(begin) for each in typed)] == []
