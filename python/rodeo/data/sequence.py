"""The events of one or many files as a sequence."""

import operator

from rodeo.data._module import DataError, FIELDS, module
from rodeo.data.columns import Columns, awkward
from rodeo.data.decoder import decode_columns, decoders_of, fields_for_decoders

_EVENT_FIELDS = tuple(name for name in FIELDS if "." not in name)
_MOST = (1 << 64) - 1
_NAMED = 5  # limit of the ids that an error lists


class Events:
    """Events of files in the order of the files: len(), iteration, events[i], events[a:b].

    Numbers count all events of the files, damaged ones too. With `damaged="raise"` reading a damaged event raises DamagedEvent; an iterator then continues
    with the next event. With "skip", iteration and read() leave it out, and `errors` lists it. events[i] of a damaged event raises in both. Any thread
    may read. Long calls release the GIL, and Ctrl-C ends them."""

    def __init__(self, files, paths, skip, numbers=None):
        self._files, self._paths, self._skip, self._numbers = files, paths, skip, numbers
        self._by_global_id = None  # event number by global id, once all headers were read

    def __len__(self):
        return self._files.count() if self._numbers is None else len(self._numbers)

    def __iter__(self):
        if self._numbers is None or self._numbers.step > 0:
            return self._cursor()
        return _Backwards(self._files, self._numbers, self._skip)

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

    def find(self, l1_id):
        """Numbers of the events with this extended L1 id (ECR counter << 24 | L1 id). Several if there are several writers, or the ECR counter wrapped."""
        numbers = self._files.find(operator.index(l1_id))
        return (
            numbers
            if self._numbers is None
            else [self._numbers.index(number) for number in numbers if number in self._numbers]
        )

    def by_l1_id(self, l1_id):
        """The event with this extended L1 id. KeyError if no event has it; ValueError if different events have it, because it repeats within a run:
        by_global_id() tells them apart."""
        numbers = self.find(l1_id)
        if not numbers:
            raise KeyError(f"no event has the L1 id {operator.index(l1_id):#010x}")
        event = self[numbers[0]]
        ids = sorted({self[number].global_id for number in numbers}) if len(numbers) > 1 else []
        if len(ids) > 1:
            named = ", ".join(f"{one:#x}" for one in ids[:_NAMED]) + (
                f" and {len(ids) - _NAMED} more" if len(ids) > _NAMED else ""
            )
            raise ValueError(
                f"{len(ids)} events have the L1 id {operator.index(l1_id):#010x}: global ids {named}; by_global_id() tells them apart"
            )
        return event

    def by_global_id(self, global_id):
        """The first event with this global id, which never repeats within a run. KeyError if no event has it. The index finds the event if the event counter
        was always reset before its 24 bits wrapped; else all headers are read, once."""
        wanted = operator.index(global_id)
        for number in self.find(wanted & 0xFFFFFFFF):
            if (event := self[number]).global_id == wanted:
                return event
        if self._by_global_id is None:
            self._by_global_id = self._numbers_of_global_ids()
        if wanted not in self._by_global_id:
            raise KeyError(f"no event has the global id {wanted:#x}")
        return self[self._by_global_id[wanted]]

    def _numbers_of_global_ids(self):
        """The number of the first event by global id, without damaged events."""
        first = {}
        for number in range(len(self)):
            try:
                first.setdefault(self[number].global_id, number)
            except DataError:
                continue
        return first

    def read(self, fields=None, library="np", decoder=None):
        """Columns of all events. `fields` are names of rodeo.data.FIELDS (default: all fields of the event itself); a `decoder`, or a list of them, adds its
        fields. "np": Columns, a dictionary of arrays; "ak": one awkward array. Damaged events raise or are left out."""
        return self._pieces(fields, library, decoder, None).read()

    def iterate(self, fields=None, events=10_000, library="np", decoder=None):
        """Like read(), but in pieces of `events` events, for files that do not fit into memory. The error of a damaged event is raised after the piece with the
        events before it; the iterator then continues with the events after it."""
        if events < 1:
            raise ValueError(f"a piece has at least 1 event, not {events}")
        return self._pieces(fields, library, decoder, events)

    def _pieces(self, fields, library, decoder, piece):
        decoders = decoders_of(decoder)
        fields = (
            [fields]
            if isinstance(fields, str)
            else list(fields if fields is not None else ("l1_id",) if decoders else _EVENT_FIELDS)
        )
        for name in fields:
            if name not in FIELDS:
                raise ValueError(f"there is no field {name}; there are {', '.join(FIELDS)}")
        if library not in ("np", "ak"):
            raise ValueError(f'library is "np" or "ak", not {library!r}')
        if library == "ak":
            awkward()
        if self._numbers is not None and self._numbers.step < 0:
            raise ValueError("columns cannot be read backwards: reverse the arrays instead")
        return _Pieces(self._cursor(), self._paths, fields, library, decoders, piece)

    def _cursor(self):
        if self._numbers is None:
            return module.Cursor(self._files, 0, None, 1)
        return module.Cursor(self._files, self._numbers.start, self._numbers.stop, self._numbers.step)

    @property
    def errors(self):
        """The events left out so far, with damaged="skip": DamagedEvent and DataError, each with .file, .index, .offset, .code and .reason.
        It lists the first 10 000; error_count counts all."""
        return self._files.errors()

    @property
    def error_count(self):
        return self._files.error_count()

    @property
    def files(self):
        """The paths, as texts."""
        return list(self._paths)

    def info(self, file=0):
        """A dictionary of what the file's records contain: kind, run number, free strings, end, and so on."""
        return self._files.info(file)


class _Backwards:
    """Events by their numbers. Not a generator, because it must continue after the error of a damaged event."""

    def __init__(self, files, numbers, skip):
        self._files, self._numbers, self._skip = files, iter(numbers), skip

    def __iter__(self):
        return self

    def __next__(self):
        while True:
            number = next(self._numbers)
            try:
                return self._files.event(number)
            except DataError:
                if not self._skip:
                    raise


class _Pieces:
    """Columns of `events` events at a time, or of all. Events before a damaged one are returned before its error is raised."""

    def __init__(self, cursor, paths, fields, library, decoders, events):
        self._cursor, self._paths, self._fields, self._library, self._decoders, self._events = (
            cursor,
            paths,
            fields,
            library,
            decoders,
            events,
        )
        self._error = None  # the error of a damaged event after the last returned piece

    def __iter__(self):
        return self

    def __next__(self):
        if self._error is not None:
            error, self._error = self._error, None
            raise error
        columns = (
            self._decoded() if self._decoders else Columns.of(self._cursor.read(self._fields, self._events, hold=True))
        )
        if columns.events == 0:
            raise StopIteration
        return self._in_library(columns)

    def read(self):
        """All events in one piece."""
        return self._in_library(
            self._decoded() if self._decoders else Columns.of(self._cursor.read(self._fields, _MOST))
        )

    def _in_library(self, columns):
        return columns.to_awkward() if self._library == "ak" else columns

    def _decoded(self):
        """Gives decoders several MB of chunks at a time: this is fast, and memory stays constant."""
        parts, done, step, most = [], 0, 16, self._events or _MOST
        while True:
            try:
                part = Columns.of(
                    self._cursor.read(
                        fields_for_decoders(self._fields), min(step, most - done), hold=self._events is not None
                    )
                )
            except DataError as error:
                if not parts or self._events is None:
                    raise
                self._error = error
                break
            if part.events == 0 and parts:
                break
            bytes_of_event = len(part["chunk.data"]) // max(part.events, 1) + 1
            step = max(1, min(2 * step, (16 << 20) // bytes_of_event))
            parts.append(decode_columns(part, self._fields, self._decoders, self._paths))
            done += part.events
            if part.events == 0 or done == most:
                break
        return Columns.joined(parts)
