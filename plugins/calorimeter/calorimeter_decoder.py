"""Calorimeter chunks in Python: the layout at the top of calorimeter.h, for rodeo.data.

from calorimeter_decoder import calorimeter
rodeo.data.open("*.data").read(["l1_id"], decoder=calorimeter)["calorimeter.samples"]
"""

import zlib

import numpy as np

import rodeo

HEADER_BYTES, CRC_BYTES, MARKER = 16, 4, 0xCA10DA7A


@rodeo.decoder
def calorimeter(chunks):
    """Extended L1 id, BCID, trigger type, the payload as 32-bit samples, and whether marker, size and CRC-32 are right."""
    # Chunks are few and large: their CRCs are computed one by one.
    crc = np.array([zlib.crc32(chunk[:-CRC_BYTES]) for chunk in chunks], np.uint32)
    payload_bytes = chunks.size.astype(np.int64) - HEADER_BYTES - CRC_BYTES
    return {
        "l1_id": chunks.field("<u4", at=4),
        "bcid": chunks.field("<u2", at=8),
        "trigger_type": chunks.field("u1", at=10),
        "samples": chunks.values("<u4", skip=HEADER_BYTES, trim=CRC_BYTES),
        "good": (chunks.field("<u4") == MARKER)
        & (chunks.field("<u4", at=12) == payload_bytes)
        & (chunks.field("<u4", at=-CRC_BYTES) == crc),
    }
