"""The tutorials work as they are printed, and say what a reader must know before and after."""

import re

import pytest
from conftest import BUILD, ROOT
from page import indented_blocks
from running import Reader

TUTORIALS = sorted((ROOT / "docs" / "tutorials").glob("*.md"))
PAGES = [page for page in TUTORIALS if page.stem not in ("index", "first-demo")]  # ./test runs the first one


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_tutorial_works_as_it_is_printed(page):
    with Reader(paths=[BUILD / "installed" / "bin"]) as reader:
        assert reader.read(page.read_text()) >= 5


@pytest.mark.parametrize("page", [page for page in TUTORIALS if page.stem != "index"], ids=lambda page: page.stem)
def test_a_tutorial_says_what_it_needs_how_long_it_takes_and_what_is_next(page):
    text = page.read_text()
    assert re.search(r"\*\*You need\*\* .*\*\*It takes\*\* [\w ;]+\.", text.replace("\n", " "))
    assert re.search(r"^## What next\n\n(- .*\n(  .*\n)*){2,}\Z", text, re.MULTILINE)
    assert not indented_blocks(text)
