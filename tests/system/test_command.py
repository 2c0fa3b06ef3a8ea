"""The conventions of the command line, shared by all verbs."""

import json
import os
import pty
import re
import subprocess

import pytest
from conftest import BUILD, TIMEOUT_SCALE

BINARY = BUILD / "rodeo"


def test_version_tells_programs_what_it_is(rodeo):
    done = rodeo("version", "-o", "json")
    assert done.stderr == ""
    version = json.loads(done.stdout)
    assert version["version"].count(".") == 2
    assert version["plugin_abi"] == 8
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


def verbs_of(help_text):
    """The verbs that a --help lists."""
    lines = help_text.split("\nVerbs\n")[1].split("\n\n")[0].splitlines() if "\nVerbs\n" in help_text else []
    return [line.split()[0] for line in lines if line.startswith("  ") and line[2] != " "]


def all_helps(rodeo, *path):
    text = rodeo(*path, "--help").stdout
    yield path, text
    for verb in verbs_of(text):
        yield from all_helps(rodeo, *path, verb)


def test_no_line_of_any_help_is_wider_than_100_columns(rodeo):
    helps = dict(all_helps(rodeo))
    assert ("readout", "link", "remove") in helps and len(helps) > 60
    wide = [
        f"{' '.join(path)}: {line}" for path, text in helps.items() for line in text.splitlines() if len(line) > 100
    ]
    assert not wide


def test_every_verb_reads_its_options(rodeo):
    for path, text in all_helps(rodeo):
        if not text.split("Usage\n")[1].splitlines()[0].endswith(" VERB"):
            error = (
                "error[control.argument]" if path[0] in ("control", "runs") else "error[cli."
            )  # `control` and `runs` are written in Python
            assert error in rodeo(*path, "--no-such-option", exit_code=2).stderr, path


def test_help_before_the_noun_is_help_behind_it(rodeo):
    assert rodeo("help", "readout", "link").stdout == rodeo("readout", "link", "--help").stdout
    assert rodeo("help").stdout == rodeo("--help").stdout
    assert "did you mean `readout`?" in rodeo("help", "raedout", exit_code=2).stderr


def test_version_as_an_option_is_the_verb(rodeo):
    assert rodeo("--version").stdout == rodeo("version").stdout


def test_output_as_json_is_understood_where_a_report_can_be_written_as_json(rodeo):
    done = rodeo("net", "size", "--help")
    assert "--json FILE" in done.stdout and "-o, --output table|json" in done.stdout
    done = rodeo("bench", "build", "--links", 2, "--seconds", 0.1, "-o", "json")
    assert json.loads(done.stdout)["links"] == 2


def test_a_flag_takes_no_value(rodeo):
    assert "rodeo check --help" in rodeo("check", "--schema=no", exit_code=2).stderr


@pytest.mark.parametrize(
    "name, says",
    [
        ("late", "The event was closed"),
        ("ring_full", "closed to make room"),
        ("GOOD", "condition"),
        ("incomplete", "condition"),
        ("nothing", "limits a run"),
        ("builder", "workers"),
        ("unwritten_queue_full", "full_queue"),
        ("card_lost_packets", "cards themselves"),
    ],
)
def test_explain_knows_the_words_of_reports(rodeo, name, says):
    assert says in rodeo("explain", name).stdout
    assert json.loads(rodeo("explain", name, "-o", "json").stdout)


def test_log_lines_have_a_date(rodeo):
    rodeo.environment["RODEO_LOG"] = "info"
    (rodeo.directory / "run.toml").write_text(
        '[readout.input]\ntype = "file"\nfile = "x.felix"\n[[readout.rob]]\nsource_id = 1\n'
    )
    rodeo("data", "record", "x.felix", "--links", 1, "--events", 10)
    assert re.search(
        r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} info .*: 1 link, 10 chunks of 10 events in",
        rodeo("readout", "run.toml").stderr,
        re.MULTILINE,
    )


def test_a_full_disk_under_stdout_is_an_error():
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, "version"], stdout=full, stderr=subprocess.PIPE, text=True)
    assert done.returncode == 1 and "cli.output" in done.stderr


@pytest.mark.parametrize(
    "command", [("runs", "--help"), ("control", "--help"), ("control", "prometheus", "--dashboard")]
)
def test_a_full_disk_under_stdout_is_one_error_of_verbs_in_python(command):
    with open("/dev/full", "w") as full:
        done = subprocess.run([BINARY, *command], stdout=full, stderr=subprocess.PIPE, text=True)
    assert (
        done.returncode == 1
        and "Traceback" not in done.stderr
        and done.stderr.count("error[cli.output]") == done.stderr.count("error[") == 1
    )


def test_where_nobody_can_be_told_the_exit_status_tells():
    with open("/dev/full", "w") as full:
        assert subprocess.run([BINARY, "vresion"], stdout=full, stderr=full).returncode == 2
        assert subprocess.run([BINARY, "version"], stdout=full, stderr=full).returncode == 1
        assert subprocess.run([BINARY, "data", "--help"], stdout=full, stderr=full).returncode == 1
    for closed in ("2>&-", "<&- >&- 2>&-"):
        assert subprocess.run(["sh", "-c", f'"$0" vresion {closed}', BINARY]).returncode == 2
        assert subprocess.run(["sh", "-c", f'"$0" version > /dev/null {closed}', BINARY]).returncode == (
            0 if closed == "2>&-" else 1
        )


def on_a_terminal(env):
    """The output of `rodeo vresion` on a terminal (stderr)."""
    leader, follower = pty.openpty()
    subprocess.run(
        [BINARY, "vresion"], stdout=subprocess.DEVNULL, stderr=follower, env={**os.environ, "TERM": "xterm", **env}
    )
    os.close(follower)
    text = os.read(leader, 4096).decode()
    os.close(leader)
    return text


def test_colours_are_for_terminals_that_want_them():
    assert "\x1b[" in on_a_terminal({"NO_COLOR": ""})
    assert "\x1b[" not in on_a_terminal({"NO_COLOR": "1"})


@pytest.mark.skipif(TIMEOUT_SCALE != 1, reason="sanitizers read /proc themselves")
@pytest.mark.skipif(os.geteuid() != 0, reason="host: needs the right to hide /proc")
def test_without_proc_the_advice_names_it(rodeo):
    hidden = ["unshare", "--mount", "sh", "-c", 'mount -t tmpfs none /proc && exec "$@"', "sh"]
    done = subprocess.run(
        [*hidden, str(BINARY), "net", "formula", "--plot", "a.png"],
        cwd=rodeo.directory,
        env=rodeo.environment,
        capture_output=True,
        text=True,
    )
    assert (
        done.returncode == 1
        and "error[base.resources]: /proc/self/exe: cannot find the path of this program" in done.stderr
    ), done.stderr
    assert "mount /proc: mount -t proc proc /proc" in done.stderr
