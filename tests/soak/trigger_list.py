"""The trigger authority's own list of events: a follower that takes everything and does nothing with it (docs/protocols/trigger.md)."""

import contextlib
import socket
import struct
import threading
import time

MAGIC, VERSION = 0x54524452, 2
HELLO, WELCOME, REFUSED, STATE, TRIGGERS = 1, 2, 3, 4, 5
HEADER = struct.Struct("<IHHI")
TRIGGERS_HEAD = struct.Struct("<QQIIHHI")
RANGE = struct.Struct("<IIIHHIHH")


def text(value):
    return bytes([len(value)]) + value.encode()


class TriggerList(threading.Thread):
    """Follows from the constructor to close(). `ranges`: (first id, count), ids with their epoch, in order."""

    def __init__(self, path, system, seed=1, name="checker"):
        super().__init__(name="trigger-list", daemon=True)
        self.ranges, self.accepted, self.error = [], 0, None
        self._ends = threading.Event()
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(str(path))
        self._send(HELLO, struct.pack("<HHQ", VERSION, 1, seed) + text(system) + text(name))
        kind, body = self._receive()
        if kind != WELCOME:
            raise RuntimeError(f"the trigger authority refuses the checker: {body[5:].decode(errors='replace')}")
        self.start()

    def close(self):
        self._ends.set()
        self.join()
        self._socket.close()

    def run(self):
        try:
            self._follow()
        except OSError as error:
            if not self._ends.is_set():
                self.error = str(error)

    def _follow(self):
        self._socket.settimeout(0.2)
        said = 0.0
        while not self._ends.is_set():
            if time.monotonic() - said > 0.2:
                said = time.monotonic()
                self._send(STATE, struct.pack("<HBBIQ", 1, 0, 0, 0, 1 << 60))
            with contextlib.suppress(TimeoutError):
                kind, body = self._receive()
                if kind == TRIGGERS:
                    self._take(body)

    def _take(self, body):
        count = TRIGGERS_HEAD.unpack_from(body)[5]
        for i in range(count):
            l1id, length, _, _, _, epoch, _, _ = RANGE.unpack_from(body, TRIGGERS_HEAD.size + i * RANGE.size)
            self.ranges.append((epoch << 32 | l1id, length))
            self.accepted += length

    def _send(self, kind, body):
        self._socket.sendall(HEADER.pack(MAGIC, kind, 0, len(body)) + body)

    def _receive(self):
        magic, kind, _, size = HEADER.unpack(self._exactly(HEADER.size))
        assert magic == MAGIC
        return kind, self._exactly(size)

    def _exactly(self, size):
        held = b""
        while len(held) < size:
            try:
                data = self._socket.recv(size - len(held))
            except TimeoutError:
                if held or self._ends.is_set():
                    continue
                raise
            if not data:
                raise OSError("the trigger authority has ended")
            held += data
        return held
