"""Reads events of files while these are written."""

import time

from rodeo.data._module import DataError
from rodeo.data.paths import expand, stem
from rodeo.data.sequence import Events

_LOOK_S = 0.05


class FollowedEvents(Events):
    """Events whose iteration waits for more events of files being written, and for new files. It ends when the run's last file is closed, or when
    nothing came for `timeout_s`. All other methods see the events that exist now."""

    def __init__(self, files, paths, skip, patterns, timeout_s):
        super().__init__(files, paths, skip)
        self._patterns, self._timeout_s, self._left_out = patterns, timeout_s, []

    def __iter__(self):
        return _Follower(self)

    @property
    def errors(self):
        return super().errors + self._left_out

    @property
    def error_count(self):
        return super().error_count + len(self._left_out)

    def _look_for_files(self):
        known = {stem(path) for path in self._paths}
        for path in expand(self._patterns, True):
            if stem(path) not in known:
                self._files.add(path.encode(errors="surrogateescape"))
                self._paths.append(path)


class _Follower:
    def __init__(self, events):
        self._events, self._files = events, events._files
        self._file = self._index = 0

    def __iter__(self):
        return self

    def __next__(self):
        last_came = time.monotonic()
        while True:
            event = self._there()
            if event is not None:
                return event
            self._events._look_for_files()
            if (
                self._over()
                or self._events._timeout_s is not None
                and time.monotonic() - last_came > self._events._timeout_s
            ):
                raise StopIteration
            time.sleep(_LOOK_S)

    def _there(self):
        """The next event that exists. After the end of a closed file it moves to the next file."""
        while self._file < len(self._events._paths):
            try:
                event = self._files.event_in(self._file, self._index)
                if event is None and not self._files.closed(self._file):
                    self._files.grow(self._file)
                    event = self._files.event_in(self._file, self._index)
            except DataError as error:
                self._move_behind(error)
                if not self._events._skip:
                    raise
                if error.index is not None:
                    self._events._left_out.append(error)
                continue
            if event is not None:
                self._index += 1
                return event
            if not self._files.closed(self._file):
                return None
            self._file, self._index = self._file + 1, 0
        return None

    def _move_behind(self, error):
        if error.index is None:
            self._file, self._index = self._file + 1, 0
        else:
            self._index += 1

    def _over(self):
        paths = self._events._paths
        return bool(paths) and self._file >= len(paths) and self._files.last_of_sequence(len(paths) - 1)
