"""A test that is skipped although tools/setup has run is a failure, except for listed needs that no set-up can give."""

import os
import shutil
import subprocess
import sys

import pytest

from conftest import ROOT, scaled

SKIPS = {
    "test": 'import pytest\ndef test_it():\n    pytest.skip("no cheese")\n',
    "mark": 'import pytest\n@pytest.mark.skipif(True, reason="no cheese")\ndef test_it():\n    pass\n',
    "file": 'import pytest\npytest.skip("no cheese", allow_module_level=True)\n',
    "fixture": 'import pytest\n@pytest.fixture\ndef cheese():\n    pytest.skip("no cheese")\ndef test_it(cheese):\n    pass\n',
}
PYTEST = [sys.executable, "-B", "-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider"]


def run(*command, **environment):
    return subprocess.run(
        command,
        env={name: value for name, value in os.environ.items() if name != "RODEO_SKIP_IS_FAILURE"} | environment,
        capture_output=True,
        text=True,
        timeout=scaled(60),
    )


@pytest.fixture
def tests(tmp_path):
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path)
    return tmp_path


@pytest.mark.parametrize("where", SKIPS)
def test_a_skip_is_a_failure_after_set_up(tests, where):
    (tests / "test_cheese.py").write_text(SKIPS[where])
    command = [*PYTEST, "--rootdir", tests, tests]
    assert run(*command).returncode in (0, 5)
    done = run(*command, RODEO_SKIP_IS_FAILURE="1")
    assert done.returncode in (1, 2) and "failure after set-up: Skipped: no cheese" in done.stdout, done
    (tests / "test_cheese.py").write_text(SKIPS[where].replace("no cheese", "host: no cheese"))
    assert run(*command, RODEO_SKIP_IS_FAILURE="1").returncode in (0, 5)


def test_what_is_skipped_for_the_hosts_sake_is_named(tests):
    (tests / "test_cheese.py").write_text(SKIPS["test"].replace("no cheese", "host: no cheese"))
    command = " ".join(map(str, [*PYTEST, "--rootdir", tests, tests]))
    (tests / "CTestTestfile.cmake").write_text(f"add_test(Cheese {command})\nadd_test(Bread true)\n")
    done = run(ROOT / "tools" / "ctest", tests)
    assert (
        done.returncode == 0
        and "Skipped on this host:\nSKIPPED [1] " in done.stdout
        and done.stdout.endswith(": host: no cheese\n")
    ), done
    assert "Skipped on" not in run(ROOT / "tools" / "ctest", tests, "-R", "Bread").stdout
    (tests / "test_cheese.py").write_text(SKIPS["test"])
    done = run(ROOT / "tools" / "ctest", tests)
    assert done.returncode != 0 and "no cheese" in done.stdout and "Cheese (Failed)" in done.stdout, done
