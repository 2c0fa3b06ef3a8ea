"""Muon chunks in Python: the layout at the top of muon.h, for rodeo.data.

from muon_decoder import muon
rodeo.data.open("*.data").read(["l1_id"], decoder=muon)["muon.hits"]
"""

import numpy as np

import rodeo

HEADER_BYTES, CRC_BYTES, MARKER = 4, 2, 0x5000


def _crc16_table():
    crc = np.arange(256, dtype=np.uint32) << 8
    for _ in range(8):
        crc = np.where(crc & 0x8000, crc << 1 ^ 0x1021, crc << 1) & 0xFFFF
    return crc


_CRC16 = _crc16_table()


def crc16(chunks):
    """The CRC-16 of each chunk without its last two bytes, computed byte by byte for all chunks at once."""
    body = chunks.size.astype(np.int64) - CRC_BYTES
    crc = np.full(len(chunks), 0xFFFF, np.uint32)
    for at in range(int(body.max(initial=0))):
        there = np.flatnonzero(at < body)
        before = crc[there]
        crc[there] = (before << 8 ^ _CRC16[before >> 8 ^ chunks.data[chunks.offset[there] + at]]) & 0xFFFF
    return crc


@rodeo.decoder
def muon(chunks):
    """Low 16 bits of the L1 id, BCID, hits, and whether marker and CRC-16 are right."""
    word = chunks.field("<u2", at=2)
    return {
        "l1_id": chunks.field("<u2"),
        "bcid": word & 0xFFF,
        "hits": chunks.values("<u4", skip=HEADER_BYTES, trim=CRC_BYTES),
        "good": (word & 0xF000 == MARKER) & (chunks.field("<u2", at=-CRC_BYTES) == crc16(chunks)),
    }
