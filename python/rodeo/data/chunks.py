"""Chunks as arrays: the contents of a fragment, and the argument of a decoder."""

from typing import NamedTuple

import numpy as np


class Jagged(NamedTuple):
    """Values of chunks that have different numbers of values: `counts[i]` values belong to chunk i."""

    counts: np.ndarray
    values: np.ndarray


class Chunks:
    """Chunks of one or many fragments.

    `data` is memory as bytes; chunk i is `size[i]` bytes at `offset[i]`. `link` and `status` (FELIX status in the low byte, Rodeo status in the high one)
    have one value for each chunk. So have `l1_id` and `source_id` if the chunks belong to many fragments; else they are None. `chunks[i]` is a view of the
    bytes of one chunk; `chunks[a:b]` and `chunks[mask]` are Chunks. Nothing is copied: arrays keep the file mapped."""

    __slots__ = ("data", "link", "status", "size", "offset", "l1_id", "source_id")

    def __init__(self, data, link, status, size, offset, l1_id=None, source_id=None):
        self.data, self.link, self.status, self.size, self.offset, self.l1_id, self.source_id = (
            data,
            link,
            status,
            size,
            offset,
            l1_id,
            source_id,
        )

    def __len__(self):
        return len(self.size)

    def __getitem__(self, which):
        if isinstance(which, (int, np.integer)):
            begin = int(self.offset[which])
            return self.data[begin : begin + int(self.size[which])]
        columns = (self.link, self.status, self.size, self.offset, self.l1_id, self.source_id)
        return Chunks(self.data, *(None if column is None else column[which] for column in columns))

    def __iter__(self):
        for begin, size in zip(self.offset.tolist(), self.size.tolist()):
            yield self.data[begin : begin + size]

    def __repr__(self):
        return f"<{len(self)} chunks, {int(self.size.sum())} bytes>"

    @property
    def table(self):
        """The bytes as one two-dimensional array, one row per chunk. ValueError if chunks differ in size."""
        count = len(self)
        if count == 0:
            return np.empty((0, 0), np.uint8)
        size = int(self.size[0])
        if (self.size != size).any():
            raise ValueError(
                f"chunks of {self.size.min()} to {self.size.max()} bytes make no table: use field(), values(), or data with offset and size"
            )
        step = np.diff(self.offset)
        if count == 1 or (step == step[0]).all() and step[0] >= 0:
            stride = int(step[0]) if count > 1 else size
            return np.lib.stride_tricks.as_strided(
                self.data[int(self.offset[0]) :], (count, size), (stride, 1), writeable=False
            )
        return self.data[self.offset[:, None] + np.arange(size)]

    def field(self, dtype, at=0):
        """One value of each chunk, `at` bytes after its begin (negative: before its end). ValueError if a chunk is too short."""
        dtype = np.dtype(dtype)
        begin = at if at >= 0 else self.size.astype(np.int64) + at
        short = (begin < 0) | (begin + dtype.itemsize > self.size)
        if short.any():
            first = int(np.argmax(short))
            raise ValueError(f"chunk {first} has {self.size[first]} bytes: too few for {dtype} at byte {at}")
        place = (self.offset + begin)[:, None] + np.arange(dtype.itemsize)
        return np.ascontiguousarray(self.data[place]).view(dtype)[:, 0]

    def values(self, dtype, skip=0, trim=0):
        """All whole values of each chunk between its first `skip` bytes and its last `trim` bytes, as Jagged."""
        dtype = np.dtype(dtype)
        counts = np.maximum(self.size.astype(np.int64) - skip - trim, 0) // dtype.itemsize
        firsts = np.repeat(self.offset + skip - dtype.itemsize * (np.cumsum(counts) - counts), counts)
        place = (firsts + dtype.itemsize * np.arange(len(firsts)))[:, None] + np.arange(dtype.itemsize)
        return Jagged(
            counts, np.ascontiguousarray(self.data[place]).view(dtype)[:, 0] if len(firsts) else np.empty(0, dtype)
        )
