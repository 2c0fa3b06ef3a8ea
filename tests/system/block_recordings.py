"""Reads and writes recordings of FELIX blocks (docs/reference/formats/felix-blocks.md) without any C++ code: 1 KiB blocks with 16-bit trailers."""

import struct

BLOCK, HEADER, TRAILER, MARKER = 1024, 4, 2, 0xABCD
FIRST, LAST, BOTH, MIDDLE, TIMEOUT = 1, 2, 3, 4, 5
ELINK_BITS = 0x7FF


def chunks_of(path):
    """Returns the chunks by E-link. Trailers follow their data, so a block is read from its end."""
    data = path.read_bytes()
    assert len(data) % BLOCK == 0
    chunks, rest = {}, {}
    for at in range(0, len(data), BLOCK):
        word, marker = struct.unpack_from("<HH", data, at)
        assert marker == MARKER
        elink = word & ELINK_BITS
        pieces, end = [], at + BLOCK
        while end > at + HEADER:
            (trailer,) = struct.unpack_from("<H", data, end - TRAILER)
            kind, length = trailer >> 13, trailer & 0x3FF
            length = 0 if kind in (0, 7) else length
            begin = end - TRAILER - length - (length & 1)
            pieces.append((kind, data[begin : begin + length]))
            end = begin
        for kind, piece in reversed(pieces):
            if kind in (FIRST, BOTH):
                rest[elink] = b""
            if kind in (FIRST, LAST, BOTH, MIDDLE):
                rest[elink] += piece
            if kind in (LAST, BOTH):
                chunks.setdefault(elink, []).append(rest.pop(elink))
    return chunks


class BlockWriter:
    """`blocks`: (E-link, bytes), in the order in which blocks become full or are flushed."""

    def __init__(self):
        self.blocks, self._open, self._sequence = [], {}, {}

    def push(self, elink, chunk):
        first = True
        while True:
            block = self._open.setdefault(elink, bytearray())
            room = BLOCK - HEADER - len(block) - TRAILER
            whole = len(chunk) + (len(chunk) & 1) <= room
            piece = chunk if whole else chunk[:room]
            kind = (BOTH if first else LAST) if whole else (FIRST if first else MIDDLE)
            block += piece + bytes(len(piece) & 1) + struct.pack("<H", kind << 13 | len(piece))
            chunk, first = chunk[len(piece) :], False
            if len(block) == BLOCK - HEADER - TRAILER:
                block += bytes(TRAILER)
            if len(block) == BLOCK - HEADER:
                self._emit(elink)
            if whole:
                return

    def flush(self, elink):
        """Ends the open block of an E-link with a time-out, as a card ends old blocks."""
        if elink in self._open:
            filler = BLOCK - HEADER - len(self._open[elink]) - TRAILER
            self._open[elink] += bytes(filler) + struct.pack("<H", TIMEOUT << 13 | filler)
            self._emit(elink)

    def _emit(self, elink):
        number = self._sequence.get(elink, -1) + 1
        self._sequence[elink] = number
        self.blocks.append(
            (elink, struct.pack("<HH", number % 32 << 11 | elink, MARKER) + bytes(self._open.pop(elink)))
        )
