"""Tables and properties for a terminal, JSON or CSV, in the style of the `rodeo` command: units in titles, base units in JSON keys, numbers right-aligned."""

import csv
import datetime
import io
import json
import os
import re
import sys
import textwrap
import unicodedata

from rodeo.saying import folded, terminal_columns, width

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
    if isinstance(value, float):
        return f"{value:.4g}" if abs(value) < 1000 else f"{value:.0f}"
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


BETWEEN = "  "
NARROW = 20  # a column of text is not made narrower than this


class _Field:
    """One column of a table, as people see it."""

    def __init__(self, title, cells):
        self.title, self.texts = title, [plain(cell.text) for cell in cells]
        self.styles = [cell.style for cell in cells]
        self.right = bool(cells) and all(
            cell.value is None or (isinstance(cell.value, (int, float)) and not isinstance(cell.value, bool))
            for cell in cells
        )
        self.widest = max(map(width, self.texts), default=0)
        self.width = max(self.widest, width(title))


def _longest_word(text):
    return max(map(width, text.split(" ")), default=0)


def _width_of(fields):
    return sum(field.width for field in fields) + len(BETWEEN) * (len(fields) - 1)


def _fit(fields, columns):
    """Chooses the widths. Returns the number of fields that fit beside each other."""
    if not columns or _width_of(fields) <= columns:
        return len(fields)
    for field in fields:
        field.width = max(field.widest, _longest_word(field.title))
    over = _width_of(fields) - columns
    if over <= 0:
        return len(fields)
    texts = [field for field in fields if not field.right]
    if texts:
        widest = max(texts, key=lambda field: field.width)
        least = max(NARROW, _longest_word(widest.title), *map(_longest_word, widest.texts))
        if widest.width - over >= least:
            widest.width -= over
            return len(fields)
    beside = len(fields) - 1
    while beside > 1 and _width_of(fields[:beside]) > columns:
        beside -= 1
    return beside


def _lines_of(text, columns):
    if width(text) <= columns:
        return [text]
    return textwrap.wrap(text, columns, break_long_words=False, break_on_hyphens=False)


def _row(fields, texts, styles, from_below, styled):
    """The lines of one row of fields beside each other, for the titles from below."""
    cells = [_lines_of(text, field.width) for field, text in zip(fields, texts)]
    high = max(map(len, cells))
    cells = [[""] * (high - len(cell)) + cell if from_below else cell + [""] * (high - len(cell)) for cell in cells]
    for parts in zip(*cells):
        line = []
        for field, text, style in zip(fields, parts, styles):
            blanks = " " * (field.width - width(text))
            line.append(_styled(blanks + text if field.right else text + blanks, style, styled))
        yield BETWEEN.join(line).rstrip()


def _below(fields, row, columns, styled):
    """The fields that did not fit, with their titles, below a row."""
    line, at = "", 0
    for field in fields:
        if field.texts[row] in ("", "-"):
            continue
        name, unit = re.fullmatch(r"(.*?)(?: \[(.*)\])?", field.title).groups()
        part = f"{name} {field.texts[row]}" + (f" {unit}" if unit else "")
        if at and at + len(BETWEEN) + width(part) > columns:
            yield line
            line, at = "", 0
        lead = BETWEEN if at else " " * 4
        at += len(lead) + width(part)
        line += lead + _styled(folded(" " * 4 + part, columns)[4:], field.styles[row], styled)
    if at:
        yield line


def table(titles, rows, styled=None, columns=None, if_any=()):
    """Lines of a table of Cells. Columns with only numbers and unknown values are right-aligned. Without rows that say something, the columns of `if_any` are
    hidden. If the table is wider than the terminal, its titles take several lines, then its longest text; else the last columns follow below each row."""
    styled = colours() if styled is None else styled
    columns = terminal_columns() if columns is None else columns
    fields = [_Field(title, [row[index] for row in rows]) for index, title in enumerate(titles)]
    fields = [
        field
        for index, field in enumerate(fields)
        if field.title not in if_any or any(row[index].value for row in rows)
    ]
    beside = _fit(fields, columns)
    shown, below = fields[:beside], fields[beside:]
    lines = list(_row(shown, [field.title for field in shown], ["strong"] * beside, True, styled))
    for row in range(len(rows)):
        lines += _row(
            shown, [field.texts[row] for field in shown], [field.styles[row] for field in shown], False, styled
        )
        lines += "\n".join(_below(below, row, columns, styled)).split("\n") if below else []
    return [line for line in lines if line]


def properties(entries, styled=None, columns=None):
    """Lines of [(title, Cell)]."""
    styled = colours() if styled is None else styled
    columns = terminal_columns() if columns is None else columns
    widest = max((width(title) for title, _ in entries), default=0)
    lines = []
    for title, cell in entries:
        text, head = plain(cell.text), title + " " * (widest + 2 - width(title))
        if columns and widest + 2 + _longest_word(text) > columns:  # a path or a hash stands below its title
            head = f"{title}\n    "
            text = "\n    ".join(_lines_of(text, max(NARROW, columns - 4)))
        elif columns:
            text = f"\n{' ' * (widest + 2)}".join(_lines_of(text, columns - widest - 2))
        lines += f"{head}{_styled(text, cell.style, styled)}".rstrip().split("\n")
    return lines


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
