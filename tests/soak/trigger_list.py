"""The trigger authority's list of events: a follower that accepts everything and only stores it (docs/reference/protocols/trigger.md)."""

import contextlib
import select
import socket
import struct
import subprocess
import sys
import time

import numpy

MAGIC, VERSION = 0x54524452, 3
HELLO, WELCOME, REFUSED, STATE, TRIGGERS, GREETING = 1, 2, 3, 4, 5, 6
HEADER = struct.Struct("<IHHI")
TRIGGERS_HEAD = struct.Struct("<QQIIHHI")
RANGE = struct.Struct("<IIIHHIHH")
LISTED = numpy.dtype([("first", "<u8"), ("count", "<u8")])


class TriggerList:
    """Follows from the constructor to close(), in a separate process: the process that makes faults may stall while a busy disk loads a program, and
    the authority drops followers that are silent for seconds."""

    def __init__(self, path, system, file):
        self._file, self.error = file, None
        self._process = subprocess.Popen(
            [sys.executable, "-B", __file__, str(path), system, str(file)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        if (said := self._process.stdout.readline()) != "follows\n":
            raise RuntimeError(f"the checker cannot follow the trigger authority: {said.strip() or 'it said nothing'}")

    def _listed(self):
        data = self._file.read_bytes()
        return numpy.frombuffer(data[: len(data) // LISTED.itemsize * LISTED.itemsize], LISTED)

    @property
    def ranges(self):
        """Ranges (first id, count) in order; ids include the epoch."""
        return [(int(first), int(count)) for first, count in self._listed()]

    @property
    def accepted(self):
        return int(self._listed()["count"].sum())

    def close(self):
        """Ends the follower. `error` is then the reason if it had ended before."""
        if not self._process.stdin.closed:
            self.error = self._process.communicate()[0].strip() or None


class Follower:
    def __init__(self, path, system, seed=1, name="checker"):
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._socket.connect(path)
        self._send(HELLO, struct.pack("<HHQ", VERSION, 1, seed) + _text(system) + _text(name))
        kind, body = self._receive()
        if kind == GREETING:
            self._send(
                GREETING, body
            )  # without a secret, a handshake compares only versions: the follower repeats those of the authority
            kind, body = self._receive()
        if kind != WELCOME:
            raise OSError(f"it refuses: {body[5:].decode(errors='replace')}")

    def follow(self, listed, stop):
        """Writes ranges of ids until the other end of `stop` is closed."""
        said = 0.0
        while True:
            if time.monotonic() - said > 0.2:
                said = time.monotonic()
                self._send(STATE, struct.pack("<HBBIQ", 1, 0, 0, 0, 1 << 60))
            readable = select.select([self._socket, stop], [], [], 0.2)[0]
            if stop in readable:
                return
            if self._socket in readable:
                kind, body = self._receive()
                if kind == TRIGGERS:
                    self._take(body, listed)

    def _take(self, body, listed):
        count = TRIGGERS_HEAD.unpack_from(body)[5]
        for i in range(count):
            l1id, length, _, _, _, epoch, _, _ = RANGE.unpack_from(body, TRIGGERS_HEAD.size + i * RANGE.size)
            listed.write(struct.pack("<QQ", epoch << 32 | l1id, length))
        listed.flush()

    def _send(self, kind, body):
        self._socket.sendall(HEADER.pack(MAGIC, kind, 0, len(body)) + body)

    def _receive(self):
        magic, kind, _, size = HEADER.unpack(self._exactly(HEADER.size))
        assert magic == MAGIC
        return kind, self._exactly(size)

    def _exactly(self, size):
        held = b""
        while len(held) < size:
            data = self._socket.recv(size - len(held))
            if not data:
                raise OSError("the trigger authority has ended")
            held += data
        return held


def _text(value):
    return bytes([len(value)]) + value.encode()


def main(path, system, file):
    try:
        follower = Follower(path, system)
        with open(file, "wb") as listed:
            print("follows", flush=True)
            follower.follow(listed, sys.stdin)
    except OSError as error:
        with contextlib.suppress(BrokenPipeError):
            print(error, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
