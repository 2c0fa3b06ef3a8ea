"""The agent: one process per system and host that starts the system's processes, keeps their logs and exits, and relays their control sockets.

It outlives the controller, and the processes outlive it: it ends a process only on request, or after `--end-after` (as in the
demo). Without connections and processes it ends by itself. Protocol: docs/reference/protocols/agent.md."""

import argparse
import asyncio
import contextlib
import errno
import fcntl
import hashlib
import json
import logging
import os
import signal
import stat
import sys
import time
from pathlib import Path

from rodeo.control import log_setup, paths
from rodeo.control.processes import agent_logs, file_modes, json_lines, kernel, log_records, sensors
from rodeo.control.processes.agent_children import Children
from rodeo.control.processes.disks import free_and_total
from rodeo.control.refused import Refused
from rodeo.saying import say
from rodeo.signals import heard

LOG = logging.getLogger("rodeo.agent")
VERSION = 1
SOCKET = ".agent"
LONGEST_REQUEST = 4 * 1024 * 1024  # limit of the bytes of a request
MOST_CONNECTIONS = 32
MOST_REQUESTS = 64  # limit of each connection; the agent reads no further request until it has answered one
LONGEST_READ = 16 * 1024 * 1024
LONGEST_ASK_S = 600.0
LONGEST_READ_OF_LOGS = 64 * 1024 * 1024
LEASH_S = 60.0
TICK_S = 1.0
LEAVING_TICK_S = 0.1
GRACE_S = 5.0  # pause between TERM and KILL for processes that --end-after ends


class Agent:
    """Used by one event loop; `children` are the processes."""

    def __init__(self, system, host, directory, leash_s=LEASH_S, end_after_s=None, to_the_end=False):
        self.system, self.host, self.leash_s, self.end_after_s, self.to_the_end = (
            system,
            host,
            leash_s,
            end_after_s,
            to_the_end,
        )
        self.leaving = False
        self.children = Children(system, host, directory)
        self.ended = asyncio.Event()
        self._connections = set()
        self._alone_since = time.monotonic()
        self._hashing = asyncio.Lock()

    async def tick(self):
        """Called once a second: bounds the logs, and ends the agent after its leash."""
        logs = self.children.logs_of()
        await asyncio.to_thread(
            bound_all, [*logs, *(str(Path(log).with_suffix(".jsonl")) for log in logs)]
        )  # programs may not bound their own logs, so the agent does
        self.children.note_lengths()
        if self.leaving and not self.children.running():
            self.ended.set()
        alone_s = time.monotonic() - self._alone_since
        if self._connections:
            self._alone_since = time.monotonic()
        elif not self.children.running():
            if alone_s > self.leash_s:
                LOG.info("no connection and no process: the agent ends")
                self.ended.set()
        elif self.end_after_s is None:
            self._alone_since = time.monotonic()
        elif alone_s > self.end_after_s:
            LOG.warning("no connection for %g s: all processes are ended", self.end_after_s)
            await asyncio.gather(
                *(
                    self.children.end(child.name, GRACE_S)
                    for child in self.children.list()
                    if child.state == "running" or child.left
                )
            )
            self.ended.set()

    def terminated(self):
        """SIGTERM or SIGINT. With --to-the-end the agent asks all processes to end, and stays until they have."""
        if self.to_the_end and not self.leaving and self.children.running():
            self.leaving = True
            LOG.warning("the job ends: all processes are asked to end")
            self.children.ask_to_end()
        elif not self.leaving:
            self.ended.set()

    # Connections

    async def connected(self, reader, writer):
        if len(self._connections) >= MOST_CONNECTIONS:
            writer.close()
            return
        self._connections.add(writer)
        slots, tasks = asyncio.Semaphore(MOST_REQUESTS), set()
        try:
            while line := await reader.readuntil(b"\n"):
                await slots.acquire()
                task = asyncio.ensure_future(self._answer(line, writer))
                tasks.add(task)
                task.add_done_callback(lambda done: (tasks.discard(done), slots.release()))
        except (asyncio.IncompleteReadError, asyncio.LimitOverrunError, OSError):
            pass
        finally:
            self._connections.discard(writer)
            writer.close()  # the requests in progress continue, so that a requested end happens

    async def _answer(self, line, writer):
        number = None
        try:
            request = json.loads(line)
            if not isinstance(request, dict):
                raise ValueError
            number = request.pop("id", None)
            answer = {"id": number, "ok": True, "reply": await self.handle(request)}
        except Refused as refused:
            answer = {"id": number, **refused.as_json()}
        except (ValueError, RecursionError):
            answer = {"id": number, **Refused("config.bad_json", "the line is not a JSON object", "").as_json()}
        except Exception as error:  # no request may end the agent
            LOG.exception("a request")
            answer = {"id": number, **Refused("control.internal", f"{type(error).__name__}: {error}", "").as_json()}
        with contextlib.suppress(OSError):
            writer.write(json.dumps(answer).encode() + b"\n")
            await writer.drain()

    async def handle(self, request):
        """The reply to one request, an object. Refused."""
        verb = request.pop("do", None)
        found = getattr(self, f"do_{verb}", None) if isinstance(verb, str) else None
        if found is None:
            raise Refused(
                "control.unknown_request",
                f"`{verb}` is not a request of an agent",
                "hello launch signal end list ask tail records forget disk sha256 read health leave",
            )
        try:
            return await found(**request)
        except TypeError as error:
            raise Refused("control.argument", f"{verb}: {error}", "") from None

    # Requests

    async def do_hello(self):
        return {
            "version": VERSION,
            "system": self.system,
            "host": self.host,
            "pid": os.getpid(),
            "node": os.uname().nodename,
            "directory": str(self.children.directory),
            "time_ns": time.time_ns(),
        }

    async def do_health(self, temperatures=True):
        """Reads the clock last: the sensors may take long."""
        found = await asyncio.to_thread(sensors.temperatures) if temperatures else None
        return {"temperatures": found, "time_ns": time.time_ns()}

    async def do_launch(self, spec):
        if self.ended.is_set() or self.leaving:
            raise Refused("control.agent_leaves", "the agent of this host is about to end", "launch again")
        return self.children.launch(spec if isinstance(spec, dict) else {}).process().as_json()

    async def do_signal(self, name, number):
        self.children.signal(name, int(number))

    async def do_end(self, name, grace_s):
        return await self.children.end(name, float(grace_s))

    async def do_list(self):
        return [process.as_json() for process in self.children.list()]

    async def do_ask(self, name, request, within_s):
        child = self.children.child(name)
        if not child.socket:
            raise Refused("control.unreachable", f"{name} has no control socket", "")
        return await json_lines.ask(
            paths.runtime_socket(child.socket), request, min(max(float(within_s), 0.0), LONGEST_ASK_S)
        )

    async def do_tail(self, name, lines, search=""):
        return await asyncio.to_thread(agent_logs.tail, self.children.child(name).log, int(lines), str(search))

    async def do_records(self, names, wanted):
        """Unknown processes have no records."""
        wanted, logs = log_records.Wanted.from_json(wanted), {}
        for name in dict.fromkeys(str(name) for name in names[:4096]):
            with contextlib.suppress(Refused):
                log = self.children.log_of(name)
                logs[name] = (log, self.children.marks.get(log, log_records.Marks()).known())
        return await asyncio.to_thread(log_records.newest, logs, wanted, LONGEST_READ_OF_LOGS)

    async def do_forget(self, name):
        self.children.forget(name)

    async def do_disk(self, path):
        found = await asyncio.to_thread(free_and_total, str(path))
        if found is None:
            raise Refused("control.disk", f"the file system of {path} cannot be read", "")
        return found

    async def do_sha256(self, paths):
        async with self._hashing:  # one file at a time: the disk limits the speed
            return {path: found for path in paths if (found := await asyncio.to_thread(sha256_of, path)) is not None}

    async def do_read(self, path, most):
        return await asyncio.to_thread(end_of, str(path), min(max(int(most), 0), LONGEST_READ))

    async def do_leave(self):
        """Ends the agent if no process runs."""
        running = [child.name for child in self.children.list() if child.state == "running" or child.left]
        if running:
            raise Refused(
                "control.runs", f"the agent stays: {', '.join(running[:5])} run{'s' if len(running) == 1 else ''}", ""
            )
        self.ended.set()


def bound_all(paths):
    """Bounds all logs. Blocks while it copies one."""
    for path in paths:
        agent_logs.bound(path)


def socket_of(system, host):
    """The Unix socket of the agent of a system on this host."""
    return paths.runtime_socket(system + ("" if host == "local" else f".{host}") + SOCKET)


def regular(path):
    """Opens a regular file to read. OSError, also for other kinds: a pipe would block, a device never end."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC), "rb")
    if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
        file.close()
        raise OSError(errno.EINVAL, "it is not a regular file")
    return file


def sha256_of(path):
    """Hex of a file's content, or None if it cannot be read. Blocks."""
    try:
        with regular(path) as file:
            return hashlib.file_digest(file, "sha256").hexdigest()
    except OSError:
        return None


def end_of(path, most):
    """The last bytes of a file, as text. Refused(control.file)."""
    try:
        with regular(path) as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - most))
            return file.read(most).decode(errors="replace")
    except OSError as error:
        raise Refused("control.file", f"cannot read {path}: {error.strerror}", "") from None


def directory_held(directory):
    """The locked file of an agent's directory, or None: an agent in another runtime directory holds the lock."""
    file = open(directory / "agent.lock", "ab")
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        file.close()
        return None
    except OSError as error:  # the file system has no such locks: the socket's lock must suffice
        LOG.warning("%s cannot be locked: %s", file.name, error.strerror)
    return file


async def serve(agent, socket_path):
    """Serves until the agent ends. The caller holds the lock of the socket."""
    with contextlib.suppress(FileNotFoundError):
        socket_path.unlink()
    agent.children.open()
    before = os.umask(0o177)
    try:
        server = await asyncio.start_unix_server(
            agent.connected, path=str(socket_path), limit=LONGEST_REQUEST, backlog=64
        )
    finally:
        os.umask(before)
    loop = asyncio.get_running_loop()
    for number in heard(signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, agent.terminated)
    while not agent.ended.is_set():
        try:
            await agent.tick()
        except Exception:  # no error may end the watch over the processes
            LOG.exception("a look")
        with contextlib.suppress(asyncio.TimeoutError):
            await asyncio.wait_for(agent.ended.wait(), LEAVING_TICK_S if agent.leaving else TICK_S)
    server.close()
    await asyncio.sleep(0)  # lets the event loop write the answers in progress


def main(argv=None):
    parser = argparse.ArgumentParser(prog="python -m rodeo.control.processes.agent", description=__doc__)
    parser.add_argument("--system", required=True, help="name of the system")
    parser.add_argument("--host", default="local", help="the name of this host in the system file")
    parser.add_argument(
        "--directory", required=True, help="the directory for logs, exits and the list of launched processes"
    )
    parser.add_argument(
        "--leash",
        type=float,
        default=LEASH_S,
        help="ends after this number of seconds without a connection and without a process",
    )
    parser.add_argument(
        "--end-after",
        type=float,
        help="ends all processes and itself after this number of seconds without a connection; default: never",
    )
    parser.add_argument(
        "--to-the-end",
        action="store_true",
        help="on SIGTERM asks all processes to end, and waits for them: for a job that ends with its agent",
    )
    options = parser.parse_args(argv)
    file_modes.set_umask_from_environment()
    signal.signal(signal.SIGHUP, lambda *_: None)  # not SIG_IGN: launched processes would inherit it
    directory = Path(options.directory).absolute()
    try:
        directory.mkdir(parents=True, exist_ok=True)
        path = socket_of(options.system, options.host)
        own = directory_held(directory)
        if own is None:
            raise Refused(
                "control.agent_runs", f"another agent already uses {directory}: with another RODEO_RUNTIME_DIR?", ""
            )
        lock = paths.hold(path)
        if lock is None:
            raise Refused("control.agent_runs", f"an agent of {options.system} runs on this host already", "")
    except (Refused, OSError) as error:
        say(error)
        return 5
    log_setup.begin("agent" if options.host == "local" else f"agent@{options.host}", directory / "agent.jsonl")
    kernel.become_subreaper()
    kernel.allow_cores()

    async def run():
        await serve(
            Agent(options.system, options.host, directory, options.leash, options.end_after, options.to_the_end), path
        )

    try:
        asyncio.run(run())
    finally:
        paths.remove_held(path, lock)
        own.close()
    return 0


if __name__ == "__main__":
    sys.exit(main())
