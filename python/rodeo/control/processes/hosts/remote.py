"""Another host, whose agent is reached through a command's standard input and output: the common part of ssh and Slurm."""

import asyncio
import contextlib
import os
import sys
from abc import abstractmethod
from pathlib import Path

from rodeo.control.processes import file_modes
from rodeo.control.processes.agent_client import LIMIT, AgentHost
from rodeo.control.processes.json_lines import answered
from rodeo.control.processes.relay import GREETING
from rodeo.control.refused import Refused

REACHED_S = 30.0  # this must suffice for a login and the start of one or two interpreters
MOST_NOISE = 200  # limit of the lines that a login may write before the relay
LONGEST_WORDS = 8192  # limit of the kept bytes of a command's error output
PACKAGE = Path(__file__).parents[4].absolute()


def with_environment(argv):
    """The command with the few variables that our Python needs there. Without the login's XDG_RUNTIME_DIR, which is removed with its last session."""
    passed = [
        f"{name}={os.environ[name]}" for name in ("RODEO_RUNTIME_DIR", file_modes.VARIABLE) if os.environ.get(name)
    ]
    return ["env", "-u", "XDG_RUNTIME_DIR", f"PYTHONPATH={PACKAGE}", *passed, sys.executable, "-B", *argv]


class RemoteHost(AgentHost):
    """The host shares the files of this machine under the same paths: configurations, the command, the system's directory. `directory` is the agent's."""

    def __init__(self, system, directory, name, launcher, patience=1.0):
        super().__init__(name, launcher, patience)
        self.system, self.directory = system, Path(directory)
        self._words = {}  # process of a connection -> the task that waits for its end

    @abstractmethod
    async def way(self):
        """argv of the command that starts the relay on the host. Refused."""

    async def open(self):
        """Never refused: if the host does not answer, its processes continue unseen."""
        with contextlib.suppress(Refused):
            await self.reached()

    def relay(self, *options):
        """The arguments that start a relay on the host."""
        return [
            "-m",
            "rodeo.control.processes.relay",
            "--system",
            self.system,
            "--host",
            self.name,
            "--patience",
            f"{self.patience:g}",
            *options,
        ]

    async def connect(self):
        argv = await self.way()
        try:
            process = await asyncio.create_subprocess_exec(
                *argv,
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.PIPE,
                limit=LIMIT,
                start_new_session=True,
            )
        except OSError as error:
            raise Refused(
                "control.launcher", f"{self.name}: {argv[0]} cannot be started: {error.strerror}", ""
            ) from None
        words = asyncio.ensure_future(last_words(process.stderr))
        try:
            await asyncio.wait_for(self._greeted(process), REACHED_S * self.start_patience)
        except BaseException as error:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            if isinstance(error, asyncio.TimeoutError):
                raise Refused(
                    "control.host_silent",
                    f"{self.name} has not answered within {REACHED_S * self.start_patience:g} s",
                    "",
                ) from None
            if isinstance(error, (EOFError, asyncio.LimitOverrunError)):
                said = await words
                raise Refused(
                    "control.host_silent",
                    f"{self.name} cannot be reached: {said or 'the connection ended at once'}",
                    "",
                ) from None
            raise
        finally:
            ended = asyncio.ensure_future(self._until_ended(process, words))
            self._words[process] = ended
            ended.add_done_callback(lambda _: self._words.pop(process, None))
        return process.stdout, process.stdin

    async def _until_ended(self, process, words):
        await process.wait()
        process.stdin.close()
        with contextlib.suppress(
            OSError, asyncio.TimeoutError
        ):  # awaits the error of a broken pipe, which would otherwise be logged
            await asyncio.wait_for(process.stdin.wait_closed(), REACHED_S)
        await asyncio.gather(words, return_exceptions=True)

    async def _greeted(self, process):
        for _ in range(MOST_NOISE):
            line = await process.stdout.readuntil(b"\n")
            if line.startswith(GREETING.encode()):
                answered(line, self.name)
                return
        raise EOFError

    async def close(self):
        await super().close()
        waiting = list(self._words.values())
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=5.0 * self.patience)
            for process, task in list(self._words.items()):
                if task in late:
                    with contextlib.suppress(ProcessLookupError):
                        process.kill()
            await asyncio.gather(*waiting, return_exceptions=True)


async def last_words(stream):
    """The last line of a command's error output. Reads to the end, so that the command never blocks."""
    kept = b""
    while piece := await stream.read(4096):
        kept = (kept + piece)[-LONGEST_WORDS:]
    lines = [line.strip() for line in kept.decode(errors="replace").splitlines() if line.strip()]
    return lines[-1][:500] if lines else ""


async def said(*argv, seconds, input=None):
    """Returns (exit status, output, error output) of a short command. Refused: control.launcher (it does not exist), control.host_silent (it takes longer)."""
    try:
        process = await asyncio.create_subprocess_exec(
            *argv,
            stdin=asyncio.subprocess.PIPE if input else asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,
        )
    except OSError as error:
        raise Refused(
            "control.launcher",
            f"{argv[0]} cannot be started: {error.strerror}",
            "check that it is installed, and on the PATH",
        ) from None
    try:
        out, complaint = await asyncio.wait_for(process.communicate(input), seconds)
    except BaseException as error:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        if isinstance(error, asyncio.TimeoutError):
            raise Refused("control.host_silent", f"{argv[0]} has not ended within {seconds:g} s", "") from None
        raise
    return process.returncode, out.decode(errors="replace").strip(), complaint.decode(errors="replace").strip()
