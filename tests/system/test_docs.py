"""`rodeo docs`: the address of the documentation site, and the browser that opens it. The command is a copy beside a small site."""

import os
import shutil
import subprocess
import time

import pytest
from conftest import BUILD, scaled

PATIENCE_S = 60


@pytest.fixture
def installed(tmp_path):
    """Runs the copy of the command with a site of two pages; its environment has no display."""
    pages = tmp_path / "a b" / "share/doc/rodeo/html/docs"
    (pages / "explanation").mkdir(parents=True)
    for page in (pages / "index.html", pages.parent / "index.html", pages / "explanation/limits.html"):
        page.write_text("<h1>A page</h1>")
    command = tmp_path / "a b" / "bin/rodeo"
    command.parent.mkdir()
    shutil.copy(BUILD / "rodeo", command)

    def run(*arguments, exit_code=0, **environment):
        clean = {key: value for key, value in os.environ.items() if key not in ("DISPLAY", "WAYLAND_DISPLAY")}
        done = subprocess.run(
            [command, "docs", *arguments],
            env={**clean, "LD_LIBRARY_PATH": str(BUILD), **environment},
            capture_output=True,
            text=True,
            timeout=scaled(PATIENCE_S),
        )
        assert done.returncode == exit_code, done.stderr
        return done

    run.pages = pages
    return run


@pytest.fixture
def opener(tmp_path):
    """A program `xdg-open` that notes what it is asked to open."""
    noted = tmp_path / "opened"
    (tmp_path / "xdg-open").write_text(f'#!/bin/sh\necho "$@" >> "{noted}"\n')
    (tmp_path / "xdg-open").chmod(0o755)
    return noted, f"{tmp_path}:{os.environ['PATH']}"


def address(page):
    return f"file://{page}".replace(" ", "%20")


def test_without_a_display_the_address_is_printed(installed, opener):
    noted, path = opener
    assert installed(PATH=path).stdout == address(installed.pages / "index.html") + "\n"
    assert not noted.exists()


def test_with_a_display_the_browser_opens_the_page_unless_it_is_only_to_be_printed(installed, opener):
    noted, path = opener
    installed("--print", PATH=path, DISPLAY=":9")
    installed("limits", PATH=path, WAYLAND_DISPLAY="wayland-9")
    end = time.monotonic() + scaled(PATIENCE_S)
    while not (noted.exists() and noted.read_text().endswith("\n")) and time.monotonic() < end:
        time.sleep(0.01)
    assert noted.read_text() == address(installed.pages / "explanation/limits.html") + "\n"


def test_a_display_without_an_opener_is_no_error(installed, tmp_path):
    assert installed(PATH=str(tmp_path / "none"), DISPLAY=":9").stdout.startswith("file:///")


def test_a_page_is_named_by_the_end_of_its_path(installed):
    for name in ("limits", "explanation/limits", "docs/explanation/limits"):
        assert installed(name).stdout == address(installed.pages / "explanation/limits.html") + "\n"
    assert "did you mean `limits`?" in installed("limit", exit_code=2).stderr
    installed("mits", exit_code=2)


def test_without_a_site_the_error_names_what_builds_it(installed):
    shutil.rmtree(installed.pages.parent)
    error = installed(exit_code=5).stderr
    assert "error[cli.no_docs]" in error and "tools/docs" in error
