"""A ring of values over time for the page: an hour at 0.9 s (the period of the looks), a day at 10 s. Memory is bounded; the caller passes the times."""

from array import array

MOST_NAMES = 2_000  # limit: at 8 bytes a value, 200 MB; a system of a hundred processes needs 30 MB
_NOTHING = float("nan")


class _Ring:
    """The last `most` points, a column of doubles for each name. NaN is a gap."""

    def __init__(self, most):
        self.most = most
        self.times = array("d")
        self.columns = {}
        self.next = 0  # the place of the next point, when the ring is full

    def add(self, time_s, values):
        full = len(self.times) == self.most
        place = self.next if full else len(self.times)
        for name in values:
            if name not in self.columns:
                self.columns[name] = array("d", [_NOTHING]) * len(self.times)
        for name, column in self.columns.items():
            value = values.get(name)
            value = _NOTHING if value is None else value
            if full:
                column[place] = value
            else:
                column.append(value)
        if full:
            self.times[place] = time_s
            self.next = (place + 1) % self.most
        else:
            self.times.append(time_s)

    def order(self):
        """Places, oldest first."""
        return [*range(self.next, len(self.times)), *range(self.next)]

    @property
    def last_s(self):
        return self.times[self.next - 1] if self.times else None  # -1: the last appended one

    @property
    def first_s(self):
        return self.times[self.next] if self.times else None

    @property
    def full(self):
        return len(self.times) == self.most


class Series:
    """Named values over time. Not thread-safe: one loop adds and reads.

    A coarse point is the mean of the known values in its step. An unknown value is None: a gap, not zero.
    """

    def __init__(self, fine=4000, coarse=8640, step_s=1.0, coarse_step_s=10.0):
        self._step_s, self._coarse_step_s = step_s, coarse_step_s
        self._fine, self._coarse = _Ring(fine), _Ring(coarse)
        self._sums, self._began_s = {}, None

    @property
    def names(self):
        return sorted(self._fine.columns)

    def add(self, time_s, values):
        """`values`: {name: number or None}. `time_s`: monotonic; a point not later than the last one is ignored. Values that are not finite become None;
        names beyond MOST_NAMES are ignored."""
        last = self._fine.last_s
        if last is not None and not time_s > last:
            return
        known = self._fine.columns
        new = [name for name in values if name not in known][: max(0, MOST_NAMES - len(known))]
        kept = {name: _number(values[name]) for name in values if name in known} | {
            name: _number(values[name]) for name in new
        }
        if self._began_s is None or time_s - self._began_s >= self._coarse_step_s:
            if self._began_s is not None:
                self._coarse.add(self._began_s, {name: sum_ / count for name, (count, sum_) in self._sums.items()})
            self._began_s, self._sums = time_s, {}
        for name, one in kept.items():
            if one is not None:
                count, sum_ = self._sums.get(name, (0, 0.0))
                self._sums[name] = (count + 1, sum_ + one)
        self._fine.add(time_s, kept)

    def get(self, names=None, seconds=300.0):
        """Returns {"step_s", "time_s": [...], "values": {name: [number or None, ...]}} of the last `seconds` before the last point. The values come from the
        coarse ring if the fine one does not reach so far back. Unknown names are left out."""
        last = self._fine.last_s
        if last is None:
            return {"step_s": self._step_s, "time_s": [], "values": {}}
        reaches = not self._fine.full or last - self._fine.first_s >= seconds
        ring, step = (self._fine, self._step_s) if reaches else (self._coarse, self._coarse_step_s)
        places = [place for place in ring.order() if ring.times[place] >= last - seconds]
        wanted = self.names if names is None else [name for name in names if name in self._fine.columns]
        nothing = array("d", [_NOTHING]) * len(ring.times)
        columns = {name: ring.columns.get(name, nothing) for name in wanted}
        return {
            "step_s": step,
            "time_s": [ring.times[place] for place in places],
            "values": {
                name: [None if column[place] != column[place] else column[place] for place in places]
                for name, column in columns.items()
            },
        }


def _number(one):
    return float(one) if isinstance(one, (int, float)) and not isinstance(one, bool) and abs(one) < 1e300 else None
