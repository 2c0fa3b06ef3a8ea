"""tools/tidy checks only files that have changed since they were clean."""

import json
import os
import subprocess

import pytest

from conftest import ROOT, scaled

pytestmark = pytest.mark.slow  # clang-tidy comes with tools/setup all


class Project:
    def __init__(self, directory):
        self.directory, self.options = directory / "project", ["-std=c++23"]
        self.cache = directory / "cache"
        (self.directory / "build").mkdir(parents=True)
        self.write(
            ".clang-tidy", "Checks: '-*,modernize-use-nullptr'\nWarningsAsErrors: '*'\nHeaderFilterRegex: '.*'\n"
        )
        self.write("sum.h", "inline int* nothing() { return nullptr; }\n")
        self.write("sum.cpp", '#include "sum.h"\nint* sum() { return nothing(); }\n')

    def write(self, name, text):
        (self.directory / name).write_text(text)

    def tidy(self, says, exit_code=0):
        command = " ".join(["c++", *self.options, "-o", "sum.o", "-c", str(self.directory / "sum.cpp")])
        entry = {
            "directory": str(self.directory / "build"),
            "command": command,
            "file": str(self.directory / "sum.cpp"),
        }
        self.write("build/compile_commands.json", json.dumps([entry]))
        done = subprocess.run(
            [ROOT / "tools" / "tidy", "-p", self.directory / "build"],
            env={**os.environ, "XDG_CACHE_HOME": str(self.cache)},
            capture_output=True,
            text=True,
            timeout=scaled(60),
        )
        assert done.returncode == exit_code and says in done.stdout + done.stderr, done


CHECKED, KNOWN = "in 1 files, 0 of them known", "in 1 files, 1 of them known"


@pytest.fixture
def project(tmp_path):
    made = Project(tmp_path)
    made.tidy(CHECKED)
    made.tidy(KNOWN)
    return made


def test_what_changed_is_checked_again(project):
    project.write("sum.cpp", '#include "sum.h"\nint* sum(int) { return nothing(); }\n')
    project.tidy(CHECKED)
    project.write("sum.h", "inline int* nothing() { return nullptr; }  // says nothing\n")
    project.tidy(CHECKED)
    project.options.append("-DSUM=1")
    project.tidy(CHECKED)
    project.write(
        ".clang-tidy", (project.directory / ".clang-tidy").read_text() + "SystemHeaders: false\nUser: somebody\n"
    )
    project.tidy(CHECKED)
    project.tidy(KNOWN)


def test_a_finding_in_a_header_is_told_until_it_is_mended(project):
    clean = (project.directory / "sum.h").read_text()
    project.write("sum.h", "inline int* nothing() { return 0; }\n")
    for _ in range(2):
        project.tidy("sum.h:1:32: error: use nullptr", exit_code=1)
    project.write("sum.h", clean)
    project.tidy(KNOWN)


def test_clones_share_what_is_known(project):
    moved = project.directory.with_name("clone")
    project.directory.rename(moved)
    project.directory = moved
    project.tidy(KNOWN)
    (moved / "sum.h").unlink()
    project.tidy("'sum.h' file not found", exit_code=1)
