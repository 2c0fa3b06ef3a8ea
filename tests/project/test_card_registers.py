"""docs/reference/card-registers.md names each register of each card with its address, and tells which registers Rodeo defines."""

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r'\{"(\w+)", (\d+), (0x[0-9a-f]+), \d, Access::\w+,\s*((?:"(?:[^"\\]|\\.)*"\s*)+)')


def declared(card: str) -> dict[str, tuple[str, str, bool]]:
    table = (ROOT / "src/card/registers" / f"{card}.h").read_text()
    rows = {}
    for name, bar, offset, text in ROW.findall(table):
        rows[name] = (bar, offset, "defined here" in text)
    return rows


def documented(title: str) -> dict[str, tuple[str, str, bool]]:
    page = (ROOT / "docs/reference/card-registers.md").read_text()
    part = page.split(f"\n## {title}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(\w+)` \| (\d+) \| (0x[0-9a-f]+) \| (.*) \|$", part, re.MULTILINE)
    return {name: (bar, offset, "defined here" in source) for name, bar, offset, source in rows}


def test_every_register_has_its_source_or_is_defined_here():
    for card, title, least in (("cru", "CRU", 150), ("crorc", "C-RORC", 20), ("felix", "FELIX", 35)):
        expected = declared(card)
        assert len(expected) >= least, card
        assert documented(title) == expected, card
