"""Modes of the files that a system writes: its umask and the group of its directories. test_failures.py and test_agent.py test whole rooms."""

import grp
import os
import stat

import pytest
from rodeo.control.processes import file_modes
from rodeo.control.processes.disks import Folders
from rodeo.control.refused import Refused
from rodeo.control.state.system import _umask


@pytest.fixture
def umask(monkeypatch):
    monkeypatch.delenv(file_modes.VARIABLE, raising=False)
    before = os.umask(0o022)
    yield lambda: os.umask(os.umask(0o022))
    os.umask(before)
    os.environ.pop(file_modes.VARIABLE, None)


def test_the_umask_of_the_room_is_that_of_its_agents(umask):
    file_modes.set_umask(0o027)
    assert os.environ[file_modes.VARIABLE] == "0027"
    os.umask(0o022)
    file_modes.set_umask_from_environment()
    assert os.umask(0o022) == 0o027


@pytest.mark.parametrize("text", ["", "9", "rwx", "00277", "-1"])
def test_an_agent_without_a_umask_has_that_of_its_shell(umask, monkeypatch, text):
    monkeypatch.setenv(file_modes.VARIABLE, text)
    file_modes.set_umask_from_environment()
    assert os.umask(0o022) == 0o022


def test_what_is_made_in_a_directory_belongs_to_its_group(tmp_path):
    own = grp.getgrgid(os.getgid()).gr_name
    folders = Folders(tmp_path / "lab", own)
    folders.make()
    assert all(
        path.stat().st_gid == os.getgid() and path.stat().st_mode & stat.S_ISGID
        for path in (folders.directory, folders.runs, folders.logs)
    )
    Folders(tmp_path / "other").make()
    assert not (tmp_path / "other").stat().st_mode & stat.S_ISGID
    with pytest.raises(Refused) as refused:
        Folders(tmp_path / "lab", "no-such-group").make()
    assert refused.value.code == "control.group"


@pytest.mark.parametrize(
    ("text", "number"),
    [("0027", 0o027), ("22", 0o022), ("0", 0), ("0700", None), ("8", None), ("", None), ("0x1", None)],
)
def test_a_umask_is_octal_and_leaves_its_owner_all(text, number):
    if number is not None:
        assert _umask(text) == number
    else:
        with pytest.raises(Refused):
            _umask(text)
