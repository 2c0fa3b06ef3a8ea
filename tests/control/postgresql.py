"""A PostgreSQL server for tests: Debian's, with its data in a temporary directory, on a Unix socket."""

import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
import time
from pathlib import Path

import psutil
import pytest
from conftest import scaled

PROGRAMS = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
MISSING = [] if PROGRAMS else ["postgresql-15"]


class Server:
    """`url` is the address of the database `lab`. The server refuses root, so as root it runs as nobody."""

    def __init__(self, home):
        self.home, self.data, self.process = home, home / "data", None
        self.url = f"postgresql+psycopg://postgres@/lab?host={home}"
        self.user = {"user": "nobody", "group": "nogroup", "extra_groups": []} if os.geteuid() == 0 else {}
        if self.user:
            shutil.chown(home, "nobody", "nogroup")
        self._run(
            "initdb",
            "--pgdata",
            self.data,
            "--username",
            "postgres",
            "--auth",
            "trust",
            "--encoding",
            "UTF8",
            "--no-sync",
        )
        self.start()
        self.sql("create database lab", "postgres")

    def _run(self, program, *arguments):
        command = [PROGRAMS[-1].parent / program, *arguments]
        subprocess.run(
            command,
            check=True,
            capture_output=True,
            cwd=self.home,
            timeout=scaled(120),
            env={"LC_ALL": "C"},
            **self.user,
        )

    def start(self):
        with open(self.home / "log", "ab") as log:
            self.process = subprocess.Popen(
                [PROGRAMS[-1], "-D", self.data, "-k", self.home, "-c", "listen_addresses=", "-c", "fsync=off"],
                cwd=self.home,
                env={"LC_ALL": "C"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                **self.user,
            )
        deadline = time.monotonic() + scaled(60)
        while True:
            try:
                return self.sql("select 1", "postgres")
            except Exception:
                assert self.process.poll() is None and time.monotonic() < deadline, (self.home / "log").read_text()
                time.sleep(0.05)

    def sql(self, statement, database="lab"):
        """Executes a statement in a transaction of its own. Returns its rows."""
        import psycopg

        with psycopg.connect(f"host={self.home} user=postgres dbname={database}", autocommit=True) as connection:
            answer = connection.execute(statement)
            return answer.fetchall() if answer.description else []

    def stop(self):
        """Stops the server without waiting for its clients. Returns a function that starts it again."""
        self.hang()()
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=scaled(60))
        return self.start

    def hang(self):
        """Freezes all processes of the server. Returns a function that lets them go on."""
        parent = psutil.Process(self.process.pid)
        frozen = [parent, *parent.children(recursive=True)]
        for each in frozen:
            each.suspend()

        def go_on():
            for each in frozen:
                with contextlib.suppress(psutil.NoSuchProcess):
                    each.resume()

        return go_on

    def empty(self):
        """Makes the database anew, without tables."""
        self.sql("drop database lab with (force)", "postgres")
        self.sql("create database lab", "postgres")


@contextlib.contextmanager
def running():
    """`with running() as server:`"""
    if MISSING:
        pytest.skip(f"these Debian packages are missing: {' '.join(MISSING)}")
    home = Path(tempfile.mkdtemp(prefix="pg-", dir="/tmp"))  # the path of a Unix socket has at most 107 bytes
    server = None
    try:
        server = Server(home)
        yield server
    finally:
        if server is not None and server.process.poll() is None:
            server.process.send_signal(signal.SIGQUIT)  # at once
            server.process.wait(timeout=scaled(60))
        shutil.rmtree(home, ignore_errors=True)
