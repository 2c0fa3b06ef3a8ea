"""A host behind an agent: requests and answers over one connection, side by side, and the connection made again when it breaks."""

import asyncio
import contextlib
import itertools
import json
import os
import time
from abc import abstractmethod

from rodeo.control.agent import VERSION
from rodeo.control.host import Host
from rodeo.control.lines import LONGEST_ANSWER, answered
from rodeo.control.refused import Refused

HELLO_S = 10.0
MOST_ATTEMPTS, ATTEMPT_S = 50, 0.1  # to reach the agent that follows one which has been told to end
AGAIN_S = (0.25, 0.5, 1.0, 2.0, 4.0, 8.0)  # after so many failures in a row the next attempt waits so long; until then requests fail at once


class AgentHost(Host):
    """What a launcher adds is connect(): a way to the agent, which it may have to start. `patience` stretches time-outs on slow machines."""

    def __init__(self, name, launcher, patience=1.0):
        self.name, self.launcher, self.patience = name, launcher, patience
        self._numbers, self._waiting = itertools.count(1), {}
        self._reader = self._writer = self._task = None
        self._opening, self._failures, self._failed, self._again_s = None, 0, None, 0.0

    @abstractmethod
    async def connect(self):
        """(reader, writer) of a connection to the agent, which is started if there is none. Refused, OSError."""

    async def open(self):
        await self.reached()

    async def reached(self):
        """Returns with a connection. Those who wait share one attempt, which goes on when one of them gives up: a login may take longer than a look."""
        if self._writer is not None and self._opening is None:
            return
        if self._opening is None:
            if self._failed is not None and time.monotonic() < self._again_s:
                raise type(self._failed)(self._failed.code, self._failed.what, self._failed.next)  # one object raised often would keep every place where it was
            self._opening = asyncio.ensure_future(self._open())
            self._opening.add_done_callback(self._opened)
        await asyncio.shield(self._opening)

    def _opened(self, attempt):
        self._opening = None
        error = None if attempt.cancelled() else attempt.exception()
        if error is None:
            self._failures, self._failed = 0, None
        else:
            self._failed = error if isinstance(error, Refused) else Refused("control.internal", f"{type(error).__name__}: {error}", "")
            self._again_s = time.monotonic() + AGAIN_S[min(self._failures, len(AGAIN_S) - 1)]
            self._failures += 1

    def try_again(self):
        """The next request makes an attempt, whatever the last one came to."""
        self._failures, self._failed = 0, None

    async def _open(self):
        other = await self._say_hello()
        if other is None:
            return
        await self._leave_other(other)
        for attempt in range(MOST_ATTEMPTS, 0, -1):  # it ends, and the next one begins
            await asyncio.sleep(ATTEMPT_S)
            try:
                if await self._say_hello() is None:
                    return
            except Refused:
                if attempt == 1:
                    raise
            await self._disconnect()
        raise Refused("control.agent_runs", f"the agent of this system on {self.name} keeps {other}, and does not end", "")

    async def _say_hello(self):
        """Connects. Returns the directory of an agent that keeps another one than this system's, else None. Refused: not connected."""
        try:
            self._reader, self._writer = await self.connect()
        except OSError as error:
            raise Refused("control.host_silent", f"{self.name} does not answer: {error.strerror or error}", "") from None
        self._task = asyncio.ensure_future(self._read(self._reader, self._writer))
        try:
            hello = await self._send("hello", HELLO_S)
            if not isinstance(hello, dict) or hello.get("version") != VERSION:
                raise Refused("control.agent_version", f"the agent on {self.name} is of another version of Rodeo", "end it: rodeo control close, then launch again")
        except Refused:
            await self._disconnect()
            raise
        return self._other_directory(hello)

    def _other_directory(self, hello):
        """The directory of an agent of this name that keeps another one than this system's, None if it is ours."""
        ours, theirs = getattr(self, "directory", None), hello.get("directory")
        if ours is None or not isinstance(theirs, str) or os.path.realpath(theirs) == os.path.realpath(ours):
            return None
        return theirs

    async def _leave_other(self, directory):
        """What it runs was launched from another `control.directory`, and writes its reports and data there: it is not taken over. With nothing to run it ends,
        and another one is started."""
        try:
            await self._send("leave", HELLO_S)
        except Refused as refused:
            raise Refused("control.agent_runs", f"the agent of this system on {self.name} keeps {directory}, and this system file has another control.directory: {refused.what}",
                          "end them from the system file that launched them (rodeo control close), or give this system another name") from None
        finally:
            await self._disconnect()

    async def close(self):
        """An agent with nothing to run ends now, others stay."""
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
            raise Refused("control.host_silent", f"{self.name} has not answered `{verb}` within {timeout_s * self.patience:g} s", "") from None
        except OSError as error:
            raise Refused("control.host_silent", f"the connection to {self.name} broke: {error.strerror or error}", "") from None
        finally:
            self._waiting.pop(number, None)

    async def _read(self, reader, writer):
        try:
            while True:
                line = await reader.readuntil(b"\n")
                try:
                    number = json.loads(line)["id"]
                except (ValueError, TypeError, KeyError, RecursionError):
                    break  # no agent of ours
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


LIMIT = LONGEST_ANSWER  # bytes of a line that a connection takes
