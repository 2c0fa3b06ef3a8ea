"""`rodeo-python-packages` of an installed Rodeo: its handling of the old environment if a new one cannot be made."""

import os
import shutil
import subprocess

import pytest
from conftest import BUILD, ROOT, scaled

# A script in place of the distribution's Python. It makes environments from a file; their pip does what the test sets.
PYTHON = """#!/bin/sh
case "$1 $2" in
  "-c import ensurepip"*) exit 0 ;;
  "-m venv") mkdir -p "$4/bin" "$4/packages"; cp "$0" "$4/bin/python3"; echo new > "$4/is" ;;
  "-m pip") echo "$@" >> "$PIP_LOG"; [ -n "$PIP_KILLS" ] && kill -"$PIP_KILLS" "$PPID" && sleep 1; exit "${PIP_STATUS:-0}" ;;
  "-c import sysconfig"*) echo "$(dirname "$0")/../packages" ;;
  *) exit 99 ;;
esac
"""


@pytest.fixture
def host(tmp_path):
    text = (ROOT / "packaging" / "rodeo-python-packages.in").read_text()
    for name, value in {
        "CMAKE_INSTALL_DATADIR": "share",
        "CMAKE_INSTALL_LIBDIR": "lib",
        "RODEO_PYTHON3": tmp_path / "python",
        "RODEO_PYTHON3_NEXT": "install it",
    }.items():
        text = text.replace(f"@{name}@", str(value))
    assert "@" not in text.replace('"$@"', "")
    (tmp_path / "sbin").mkdir()
    for name, content in (("sbin/command", text), ("python", PYTHON)):
        (tmp_path / name).write_text(content)
        (tmp_path / name).chmod(0o755)
    (tmp_path / "share" / "rodeo").mkdir(parents=True)
    (tmp_path / "share" / "rodeo" / "python-packages.txt").write_text("numpy==1\nnanobind==2\n")

    def run(*arguments, **environment):
        return subprocess.run(
            [tmp_path / "sbin" / "command", *arguments],
            env={**os.environ, "PIP_LOG": str(tmp_path / "log"), "TMPDIR": str(tmp_path), **environment},
            text=True,
            capture_output=True,
            timeout=scaled(30),
        )

    run.venv, run.log, run.modules = (
        tmp_path / "lib" / "rodeo" / "venv",
        tmp_path / "log",
        tmp_path / "lib" / "rodeo" / "python",
    )
    return run


def there(run):
    return (run.venv / "is").read_text().strip() if run.venv.exists() else None


def test_an_environment_is_made_and_made_again(host):
    done = host("--no-index", "--find-links", "/media/wheels")
    assert done.returncode == 0 and there(host) == "new", done.stderr
    assert host.log.read_text().strip().endswith("--no-index --find-links /media/wheels")
    assert (host.venv / "packages" / "rodeo.pth").read_text() == f"{host.modules}\n"
    (host.venv / "is").write_text("former")
    assert (
        host().returncode == 0
        and there(host) == "new"
        and [path.name for path in host.venv.parent.iterdir()] == ["venv"]
    )
    assert host("--remove").returncode == 0 and list(host.venv.parent.iterdir()) == []


@pytest.mark.parametrize("failure", [{"PIP_STATUS": "1"}, {"PIP_KILLS": "TERM"}, {"PIP_KILLS": "KILL"}], ids=str)
def test_where_no_new_one_can_be_made_the_former_is_there(host, failure):
    host()
    (host.venv / "is").write_text("former")
    assert host(**failure).returncode != 0
    if failure.get("PIP_KILLS") == "KILL":  # after a SIGKILL no handler restores it; the next attempt does
        assert host(PIP_STATUS="1").returncode != 0
    assert there(host) == "former" and [path.name for path in host.venv.parent.iterdir()] == ["venv"]


def test_where_there_was_none_a_failure_leaves_none(host):
    assert host(PIP_STATUS="1").returncode != 0 and list(host.venv.parent.iterdir()) == []


@pytest.mark.parametrize(
    "arguments",
    [["--remov"], ["--help-me"], ["numpy"], ["--find-links"], ["--remove", "--no-index"], ["--target", "/usr"]],
    ids=str,
)
def test_what_it_does_not_know_is_refused_before_anything_is_changed(host, arguments):
    host()
    (host.venv / "is").write_text("former")
    done = host(*arguments)
    assert done.returncode == 2 and "usage:" in done.stderr and there(host) == "former"


@pytest.mark.parametrize(
    ("beside", "says"),
    [
        ("sbin/rodeo-python-packages", "run {prefix}/sbin/rodeo-python-packages, or name"),
        ("tools/setup", "run tools/setup and build the clone, or name"),
        ("share/nothing", "name"),
    ],
)
def test_a_command_without_its_package_names_what_is_there_to_make_it(tmp_path, beside, says):
    """An installation in the user's own prefix needs no root."""
    for name in ("bin/rodeo", beside):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / beside).write_text("")
    shutil.copy(BUILD / "rodeo", tmp_path / "bin" / "rodeo")
    done = subprocess.run(
        [tmp_path / "bin" / "rodeo", "runs"],
        env={**os.environ, "LD_LIBRARY_PATH": str(BUILD)},
        text=True,
        capture_output=True,
        timeout=scaled(60),
    )
    assert done.returncode != 0 and "error[cli.python]" in done.stderr
    assert (
        done.stderr.strip().splitlines()[-1].strip()
        == says.format(prefix=tmp_path) + " an interpreter: RODEO_PYTHON=/path/to/python3"
    )
