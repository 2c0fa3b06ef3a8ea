"""The events of one or many files as a sequence."""

import operator

from rodeo.data._module import DataError, FIELDS, module
from rodeo.data.columns import Columns, awkward
from rodeo.data.decoder import decode_columns, decoders_of, fields_for_decoders

_EVENT_FIELDS = tuple(name for name in FIELDS if "." not in name)
_MOST = (1 << 64) - 1


class Events:
    """Events of files in the order in which these were named: len(), iteration, events[i], events[a:b].

    Numbers count all events of the files, damaged ones too. With `damaged="raise"` a damaged event raises DamagedEvent where it is met, and an iterator goes
    on behind it; with "skip" iteration and read() leave it out, and `errors` lists it. events[i] of a damaged event raises in both. Any thread may read;
    long work leaves Python free for others, and Ctrl-C ends it."""

    def __init__(self, files, paths, skip, numbers=None):
        self._files, self._paths, self._skip, self._numbers = files, paths, skip, numbers

    def __len__(self):
        return self._files.count() if self._numbers is None else len(self._numbers)

    def __iter__(self):
        if self._numbers is None:
            return module.Cursor(self._files, 0, None, 1)
        if self._numbers.step > 0:
            return module.Cursor(self._files, self._numbers.start, self._numbers.stop, self._numbers.step)
        return self._backwards()

    def __getitem__(self, which):
        if isinstance(which, slice):
            return Events(self._files, self._paths, self._skip, (self._numbers or range(len(self)))[which])
        number = operator.index(which)
        if self._numbers is not None:
            number = self._numbers[number]
        elif number < 0:
            number += len(self)
        event = self._files.event(number) if number >= 0 else None
        if event is None:
            raise IndexError(f"there is no event {which} of {len(self)}")
        return event

    def __repr__(self):
        what = f"{len(self._paths)} files" if len(self._paths) != 1 else self.files[0]
        return f"<Events of {what}>" if self._numbers is None else f"<Events {self._numbers} of {what}>"

    def _backwards(self):
        for number in self._numbers:
            try:
                event = self._files.event(number)
            except DataError:
                if not self._skip:
                    raise
                continue
            yield event

    def find(self, l1_id):
        """Numbers of the events with this extended L1 id (ECR counter << 24 | L1 id): several if files are of several writers, or the ECR counter wrapped."""
        numbers = self._files.find(operator.index(l1_id))
        return numbers if self._numbers is None else [self._numbers.index(number) for number in numbers if number in self._numbers]

    def by_l1_id(self, l1_id):
        """The first event with this extended L1 id. KeyError if there is none."""
        numbers = self.find(l1_id)
        if not numbers:
            raise KeyError(f"no event has the L1 id {operator.index(l1_id):#010x}")
        return self[numbers[0]]

    def read(self, fields=None, library="np", decoder=None):
        """Columns of all events: `fields` are names of rodeo.data.FIELDS (all that an event itself has, if left out); what a `decoder` (or each of a list)
        makes of the chunks comes besides. "np": Columns, a dictionary of arrays; "ak": one awkward array. Events that are damaged raise or are left out."""
        return next(self._read(fields, library, decoder, None))

    def iterate(self, fields=None, events=10_000, library="np", decoder=None):
        """The same in pieces of so many events, for files that do not fit into memory."""
        if events < 1:
            raise ValueError(f"a piece has at least 1 event, not {events}")
        return self._read(fields, library, decoder, events)

    def _read(self, fields, library, decoder, piece):
        decoders = decoders_of(decoder)
        fields = [fields] if isinstance(fields, str) else list(fields if fields is not None else ("l1_id",) if decoders else _EVENT_FIELDS)
        for name in fields:
            if name not in FIELDS:
                raise ValueError(f"there is no field {name}; there are {', '.join(FIELDS)}")
        if library not in ("np", "ak"):
            raise ValueError(f'library is "np" or "ak", not {library!r}')
        if library == "ak":
            awkward()
        if self._numbers is not None and self._numbers.step < 0:
            raise ValueError("columns are read forwards: turn the arrays instead")
        return self._pieces(fields, library, decoders, piece)

    def _pieces(self, fields, library, decoders, piece):
        numbers = self._numbers
        cursor = module.Cursor(self._files, 0, None, 1) if numbers is None else module.Cursor(self._files, numbers.start, numbers.stop, numbers.step)
        while True:
            if decoders:
                columns = self._decoded(cursor, fields, decoders, piece)
            else:
                columns = Columns.of(cursor.read(fields, piece or _MOST))
            if piece and columns.events == 0:
                return
            yield columns.to_awkward() if library == "ak" else columns
            if not piece:
                return

    def _decoded(self, cursor, fields, decoders, piece):
        """Decoders see chunks of some MB at a time, so that they are fast and memory stays flat."""
        parts, done, step = [], 0, 16
        while True:
            part = Columns.of(cursor.read(fields_for_decoders(fields), min(step, (piece or _MOST) - done)))
            if part.events == 0 and parts:
                break
            bytes_of_event = len(part["chunk.data"]) // max(part.events, 1) + 1
            step = max(1, min(2 * step, (16 << 20) // bytes_of_event))
            parts.append(decode_columns(part, fields, decoders, self._paths))
            done += part.events
            if part.events == 0 or done == piece:
                break
        return Columns.joined(parts)

    @property
    def errors(self):
        """What was left out so far, with damaged="skip": DamagedEvent and DataError, each with .file, .index, .offset, .code and .reason.
        The first 10 000 are listed; error_count counts all."""
        return self._files.errors()

    @property
    def error_count(self):
        return self._files.error_count()

    @property
    def files(self):
        """The paths, as texts."""
        return list(self._paths)

    def info(self, file=0):
        """What the records of a file say: kind, run number, free strings, end, and so on, as a dictionary."""
        return self._files.info(file)
