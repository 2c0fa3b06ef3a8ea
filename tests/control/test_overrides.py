"""Overrides of configurations by the control room: names, directories of files, and the lines of classes and commands."""

import errno
from pathlib import Path

from rodeo.control.processes import overrides
from rodeo.control.processes.disks import Folders
from rodeo.control.state.system import ProcessClass


def member(kind="readout", count=1, index=0, name="readout", **keys):
    one = ProcessClass(name, kind, Path("x.toml"), count=count, **keys)
    return one.members()[index]


def test_names_carry_the_system_and_stand_last():
    settings = overrides.settings_of(
        member("emulator", 3, 2, "cards"), "lab", "/d", {}, ["emulator.name=x", "emulator.card[0].serial={number}"]
    )
    assert settings == ["emulator.name=x", "emulator.card[0].serial=3", "emulator.name=lab-cards-3"]


def test_a_program_is_given_nothing():
    assert overrides.settings_of(member("program"), "lab", "/d", {}, []) == []


def test_the_only_file_writer_gets_the_folder_and_several_get_one_each():
    one = {
        "readout.consumer[0].type": '"processor"',
        "readout.consumer[1].type": '"file_writer"',
        "readout.consumer[1].name": '"writer"',
    }
    assert overrides.settings_of(member(), "lab", "/d", one, [])[-1] == "readout.consumer[writer].directory=/d"
    two = {**one, "readout.consumer[0].type": '"file_writer"', "readout.consumer[0].name": '"first"'}
    assert overrides.settings_of(member(), "lab", "/d", two, [])[-2:] == [
        "readout.consumer[first].directory=/d/first",
        "readout.consumer[writer].directory=/d/writer",
    ]


def test_processes_of_a_farm_are_told_of_each_other():
    readouts = ProcessClass("readout", "readout", Path("x.toml"), count=2).members()
    members = [
        *readouts,
        member("supervisor", name="boss"),
        *ProcessClass("node", "node", Path("x.toml"), count=3).members(),
        member("recorder", name="disk"),
    ]
    values = {
        "readout": {
            "readout.consumer[0].type": '"processor"',
            "readout.consumer[1].type": '"hlt_request_handler"',
            "readout.consumer[1].name": '"hlt"',
        }
    }
    farm = overrides.farm_names(members, "lab", values)
    assert farm == overrides.FarmNames("lab-boss", ("lab-readout-1.hlt", "lab-readout-2.hlt"), ("lab-disk",), 3)

    def told(name, values={}):
        one = next(one for one in members if one.name == name)
        return overrides.settings_of(one, "lab", "/d", values, [], farm)

    assert told("boss", {"farm.supervisor.decisions": '"kept"'}) == [
        "farm.supervisor.name=lab-boss",
        "farm.supervisor.readouts=lab-readout-1.hlt,lab-readout-2.hlt",
        "farm.supervisor.recorders=lab-disk",
        "farm.supervisor.nodes=3",
        "farm.supervisor.decisions=/d/decisions",
    ]
    assert told("node-2") == ["farm.node.name=lab-node-2", "farm.node.supervisor=lab-boss"]
    assert told("disk") == ["farm.recorder.name=lab-disk", "farm.recorder.directory=/d"]
    assert overrides.socket_name("lab", members[-1]) == "lab-disk.control"


def test_what_a_system_has_none_of_keeps_the_name_of_its_configuration():
    assert overrides.settings_of(member("node", name="n"), "lab", "/d", {}, []) == ["farm.node.name=lab-n"]
    assert overrides.settings_of(member("supervisor", name="s"), "lab", "/d", {}, []) == ["farm.supervisor.name=lab-s"]


def test_lines_of_a_command_are_sorted_by_whom_they_are_for():
    lines = [
        "emulator.trigger.rate=1kHz",
        "cards:emulator.trigger.wait_for=2",
        "readout-2:readout.builder.timeout=1s",
        "readout.x=a:b",
    ]
    assert overrides.split_lines(lines, {"cards", "readout-2"}) == {
        None: ["emulator.trigger.rate=1kHz", "readout.x=a:b"],
        "cards": ["emulator.trigger.wait_for=2"],
        "readout-2": ["readout.builder.timeout=1s"],
    }


def test_sockets_are_named_by_system_process_and_kind():
    assert overrides.socket_name("lab", member("readout")) == "lab-readout.control"
    assert overrides.socket_name("lab", member("program")) == ""


def test_a_place_leads_to_the_waiting_place_and_then_into_the_run(tmp_path):
    folders = Folders(tmp_path / "lab")
    folders.make()
    folders.hold("readout", ["writer"])
    place = folders.place("readout")
    assert place.is_dir() and place.resolve() == folders.waiting / "readout"
    folders.assign(12, "readout", ["writer"])
    (place / "a.data").write_text("x")
    assert (folders.run(12) / "readout" / "a.data").read_text() == "x"
    folders.hold("readout", ["writer"])
    assert list(place.iterdir()) == [] and (folders.run(12) / "readout" / "a.data").exists()


def test_several_writers_have_a_directory_each_in_every_place(tmp_path):
    folders = Folders(tmp_path)
    folders.make()
    folders.hold("readout", ["a", "b"])
    assert sorted(each.name for each in folders.place("readout").iterdir()) == ["a", "b"]
    folders.assign(1, "readout", ["a", "b"])
    assert sorted(each.name for each in folders.place("readout").iterdir()) == ["a", "b"]


def test_a_report_is_moved_once_and_found_again(tmp_path):
    folders = Folders(tmp_path)
    folders.make()
    report = folders.report("readout", 1)
    report.write_text("{}")
    assert folders.collect_report(3, "readout", report) == folders.report_of(3, "readout")
    assert not report.exists()
    assert folders.collect_report(3, "readout", report) is None and folders.report_of(3, "readout").read_text() == "{}"


def test_a_report_that_cannot_be_moved_is_read_where_it_is(tmp_path, monkeypatch):
    folders = Folders(tmp_path)
    folders.make()
    report = folders.report("readout", 1)
    report.write_text("{}")

    def another_disk(*_):
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    monkeypatch.setattr("rodeo.control.processes.disks.os.replace", another_disk)
    assert folders.collect_report(3, "readout", report) == report and report.read_text() == "{}"


def test_the_length_of_luminosity_blocks_goes_to_who_assigns_the_triggers():
    def settings(values):
        return overrides.settings_of(member("emulator", name="cards"), "lab", "/runs/1", values, (), lumi_block_s=60.0)

    assert "emulator.trigger.lumi_block_period=60s" in settings({})
    assert not any("lumi_block" in one for one in settings({"emulator.follow": '"main"'}))
    assert not any(
        "lumi_block" in one for one in overrides.settings_of(member(), "lab", "/runs/1", {}, (), lumi_block_s=60.0)
    )
