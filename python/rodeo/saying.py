"""What programs say to people on stderr. A failed write to stderr stops nothing: it may be closed, on a full disk, or its reader may have ended."""

import atexit
import os
import re
import sys
import unicodedata


def width(text):
    """The width of a text in terminal columns."""
    return sum(
        0 if unicodedata.combining(each) else 2 if unicodedata.east_asian_width(each) in "WF" else 1 for each in text
    )


def terminal_columns(stream=None):
    """The width of the terminal behind a stream (stdout); 0 if it is not a terminal, or too narrow for a text (20)."""
    try:
        columns = os.get_terminal_size((stream or sys.stdout).fileno()).columns or 80
        return columns if columns >= 20 else 0
    except (OSError, ValueError, AttributeError):
        return 0


def folded(text, columns):
    """Breaks lines that are wider than `columns` at blanks; 0 breaks none. A continued line begins below the text behind a label ("label   text"), else two
    columns further than its line. Words are not broken."""
    if not columns:
        return text
    return "\n".join(line if width(line) <= columns else _folded_line(line, columns) for line in text.split("\n"))


def _folded_line(line, columns):
    first = len(line) - len(line.lstrip(" "))
    label = re.match(r" *\S.*?  +(?=\S)", line)
    indent = label.end() if label and label.end() <= min(28, columns // 2) else min(first + 2, columns // 2)
    out, at = "", 0
    for word in re.findall(r" *[^ ]+", line):
        if at > indent and at + width(word) > columns:
            out += "\n" + " " * indent + word.lstrip(" ")
            at = indent + width(word.lstrip(" "))
        else:
            out += word
            at += width(word)
    return out


def _cut(text, columns):
    """A progress line that takes one row of the terminal, so that the next one is drawn over it."""
    bare = re.sub(r"\r|\x1b\[[0-9;]*[A-Za-z]", "", text)
    return text.replace(bare, bare[: columns - 1]) if columns and bare and width(bare) >= columns else text


def say(text, out=None, end="\n"):
    """One line, or several, on `out` (stderr), folded for its terminal. A text with `\\r` is a progress line, and is cut."""
    try:
        if out := out or sys.stderr:
            text = _cut(text, terminal_columns(out)) if "\r" in str(text) else folded(str(text), terminal_columns(out))
            print(text, end=end, file=out, flush=True)
    except OSError:
        pass


@atexit.register
def _leave():
    """Prevents Python from writing unwritten text again at exit, which would change the exit status."""
    try:
        if sys.stderr:
            sys.stderr.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
