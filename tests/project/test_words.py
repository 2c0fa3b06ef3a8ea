"""Plain words: codespell refuses the words and phrases of words.txt, and says what to write instead."""

import re
import subprocess
import sys

from conftest import ROOT
from test_tree import tracked

WORDS = ROOT / "tests/project/words.txt"  # word->what to write, why
TREE = (
    *("src", "include", "python", "web/src", "docs", "bench", "cmake", "examples"),
    *("packaging", "plugins", "tools", "run", "test", "README.md", "HACKING.md"),
    ":!python/rodeo/control/page",  # made of web/src
)
# `whence` is also the name of an argument, an HTTP field and a column. In a sentence, a word follows it or the line ends.
SENTENCE = {"whence": r"(?<!\.)whence(?= (?!=|if |in )|$)"}
APART = r"(?! apart\b| from\b)"  # "are told apart" and "cannot be told from" have no other verb


def listed():
    return [line.split("->")[0] for line in WORDS.read_text().splitlines()]


def refused(files):
    """The lines of codespell: file, line, word ==> what to write | why."""
    first = "".join({word[0] for word in listed()})  # this look-ahead halves the time of codespell
    words = rf"\b(?i:(?=[{first}])(?:{'|'.join(SENTENCE.get(word, word) for word in listed())}))\b{APART}"
    options = ["--dictionary", WORDS, "--regex", words, "--disable-colors", "--quiet-level", "35"]
    command = [sys.executable, "-m", "codespell_lib", *options, *files]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode in (0, 65) and not done.stderr, done.stderr
    return done.stdout.splitlines()


def test_sentences_name_the_actor():
    found = refused(tracked(*TREE))
    assert not found, "\n".join(found)


def test_every_word_of_the_list_is_found(tmp_path):
    text = tmp_path / "text.md"
    text.write_text("".join(f"It says {word}\n" for word in listed()) + "`whence`: whence = room.whence\n")
    assert [re.search(r": (.+) ==> ", line)[1] for line in refused([text])] == listed()
