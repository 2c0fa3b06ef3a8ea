"""The processes of an agent: it starts them, watches them, ends them on request. If it is killed, the next agent finds them.

launch() ─► running ──the kernel reports its end──► exited ──forget()──► not known
               ▲
adopt() ───────┘  from the state file, or by the mark in a process's environment: the agent sees its end, but not its exit status
"""

import asyncio
import contextlib
import json
import logging
import os
import re
import signal
import subprocess
import time
from pathlib import Path

from rodeo.control import paths
from rodeo.control.printed import plain
from rodeo.control.processes import agent_logs, kernel, log_records
from rodeo.control.processes.host import MARK, AgentProcess
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.agent")
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
KILLED_S = 10.0  # after KILL a process ends within this time, unless it hangs in the kernel
LOOK_S = 0.05
LONGEST_GRACE_S = 3600.0
KEPT = (
    "name",
    "pid",
    "start_ticks",
    "started_ns",
    "directory",
    "log",
    "socket",
    "tag",
    "exited",
    "exit_status",
    "signal",
    "core",
    "cpu_seconds",
)


LAST_BYTES = 16 * 1024  # number of bytes at the end of a log in which the last error is searched
LONGEST_ERROR = 200


def last_error(log):
    """The last `error[code]: ...` that a process wrote to its log, on one line; empty without one."""
    try:
        with open(log, "rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - LAST_BYTES))
            lines = file.read(LAST_BYTES).decode(errors="replace").splitlines()
    except OSError:
        return ""
    return next((plain(line)[:LONGEST_ERROR] for line in reversed(lines) if line.startswith("error[")), "")


def log_environment(log, name):
    """Environment that makes a process write its JSON lines beside its log, under its name."""
    return {"RODEO_LOG_JSON": str(log.with_suffix(".jsonl").absolute()), "RODEO_LOG_PROCESS": name}


class Child:
    """One process, running or ended. `popen` is None if another agent started it."""

    def __init__(self, name, pid, start_ticks, started_ns, directory, log, socket="", tag=None, popen=None):
        self.name, self.pid, self.start_ticks, self.started_ns = name, pid, start_ticks, started_ns
        self.directory, self.log, self.socket, self.tag, self.popen = directory, str(log), socket, tag or {}, popen
        self.exited, self.exit_status, self.signal, self.core = False, None, None, ""
        self.left, self.cpu_seconds, self.said = [], None, ""
        self.pidfd = None

    def as_json(self):
        return {key: getattr(self, key) for key in (*KEPT, "said")}

    def seen(self):
        """The process in the kernel. None if it has ended, also if another process has its pid now."""
        found = kernel.seen(self.pid)
        return found if found is not None and found.start_ticks == self.start_ticks else None

    def process(self):
        found = None if self.exited else self.seen()
        if found is not None:
            self.cpu_seconds = found.cpu_seconds
        return AgentProcess(
            name=self.name,
            pid=self.pid,
            started_ns=self.started_ns,
            state="exited" if self.exited else "running",
            exit_status=self.exit_status,
            signal=self.signal,
            core=self.core,
            cpu_seconds=self.cpu_seconds,
            rss_bytes=found.rss_bytes if found else None,
            log=self.log,
            socket=self.socket,
            tag=self.tag,
            left=self.left,
            said=self.said,
        )


class Children:
    """Used by one event loop."""

    def __init__(self, system, host, directory):
        # The runtime directory distinguishes two systems of one name, as for sockets.
        self.mark, self.directory = f"{paths.runtime_directory()}:{system}@{host}/", Path(directory)
        self.logs, self.state_file = self.directory / "logs", self.directory / "agent.json"
        self.own_environment = {
            "RODEO_RUNTIME_DIR": str(paths.runtime_directory())
        }  # a process must listen where the agent asks
        self.known = {}
        self.marks = {}  # log -> Marks, which date its lines
        self.hidden = {}  # pid of an orphan that removed the mark from its environment -> (start ticks, name of the process that owns it)

    # Begin

    def open(self):
        """Takes over the processes of an earlier agent."""
        self.logs.mkdir(parents=True, exist_ok=True)
        for one in self._remembered():
            child = Child(
                **{
                    key: one[key]
                    for key in ("name", "pid", "start_ticks", "started_ns", "directory", "log", "socket", "tag")
                }
            )
            child.exited, child.exit_status, child.signal, child.core = (
                one["exited"],
                one["exit_status"],
                one["signal"],
                one["core"],
            )
            child.cpu_seconds, child.said = one["cpu_seconds"], one.get("said", "")
            self.known[child.name] = child
            if not child.exited:
                self._adopt(child)
        self._adopt_marked()
        self._remember()
        asyncio.get_running_loop().add_signal_handler(signal.SIGCHLD, self._reap)
        self._reap()

    def _remembered(self):
        try:
            stored = json.loads(self.state_file.read_text())
            if stored.get("boot") != kernel.boot_id():
                LOG.info("the machine was restarted, or is another one: earlier processes have ended")
                for one in stored["processes"]:
                    one["exited"] = True
            return [
                one
                for one in stored["processes"]
                if isinstance(one["pid"], int) and NAME.fullmatch(one["name"]) and all(key in one for key in KEPT)
            ]
        except FileNotFoundError:
            return []
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            LOG.warning("%s cannot be read: processes are searched by their environment", self.state_file)
            return []

    def _adopt(self, child):
        try:
            child.pidfd = os.pidfd_open(child.pid)
        except OSError:
            child.pidfd = None
        if child.pidfd is None or child.seen() is None:
            self._ended(child, None)
            return
        LOG.info("%s (pid %d) still runs: an earlier agent started it", child.name, child.pid)
        asyncio.get_running_loop().add_reader(child.pidfd, self._ended, child, None)

    def _adopt_marked(self):
        """Adopts processes that an agent launched and, killed at once, did not note: they lead a session and have our mark."""
        for name, pid in kernel.sessions_with(MARK, self.mark):
            child = self.known.get(name)
            if NAME.fullmatch(name) and (
                child is None or (child.exited and child.pid != pid and pid not in child.left)
            ):
                found = kernel.seen(pid)
                if found is None or (child is not None and found.start_ticks < child.start_ticks):
                    continue
                child = Child(
                    name, pid, found.start_ticks, time.time_ns(), str(self.directory), self.logs / f"{name}.log"
                )
                self.known[name] = child
                self._adopt(child)

    def launch(self, spec):
        """Starts the process of a LaunchSpec (as JSON). Refused: control.launched, control.launch, control.argument."""
        name, argv, environment = spec.get("name"), spec.get("argv"), spec.get("environment")
        if not (isinstance(name, str) and NAME.fullmatch(name)):
            raise Refused(
                "control.argument",
                f"`{name}` cannot be the name of a process",
                "letters, digits, dots, - and _, at most 64",
            )
        if not (isinstance(argv, list) and argv and all(isinstance(word, str) for word in argv)):
            raise Refused("control.argument", f"{name}: argv is not a list of words", "")
        if not (isinstance(environment, dict) and all(isinstance(value, str) for value in environment.values())):
            raise Refused("control.argument", f"{name}: environment is not an object of texts", "")
        before = self.known.get(name)
        if before is not None and not before.exited:
            raise Refused("control.launched", f"{name} runs already, as process {before.pid}", "")
        if before is not None:
            self.forget(name)
        directory, log = str(spec.get("directory") or self.directory), self.logs / f"{name}.log"
        try:
            out = agent_logs.opened(log)
        except OSError as error:
            raise Refused("control.launch", f"{name}: cannot write {log}: {error.strerror}", "") from None
        self._note_length(str(log), time.time_ns())
        try:
            popen = subprocess.Popen(
                argv,
                cwd=directory,
                env={**environment, **self.own_environment, **log_environment(log, name), MARK: self.mark + name},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                start_new_session=True,
            )
        except (OSError, ValueError) as error:
            raise Refused(
                "control.launch",
                f"{name} cannot be started: {argv[0]}: {getattr(error, 'strerror', None) or error}",
                "check that the command exists and is executable",
            ) from None
        finally:
            os.close(out)
        with contextlib.suppress(OSError, ValueError):
            kernel.allow_cores(bool(spec.get("core", True)), popen.pid)
        found = kernel.seen(popen.pid)
        tag = spec.get("tag") if isinstance(spec.get("tag"), dict) else {}
        child = Child(
            name,
            popen.pid,
            found.start_ticks if found else 0,
            time.time_ns(),
            directory,
            log,
            str(spec.get("socket") or ""),
            tag,
            popen,
        )
        self.known[name] = child
        self._remember()
        LOG.info("%s launched, pid %d: %s", name, child.pid, " ".join(argv)[:1000])
        return child

    # End

    def _reap(self):
        """Reaps all children, also inherited orphans."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            for child in self.known.values():
                if child.pid == pid and not child.exited:
                    self._ended(child, status)

    def _ended(self, child, status):
        """`status` as from waitpid(); None if unknown."""
        if child.exited:
            return
        if child.pidfd is not None:
            asyncio.get_running_loop().remove_reader(child.pidfd)
            os.close(child.pidfd)
            child.pidfd = None
        child.exited = True
        if status is not None:
            if child.popen is not None:
                child.popen.returncode = os.waitstatus_to_exitcode(status)
            if os.WIFSIGNALED(status):
                child.signal = os.WTERMSIG(status)
                if os.WCOREDUMP(status):
                    child.core = kernel.core_file(child.directory, child.pid) or "dumped"
            else:
                child.exit_status = os.WEXITSTATUS(status)
                child.said = last_error(child.log) if child.exit_status else ""
        child.left = self._left(child)
        LOG.info(
            "%s (pid %d) has ended: %s%s",
            child.name,
            child.pid,
            f"signal {child.signal}"
            if child.signal
            else "exit status unknown"
            if child.exit_status is None
            else f"exit status {child.exit_status}",
            f"; its children still run: {child.left}" if child.left else "",
        )
        self._remember()

    def _left(self, child):
        """Pids of its running descendants. An orphan without the mark belongs to the leader of its session, else to the process that ended
        before the agent saw the orphan."""
        for pid in kernel.children():
            found = kernel.seen(pid)
            if found is None or any(pid == each.pid for each in self.known.values()) or kernel.variable_of(pid, MARK):
                continue
            if self.hidden.get(pid, (0,))[0] != found.start_ticks:
                leader = next((each.name for each in self.known.values() if each.pid == found.session), None)
                if leader or child.exited:
                    self.hidden[pid] = (found.start_ticks, leader or child.name)
        self.hidden = {
            pid: entry
            for pid, entry in self.hidden.items()
            if (found := kernel.seen(pid)) is not None and found.start_ticks == entry[0]
        }
        hidden = [pid for pid, (_, name) in self.hidden.items() if name == child.name]
        return sorted({*kernel.processes_with(MARK, self.mark + child.name), *hidden} - {child.pid})

    def child(self, name):
        child = self.known.get(name)
        if child is None:
            raise Refused("control.not_launched", f"{name} was not launched here", "")
        return child

    def signal(self, name, number):
        child = self.child(name)
        if child.exited or child.seen() is None:
            raise Refused("control.not_launched", f"{name} has ended", "")
        if number not in signal.valid_signals():
            raise Refused("control.argument", f"{number} is not a signal", "")
        with contextlib.suppress(ProcessLookupError):
            os.kill(child.pid, number)

    def _is_left(self, child, pid):
        found = kernel.seen(pid)
        return found is not None and (
            kernel.variable_of(pid, MARK) == self.mark + child.name
            or self.hidden.get(pid, (0,))[0] == found.start_ticks
        )

    def ask_to_end(self):
        """Sends TERM to all running processes and to their left descendants."""
        for child in self.known.values():
            for pid in [*self._left(child), *([] if child.exited else [child.pid])]:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, signal.SIGTERM)

    async def end(self, name, grace_s):
        """Sends TERM to the process and its descendants, after `grace_s` KILL. Returns the pids that still exist."""
        child = self.child(name)
        for number, patience_s in (
            (signal.SIGTERM, min(max(grace_s, 0.0), LONGEST_GRACE_S)),
            (signal.SIGKILL, KILLED_S),
        ):
            pids = self._left(child)
            if not child.exited and child.pid not in pids:
                pids.append(child.pid)
            for pid in pids:
                with contextlib.suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, number)
                    os.kill(pid, signal.SIGCONT)  # a stopped process handles no other signal
            until = time.monotonic() + patience_s
            while time.monotonic() < until and (
                not child.exited or any(kernel.seen(pid) for pid in pids if pid != child.pid)
            ):
                await asyncio.sleep(LOOK_S)
            if child.exited and not self._left(child):
                break
        child.left = self._left(child) if child.exited else []
        return child.left if child.exited else [child.pid]

    def forget(self, name):
        """Forgets an ended process, if it is known. Refused(control.runs) if it or one of its descendants runs."""
        child = self.known.get(name)
        if child is None:
            return
        if not child.exited:
            raise Refused("control.runs", f"{name} runs, as process {child.pid}", "")
        child.left = self._left(child)
        if child.left:
            raise Refused(
                "control.runs",
                f"{name} has ended, but processes that it started still run: {', '.join(map(str, child.left))}",
                "rodeo control abort ends it",
            )
        del self.known[name]
        self._remember()

    # Looks

    def list(self):
        for child in self.known.values():
            if child.left:
                child.left = [pid for pid in child.left if self._is_left(child, pid)]
            if not child.exited and child.popen is None and child.pidfd is None and child.seen() is None:
                self._ended(child, None)
        return [child.process() for child in self.known.values()]

    def running(self):
        return any(not child.exited or child.left for child in self.known.values())

    def logs_of(self):
        """The logs of all processes, and the agent's own."""
        return [*(child.log for child in self.known.values()), str(self.directory / "agent.log")]

    def note_lengths(self):
        """Notes the length of each log with the time, to date lines without a time."""
        now_ns = time.time_ns()
        for log in self.logs_of():
            self._note_length(log, now_ns)

    def _note_length(self, log, now_ns):
        with contextlib.suppress(OSError):
            self.marks.setdefault(log, log_records.Marks()).note(os.stat(log).st_size, now_ns)

    def log_of(self, name):
        """The log of a process, or of the agent itself. Refused(control.not_launched)."""
        if name == "agent" and name not in self.known:
            return str(self.directory / "agent.log")
        if name not in self.known and NAME.fullmatch(name) and (self.logs / f"{name}.jsonl").exists():
            return str(self.logs / f"{name}.log")  # a forgotten process keeps its log
        return self.child(name).log

    def _remember(self):
        """Writes the state file, so that the next agent finds the processes. If the disk is full, only this is lost."""
        part = self.state_file.with_suffix(".part")
        try:
            part.write_text(
                json.dumps({"boot": kernel.boot_id(), "processes": [child.as_json() for child in self.known.values()]})
            )
            os.replace(part, self.state_file)
        except OSError as error:
            LOG.warning("cannot write %s: %s", self.state_file, error.strerror)
