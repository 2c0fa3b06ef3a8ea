"""A room whose controller has no processes, for decisions of the server alone (permissions, control, answers of routes).

The server, its sockets and its clients are real; the server runs in a thread with its own loop."""

import asyncio
import json
import threading
import time

from rodeo.control.http.room import Room, serve
from rodeo.control.refused import Refused

DOCUMENT = {
    "sequence": 1,
    "time_ns": 1,
    "system": {"name": "idle", "file": "idle.toml", "directory": "idle", "build": "0", "sha256": "0"},
    "state": "READY",
    "flags": [],
    "since_ns": 1,
    "what": "",
    "waiting_for": [],
    "act": None,
    "run": None,
    "last_run": None,
    "numbers": {"events": None, "trigger_rate_hz": None},
    "limited_by": None,
    "headline": {"word": "READY", "severity": "ready", "cause": None},
    "processes": [{"name": "cards", "kind": "emulator", "host": "local", "phase": "ready"}],
    "links": {"total": 0, "active": 0, "removed": 0, "bad": []},
    "alarms": [],
    "lease": None,
    "commands": {},
    "hosts": [],
    "externals": [],
    "database": {"state": "good", "journal": 0, "run_numbers": None},
}


class Database:
    """Stands for the writer and the reads of the database: keeps what is written."""

    def __init__(self):
        self.rows, self.remembered = [], {}

    async def audit(self, actor, whence, role, command, arguments, outcome, detail):
        self.rows.append((actor, whence, role, command, arguments, outcome, detail))

    async def run(self, number):
        raise Refused("control.no_run", f"there is no run {number}", "")

    async def remember(self, key, value):
        self.remembered[key] = value

    async def recall(self, key):
        return self.remembered.get(key)


class Idle:
    """Commands only change the document; `hold` (an asyncio.Event) makes them wait."""

    def __init__(self):
        self.writer = self.reads = Database()
        self.now, self.commands, self.hold = dict(DOCUMENT), [], None
        self.changed = asyncio.Condition()

    async def open(self):
        """There are no processes to find."""

    async def close(self):
        """There is nothing to end."""

    def document(self):
        return self.now

    def put(self, **members):
        self.now = {**self.now, **members, "sequence": self.now["sequence"] + 1}
        self.wake = asyncio.ensure_future(self._tell())

    async def _tell(self):
        async with self.changed:
            self.changed.notify_all()

    async def wait_change(self, sequence):
        async with self.changed:
            await self.changed.wait_for(lambda: self.now["sequence"] != sequence)

    def set_lease(self, lease):
        self.put(lease=lease)

    async def command(self, name, arguments, actor, still):
        self.commands.append((name, arguments, actor))
        if self.hold is not None:
            await self.hold.wait()
        still()
        if name == "pause":
            raise Refused("control.state", "no run is open", "rodeo control start")
        if name == "resume":
            raise ZeroDivisionError("a fault of the controller")
        self.put(what=f"{name} was done")
        return {"run": 7} if name == "start" else {}

    def series(self, names, seconds):
        return {name: {"t": [1], "v": [seconds]} for name in names}

    def links(self, process):
        return [{"fid": "0x1", "process": process}]

    async def log_lines(self, process, *, lines, **wanted):
        return [
            {
                "time_ns": 10**18 + 5 * 10**6,
                "level": "warning",
                "audience": "operator",
                "run": 7,
                "process": process or "cards",
                "message": json.dumps(wanted),
                "fields": {"code": "x.y", "next": ""},
                "repeats": 2,
            }
        ][:lines]

    def rules(self):
        return [{"name": "dead_time"}]

    def metrics(self):
        return "rodeo_room_run_number 0\n"

    def configuration(self):
        return {"files": []}


def serve_idle(name, listen):
    """Serves in this process until a signal, like `rodeo control SYSTEM`."""

    async def run():
        await serve(Idle(), name, listen)

    asyncio.run(run())


class IdleRoom:
    """`with IdleRoom() as room:` - room.port, room.tokens, room.socket; room.call(function) runs something on its loop."""

    def __init__(self, name="idle", listen=("127.0.0.1", 0)):
        self.name, self.listen, self.clock_s = name, listen, 0.0

    def __enter__(self):
        self.loop = asyncio.new_event_loop()
        self.thread = threading.Thread(target=self.loop.run_forever)
        self.thread.start()
        try:
            self.run(self._open())
        except BaseException:
            self._end()
            raise
        return self

    async def _open(self):
        self.controller = Idle()
        self.room = Room(self.controller, self.name, self.listen, monotonic=lambda: time.monotonic() + self.clock_s)
        try:
            await self.room.open()
        except BaseException:
            await self.room.close()
            raise
        self.tokens, self.socket = self.room.sessions.tokens, self.room.socket
        self.port = int(self.room.addresses["expert"].split(":")[2].split("/")[0]) if self.listen else None

    def __exit__(self, *_):
        try:
            self.run(self.room.close())
        finally:
            self._end()

    def _end(self):
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def run(self, coroutine):
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result(120)

    def call(self, function):
        async def on_the_loop():
            return function()

        return self.run(on_the_loop())

    @property
    def rows(self):
        return self.call(lambda: list(self.controller.writer.rows))

    @property
    def base(self):
        return f"http://127.0.0.1:{self.port}"
