"""The sources as a whole: rooms include only lower ones, links in documents are valid, nothing unfinished or local is committed."""

import functools
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

# Lowest first: a room may include from rooms before it. The public API comes first of all.
ROOMS = [
    "rodeo",
    "base",
    "dispatch",
    "settings",
    "process",
    "formats",
    "storage",
    "transport",
    "trigger",
    "card",
    "emulator",
    "input",
    "router",
    "readout",
    "farm",
    "network",
    "cli",
    "bench",
]

TEXT = {".h", ".cpp", ".in", ".md", ".py", ".cmake", ".txt", ".toml", ".json", ""}


def tracked(*patterns):
    """Files that git tracks or would track; a copy without git contains only sources."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard", "--", *patterns],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    if listed.returncode != 0:
        pytest.skip("host: not a git clone: " + listed.stderr.strip())
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def text_files():
    for path in tracked():
        if path.suffix in TEXT and "corpus" not in path.parts:
            yield path, path.read_text(encoding="utf-8", errors="replace")


def includes(path):
    return re.findall(r'^\s*#\s*include\s*["<]([^">]+)[">]', path.read_text(), re.MULTILINE)


def test_rooms_include_only_what_lies_below_them():
    wrong = []
    for path in tracked("src/*/*.h", "src/*/*.cpp", "include/*.h", "bench/*.h", "bench/*.cpp"):
        parts = path.relative_to(ROOT).parts
        room = parts[0] if parts[0] == "bench" else parts[1]
        for include in includes(path):
            first = include.split("/")[0]
            if "/" in include and first in ROOMS and ROOMS.index(first) > ROOMS.index(room):
                wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong


def test_the_map_says_what_rooms_include():
    table = dict(re.findall(r"^\| `src/(\w+)/` \|.*\| ([^|]+) \|$", (ROOT / "HACKING.md").read_text(), re.MULTILINE))
    for room, text in table.items():
        if text == "all above":
            continue
        included = {
            include.split("/")[0]
            for path in tracked(f"src/{room}/*.h", f"src/{room}/*.cpp")
            for include in includes(path)
            if "/" in include
        }
        said = set(re.findall(r"\w+", text.replace("card's `registers/`", ""))) & set(ROOMS)
        assert said - {"base"} == included & set(ROOMS[2:]) - {room}, f"HACKING.md says that {room} imports {text}"


def test_every_room_is_in_the_table():
    assert {path.name for path in (ROOT / "src").iterdir() if path.is_dir()} <= set(ROOMS)


def test_every_room_says_what_it_is_for():
    assert not [room.name for room in (ROOT / "src").iterdir() if room.is_dir() and not (room / "README.md").is_file()]


FOLDERS = [
    "state",
    "processes",
    "database",
    "run",
    "http",
    "cli",
]  # of the control room: each folder imports only folders before it
NOT = {"database": {"processes"}}  # further forbidden imports


def test_folders_of_the_control_room_import_only_what_lies_below_them():
    wrong = []
    for path in tracked("python/rodeo/control/*.py"):
        folder = path.relative_to(ROOT / "python/rodeo/control").parts[0]
        below = FOLDERS[: FOLDERS.index(folder) + 1] if folder in FOLDERS else FOLDERS
        for imported in re.findall(r"^\s*from rodeo\.control(?:\.| import )(\w+)", path.read_text(), re.MULTILINE):
            if imported in FOLDERS and (imported not in below or imported in NOT.get(folder, ())):
                wrong.append(f"{path.relative_to(ROOT)} imports {imported}")
    assert not wrong


def test_plugins_see_the_public_interface_alone():
    wrong = []
    for path in tracked("plugins/*.h", "plugins/*.cpp"):
        for include in includes(path):
            if include.split("/")[0] in ROOMS[1:]:
                wrong.append(f"{path.relative_to(ROOT)} includes {include}")
    assert not wrong


def anchors(path):
    """The names of a document's headings in links."""
    text = re.sub(r"^```.*?^```", "", path.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    return {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}


def test_relative_links_in_documents_lead_somewhere():
    broken = []
    known = functools.cache(anchors)
    for path in tracked("*.md"):
        for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text()):
            if re.match(r"[a-z]+:", target):
                continue
            file, _, anchor = target.partition("#")
            named = path.parent / file if file else path
            if not named.exists() or anchor and anchor not in known(named.resolve()):
                broken.append(f"{path.relative_to(ROOT)}: {target}")
    assert not broken


def test_lines_of_documents_are_not_long():
    wrong = []
    for path in tracked(
        "*.md", *(f":!docs/reference/{generated}.md" for generated in ("configuration", "card-metrics"))
    ):
        fence = False
        for number, line in enumerate(path.read_text().split("\n"), 1):
            fence ^= bool(re.match(r"\s*(```|~~~)", line))
            if len(line) > 160 and not fence and not line.startswith(("|", "    ")):
                wrong.append(f"{path.relative_to(ROOT)}:{number}")
    assert not wrong


def test_lines_of_comments_in_cpp_are_as_long_as_lines_of_code():
    """clang-format does not change comments: it would destroy tables."""
    wrong = []
    for path in tracked("*.h", "*.cpp", "*.h.in", "*.cpp.in"):
        for number, line in enumerate(path.read_text().split("\n"), 1):
            if len(line) > 125 and re.match(r"\s*//(?![/!<]*\s*\|)", line):
                wrong.append(f"{path.relative_to(ROOT)}:{number}")
    assert not wrong


def test_no_unfinished_word_is_committed():
    # Split, so that this line does not find itself.
    words = re.compile(r"\b(" + "|".join(["TO" + "DO", "FIX" + "ME", "XX" + "X", "not imple" + "mented"]) + r")\b")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}" for path, text in text_files() for match in words.finditer(text)
    ]
    assert not found


def test_no_path_of_one_machine_is_committed():
    # A user's or a build machine's folder; documentation may say ~ or /data.
    local = re.compile(r"(?<![\w.$}/])/(?:wo" + r"rk|ro" + r"ot|ho" + r"me)/[\w.]+")
    found = [
        f"{path.relative_to(ROOT)}: {match.group()}" for path, text in text_files() for match in local.finditer(text)
    ]
    assert not found


RUN_TIME = re.compile(
    r"(^|/)(agent\.(json|log|lock)|journal\.jsonl.*|runs\.db.*|run(-\d+.*)?\.json|core(\.\d+)?)$|\.(lock|pid|sock|writing|data|felix|log)$|(^|/)(data|runs)/\d{6}/"
)


def test_nothing_that_a_run_leaves_behind_is_committed():
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode != 0:
        pytest.skip("host: not a git clone: " + listed.stderr.strip())
    assert not [
        name
        for name in listed.stdout.split("\0")
        if RUN_TIME.search(name) and not name.startswith("tests/fuzz/corpus/")
    ]


def test_nothing_that_a_run_leaves_behind_is_installed():
    """The installation leaves out the directories that a control room and readouts write next to the examples."""
    rules = (ROOT / "cmake" / "RodeoInstall.cmake").read_text()
    [examples] = re.findall(r"install\(DIRECTORY \$\{CMAKE_SOURCE_DIR\}/examples[^)]*\)", rules)
    assert all(
        f'PATTERN "{pattern}" EXCLUDE' in examples
        for pattern in ("data", "*.data", "*.felix", "*.writing", "run*.json")
    )


def test_try_stands_in_no_braced_list():
    """g++ 12 does not destroy members of a braced list if a statement expression in the list returns."""
    braced = re.compile(r"([{,]\s*\.\w+ = |\{)RODEO_TRY(_WITHIN)?\(")
    assert not [
        f"{path.relative_to(ROOT)}: {match.group()}"
        for path in tracked("src/*.h", "src/*.cpp", "tests/*.h", "tests/*.cpp")
        for match in braced.finditer(path.read_text())
    ]


def test_headers_are_included_once():
    assert not [
        str(path.relative_to(ROOT))
        for path in tracked("src/*.h", "include/*.h", "tests/*.h")
        if "#pragma once" not in path.read_text()
    ]


def test_each_case_of_the_sequencer_is_cited_by_its_code_and_by_a_test():
    """A comment cites rows of the tables if it begins with them: `// H6, H7`, or `// L10. Sentences.`"""
    folder = ROOT / "src" / "readout" / "sequence"
    rows = re.findall(r"^\| ([HNAL]\d+) \|", (folder / "cases.md").read_text(), re.MULTILINE)
    assert len(rows) == len(set(rows))

    def cited(paths):
        comments = (re.findall(r"// ((?:[HNAL]\d+(?:, )?)+)(?:\.|$)", path.read_text(), re.MULTILINE) for path in paths)
        return {row for found in comments for list_of_rows in found for row in list_of_rows.split(", ")}

    assert cited(folder.glob("*.cpp")) == set(rows)
    assert cited((ROOT / "tests" / "readout").glob("sequence*_test.cpp")) == set(rows)
