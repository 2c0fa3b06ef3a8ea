"""A system file as values: classes and their members, orders, replacements, and errors that only the whole file shows."""

import json
import os
import tomllib
from pathlib import Path

import pytest
from rodeo.control.refused import Refused
from rodeo.control.state.system import (
    ProcessClass,
    bytes_of,
    check,
    from_values,
    load,
    replaced,
    seconds_of,
    without_password,
)

BUILD = Path(os.environ.get("RODEO_BUILD_DIR", Path(__file__).resolve().parents[2] / "build"))
RODEO = BUILD / "rodeo"

TEXT = """
[control]
name = "lab"
directory = "data"
disk_stop = "2GiB"
disk_time = "5min"
choose_limit = "500ms"
patience = 2.5

[[control.host]]
name = "far"
launcher = "ssh"
address = "far.example"

[[control.process]]
name = "cards"
kind = "emulator"
configuration = "cards.toml"

[[control.process]]
name = "readout"
kind = "readout"
configuration = "readout.toml"
count = 3
hosts = ["local", "far"]
role = "at_least"
at_least = 0.5
restart = "in_run"
set = ["readout.input.cards=0000:{index}b:00.0"]
stop_limit = "2min"

[[control.process]]
name = "slow"
kind = "program"
command = ["watch", "{name}"]
role = "expendable"
"""


def effective(text):
    """Values as in `rodeo check --effective -o json`."""
    values = []

    def walk(prefix, value):
        if isinstance(value, dict):
            for key, one in value.items():
                walk(f"{prefix}.{key}" if prefix else key, one)
        elif isinstance(value, list) and value and all(isinstance(one, dict) for one in value):
            for index, one in enumerate(value):
                walk(f"{prefix}[{index}]", one)
        else:
            values.append({"key": prefix, "value": json.dumps(value), "origin": "file", "where": "system.toml:1:1"})

    walk("", tomllib.loads(text))
    return values


def system(text=TEXT):
    return from_values(effective(text), "/lab/system.toml", text)


def test_values_become_classes_and_members():
    lab = system()
    assert (lab.name, lab.directory, lab.disk_stop_bytes, lab.disk_time_s, lab.choose_limit_s, lab.event_limit_s) == (
        "lab",
        Path("/lab/data"),
        2**31,
        300.0,
        0.5,
        30.0,
    )
    assert lab.patience == 2.5
    assert [(one.name, one.host, one.index) for one in lab.members] == [
        ("cards", "local", 0),
        ("readout-1", "local", 0),
        ("readout-2", "far", 1),
        ("readout-3", "local", 2),
        ("slow", "local", 0),
    ]
    readout = lab.classes[1]
    assert (
        readout.per_run
        and readout.configuration == Path("/lab/readout.toml")
        and readout.stop_limit_s == 120.0
        and readout.restart == "in_run"
    )
    assert (
        lab.hosts[0].launcher == "ssh" and lab.member("readout-2").role == "at_least" and lab.member("nobody") is None
    )


def test_what_reads_starts_before_what_sends_and_stops_after_it():
    lab = system()
    assert [[one.name for one in group] for group in lab.in_start_order()] == [
        ["slow"],
        ["readout-1", "readout-2", "readout-3"],
        ["cards"],
    ]
    assert [[one.name for one in group] for group in lab.in_stop_order()] == [
        ["cards"],
        ["readout-1", "readout-2", "readout-3"],
        ["slow"],
    ]


@pytest.mark.parametrize(
    ("role", "at_least", "count", "needed"),
    [
        ("essential", 1, 4, 4),
        ("expendable", 1, 4, 0),
        ("at_least", 3, 4, 3),
        ("at_least", 0.5, 3, 2),
        ("at_least", 0.9, 10, 9),
        ("at_least", 9, 4, 4),
    ],
)
def test_so_many_of_a_class_are_needed(role, at_least, count, needed):
    assert ProcessClass("x", "readout", role=role, at_least=at_least, count=count).needed == needed


def test_a_setting_knows_whose_it_is_and_other_braces_stay():
    member = system().member("readout-2")
    assert (
        replaced("{system}/{name}/{index}/{number}/{run_directory}/{else}/{}", member, "lab", "/runs/7")
        == "lab/readout-2/1/2//runs/7/{else}/{}"
    )


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ('name = "lab"', 'name = "../lab"', "cannot name sockets"),
        ('kind = "emulator"', 'kind = "emulatr"', "there is no kind `emulatr`"),
        ('role = "expendable"', 'role = "useless"', "there is no role `useless`"),
        ('restart = "in_run"', 'restart = "always"', "there is no restart `always`"),
        ('role = "at_least"', 'role = "essential"', "an essential process is not restarted in a run"),
        ("at_least = 0.5", "at_least = 4", "at_least 4 of 3"),
        ("at_least = 0.5", "at_least = 0", "at_least 0 of 3"),
        ('hosts = ["local", "far"]', 'hosts = ["moon"]', "there is no host `moon`"),
        ('command = ["watch", "{name}"]', "command = []", "a program needs a command"),
        ('configuration = "cards.toml"', 'configuration = ""', "an emulator needs a configuration"),
        ('kind = "emulator"', 'kind = "supervisor"\ncount = 2', "a system has one supervisor"),
        ('name = "slow"', 'name = "readout-3"', "two processes would be called `readout-3`"),
        ('disk_stop = "2GiB"', 'disk_stop = "2 buckets"', "expected a size as 3GB, got `2 buckets`"),
    ],
)
def test_what_is_wrong_with_a_whole_is_named(old, new, said):
    assert old in TEXT
    with pytest.raises(Refused) as refused:
        system(TEXT.replace(old, new))
    assert refused.value.code == "control.system" and said in refused.value.what, refused.value.what


def test_a_system_without_processes_is_none():
    with pytest.raises(Refused, match="there is no class of processes"):
        system('[control]\nname = "x"\n')


@pytest.mark.parametrize("text", ["", '[readout]\nname = "x"\n'])
def test_a_file_of_another_kind_is_no_system_file(tmp_path, text):
    (tmp_path / "other.toml").write_text(text)
    with pytest.raises(Refused, match="is not a system file: it has no table"):
        load(tmp_path / "other.toml", "no rodeo is asked")


@pytest.mark.parametrize(("text", "value"), [("3GB", 3e9), ("64MiB", 2**26), ("0", 0), (5, 5), ("1.5kB", 1500)])
def test_sizes(text, value):
    assert bytes_of(text) == value


@pytest.mark.parametrize(("text", "value"), [("10min", 600.0), ("500ms", 0.5), ("1h", 3600.0), ("2s", 2.0)])
def test_times(text, value):
    assert seconds_of(text) == pytest.approx(value)


@pytest.mark.parametrize("text", ["", "s", "3 parsec", "1..2s", "-1s"])
def test_what_is_no_time_is_refused(text):
    with pytest.raises(Refused):
        seconds_of(text)


def test_the_command_says_what_is_wrong_with_file_line_and_column(tmp_path):
    """The real command: its findings are passed on unchanged."""
    file = tmp_path / "readout.toml"
    file.write_text('[readout]\nname = "x"\nnmae = "y"\n')
    answer = check(RODEO, file)
    assert not answer["valid"] and any(error["where"].endswith("readout.toml:3:1") for error in answer["errors"])


def test_a_file_that_is_not_there_and_a_command_that_is_none(tmp_path):
    with pytest.raises(Refused) as refused:
        load(tmp_path / "nowhere.toml", RODEO)
    assert refused.value.code == "control.system" and "nowhere.toml" in refused.value.what
    (tmp_path / "system.toml").write_text("[control]\n")
    for command in (tmp_path / "no-command", "/bin/true"):
        with pytest.raises(Refused) as refused:
            load(tmp_path / "system.toml", command)
        assert refused.value.code == "control.check"


CARDS = """
[emulator]
name = "cards"
[[emulator.card]]
type = "felix"
name = "felix"
address = "0000:3b:00.0"
links = 2
elinks_per_link = 1
"""
SYSTEM = '[control]\nname = "lab"\n[[control.process]]\nname = "cards"\nkind = "emulator"\nconfiguration = "cards.toml"\nset = ["emulator.card[0].serial={number}"]\n'


def test_a_system_file_is_loaded_with_the_files_of_its_classes(tmp_path):
    file = tmp_path / "system.toml"
    file.write_text(SYSTEM)
    (tmp_path / "cards.toml").write_text(CARDS)
    lab = load(file, RODEO)
    assert lab.name == "lab" and lab.members[0].name == "cards" and lab.directory == tmp_path / "lab"
    assert lab.text == SYSTEM and len(lab.sha256) == 64 and any(one["key"] == "control.name" for one in lab.values)


@pytest.mark.parametrize(
    ("system", "cards", "said"),
    [
        (SYSTEM.replace("kind =", "knid ="), CARDS, "system.toml:5:1"),
        (SYSTEM, CARDS.replace("links = 2", "lniks = 2"), "cards.toml:8:1"),
        (SYSTEM.replace("serial={number}", "sreial={number}"), CARDS, "sreial"),
        (SYSTEM.replace("cards.toml", "crads.toml"), CARDS, "crads.toml"),
    ],
)
def test_every_error_is_said_as_check_says_it(tmp_path, system, cards, said):
    (tmp_path / "system.toml").write_text(system)
    (tmp_path / "cards.toml").write_text(cards)
    with pytest.raises(Refused) as refused:
        load(tmp_path / "system.toml", RODEO)
    assert refused.value.code == "control.system" and said in refused.value.what, refused.value.what


@pytest.mark.parametrize(
    "address, shown",
    [
        ("postgresql+psycopg://lab:s3cret@db/lab", "postgresql+psycopg://lab:***@db/lab"),
        ("postgresql://db/lab?user=lab&password=s3cret", "postgresql://db/lab?user=lab&password=***"),
        ("postgresql://lab@db/lab", "postgresql://lab@db/lab"),
        ("sqlite:///s3cret.db", "sqlite:///s3cret.db"),
    ],
)
def test_the_password_of_the_database_is_not_told(address, shown):
    text = f'[control]\nname = "lab"\ndatabase = "{address}"  # of the lab\n'
    assert without_password(text, address) == text.replace(address, shown)


def test_nor_is_one_that_is_written_with_escapes():
    text = '[control]\ndatabase = "postgresql://lab:s3\\u0063ret@db/lab"\nname = "lab"\n'
    assert without_password(text, "postgresql://lab:s3cret@db/lab") == '[control]\ndatabase = "***"\nname = "lab"\n'
