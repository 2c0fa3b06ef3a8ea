"""The wheel is built of named sources: what these include is among them, or of a room that the wheel has whole. It is linked in `./test all` alone."""

import re

from conftest import ROOT

SOURCES = ROOT / "src"
WHOLE = {"base", "settings", "formats", "storage"}  # rooms
ELSEWHERE = {"revision", "texts", "data", "vocabulary"}  # headers whose functions are generated, defined by several files, or not wanted here
BY_DESIGN = {"data_record.cpp"}  # it needs the inputs


def named(path, begin):
    text = path.read_text()
    return set(re.findall(r"[\w/]+\.cpp", text[text.index(begin):].split(")", 1)[0]))


def test_what_the_sources_of_the_wheel_need_is_among_them():
    command = named(ROOT / "packaging" / "wheel" / "CMakeLists.txt", "set(wheel_sources")
    assert {path.name for path in (SOURCES / "cli").glob("data*.cpp")} - BY_DESIGN <= command
    library = named(SOURCES / "CMakeLists.txt", "add_library(rodeo STATIC")
    there = library | {f"cli/{name}" for name in command}
    for source in sorted(f"cli/{name}" for name in command):
        text = (SOURCES / source).read_text()
        header = SOURCES / source.replace(".cpp", ".h")
        text += header.read_text() if header.exists() else ""
        for room, rest in re.findall(r'#include "(\w+)/([\w/]+)\.h"', text):
            wanted = f"{room}/{rest}.cpp"
            if room in WHOLE or rest in ELSEWHERE or not (SOURCES / wanted).exists():
                continue
            assert wanted in there, f"{source} includes {room}/{rest}.h, and {wanted} is not in the wheel"
