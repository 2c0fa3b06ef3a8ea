"""A control room as users start it: `rodeo control SYSTEM` as a separate process, which a test may kill, and a client."""

import contextlib
import os
import signal
import subprocess
import time

from conftest import BUILD, scaled


class RoomProcess:
    """`with RoomProcess(file, "name") as room:` `room.client` works in the block. The test must end the system's processes (room.client.abort())."""

    def __init__(self, file, system):
        self.file, self.system = file, system
        self.process = self.client = None

    def __enter__(self):
        self.begin()
        return self

    def begin(self):
        """Starts the room and waits until it answers."""
        from rodeo.control.client import connect
        from rodeo.control.refused import Refused

        self.log = open(self.file.parent / "room.log", "ab")
        self.process = subprocess.Popen(
            [str(BUILD / "rodeo"), "control", str(self.file), "--no-page"],
            stdin=subprocess.DEVNULL,
            stdout=self.log,
            stderr=self.log,
        )
        deadline = time.monotonic() + scaled(120)
        while True:
            try:
                self.client = connect(self.system)
                self.client.status()
                return
            except Refused:
                assert self.process.poll() is None, (self.file.parent / "room.log").read_text()
                assert time.monotonic() < deadline, "the control room does not answer"
                time.sleep(0.05)

    def kill(self):
        """kill -9: the room cannot tell any process of its end."""
        self.process.send_signal(signal.SIGKILL)
        self.end()

    def end(self):
        if self.client is not None:
            with contextlib.suppress(Exception):
                self.client.leave()
            self.client = None
        if self.process is not None:
            if self.process.poll() is None:
                self.process.terminate()
            self.process.wait(scaled(120))
            self.process = None
        self.log.close()

    def __exit__(self, exception, value, traceback):
        try:
            if self.client is not None:
                for each in self.client.status()["processes"]:
                    if each["pid"] and each["phase"] == "lost":
                        with contextlib.suppress(OSError):
                            os.kill(each["pid"], signal.SIGCONT)
                with contextlib.suppress(Exception):
                    self.client.abort()
        finally:
            self.end()

    def until(self, condition, what, seconds=300.0):
        """Waits for condition(document), and returns its value."""
        deadline = time.monotonic() + scaled(seconds)
        while True:
            document = self.client.status()
            if value := condition(document):
                return value
            assert time.monotonic() < deadline, f"waited in vain until {what}: {document['state']} {document['what']}"
            time.sleep(0.05)
