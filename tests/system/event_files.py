"""Reads event files with only the struct module: an independent implementation of docs/reference/formats/ that shares no code with the C++.

A broken rule raises Broken with the offset. The code is simple and slow on purpose.
"""

import json
import struct
import zlib
from dataclasses import dataclass, field

MASK64 = (1 << 64) - 1


class Broken(Exception):
    """The bytes contradict the documents."""


def require(condition, offset, what):
    if not condition:
        raise Broken(f"byte {offset}: {what}")


class Words:
    """Reads successive little-endian words."""

    def __init__(self, data, at=0, end=None):
        self.data, self.at, self.end = data, at, len(data) if end is None else end

    def take(self, count=None):
        size = 4 * (1 if count is None else count)
        require(self.at + size <= self.end, self.at, "cut short")
        words = struct.unpack_from(f"<{size // 4}I", self.data, self.at)
        self.at += size
        return words[0] if count is None else list(words)

    def expect(self, value, what):
        found = self.take()
        require(found == value, self.at - 4, f"{what} is {found:#x}, not {value:#x}")

    def text(self):
        size = self.take()
        padded = (size + 3) // 4 * 4
        require(self.at + padded <= self.end, self.at, "text cut short")
        raw = self.data[self.at : self.at + padded]
        require(raw[size:] == b" " * (padded - size), self.at, "texts are padded with spaces")
        self.at += padded
        return raw[:size].decode("ascii")


@dataclass
class Chunk:
    link_id: int
    felix_status: int
    rodeo_status: int
    data: bytes


@dataclass
class Rod:
    minor: int
    source_id: int
    run_number: int
    l1id: int
    bcid: int
    trigger_type: int
    event_type: int
    status: list
    position: int
    chunks: list = field(default_factory=list)


@dataclass
class Rob:
    source_id: int
    status: list
    checksum_type: int
    rod: Rod


@dataclass
class Event:
    number: int
    source_id: int
    status: list
    checksum_type: int
    time_s: int
    time_ns: int
    global_id: int
    run_type: int
    run_number: int
    lumi_block: int
    l1id: int
    bcid: int
    trigger_type: int
    compression: int
    stream_tags: str
    robs: list = field(default_factory=list)
    raw: bytes = b""


@dataclass
class EventFile:
    version: int
    file_number: int
    opened: tuple
    limits: tuple
    application: str
    core_name: str
    strings: list
    run: list
    events: list
    end: dict

    def string(self, key):
        return next((s[len(key) + 1 :] for s in self.strings if s.startswith(key + "=")), None)


def read_chunks(data, start, end):
    words, chunks = Words(data, start, end), []
    while words.at < end:
        first, link_id = words.take(2)
        size = first & 0xFFFF
        if size == 0xFFFF:
            size = words.take()
            require(size + 8 >= 0xFFFF, words.at, "long form for a short chunk")
        else:
            require(size >= 8, words.at, "chunk smaller than its header")
            size -= 8
        padded = (size + 3) // 4 * 4
        require(words.at + padded <= end, words.at, "chunk cut short")
        raw = data[words.at : words.at + padded]
        require(not any(raw[size:]), words.at, "padding is not zero")
        words.at += padded
        chunks.append(Chunk(link_id, first >> 16 & 0xFF, first >> 24, bytes(raw[:size])))
    return chunks


def read_rod(data, start, end):
    require(end - start >= 48, start, "ROD smaller than header and trailer")
    words = Words(data, start, end)
    words.expect(0xEE1234EE, "ROD marker")
    words.expect(9, "ROD header size")
    version = words.take()
    require(version >> 16 == 0x0301, start + 8, "ROD version")
    fields = words.take(6)
    status_count, data_count, position = Words(data, end - 12).take(3)
    require(end - start == 4 * (12 + status_count + data_count), end - 12, "ROD size")
    require(position in (0, 1), end - 4, "status position")
    body = start + 36
    status_at, data_at = (body, body + 4 * status_count) if position == 0 else (body + 4 * data_count, body)
    status = Words(data, status_at).take(status_count)
    return Rod(version & 0xFFFF, *fields, status, position, read_chunks(data, data_at, data_at + 4 * data_count))


def read_robs(data, start, end):
    robs = []
    while start < end:
        words = Words(data, start, end)
        words.expect(0xDD1234DD, "ROB marker")
        total, header_size = words.take(2)
        words.expect(0x05000000, "ROB version")
        source_id = words.take()
        status = words.take(words.take())
        checksum_type = words.take()
        require(header_size == 7 + len(status) and start + 4 * total <= end, start, "ROB sizes")
        rod_end = start + 4 * total
        if checksum_type:
            require(checksum_type == 2, start, "ROB checksum type")
            rod_end -= 4
            stored = Words(data, rod_end).take()
            require(zlib.adler32(data[words.at : rod_end]) == stored, rod_end, "ROB checksum")
        robs.append(Rob(source_id, status, checksum_type, read_rod(data, words.at, rod_end)))
        start += 4 * total
    return robs


def read_event(data, start, end, number):
    words = Words(data, start, end)
    words.expect(0xAA1234AA, "event marker")
    total, header_size = words.take(2)
    require(4 * total == end - start, start + 4, "event size is that of its data block")
    words.expect(0x05000000, "event version")
    source_id = words.take()
    status = words.take(words.take())
    checksum_type, time_s, time_ns, low, high = words.take(5)
    run_type, run_number, lumi_block, l1id, bcid, trigger_type, compression, uncompressed = words.take(8)
    lists = [words.take(words.take()) for _ in range(4)]
    require(words.at == start + 4 * header_size, start + 8, "event header size")
    payload_end = end
    if checksum_type:
        require(checksum_type == 2, start, "event checksum type")
        payload_end -= 4
        stored = Words(data, payload_end).take()
        require(zlib.adler32(data[words.at : payload_end]) == stored, payload_end, "event checksum")
    tags = struct.pack(f"<{len(lists[3])}I", *lists[3]).rstrip(b"\0").decode("ascii")
    event = Event(
        number,
        source_id,
        status,
        checksum_type,
        time_s,
        time_ns,
        high << 32 | low,
        run_type,
        run_number,
        lumi_block,
        l1id,
        bcid,
        trigger_type,
        compression,
        tags,
    )
    payload = data[words.at : payload_end]
    if compression:
        stream = zlib.decompressobj()
        plain = stream.decompress(payload)
        require(
            stream.eof and len(stream.unused_data) < 4 and not any(stream.unused_data),
            words.at,
            "zlib stream, then zeros",
        )
        require(len(plain) == 4 * uncompressed, words.at, "uncompressed size")
        event.robs = read_robs(plain, 0, len(plain))
    else:
        require(len(payload) == 4 * uncompressed, words.at, "payload size")
        event.robs = read_robs(data, words.at, payload_end)
    return event


def _crc16_of_byte(byte):
    crc = byte << 8
    for _ in range(8):
        crc = (crc << 1 ^ 0x8BB7) & 0xFFFF if crc & 0x8000 else crc << 1 & 0xFFFF
    return crc


CRC16_OF_BYTE = [_crc16_of_byte(byte) for byte in range(256)]


def crc16(data):
    """The CRC-16 of T10 DIF."""
    crc = 0
    for byte in data:
        crc = crc << 8 & 0xFFFF ^ CRC16_OF_BYTE[crc >> 8 ^ byte]
    return crc


class HeaderChecks:
    """Reads the checks of event headers: their record follows one of these events in its data block."""

    def __init__(self):
        self.waiting = []
        self.checked = 0

    def block(self, number, data):
        """Reads the event of a data block. If a record of checks follows, checks the headers of the events up to this one."""
        size, header = 4 * struct.unpack_from("<I", data, 4)[0], 4 * struct.unpack_from("<I", data, 8)[0]
        event, record = data[:size], data[size:]
        self.waiting.append((number, struct.pack("<I", number) + event[:header]))
        if record:
            marker, words, first = struct.unpack_from("<III", record)
            count, crc = struct.unpack_from("<HH", record, len(record) - 4)
            require(
                marker == 0x1234CCCD and 4 * words == len(record) == 4 * (4 + (count + 1) // 2),
                size,
                "record of header checks",
            )
            require(crc16(record[:-2]) == crc, size, "CRC of the header checks")
            checks = struct.unpack_from(f"<{count}H", record, 12)
            require(
                [number for number, _ in self.waiting] == list(range(first, first + count)),
                size,
                "events of the header checks",
            )
            require([crc16(header) for _, header in self.waiting] == list(checks), size, "header checks")
            self.checked += count
            self.waiting = []
        return event


def check_file_crc(data):
    at = data.index(b"Rodeo-CRC32=") + len(b"Rodeo-CRC32=")
    digits = data[at : at + 8].decode("ascii")
    found = zlib.crc32(data[:at] + b"00000000" + data[at + 8 :])
    require(digits == f"{found:08x}", at, f"CRC of the file is {digits}, the data give {found:08x}")


def read_event_file(path):
    data = path.read_bytes()
    words = Words(data)
    words.expect(0x1234AAAA, "start marker")
    words.expect(8, "start record size")
    version, file_number, date, time, max_blocks, max_mib = words.take(6)
    require(version == 6, 8, "version")
    words.expect(0x1234AABB, "names marker")
    application, core_name = words.text(), words.text()
    words.expect(0x1234AABC, "free strings marker")
    strings = [words.text() for _ in range(words.take())]
    words.expect(0x1234BBBB, "run parameters marker")
    words.expect(12, "run parameters size")
    run = words.take(10)
    file = EventFile(
        version, file_number, (date, time), (max_blocks, max_mib), application, core_name, strings, run, [], {}
    )
    block_bytes, checks = 0, HeaderChecks()
    while (marker := words.take()) == 0x1234CCCC:
        words.expect(4, "separator size")
        number, size = words.take(2)
        require(words.at + size <= len(data), words.at, "data block cut short")
        require(not file.events or number == file.events[-1].number + 1, words.at, "block number")
        raw = checks.block(number, data[words.at : words.at + size])
        file.events.append(read_event(data, words.at, words.at + len(raw), number))
        file.events[-1].raw = raw
        words.at += size
        block_bytes += size
    require(marker == 0x1234DDDD, words.at - 4, "neither separator nor end")
    words.expect(10, "end record size")
    names = ["date", "time", "blocks_in_file", "mib_in_file", "blocks_in_sequence", "mib_in_sequence", "last"]
    file.end = dict(zip(names, words.take(7)))
    words.expect(0x1234EEEE, "last word")
    require(words.at == len(data), words.at, "bytes behind the end")
    require(file.end["blocks_in_file"] == len(file.events), words.at, "number of blocks")
    require(file.end["mib_in_file"] == (block_bytes + (1 << 19)) >> 20, words.at, "MiB in the file")
    require(not checks.checked or not checks.waiting, words.at, "headers without a check")
    check_file_crc(data)
    return file


def mix(x):
    x ^= x >> 32
    x = x * 0xE9846AF9B1A615D & MASK64
    x ^= x >> 32
    x = x * 0xE9846AF9B1A615D & MASK64
    return x ^ x >> 28


def provable_trigger(seed, l1id):
    """BCID and trigger type of an L1 id."""
    h = mix(seed ^ (l1id << 16 | 0x7719))
    return (h >> 32) * 3564 >> 32, h & 0xFF


def provable_chunk(seed, link_id, l1id, size, crc, wrong_bcid=None):
    """The payload of a link for an L1 id (docs/reference/formats/provable-payload.md), optionally with another BCID."""
    bcid, trigger_type = provable_trigger(seed, l1id)
    bcid = bcid if wrong_bcid is None else wrong_bcid
    crc_size = 4 if crc and size >= 12 else 0
    word = mix(seed + (link_id << 32 | l1id) * 0xD1342543DE82EF95 & MASK64)
    body = struct.pack("<IHBB", l1id, bcid, trigger_type, 0xD0 + size if 8 <= size < 16 else 0xC6) + struct.pack(
        "<Q", word + size & MASK64
    )
    while len(body) < size - crc_size:
        word = word + 0x9E3779B97F4A7C15 & MASK64
        body += struct.pack("<Q", word)
    body = body[: size - crc_size]
    return body + struct.pack("<I", zlib.crc32(body)) if crc_size else body


def prove(file):
    """Compares every chunk with the payload that its link sent; returns (proven, flagged). Flagged chunks may differ."""
    words = dict(item.split("=") for item in file.string("Rodeo-Payload").split()[1:])
    seed, crc = int(words["seed"]), words["crc"] == "1"
    proven = flagged = 0
    for event in file.events:
        for rob in event.robs:
            links = [chunk.link_id for chunk in rob.rod.chunks]
            require(len(set(links)) == len(links), event.number, "a link is there twice")
            bcids_differ = bool(rob.rod.status[0] & 1)
            if links and not bcids_differ:
                require(
                    (rob.rod.bcid, rob.rod.trigger_type) == provable_trigger(seed, rob.rod.l1id),
                    event.number,
                    "trigger of the ROD",
                )
            for chunk in rob.rod.chunks:
                if chunk.data == provable_chunk(seed, chunk.link_id, rob.rod.l1id, len(chunk.data), crc):
                    proven += 1
                    continue
                flagged += 1
                if chunk.rodeo_status | chunk.felix_status:
                    continue
                sent = provable_chunk(
                    seed, chunk.link_id, rob.rod.l1id, len(chunk.data), crc, struct.unpack_from("<H", chunk.data, 4)[0]
                )
                require(bcids_differ and chunk.data == sent, event.number, f"chunk of link {chunk.link_id:#x}")
    return proven, flagged


READOUT = """
[readout]
name = "before"
[readout.input]
type = "generator"
links = 24
rate = "20kHz"
events = 3000
[readout.builder]
type = "gbt"
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x00610001"
[[readout.consumer]]
type = "file_writer"
directory = "."
full_queue = "wait"
"""


def write_event_file(rodeo, name):
    """Writes a file with a readout, as input for tests that replay files."""
    (rodeo.directory / "before.toml").write_text(READOUT)
    (file,) = json.loads(rodeo("readout", "before.toml", "--json", "-").stdout)["files"]
    (rodeo.directory / file).rename(rodeo.directory / name)
