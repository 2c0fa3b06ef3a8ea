"""The wheel is built from listed sources. Their includes must be listed, too, or belong to a whole room of the wheel. Only `./test all` links the wheel."""

import re

from conftest import ROOT

SOURCES = ROOT / "src"
WHOLE = {"base", "settings", "formats", "storage"}  # rooms that the wheel contains completely
ELSEWHERE = {
    "revision",
    "texts",
    "data",
    "vocabulary",
}  # headers whose functions are generated, defined in several files, or not needed here
BY_DESIGN = {"data_record.cpp"}  # the wheel lacks the inputs that this verb needs


def named(path, begin):
    text = path.read_text()
    return set(re.findall(r"[\w/]+\.cpp", text[text.index(begin) :].split(")", 1)[0]))


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
