"""A network worse than loopback: a proxy between publishers and subscribers that delays, stalls or cuts the traffic."""

import contextlib
import json
import selectors
import socket
import struct
import threading
import time

ACCEPT = 4


class NetworkProxy:
    """Copies every entry of the bus `bus` to the bus `seen`, with this proxy as its address. Pages and control messages pass through, both ways."""

    def __init__(self, bus, seen):
        self.delay = 0.0  # seconds by which all data are late
        self.flowing = threading.Event()  # while this is cleared, no pages pass
        self.flowing.set()
        self.cut_after = None  # after this number of bytes of pages the connection ends; None: never
        self.page_bytes = 0
        self._pages_at = None
        self._ends = threading.Event()
        self._threads, self._listeners = [], []
        self._data_port = self._listen(self._pages)
        seen.mkdir()
        for file in bus.glob("*.json"):
            entry = json.loads(file.read_text())
            at = (entry["address"], entry["port"])
            entry["port"] = self._listen(lambda client, at=at: self._control(client, at))
            (seen / file.name).write_text(json.dumps(entry))

    def close(self):
        self._ends.set()
        self.flowing.set()
        for thread in self._threads:
            thread.join()

    def _start(self, function, *arguments):
        thread = threading.Thread(target=function, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _listen(self, serve):
        listener = socket.create_server(("127.0.0.1", 0))
        listener.settimeout(0.1)

        def accept():
            with listener:
                while not self._ends.is_set():
                    with contextlib.suppress(TimeoutError):
                        self._start(serve, listener.accept()[0])

        self._start(accept)
        return listener.getsockname()[1]

    def _control(self, client, at):
        held = bytearray()

        def from_publisher(data):
            held.extend(data)
            out = b""
            while len(held) >= 8 and len(held) >= 8 + struct.unpack_from("<I", held)[0]:
                size, kind = struct.unpack_from("<IH", held)
                message = held[: 8 + size]
                del held[: 8 + size]
                if kind == ACCEPT:  # the address in an ACCEPT is a sockaddr_in
                    where = 8 + 2 + 16 + 4 + 4 + 2 + 2
                    self._pages_at = struct.unpack_from(">H", message, where)[0]
                    struct.pack_into(">H", message, where, self._data_port)
                out += message
            return out

        self._pump(client, at, from_publisher)

    def _pages(self, client):
        def from_publisher(data):
            while not self.flowing.wait(0.1) and not self._ends.is_set():
                pass
            self.page_bytes += len(data)
            if self.cut_after is not None and self.page_bytes > self.cut_after:
                data, self.cut_after = data[: len(data) // 2], None
                return data, "cut"
            return data

        self._pump(client, ("127.0.0.1", self._pages_at), from_publisher)

    def _pump(self, client, at, from_publisher):
        with (
            contextlib.suppress(OSError),
            client,
            socket.create_connection(at) as publisher,
            selectors.DefaultSelector() as selector,
        ):
            selector.register(client, selectors.EVENT_READ, (client, publisher, bytes))
            selector.register(publisher, selectors.EVENT_READ, (publisher, client, from_publisher))
            while not self._ends.is_set():
                for key, _ in selector.select(0.1):
                    source, target, change = key.data
                    data = source.recv(50_000)
                    if not data:
                        return
                    time.sleep(self.delay)
                    changed = change(data)
                    if isinstance(changed, tuple):
                        target.sendall(changed[0])
                        return
                    target.sendall(changed)


@contextlib.contextmanager
def network_proxy(bus, seen):
    proxy = NetworkProxy(bus, seen)
    try:
        yield proxy
    finally:
        proxy.close()
