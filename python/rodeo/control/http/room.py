"""A control room as a process: the controller, its two entrances (a Unix socket, a loopback port), signals, and the message at the end."""

import asyncio
import contextlib
import errno
import ipaddress
import logging
import os
import signal
import socket
import struct
import sys
import time
from pathlib import Path

from rodeo.control import log_setup, paths
from rodeo.control.http.auth import login_name
from rodeo.control.http.command_gate import Desk
from rodeo.control.http.request_limits import Waiting
from rodeo.control.http.security import Sessions
from rodeo.control.http.server import Server
from rodeo.control.paths import needed
from rodeo.control.processes import file_modes
from rodeo.control.refused import Refused
from rodeo.saying import say
from rodeo.signals import heard

LOG = logging.getLogger("rodeo.control")
LONGEST_HEAD = 16 * 1024  # limit of a request's bytes before its body
HEAD_S = 10.0  # a connection without a request is closed after this time


def listen_address(text: str) -> tuple[str, int]:
    """Host and port of `control.listen`. Refused: control.not_loopback, control.listen."""
    host, _, port = text.rpartition(":")
    if not (port.isascii() and port.isdigit() and int(port) < 65536 and host):
        raise Refused(
            "control.listen",
            f"`{text}` is not an address with a port",
            "for example 127.0.0.1:0; port 0 takes a free one",
        )
    host = host.strip("[]")
    with contextlib.suppress(ValueError):
        if host == "localhost" or ipaddress.ip_address(host).is_loopback:
            return ("127.0.0.1" if host == "localhost" else host), int(port)
    raise Refused(
        "control.not_loopback",
        f"`{host}` is not a loopback address: without TLS and a login, a control room listens only on loopback",
        "use 127.0.0.1:0; from other hosts use `ssh -L`",
    )


class Room:
    """Serves one controller. `name` of the system; `listen` None: only the Unix socket, no port. `lock` is the held lock of the room's socket."""

    def __init__(
        self,
        controller,
        name,
        listen: tuple[str, int] | None,
        *,
        lock=None,
        monotonic=time.monotonic,
        utc_ns=time.time_ns,
    ):
        self.name, self.listen, self.lock = name, listen, lock
        self.socket = paths.room_socket(name)
        self.desk = Desk(controller, monotonic=monotonic, utc_ns=utc_ns)
        self.sessions = Sessions(login_name())
        self.server = Server(controller, self.desk, self.sessions)
        self.addresses = self.server.addresses
        self._uvicorns, self._tasks = [], []

    async def open(self):
        """Begins to listen. Refused: control.room_runs (another room of this name runs), control.listen."""
        self.lock = self.lock or hold_room(self.name)
        await self.desk.open()
        if self.listen:
            port = _bound_port(self.listen)
            number = port.getsockname()[1]
            host = f"[{self.listen[0]}]" if ":" in self.listen[0] else self.listen[0]
            for role, token in self.sessions.tokens.items():
                self.addresses[role] = f"http://{host}:{number}/?token={token}"
            self._serve(self.server.door("tcp", number), port)
        self._serve(self.server.door("unix"), _bound_unix(self.socket))
        for each in self._uvicorns:
            while not each.started:
                if (ended := next((task for task in self._tasks if task.done()), None)) is not None:
                    await ended
                    raise Refused("control.listen", "the server ended while it started", "")
                await asyncio.sleep(0.01)
        self._tasks.append(asyncio.ensure_future(self._tick()))

    def _serve(self, app, bound):
        uvicorn = needed("uvicorn")
        h11 = needed("uvicorn.protocols.http.h11_impl")
        sansio = needed("uvicorn.protocols.websockets.websockets_sansio_impl")

        class Quiet(uvicorn.Server):
            """Leaves signals to the room."""

            @contextlib.contextmanager
            def capture_signals(self):
                yield

        config = uvicorn.Config(
            app,
            http=_protocol(h11.H11Protocol),
            ws=sansio.WebSocketsSansIOProtocol,
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            ws_max_size=4096,
            h11_max_incomplete_event_size=LONGEST_HEAD,
            proxy_headers=False,
            server_header=False,
            timeout_graceful_shutdown=2,
            timeout_keep_alive=30,
        )
        server = Quiet(config)
        self._uvicorns.append(server)
        self._tasks.append(asyncio.ensure_future(server.serve(sockets=[bound])))

    async def _tick(self):
        while True:
            await asyncio.sleep(1.0)
            try:
                await self.desk.tick()
            except Exception:
                LOG.exception("the lease")

    async def close(self):
        """Ends all connections and commands, and removes the socket."""
        self.server.ending.set()
        for each in self._uvicorns:
            each.should_exit = True
        for task in self._tasks[len(self._uvicorns) :]:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.desk.close()
        if self.lock is not None:
            paths.remove_held(self.socket, self.lock)
            self.lock = None


def hold_room(name):
    """Takes the lock of a system's room. Refused(control.room_runs) if a room of this name runs."""
    lock = paths.hold(paths.room_socket(name))
    if lock is None:
        raise Refused(
            "control.room_runs", f"a control room of `{name}` runs already", f"rodeo control status --system {name}"
        )
    return lock


def _bound_port(listen):
    bound = socket.socket(socket.AF_INET6 if ":" in listen[0] else socket.AF_INET, socket.SOCK_STREAM)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(listen)
    except OSError as error:
        bound.close()
        taken = error.errno == errno.EADDRINUSE
        raise Refused(
            "control.listen",
            f"cannot listen on {listen[0]}:{listen[1]}: {error.strerror}",
            "use another port, or 0 for a free one"
            if taken
            else "use an address of this host: `ip address` shows them",
        ) from None
    return bound


def _bound_unix(path):
    """Binds the Unix socket. Its mode is set before it listens, so before any client can connect. An old socket belongs to a dead room: we hold the lock."""
    with contextlib.suppress(FileNotFoundError):
        path.unlink()
    bound = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        bound.bind(str(path))
        os.chmod(path, 0o600)
    except OSError as error:
        bound.close()
        raise Refused(
            "control.listen",
            f"cannot listen on {path}: {error.strerror}",
            "set RODEO_RUNTIME_DIR to a directory of your own",
        ) from None
    return bound


def _protocol(base):
    waiting = Waiting()  # the waiting connections of this entrance

    class Known(base):
        """HTTP from a known user: on a Unix socket the kernel names it. A silent connection is closed; if too many wait, the oldest is closed."""

        def connection_made(self, transport):
            super().connection_made(transport)
            peer = transport.get_extra_info("socket")
            self._silent = self.loop.call_later(HEAD_S, self._close_silent)
            if peer is not None and peer.family == socket.AF_UNIX:
                _, uid, _ = struct.unpack(
                    "3i", peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
                )
                if uid not in (0, os.geteuid()):
                    LOG.warning("a connection of user %d was refused", uid)
                    return transport.abort()
            self._waits()

        def _waits(self):
            if (oldest := waiting.add(self)) is not None:
                oldest.transport.abort()

        def handle_events(self):
            super().handle_events()
            if self.cycle is not None and not self.cycle.response_complete:
                waiting.remove(self)

        def on_response_complete(self):
            super().on_response_complete()
            if not self.transport.is_closing():
                self._waits()

        def handle_websocket_upgrade(self, event):
            waiting.remove(self)
            super().handle_websocket_upgrade(event)

        def _close_silent(self):
            if self.scope is None:  # the connection has sent no complete request so far
                self.transport.close()

        def connection_lost(self, exc):
            self._silent.cancel()
            waiting.remove(self)
            super().connection_lost(exc)

    return Known


def leave_token(file, token):
    """Writes the token for Prometheus or another viewer into a file that only this user can read."""
    file = Path(file)
    part = file.with_name(file.name + ".part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
        out.write(token + "\n")
    os.replace(part, file)


def farewell(document: dict) -> str:
    """The message at the end of the control room: what continues, and how to come back."""
    alive = [
        each["name"]
        for each in document.get("processes") or []
        if each.get("phase") not in ("absent", "done", "failed")
    ]
    run, system = document.get("run"), document.get("system") or {}
    back = f"rodeo control {system.get('file') or 'SYSTEM'}"
    if run:
        return (
            f"run {run['number']} continues without the control room, with {_processes(alive)}; no data are lost.\n"
            f"come back to it:  {back}\nto end the run:   the same, then rodeo control stop"
        )
    if alive:
        return f"{_processes(alive)} continue{'s' if len(alive) == 1 else ''} without the control room.\ncome back:    {back}\nto end this:  the same, then rodeo control close"
    return "no process runs; the control room has ended."


def _processes(names):
    return f"{len(names)} process{'' if len(names) == 1 else 'es'} ({', '.join(names[:4])}{', ...' if len(names) > 4 else ''})"


async def serve(
    controller, name, listen, *, lock=None, token_file=None, out=None, err=None, signals=(signal.SIGINT, signal.SIGTERM)
):
    """Opens the controller and its room, prints the address, and serves until a signal; then prints what continues. `lock`: the held lock of the room.
    `token_file`: contains the viewers' token while the room serves.
    The only line on `out` is the address for experts, or the path of the socket if the room has no port."""
    out, err = out or sys.stdout, err or sys.stderr
    loop, asked, signals = asyncio.get_running_loop(), asyncio.Event(), heard(*signals)
    for number in signals:
        loop.add_signal_handler(number, asked.set)
    room, left = Room(controller, name, listen, lock=lock), False
    try:
        await controller.open()
        await room.open()
        if token_file is not None and listen:
            leave_token(token_file, room.sessions.tokens["viewer"])
            left = True
        print(room.addresses["expert"] if listen else str(room.socket), file=out, flush=True)
        if listen:
            say(
                f"control room of {name}: open the address above; for other roles: rodeo control status --addresses --system {name}",
                err,
            )
        await asked.wait()
        say(farewell(controller.document()), err)
    finally:
        if left:  # if this room has not written the file, it may belong to another room
            Path(token_file).unlink(missing_ok=True)
        await room.close()
        await controller.close()
        for number in signals:
            loop.remove_signal_handler(number)


def main(file, *, listen=None, page=True, verbose=False):
    """`rodeo control SYSTEM`: serves until a signal. Returns the exit status; Refused if the room cannot begin."""
    from rodeo.control.run.controller import Controller
    from rodeo.control.state.system import load

    for noisy in ("httpx", "httpcore", "uvicorn", "uvicorn.error", "asyncio", "alembic", "sqlalchemy"):
        logging.getLogger(noisy).setLevel(logging.WARNING)
    system = load(Path(file), paths.rodeo_command())
    address = listen_address(listen or system.listen) if page else None
    lock = hold_room(system.name)
    file_modes.set_umask(system.umask)
    log_setup.begin(
        "control",
        system.directory / "control.jsonl",
        level=logging.DEBUG if verbose else logging.INFO,
        datefmt="%H:%M:%S",
    )
    asyncio.run(
        serve(Controller(system), system.name, address, lock=lock, token_file=system.directory / "viewer.token")
    )
    return 0
