"""Checks answers from outside: a status of a wrong shape becomes a named problem, never an exception in later code."""

MOST_PROBLEMS = 16
MOST_ITEMS = 100_000  # limit of one list or one table of counters
MOST_TEXT = 4096
_MOST_COUNT = 2**64


class Count:
    """A count: an integer from 0 to 2^64 - 1."""

    name = "a count"

    @staticmethod
    def fits(value):
        return type(value) is int and 0 <= value < _MOST_COUNT


class Number:
    """A finite number."""

    name = "a number"

    @staticmethod
    def fits(value):
        return type(value) in (int, float) and -1e300 < value < 1e300


class Text:
    """A text of bounded length."""

    name = "a text"

    @staticmethod
    def fits(value):
        return isinstance(value, str) and len(value) <= MOST_TEXT


class Truth:
    """True or false."""

    name = "true or false"

    @staticmethod
    def fits(value):
        return isinstance(value, bool)


class Each:
    """A table with any names, whose values all have one shape."""

    def __init__(self, shape):
        self.shape = shape


# A shape is one of the above, a dict {key: shape}, or a list of one shape. A key that ends in ? may be missing or null.
_PROCESS = {
    "pid?": Count,
    "name?": Text,
    "kind?": Text,
    "phase?": Text,
    "started_ns?": Count,
    "build?": Text,
    "configuration_sha256?": Text,
}

_STANDING = [{"name": Text, "waits_for": Text, "seconds": Number}]

_LINK = {
    "fid": Text,
    "name?": Text,
    "state?": Text,
    "removed_by_policy?": Truth,
    **{key + "?": Count for key in ("chunks", "missing", "left_out", "bad", "in_doubt", "moved", "bcid_offset")},
    "out_of_step?": Truth,
}

_REPORT = {
    "run": {"name?": Text, "number": Count, "seconds": Number, "condition": Text, "failure?": Text},
    "links?": Count,
    "offered_rate_hz?": Number,
    "trigger_rate_hz?": Number,
    "dead_time_fraction?": Number,
    "chunks": {"sent": Count, "built": Count, "lost": Each(Count)},
    "limited_by?": Text,
    "fragments": {
        "built": Count,
        "events?": Count,
        "incomplete": Count,
        "skipped_events?": Count,
        "without_removed_links?": Count,
        "rate_hz?": Number,
        "incomplete_by_reason?": Each(Count),
        "missing_links?": [
            {
                "fid": Text,
                "name?": Text,
                "missing?": Count,
                "left_out?": Count,
                "chunks?": Count,
                "bad?": Count,
                "state?": Text,
            }
        ],
        "removed_links?": [
            {
                "fid": Text,
                "name?": Text,
                "missing?": Count,
                "left_out?": Count,
                "chunks?": Count,
                "bad?": Count,
                "state?": Text,
            }
        ],
        "doubtful_links?": [_LINK],
        "chunks_in_doubt?": Count,
    },
    "bytes": {"in": Count, "built?": Count, "lost?": Each(Count), "payload?": Count, "written": Count},
    "cpu_seconds?": Each(Number),
    "verified?": {"chunks": Count, "mismatches": Count},
    "files?": [Text],
    "loss?": {
        "fraction?": Number,
        "allowed?": Number,
        "exceeded?": Truth,
        "losses?": [{"what": Text, "lost": Count, "of?": Count}],
    },
    "consumers?": Each({"consumed?": Count, "stalls?": Count, "counters?": Each(Number)}),
    "input?": Each(Count),
}

_READOUT = dict(
    _REPORT,
    **{
        "process?": _PROCESS,
        "phase?": Text,
        "limited_by_now?": Text,
        "standing?": _STANDING,
        "queue_fill?": Each(Number),
        "robs?": [
            {
                "source_id?": Text,
                "groups?": Count,
                "open_events?": Count,
                "window_events?": Count,
                "pool_fill?": Number,
                "links?": [_LINK],
            }
        ],
    },
)

_FOLLOWER = {
    "name": Text,
    "peer?": Text,
    "connected?": Truth,
    "ready?": Count,
    "triggers?": Count,
    "missed?": Count,
    "busy_seconds?": Number,
    "vetoed?": Count,
    "vetoed_alone?": Count,
}

_EMULATOR = {
    "process?": _PROCESS,
    "standing?": _STANDING,
    "seconds": Number,
    "cpu_seconds?": Number,
    "trigger": {
        "seconds?": Number,
        "offering_seconds?": Number,
        "offered": Count,
        "accepted": Count,
        "dead_time_fraction?": Number,
        "vetoed?": Each(Count),
        "held?": Truth,
        "awaited_functions?": Count,
        "busy_card?": Text,
        "lumi_block?": Count,
        "scan_step?": Count,
        "marks?": [{"id": Count, "lumi_block": Count, "scan_step": Count, "sequence?": Count}],
        "followers?": [_FOLLOWER],
        "link?": {"follows?": Text, "authority?": Text, "connected?": Truth, "why?": Text},
    },
    "functions": [
        {
            "name": Text,
            "type?": Text,
            "address?": Text,
            "endpoint?": Count,
            "running?": Truth,
            "clients?": Count,
            "triggers": Count,
            "chunks": Count,
            "bytes?": Count,
            "busy_seconds?": Number,
            "vetoed?": Count,
            "vetoed_alone?": Count,
            "counters?": Each(Number),
        }
    ],
}

_SUBSCRIBER = {
    "reader?": Text,
    "name": Text,
    "kind?": Text,
    "connected?": Truth,
    "chunks?": Count,
    "pages?": Count,
    "page_slots?": Count,
    "pages_filled?": Count,
    "waits?": Count,
    "pending_chunks?": Count,
    "dropped_chunks?": Count,
}

_ROUTER = {
    "process?": _PROCESS,
    "standing?": _STANDING,
    "phase?": Text,
    "run": {"name?": Text, "seconds": Number, "condition": Text, "failure?": Text},
    "links?": Count,
    "chunks": {"sent": Count, "published": Count, "no_subscriber?": Count, "not_taken?": Count, "pending?": Count},
    "bytes?": {
        "in?": Count,
        "published?": Count,
        "no_subscriber?": Count,
        "not_taken?": Count,
        "cut?": Count,
        "sent?": Count,
    },
    "cpu_seconds?": Each(Number),
    "limited_by?": Text,
    "subscribers?": [_SUBSCRIBER],
    "input?": Each(Count),
}

_FARM_RUN = {"name?": Text, "number?": Count, "seconds?": Number, "condition?": Text}

_SUPERVISOR = {
    "process?": _PROCESS,
    "standing?": _STANDING,
    "phase?": Text,
    "run": _FARM_RUN,
    "stage?": Text,
    "events": {
        **{key: Count for key in ("in", "accepted", "rejected", "debug", "readout_died", "partial")},
        **{
            key + "?": Count
            for key in (
                "waiting",
                "assigned",
                "undecided",
                "uncleared",
                "held_untold",
                "reassigned",
                "before_common_start",
                "after_common_end",
            )
        },
        "adds_up?": Truth,
    },
    "lumi_block?": Count,
    "room?": Count,
    "limited_by?": Text,
    "trigger?": {"follows?": Text},
    "trouble?": Text,
    "nodes?": [
        {"name": Text, "connected?": Truth, "events?": Count, "room?": Count, "assigned?": Count, "decisions?": Count}
    ],
    "readouts?": [
        {"name": Text, "connected?": Truth, "lives?": Truth, "ended?": Truth, "clears_behind?": Count, "trouble?": Text}
    ],
    "counters?": Each(Number),
    "cpu_seconds?": Each(Number),
}

_NODE = {
    "process?": _PROCESS,
    "standing?": _STANDING,
    "phase?": Text,
    "run": _FARM_RUN,
    "failure?": Text,
    "events": {
        **{key: Count for key in ("assigned", "accepted", "rejected", "debug", "lost")},
        **{key + "?": Count for key in ("partial", "given_up", "let_go", "under_way", "unsafe", "slots")},
    },
    "bytes?": Each(Count),
    "readouts?": [{"name": Text, "connected?": Truth, "trouble?": Text, "lost_fragments?": Count}],
    "counters?": Each(Number),
    "cpu_seconds?": Each(Number),
}

_RECORDER = {
    "process?": _PROCESS,
    "standing?": _STANDING,
    "phase?": Text,
    "run": _FARM_RUN,
    "events": {"recorded": Count, **{key + "?": Count for key in ("had_already", "read_back", "refused", "waiting")}},
    "bytes?": Each(Count),
    "clients?": Count,
    "trouble?": Text,
    "counters?": Each(Number),
    "cpu_seconds?": Each(Number),
    "files?": [{"path": Text, "bytes?": Count, "events?": Count, "adler32?": Text}],
}

SHAPES = {
    "readout": _READOUT,
    "emulator": _EMULATOR,
    "router": _ROUTER,
    "supervisor": _SUPERVISOR,
    "node": _NODE,
    "recorder": _RECORDER,
    "report": _REPORT,
    "router_report": _ROUTER,
}


class _Leaf:
    """A value of one type."""

    def __init__(self, kind):
        self.fits, self.name = kind.fits, kind.name

    def keep(self, value, where, problems):
        if self.fits(value):
            return value
        problems.append(f"{_path(where)}: expected {self.name}, got {_named(value)}")
        return None


class _Table:
    """A table with declared keys."""

    def __init__(self, shape):
        self.keys = []
        for key, one in shape.items():
            one = _compiled(one)
            self.keys.append((key.rstrip("?"), key.endswith("?"), one, getattr(one, "fits", None)))
        self.needed = [name for name, optional, _, _ in self.keys if not optional]

    def keep(self, value, where, problems):
        if not isinstance(value, dict):
            problems.append(f"{_path(where)}: expected a table, got {_named(value)}")
            return None
        kept = {}
        for name, optional, shape, fits in self.keys:
            one = value.get(name)
            if fits is not None and fits(one):  # a fast path: thousands of links come every second
                kept[name] = one
                continue
            if one is None:
                if not optional:
                    problems.append(f"{_path((where, name))} is missing")
                continue
            one = shape.keep(one, (where, name), problems)
            if one is not None:
                kept[name] = one
        return kept

    def whole(self, kept):
        """Whether a table has all its needed keys: items without a name or counters are left out, so that later code need not check."""
        return all(name in kept for name in self.needed)


class _Items:
    """A list of one shape, or a table of one shape with any names."""

    def __init__(self, shape, kind):
        self.shape, self.kind = _compiled(shape), kind

    def keep(self, value, where, problems):
        if not isinstance(value, self.kind) or len(value) > MOST_ITEMS:
            problems.append(
                f"{_path(where)}: expected a {'list' if self.kind is list else 'table'} of at most {MOST_ITEMS}, got {_named(value)}"
            )
            return None
        keep, whole = self.shape.keep, getattr(self.shape, "whole", None)
        if self.kind is list:
            kept = (keep(one, (where, index), problems) for index, one in enumerate(value))
            return [one for one in kept if one is not None and (whole is None or whole(one))]
        kept = ((name, keep(one, (where, name), problems)) for name, one in value.items() if isinstance(name, str))
        return {name: one for name, one in kept if one is not None and (whole is None or whole(one))}


def _compiled(shape):
    if isinstance(shape, dict):
        return _Table(shape)
    if isinstance(shape, list):
        return _Items(shape[0], list)
    return _Items(shape.shape, dict) if isinstance(shape, Each) else _Leaf(shape)


def _path(where):
    """The path as text. `where` is (where of the container, key or index), None at the outermost level: text is made only for problems."""
    parts = []
    while where is not None:
        where, key = where
        parts.append(f"[{key}]" if isinstance(key, int) else f".{key}")
    return "".join(reversed(parts)).lstrip(".")


_COMPILED = {kind: _compiled(shape) for kind, shape in SHAPES.items()}
# The status of a held readout may lack all of the run.
_HELD = _compiled({(key if key.endswith("?") else key + "?"): one for key, one in _READOUT.items()})


def checked(kind, status):
    """Returns (`status` without values of a wrong type, problems). The problems are at most 16 sentences, and one with the number of further ones.

    A table keeps its valid values; an item of a list that lacks a needed key is left out completely.
    kind: of SHAPES, or program. Undeclared keys are left out. Never raises.
    """
    shape = _COMPILED.get(kind)
    if not isinstance(status, dict):
        return {}, (f"the answer is {_named(status)}, not a table",)
    if shape is None:
        return {}, ()
    process = status.get("process")
    if kind == "readout" and isinstance(process, dict) and process.get("phase") in ("launching", "ready"):
        shape = _HELD
    problems = []
    kept = shape.keep(status, None, problems)
    more = len(problems) - MOST_PROBLEMS
    return kept, tuple(problems[:MOST_PROBLEMS]) + ((f"and {more} more",) if more > 0 else ())


def _named(value):
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return f"a list of {len(value)}"
    text = repr(value)
    return text if len(text) <= 40 else text[:37] + "..."
