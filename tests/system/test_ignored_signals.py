"""A signal that a process ignores from its start, as after nohup or in the background of a script, ends no process."""

import os
import signal
import time

from conftest import scaled


def test_a_keeper_of_cards_ignores_an_ignored_ctrl_c(rodeo):
    rodeo.environment["RODEO_KEEPER_SOCKET"] = str(rodeo.directory / "keeper.sock")
    listens, says = os.pipe()
    arguments = ("card", "keep", "--socket", rodeo.directory / "keeper.sock", "--ready", says)
    with rodeo.start(
        *arguments, pass_fds=(says,), preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_IGN)
    ) as keeper:
        os.close(says)
        assert os.read(listens, 16).startswith(b"ready")
        os.close(listens)
        keeper.send_signal(signal.SIGINT)
        assert "functions" in rodeo("card", "keep", "--status", "-o", "json").stdout
        time.sleep(0.1)  # the answer may have come before the signal
        assert keeper.poll() is None
        keeper.terminate()
        assert keeper.wait(timeout=scaled(20)) == 0
