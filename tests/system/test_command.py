"""The conventions of the command line that every verb shares."""

import json
import os
import pty
import subprocess

from conftest import BUILD

BINARY = BUILD / "rodeo"


def test_version_tells_programs_what_it_is(rodeo):
    done = rodeo("version", "-o", "json")
    assert done.stderr == ""
    version = json.loads(done.stdout)
    assert version["version"].count(".") == 2
    assert version["plugin_abi"] == 3
    assert version["cpu_level"] in ("v2", "avx2", "avx512")
    assert version["revision"]


def test_cpu_level_can_be_lowered(rodeo):
    rodeo.environment["RODEO_CPU_LEVEL"] = "v2"
    done = rodeo("version", "-o", "json")
    assert json.loads(done.stdout)["cpu_level"] == "v2"


def test_csv_has_a_header_and_a_row(rodeo):
    lines = rodeo("version", "-o", "csv").stdout.splitlines()
    assert len(lines) == 2 and lines[0].startswith("version,revision")


def test_an_unknown_verb_is_a_usage_error_that_names_the_nearest(rodeo):
    done = rodeo("vresion", exit_code=2)
    assert done.stdout == ""
    assert done.stderr.startswith("error[cli.unknown_verb]: ")
    assert "did you mean `version`?" in done.stderr


def test_an_unknown_option_names_the_nearest(rodeo):
    done = rodeo("version", "--otput=json", exit_code=2)
    assert "did you mean `--output`?" in done.stderr


def test_a_bad_value_says_what_was_expected(rodeo):
    done = rodeo("version", "-o", "xml", exit_code=2)
    assert '"xml" is not one of table, json, csv' in done.stderr


def test_an_option_without_its_value_is_a_usage_error(rodeo):
    done = rodeo("version", "-o", exit_code=2)
    assert "rodeo version --help" in done.stderr


def test_no_verb_is_a_usage_error_that_lists_the_verbs(rodeo):
    done = rodeo(exit_code=2)
    assert "version" in done.stderr


def test_help_starts_with_examples(rodeo):
    done = rodeo("version", "--help")
    assert done.stdout.startswith("Examples\n  rodeo version\n")
    assert "Exit status" in done.stdout


def test_a_full_disk_under_stdout_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "cli.output" in done.stderr


def on_a_terminal(env):
    """What `rodeo vresion` writes to a terminal on stderr."""
    leader, follower = pty.openpty()
    subprocess.run([BINARY, "vresion"], stdout=subprocess.DEVNULL, stderr=follower, env={**os.environ, "TERM": "xterm", **env})
    os.close(follower)
    text = os.read(leader, 4096).decode()
    os.close(leader)
    return text


def test_colours_are_for_terminals_that_want_them():
    assert "\x1b[" in on_a_terminal({"NO_COLOR": ""})
    assert "\x1b[" not in on_a_terminal({"NO_COLOR": "1"})
