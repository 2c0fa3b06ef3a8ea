"""Decoders of detectors in Python: they turn many chunks at a time into fields."""

import functools
import linecache
import traceback

import numpy as np

from rodeo.data.chunks import Chunks, Jagged
from rodeo.data.columns import Columns

_NEEDED = ("l1_id", "index", "file", "fragment.source_id", "chunk.link", "chunk.status", "chunk.size", "chunk.data")


class DecoderError(ValueError):
    """A decoder raised an error or returned an invalid value. An error that it raised is the cause (`__cause__`)."""


class Decoder:
    """The object that @rodeo.decoder returns: called with Chunks, it returns the checked fields."""

    def __init__(self, function, name=None):
        functools.update_wrapper(self, function)
        self.function, self.name = function, name or function.__name__

    def __call__(self, chunks):
        fields = self.function(chunks)
        if not isinstance(fields, dict):
            raise TypeError(f"a decoder returns a dictionary of fields, not {type(fields).__name__}")
        return {name: _checked(name, value, len(chunks)) for name, value in fields.items()}

    def __repr__(self):
        return f"<decoder {self.name}>"


def decoder(function=None, *, name=None):
    """Makes a decoder from a function that takes Chunks of any number of fragments and returns a dictionary of fields. A field is an array with one value
    or one row for each chunk, or Jagged(counts, values) if chunks have different numbers of values.

        @rodeo.decoder
        def hits(chunks):
            words = chunks.table[:, 4:8].view("<u4")[:, 0]
            return {"channel": words >> 16, "adc": words & 0xfff}

        events.read(["l1_id"], decoder=hits)["hits.adc"]

    Each call gets several MB of chunks, not single chunks."""
    if function is None:
        return functools.partial(Decoder, name=name)
    return Decoder(function, name)


def decoders_of(given):
    decoders = [] if given is None else list(given) if isinstance(given, (list, tuple)) else [given]
    decoders = [one if isinstance(one, Decoder) else Decoder(one) for one in decoders]
    names = [one.name for one in decoders]
    for name in names:
        if name in ("chunk", "fragment") or names.count(name) > 1:
            raise ValueError(
                f'the decoder name {name!r} is already in use: choose another with @rodeo.decoder(name="...")'
            )
    return decoders


def fields_for_decoders(fields):
    return list(dict.fromkeys([*fields, *_NEEDED]))


def decode_columns(columns, fields, decoders, paths):
    """Adds the fields of decoders, and removes the fields that only decoders needed."""
    offsets = columns["chunk.data_offsets"]
    of_event = np.repeat(np.arange(columns.events), np.diff(columns["chunk.offsets"]))
    source_id = np.repeat(columns["fragment.source_id"], np.diff(columns["fragment.chunk_offsets"]))
    chunks = Chunks(
        columns["chunk.data"],
        columns["chunk.link"],
        columns["chunk.status"],
        columns["chunk.size"],
        offsets[:-1],
        columns["l1_id"][of_event],
        source_id,
    )
    out = Columns({name: columns[name] for name in columns if name in fields or name == "chunk.offsets"})
    if any(name.startswith("fragment.") for name in fields):
        out.update({name: columns[name] for name in ("fragment.offsets", "fragment.chunk_offsets")})
    if "chunk.data" in fields:
        out["chunk.data_offsets"] = offsets
    out.events = columns.events
    for one in decoders:
        try:
            made = one(chunks)
        except Exception as error:
            if len(chunks) == 0:
                continue  # a decoder need not support a call without chunks, so its error is ignored
            raise _decoder_error(one, error, chunks, columns, of_event, paths) from error
        for name, value in made.items():
            if isinstance(value, Jagged):
                out[f"{one.name}.{name}"] = value.values
                out[f"{one.name}.{name}_offsets"] = np.concatenate([[0], np.cumsum(value.counts, dtype=np.int64)])
            else:
                out[f"{one.name}.{name}"] = value
    return out


def _checked(name, value, count):
    if isinstance(value, Jagged):
        counts, values = np.asarray(value.counts), np.asarray(value.values)
        if len(counts) != count or (counts < 0).any() or counts.sum() != len(values):
            raise ValueError(
                f"field {name!r}: {len(counts)} counts with the sum {counts.sum()} do not fit {count} chunks and {len(values)} values"
            )
        return Jagged(counts, values)
    value = np.asarray(value)
    if value.ndim == 0 or len(value) != count:
        raise ValueError(
            f"field {name!r} has the shape {value.shape}, but there are {count} chunks: one value or row for each of them"
        )
    return value


def _decoder_error(one, error, chunks, columns, of_event, paths):
    """An error with the line in the decoder and the first chunk that fails alone, found by bisection."""
    where = _line_of(one, error)
    at = _first_that_fails(one, chunks)
    if at is None:
        what = f"no single chunk fails, only {len(chunks)} together"
    else:
        event = of_event[at]
        what = (
            f"at chunk {at - int(columns['chunk.offsets'][event])} (link id {chunks.link[at]:#010x}, {chunks.size[at]} bytes) of event {columns['index'][event]}, "
            f"L1 id {columns['l1_id'][event]:#010x}, in {paths[columns['file'][event]]}"
        )
    return DecoderError(f"error[data.decoder]: decoder {one.name}: {type(error).__name__}: {error}\n  {where}{what}")


def _line_of(one, error):
    """The last line in the decoder's file that the traceback contains; empty if it contains none."""
    frames = traceback.extract_tb(error.__traceback__)
    code = getattr(one.function, "__code__", None)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    if not own:
        return ""
    line = linecache.getline(own[-1].filename, own[-1].lineno).strip()
    return f"{own[-1].filename}:{own[-1].lineno}" + (f": {line}" if line else "") + "\n  "


def _first_that_fails(one, chunks):
    def fails(begin, end):
        try:
            one(chunks[begin:end])
        except Exception:
            return True
        return False

    begin, end = 0, len(chunks)
    if end == 0:
        return None
    while end - begin > 1:
        middle = (begin + end) // 2
        if fails(begin, middle):
            end = middle
        elif fails(middle, end):
            begin = middle
        else:
            return None
    return begin if fails(begin, end) else None
