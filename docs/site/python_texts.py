"""A Sphinx extension for docstrings, which are plain text with `code`: it makes an indented block an example, and aligned columns a list."""

import re

COLUMNS = re.compile(r"([a-z][\w, ]*?) {2,}(\S.*)")  # name, gap, description
STAR = re.compile(r"\*(?=(?:[^`]*`[^`]*`)*[^`]*$)")  # outside of `code`


def setup(app):
    app.connect("autodoc-process-docstring", lambda *arguments: _as_rst(arguments[-1]))
    return {"parallel_read_safe": True}


def _as_rst(lines):
    made, literal, listed = [], False, False
    for line in lines:
        indented = line.startswith("    ")
        if (columns := COLUMNS.fullmatch(line)) and not literal:
            made += ["", f"`{columns[1]}`", f"    {columns[2]}"]
            listed = True
            continue
        if listed and indented:
            line = "    " + line.strip()
        elif indented and not literal and (not made or not made[-1].strip()):
            made += ["::", ""]
            literal = True
        elif line.strip() and not indented:
            literal = listed = False
        made.append(line if literal else STAR.sub(r"\\*", line))
    lines[:] = made
