"""This host: finds its agent by the socket in the runtime directory, or starts it."""

import asyncio
import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

from rodeo.control import paths
from rodeo.control.processes import json_lines
from rodeo.control.processes.agent import LEASH_S, socket_of
from rodeo.control.processes.agent_client import LIMIT, AgentHost
from rodeo.control.refused import Refused

START_S = 30.0  # a loaded machine needs long; on an idle one an interpreter starts in a fraction of a second


class LocalHost(AgentHost):
    """`directory`: the agent's, with logs and the list of launched processes. `end_after_s`: an agent that is started here ends its processes after so
    long without a connection; None: never."""

    def __init__(self, system, directory, *, name="local", patience=1.0, leash_s=LEASH_S, end_after_s=None):
        super().__init__(name, "local", patience)
        self.system, self.directory = system, Path(directory)
        self.options = ["--leash", str(leash_s), *([] if end_after_s is None else ["--end-after", str(end_after_s)])]
        self._sockets, self._agent = {}, None

    async def connect(self):
        path = socket_of(self.system, self.name)
        deadline = time.monotonic() + START_S * self.start_patience
        while True:
            with contextlib.suppress(OSError):
                return await asyncio.open_unix_connection(str(path), limit=LIMIT)
            if not paths.is_held(f"{path}.lock"):
                if self._agent is not None and self._agent.poll() not in (None, 0):
                    said = self._last_words()
                    self._agent = None
                    raise Refused(
                        "control.agent",
                        f"the agent of {self.system} ended at once{': ' + said if said else ''}",
                        f"its log is {self._log()}",
                    )
                if self._agent is None or self._agent.poll() is not None:
                    self._start()
            if time.monotonic() > deadline:
                raise Refused(
                    "control.host_silent",
                    f"the agent of {self.system} on this host does not answer",
                    f"its log is {self._log()}",
                )
            await asyncio.sleep(0.02)

    def _log(self):
        return self.directory / "agent.log"

    def _last_words(self):
        with contextlib.suppress(OSError):
            return (self._log().read_text(errors="replace").strip().splitlines() or [""])[-1][:300]
        return ""

    def _start(self):
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
            with open(self._log(), "ab") as log:
                self._agent = subprocess.Popen(
                    [
                        sys.executable,
                        "-B",
                        "-m",
                        "rodeo.control.processes.agent",
                        "--system",
                        self.system,
                        "--host",
                        self.name,
                        "--directory",
                        str(self.directory.absolute()),
                        *self.options,
                    ],
                    stdin=subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    start_new_session=True,
                    cwd="/",
                    env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[4].absolute())},
                )
        except OSError as error:
            raise Refused(
                "control.agent",
                f"the agent of {self.system} cannot be started: {error.strerror}: {error.filename or ''}",
                "",
            ) from None

    async def close(self):
        await super().close()
        if self._agent is not None:
            with contextlib.suppress(subprocess.TimeoutExpired):  # the agent stays if a process runs
                await asyncio.to_thread(self._agent.wait, 0.5)

    async def launch(self, spec):
        process = await super().launch(spec)
        self._sockets[spec.name] = spec.socket
        return process

    async def list(self):
        found = await super().list()
        self._sockets = {process.name: process.socket for process in found}
        return found

    async def ask(self, name, request, timeout_s):
        """Asks the control socket directly: on this host the agent is not needed."""
        if name not in self._sockets:
            await self.list()
        if not self._sockets.get(name):
            raise Refused("control.unreachable", f"{name} has no control socket here", "")
        return await json_lines.ask(paths.runtime_socket(self._sockets[name]), request, timeout_s)
