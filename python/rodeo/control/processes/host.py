"""The controller's interface to a host, for all launchers: requests and answers."""

import os
from abc import ABC, abstractmethod
from dataclasses import asdict, dataclass, field, fields

from rodeo.control.refused import Refused

MARK = "RODEO_PROCESS"  # this variable of a process and its descendants has RUNTIME DIRECTORY:SYSTEM@HOST/NAME


@dataclass(frozen=True)
class LaunchSpec:
    """A process to start: `environment` is its whole environment, list() returns `tag`, `socket` is the file name of its control socket or empty."""

    name: str
    argv: list
    environment: dict
    directory: str
    tag: dict = field(default_factory=dict)
    socket: str = ""
    core: bool = True

    def as_json(self):
        return asdict(self)


@dataclass(frozen=True)
class AgentProcess:
    """A process that was launched and not forgotten. `state` running or exited; exit_status and signal are both None while it runs, and if its end
    was not seen (its agent was killed before). `core` is the path of its core, or empty. `left`: pids of descendants that outlived it.
    `said`: the last error in its log, if it ended with an exit status other than 0."""

    name: str
    pid: int
    started_ns: int  # UTC
    state: str
    exit_status: int | None = None
    signal: int | None = None
    core: str = ""
    cpu_seconds: float | None = None
    rss_bytes: int | None = None
    log: str = ""
    socket: str = ""
    tag: dict = field(default_factory=dict)
    left: list = field(default_factory=list)
    said: str = ""

    def as_json(self):
        return asdict(self)


def process_of(answer):
    """The AgentProcess in an agent's answer. Refused(control.bad_answer) if it is invalid."""
    try:
        known = {one.name for one in fields(AgentProcess)}
        process = AgentProcess(**{key: value for key, value in answer.items() if key in known})
        if isinstance(process.name, str) and isinstance(process.pid, int) and process.state in ("running", "exited"):
            return process
    except (TypeError, AttributeError):
        pass
    raise Refused("control.bad_answer", f"an agent lists an entry that is not a process: {str(answer)[:80]}", "")


class Host(ABC):
    """Calls are made from the controller's loop, may be concurrent, and raise Refused: `control.host_silent` if the host does not answer, else a refusal
    of the agent. Only signal() and end() end processes."""

    name: str
    launcher: str

    @abstractmethod
    async def open(self):
        """Finds the agent of this system on the host, or starts it."""

    @abstractmethod
    async def close(self):
        """Disconnects from the agent. Its processes continue; an agent without processes ends by itself."""

    @abstractmethod
    async def request(self, verb, timeout_s=10.0, **arguments):
        """The agent's answer (docs/reference/protocols/agent.md)."""

    @abstractmethod
    async def ask(self, name, request, timeout_s):
        """The reply from the control socket of a process. Refused: control.unreachable, control.no_answer, or a refusal of the process."""

    async def launch(self, spec):
        """Starts a process and returns its AgentProcess. Refused: control.launched (the name runs already), control.launch (it cannot be started)."""
        return process_of(await self.request("launch", timeout_s=30.0, spec=spec.as_json()))

    async def signal(self, name, number):
        """Sends a signal to the process. Refused(control.not_launched) if it does not run."""
        await self.request("signal", name=name, number=int(number))

    async def end(self, name, grace_s):
        """Sends TERM, after `grace_s` KILL, to the process and its descendants. Returns when they have ended, or were killed. Used only by aborts."""
        await self.request("end", timeout_s=grace_s + 30.0, name=name, grace_s=grace_s)

    async def list(self):
        """Every AgentProcess that was launched and not forgotten."""
        answer = await self.request("list")
        if not isinstance(answer, list):
            raise Refused("control.bad_answer", f"{self.name} does not list its processes", "")
        return [process_of(each) for each in answer]

    async def tail(self, name, lines, search=""):
        """The last lines of the log that contain `search`, oldest first. Empty without a log."""
        return await self.request("tail", name=name, lines=int(lines), search=search)

    async def records(self, names, wanted):
        """The newest log records (processes/log_records.py) of these processes that match `wanted`, oldest first; the name `agent` means the agent itself."""
        answer = await self.request("records", timeout_s=30.0, names=list(names), wanted=wanted.as_json())
        if not isinstance(answer, list):
            raise Refused("control.bad_answer", f"{self.name} has no log records", "")
        return [record for record in answer if isinstance(record, dict)]

    async def forget(self, name):
        """Forgets an ended process; its log stays. Refused(control.runs) if it or one of its descendants runs."""
        await self.request("forget", name=name)

    async def health(self, temperatures=True):
        """Returns {time_ns: its clock (UTC), temperatures: {sensor: degrees Celsius}}."""
        answer = await self.request("health", timeout_s=5.0, temperatures=bool(temperatures))
        return answer if isinstance(answer, dict) else {}

    async def disk(self, path):
        """Returns {free, total} in bytes of the file system of `path`. Refused(control.disk)."""
        return await self.request("disk", path=os.fspath(path))

    async def sha256(self, paths):
        """Returns {path: hex} of files, without unreadable ones."""
        return await self.request("sha256", timeout_s=3600.0, paths=[os.fspath(path) for path in paths])

    async def read(self, path, most):
        """The last bytes of a text file, at most `most`, as text. Refused(control.file)."""
        return await self.request("read", path=os.fspath(path), most=int(most))
