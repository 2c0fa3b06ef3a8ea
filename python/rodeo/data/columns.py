"""Columns of many events: a dictionary of NumPy arrays, or one awkward array."""

import numpy as np

from rodeo.missing import remedy

# Offsets: where the values of each event, fragment or chunk begin in the common array; the last offset is the end.
_OFFSETS = ("fragment.offsets", "chunk.offsets", "fragment.chunk_offsets", "chunk.data_offsets")


class Columns(dict):
    """NumPy arrays by the names of their fields; `.events` is the number of events.

    Event fields have one value for each event. Fields of fragments and chunks of all events are joined: those of event i are
    `[offsets[i]:offsets[i + 1]]`, where offsets is `columns["fragment.offsets"]` or `columns["chunk.offsets"]`. `fragment.chunk_offsets` gives the
    chunks of each fragment in the same way, and `chunk.data_offsets` the bytes of each chunk in `chunk.data`."""

    events = 0

    @classmethod
    def of(cls, arrays):
        columns = cls(arrays)
        columns.events = columns.pop("events")
        return columns

    @classmethod
    def joined(cls, parts):
        """Joins the columns of successive parts."""
        if len(parts) == 1:
            return parts[0]
        columns = cls()
        columns.events = sum(part.events for part in parts)
        for name in dict.fromkeys(name for part in parts for name in part):
            arrays = [part[name] for part in parts if name in part]  # a part without chunks may lack a decoder's fields
            if name in _OFFSETS or name.endswith("_offsets"):
                before = np.cumsum([0] + [array[-1] for array in arrays[:-1]])
                arrays = [arrays[0]] + [array[1:] + start for array, start in zip(arrays[1:], before[1:])]
            columns[name] = np.concatenate(arrays)
        return columns

    def to_awkward(self):
        """One record for each event; `fragment`, `chunk` and the fields of decoders are lists of records in it."""
        ak = awkward()
        flat = {name: self[name] for name in self if "." not in name}
        lists = {}
        for name in self:
            group, _, field = name.partition(".")
            if not field or name in _OFFSETS or field.endswith("_offsets"):
                continue
            content = ak.contents.NumpyArray(self[name])
            if f"{name}_offsets" in self:
                content = ak.contents.ListOffsetArray(ak.index.Index64(self[f"{name}_offsets"]), content)
            lists.setdefault(group, {})[field] = content
        contents = {name: ak.contents.NumpyArray(array) for name, array in flat.items()}
        for group, fields in lists.items():
            offsets = self["fragment.offsets" if group == "fragment" else "chunk.offsets"]
            records = ak.contents.RecordArray(list(fields.values()), list(fields), length=int(offsets[-1]))
            contents[group] = ak.contents.ListOffsetArray(ak.index.Index64(offsets), records)
        return ak.Array(ak.contents.RecordArray(list(contents.values()), list(contents), length=self.events))


def awkward():
    """The package awkward, imported on first use."""
    try:
        import awkward
    except ImportError as error:
        raise ImportError(f'library="ak" needs the Python package awkward: {remedy("awkward")}') from error
    return awkward
