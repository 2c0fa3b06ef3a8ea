"""A host behind an agent: concurrent requests over one connection, which is made again when it breaks."""

import asyncio
import contextlib
import itertools
import json
import os
import time
from abc import abstractmethod

from rodeo.control.processes.agent import VERSION
from rodeo.control.processes.host import Host
from rodeo.control.processes.json_lines import LONGEST_ANSWER, answered
from rodeo.control.refused import Refused

HELLO_S = 10.0
MOST_ATTEMPTS, ATTEMPT_S = 50, 0.1  # attempts to reach the new agent after the old one was asked to end
AGAIN_S = (
    0.25,
    0.5,
    1.0,
    2.0,
    4.0,
    8.0,
)  # pause before the next attempt after 1, 2, ... failures in a row; until then requests fail at once


class AgentHost(Host):
    """A launcher adds connect(): it connects to the agent, and starts one if needed. `patience` multiplies time-outs, for slow machines."""

    def __init__(self, name, launcher, patience=1.0):
        self.name, self.launcher, self.patience = name, launcher, patience
        self.start_patience = max(
            1.0, patience
        )  # a patience below 1 shortens waits for answers, but not the start of a process
        self._numbers, self._waiting = itertools.count(1), {}
        self._reader = self._writer = self._task = None
        self._opening, self._failures, self._failed, self._again_s = None, 0, None, 0.0

    @abstractmethod
    async def connect(self):
        """Returns (reader, writer) of a connection to the agent; starts the agent if needed. Refused, OSError."""

    async def open(self):
        await self.reached()

    async def reached(self):
        """Returns when connected. All callers share one attempt. It continues when a caller gives up: a login may take longer than a look."""
        if self._writer is not None and self._opening is None:
            return
        if self._opening is None:
            if self._failed is not None and time.monotonic() < self._again_s:
                raise type(self._failed)(
                    self._failed.code, self._failed.what, self._failed.next
                )  # a copy of the error: an object that is raised often collects tracebacks
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(self._opened)
        await asyncio.shield(self._opening)

    def _opened(self, attempt):
        self._opening = None
        error = None if attempt.cancelled() else attempt.exception()
        if error is None:
            self._failures, self._failed = 0, None
        else:
            self._failed = (
                error
                if isinstance(error, Refused)
                else Refused("control.internal", f"{type(error).__name__}: {error}", "")
            )
            self._again_s = time.monotonic() + AGAIN_S[min(self._failures, len(AGAIN_S) - 1)]
            self._failures += 1

    def try_again(self):
        """The next request makes an attempt at once."""
        self._failures, self._failed = 0, None

    async def _open(self):
        other = await self._send_hello()
        if other is None:
            return
        await self._leave_other(other)
        for attempt in range(MOST_ATTEMPTS, 0, -1):  # waits until the other agent has ended and ours answers
            await asyncio.sleep(ATTEMPT_S)
            try:
                if await self._send_hello() is None:
                    return
            except Refused:
                if attempt == 1:
                    raise
            await self._disconnect()
        raise Refused(
            "control.agent_runs", f"the agent of this system on {self.name} uses {other}, and does not end", ""
        )

    async def _send_hello(self):
        """Connects. Returns the agent's directory if it is not this system's, else None. Refused: not connected."""
        try:
            self._reader, self._writer = await self.connect()
        except OSError as error:
            raise Refused(
                "control.host_silent", f"{self.name} does not answer: {error.strerror or error}", ""
            ) from None
        self._task = asyncio.ensure_future(self._read(self._reader, self._writer))
        try:
            hello = await self._send("hello", HELLO_S)
            if not isinstance(hello, dict) or hello.get("version") != VERSION:
                raise Refused(
                    "control.agent_version",
                    f"the agent on {self.name} is of another version of Rodeo",
                    "end it: rodeo control close, then launch again",
                )
        except Refused:
            await self._disconnect()
            raise
        return self._other_directory(hello)

    def _other_directory(self, hello):
        """The agent's directory if it is not this system's, else None."""
        ours, theirs = getattr(self, "directory", None), hello.get("directory")
        if ours is None or not isinstance(theirs, str) or os.path.realpath(theirs) == os.path.realpath(ours):
            return None
        return theirs

    async def _leave_other(self, directory):
        """Asks an agent of another `control.directory` to end. Its processes write reports and data there: they are not taken over. Without processes
        it ends, and a new one is started."""
        try:
            await self._send("leave", HELLO_S)
        except Refused as refused:
            raise Refused(
                "control.agent_runs",
                f"the agent of this system on {self.name} uses {directory}, and this system file has another control.directory: {refused.what}",
                "end them from the system file that launched them (rodeo control close), or give this system another name",
            ) from None
        finally:
            await self._disconnect()

    async def close(self):
        """Disconnects. An agent without processes ends; others stay."""
        if self._opening is not None:
            self._opening.cancel()
            await asyncio.gather(self._opening, return_exceptions=True)
        if self._writer is not None:
            with contextlib.suppress(Refused):
                await self._send("leave", 5.0)
        await self._disconnect()

    async def _disconnect(self):
        task, writer, self._task, self._reader, self._writer = self._task, self._writer, None, None, None
        if writer is not None:
            writer.close()
        if task is not None:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    async def request(self, verb, timeout_s=10.0, **arguments):
        if self._writer is None or self._opening is not None:
            await self.reached()
        return await self._send(verb, timeout_s, **arguments)

    async def _send(self, verb, timeout_s, **arguments):
        writer = self._writer
        if writer is None:
            raise Refused("control.host_silent", f"the connection to {self.name} is broken", "")
        number, answer = next(self._numbers), asyncio.get_running_loop().create_future()
        self._waiting[number] = answer
        try:
            writer.write(json.dumps({"id": number, "do": verb, **arguments}).encode() + b"\n")
            await writer.drain()
            return answered(await asyncio.wait_for(answer, timeout_s * self.patience), f"the agent on {self.name}")
        except asyncio.TimeoutError:
            raise Refused(
                "control.host_silent",
                f"{self.name} has not answered `{verb}` within {timeout_s * self.patience:g} s",
                "",
            ) from None
        except OSError as error:
            raise Refused(
                "control.host_silent", f"the connection to {self.name} broke: {error.strerror or error}", ""
            ) from None
        finally:
            self._waiting.pop(number, None)

    async def _read(self, reader, writer):
        try:
            while True:
                line = await reader.readuntil(b"\n")
                try:
                    number = json.loads(line)["id"]
                except (ValueError, TypeError, KeyError, RecursionError):
                    break  # the other end is not an agent of Rodeo
                waiting = self._waiting.get(number)
                if waiting is not None and not waiting.done():
                    waiting.set_result(line)
        except (OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()
            if self._writer is writer:
                self._reader = self._writer = self._task = None
            for waiting in self._waiting.values():
                if not waiting.done():
                    waiting.set_exception(ConnectionResetError(104, "the agent has gone"))

    async def ask(self, name, request, timeout_s):
        return await self.request("ask", timeout_s=timeout_s + 2.0, name=name, request=request, within_s=timeout_s)


LIMIT = LONGEST_ANSWER  # limit of a line from the agent, in bytes
