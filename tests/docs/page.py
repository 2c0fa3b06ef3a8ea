"""The blocks of a page of the documentation, and what a reader does with each. No block is run here; running.py does that.

A page has fenced blocks only. The language of a block, and the paragraph before it, say what the reader does:

| block | the paragraph before it says | the reader |
|---|---|---|
| `sh` | | types the commands; each of them must succeed. If `rodeo` does not reach yet what another terminal starts (4), the reader types the block again |
| `sh` | "exit status 7" | types the commands; the last of them must end with 7 |
| `sh` | "in a second terminal" (third, fourth) | types the commands there, and goes on without waiting for their end |
| `python` | | types the statements into python3, which keeps its variables up to the end of the page |
| any language | the name of a file in backticks, then `:` at the end | writes the block into this file |
| any language | "at the end of" and the name of a file, then `:` | adds the block to this file |
| `text` | | sees these lines in the output, in this order, with other lines between |
| `text` | "second terminal" | sees these lines there |
| `cpp` | | reads: it is an excerpt of an example plug-in in `plugins/` |
| none | | reads: a figure, a formula, the layout of a command |

A paragraph with "Press Ctrl-C in the second terminal" ends what runs there; the end of the page ends what still runs. In a `text` block `...` stands for
anything, and a number for any number, but 0 only for 0.
"""

import dataclasses
import re

TERMINALS = {"first": 1, "second": 2, "third": 3, "fourth": 4}
CTRL_C = re.compile(r"[Pp]ress Ctrl-C in the (\w+) terminal")
NUMBER = r"\d{1,3}(?: \d{3})+|\d+(?:\.\d+)?"


@dataclasses.dataclass
class Block:
    line: int  # of the page, for messages
    language: str
    text: str
    before: str  # the paragraph before it, empty if the block follows another one

    @property
    def terminal(self):
        """The terminal that the paragraph names, or None."""
        return terminal_of(self.before)

    @property
    def exit_status(self):
        named = re.search(r"exit status (\d+)", self.before)
        return int(named[1]) if named else 0

    @property
    def file(self):
        """The file that the reader writes, or None."""
        named = re.search(r"`([\w./~-]+\.(?:py|toml|cpp|h|txt|json))`[^`.]*:$", self.before)
        return named[1] if named else None

    @property
    def appends(self):
        return "at the end of" in self.before.lower()


@dataclasses.dataclass
class CtrlC:
    line: int
    terminal: int


def terminal_of(paragraph):
    named = re.search(r"\b(first|second|third|fourth) terminal\b", CTRL_C.sub("", paragraph))
    return TERMINALS[named[1]] if named else None


def parts(text):
    """Paragraphs and fenced blocks of a page: (line, language, text); the language of a paragraph is None."""
    lines, fence, language, begun = [], "", None, 1
    for number, line in enumerate(text.split("\n"), 1):
        marks = re.match(r"\s*(`{3,})(\w*)\s*$", line)
        if fence and marks and marks[1] == fence and not marks[2]:
            yield begun, language, "".join(f"{each}\n" for each in dedented(lines))
            lines, fence, begun = [], "", number + 1
        elif fence:
            lines.append(line)
        elif marks or not line.strip():
            if lines:
                yield begun, None, " ".join(each.strip() for each in lines)
            lines, begun = [], number + 1
            if marks:
                fence, language = marks[1], marks[2]
        else:
            lines.append(line)
    if fence:
        raise ValueError(f"line {begun}: the block has no end")
    if lines:
        yield begun, None, " ".join(each.strip() for each in lines)


def steps(text):
    """The blocks of a page, and the places where the reader presses Ctrl-C, in order."""
    found, before = [], ""
    for line, language, part in parts(text):
        if language is not None:
            found.append(Block(line, language, part, before))
            before = ""
            continue
        before = part
        found += [CtrlC(line, TERMINALS[each]) for each in CTRL_C.findall(part)]
    return found


def dedented(lines):
    indent = min((len(line) - len(line.lstrip()) for line in lines if line.strip()), default=0)
    return [line[indent:] for line in lines]


def indented_blocks(text):
    """Lines of indented blocks, which a page must not have: their language is not known."""
    outside, fence, before = [], False, ""
    for number, line in enumerate(text.split("\n"), 1):
        fence ^= bool(re.match(r"\s*```", line))
        if not fence and line.startswith("    ") and not before.strip():
            outside.append(number)
        before = line
    return outside


def pattern(line):
    """The expression that a line of an output must match."""
    parts = []
    for part in re.split(rf"(\.\.\.|0x[0-9a-fA-F]+|{NUMBER})", line.strip()):
        if part == "...":
            parts.append(".*")
        elif re.fullmatch(NUMBER, part):
            parts.append(f"(?:{NUMBER})" if float(part.replace(" ", "")) else r"0+(?:\.0+)?(?![.\d])")
        else:
            parts.append(r"\s+".join(re.escape(word) for word in re.split(r"\s+", part)))
    return re.compile("".join(parts))


def missing_line(expected, output):
    """The first line of `expected` that does not follow the lines before it in `output`, or None."""
    lines = iter(line.strip() for line in output.splitlines())
    for line in expected.splitlines():
        if line.strip() not in ("", "..."):
            wanted = pattern(line)
            if not any(wanted.fullmatch(each) for each in lines):
                return line
    return None


def is_excerpt(text, source):
    """Blanks and line ends do not count."""
    return " ".join(text.split()) in " ".join(source.split())


def commands(text):
    """The commands of a block, one each, also those of several lines."""
    return re.findall(r"(?:.*\\\n)*.+\n", text)
