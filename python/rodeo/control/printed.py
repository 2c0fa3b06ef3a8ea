"""Tables and properties for a terminal, JSON or CSV, in the style of the `rodeo` command: units in titles, base units in JSON keys, numbers right-aligned."""

import csv
import datetime
import io
import json
import os
import sys
import unicodedata

STYLES = {"good": "32", "warning": "33", "bad": "31", "faint": "2", "strong": "1"}


class Cell:
    """`value` is for JSON and CSV, `text` for a terminal, `style` a key of STYLES."""

    def __init__(self, value, text=None, style=None):
        self.value, self.style = value, style
        self.text = _shown(value) if text is None else text


def _shown(value):
    if value is None:
        return "-"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (list, tuple)):
        return ", ".join(map(_shown, value)) or "-"
    return str(value)


def number(value, unit=1.0, digits=0):
    """A Cell of a number shown in a unit; None means unknown."""
    return Cell(value, None if value is None else f"{value / unit:,.{digits}f}".replace(",", " "))


def colours():
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def plain(text):
    """Foreign text made safe for a terminal: without control characters."""
    return "".join(
        " " if each in "\n\r\t" else "?" if unicodedata.category(each) in ("Cc", "Cf", "Cs") else each for each in text
    )


def plain_lines(text, indent=""):
    """Like plain(), for several lines. Lines after the first are indented, so that no line looks like another record."""
    return f"\n{indent}".join(map(plain, text.split("\n")))


def width(text):
    """The width of a text in terminal columns."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def table(titles, rows, styled=None):
    """Lines of a table of Cells. Columns with only numbers and unknown values are right-aligned."""
    styled = colours() if styled is None else styled
    shown = [[plain(cell.text) for cell in row] for row in rows]
    widths = [max([width(title), *(width(row[index]) for row in shown)]) for index, title in enumerate(titles)]
    right = [
        bool(rows)
        and all(
            row[index].value is None
            or (isinstance(row[index].value, (int, float)) and not isinstance(row[index].value, bool))
            for row in rows
        )
        for index in range(len(titles))
    ]

    def line(texts, styles):
        fields = []
        for index, text in enumerate(texts):
            blanks = " " * (widths[index] - width(text))
            fields.append(_styled(blanks + text if right[index] else text + blanks, styles[index], styled))
        return "  ".join(fields).rstrip()

    return [
        line(titles, ["strong"] * len(titles)),
        *(line(texts, [cell.style for cell in row]) for texts, row in zip(shown, rows)),
    ]


def properties(entries, styled=None):
    """Lines of [(title, Cell)]."""
    styled = colours() if styled is None else styled
    widest = max((width(title) for title, _ in entries), default=0)
    return [
        f"{title}{' ' * (widest - width(title))}  {_styled(plain(cell.text), cell.style, styled)}".rstrip()
        for title, cell in entries
    ]


def _styled(text, style, styled):
    return f"\x1b[{STYLES[style]}m{text}\x1b[0m" if styled and style in STYLES and text.strip() else text


def csv_text(keys, rows):
    """CSV of rows of plain values: lists become words, objects JSON, unknown values empty."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(keys)
    for row in rows:
        writer.writerow([_field(each) for each in row])
    return out.getvalue()


def _field(value):
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (list, tuple)) and all(isinstance(each, str) for each in value):
        return " ".join(value)
    return json.dumps(value) if isinstance(value, (list, tuple, dict)) else value


def utc(ns, seconds=True):
    """2026-11-24 02:41:04, or - if unknown."""
    if ns is None:
        return "-"
    try:
        return datetime.datetime.fromtimestamp(ns // 10**9, datetime.timezone.utc).strftime(
            "%Y-%m-%d %H:%M:%S" if seconds else "%Y-%m-%d %H:%M"
        )
    except (OverflowError, ValueError, OSError):
        return str(ns)
