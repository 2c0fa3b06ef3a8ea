"""A control room as users run it: `rodeo control SYSTEM` in a separate process. At the end, the room, its agent and its processes are ended."""

import asyncio
import contextlib
import os
import signal
import subprocess

import httpx
from conftest import BUILD, scaled


class ServedRoom:
    """`with ServedRoom(file, name) as room:` room.address, room.client(), room.shell("start", ...); room.restart() after room.end(number)."""

    def __init__(self, file, name, *options):
        self.file, self.name, self.options = file, name, options
        self.process = None
        self.said = file.parent / f"{name}.err"

    def __enter__(self):
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        with open(self.said, "ab") as err:
            self.process = subprocess.Popen(
                [str(BUILD / "rodeo"), "control", str(self.file), *self.options],
                stdout=subprocess.PIPE,
                stderr=err,
                stdin=subprocess.DEVNULL,
                text=True,
            )
        self.address = self.process.stdout.readline().strip()
        assert self.address, self.said.read_text()[-3000:]

    def end(self, number=signal.SIGTERM):
        """Ends only the room, and returns its exit status. With SIGKILL its lock stays, as after a crash."""
        self.process.send_signal(number)
        status = self.process.wait(scaled(120))
        self.process.stdout.close()
        return status

    def client(self, **options):
        from rodeo.control import connect

        return connect(self.name, **options)

    def shell(self, *arguments, status=0, **options):
        """Runs `rodeo control ...` and returns its output; the test fails if the exit status differs."""
        done = subprocess.run(
            [str(BUILD / "rodeo"), "control", *map(str, arguments)],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=scaled(300),
            **options,
        )
        assert done.returncode == status, (
            f"{done.args} ended with {done.returncode}\n{done.stdout}\n{done.stderr}\n{self.said.read_text()[-2000:]}"
        )
        return done

    @contextlib.contextmanager
    def browser(self):
        """An HTTP client that has opened the printed address, as a browser does."""
        with httpx.Client(base_url=self.address.split("/?")[0], timeout=scaled(300)) as browser:
            assert browser.get(self.address).status_code == 303
            browser.headers["X-Rodeo-CSRF"] = browser.get("/api/session").json()["csrf"]
            yield browser

    def __exit__(self, *_):
        with contextlib.suppress(Exception), self.client() as client:
            client.take(at_once=True)
            client.abort()
        with contextlib.suppress(Exception):
            if self.process.poll() is None:
                self.end()
        if self.process is not None and self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        with contextlib.suppress(Exception):
            asyncio.run(self._end_agent())

    async def _end_agent(self):
        """Ends the agent, which would end by itself a minute after its last process."""
        from rodeo.control import paths
        from rodeo.control.paths import rodeo_command
        from rodeo.control.processes.agent import socket_of
        from rodeo.control.processes.hosts.local import LocalHost
        from rodeo.control.state.system import load

        if not paths.is_held(f"{socket_of(self.name, 'local')}.lock"):
            return
        host = LocalHost(self.name, load(self.file, rodeo_command()).directory)
        await host.open()
        for each in await host.list():
            if each.state != "exited":
                with contextlib.suppress(Exception):
                    os.kill(each.pid, signal.SIGCONT)
                await host.end(each.name, 1.0)
        await host.leave()
        await host.close()
