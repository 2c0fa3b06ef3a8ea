"""The result of a journal's records: remembered facts, the open run with its luminosity blocks, standing alarms. Pure. It needs no
database."""

import contextlib

STANDING = (
    "cause",
    "severity",
    "raised_ns",
    "what",
    "value",
    "limit",
    "do",
    "process",
    "acked_by",
    "acked_ns",
    "cleared_ns",
)
OF_THE_RUN = ""  # the process of counters that belong to the run
BLOCK = ("first_trigger", "number", "scan_step", "first_id", "seen_ns", "triggers", "recorded")


class Kept:
    """The result for one system. `last_number` is the largest run number so far. Values are JSON."""

    def __init__(self, value=None):
        value = value if isinstance(value, dict) else {}
        self.remembered = dict(value.get("remembered") or {})
        self.runs = {row["number"]: row for row in value.get("open_runs") or []}
        self.alarms = {row["cause"]: row for row in value.get("alarms") or []}
        self.blocks = {block["first_trigger"]: block for block in value.get("blocks") or []}  # of the open run
        self.last_number = int(value.get("last_number") or 0)

    def as_json(self):
        return {
            "remembered": self.remembered,
            "open_runs": list(self.runs.values()),
            "blocks": list(self.blocks.values()),
            "alarms": list(self.alarms.values()),
            "last_number": self.last_number,
        }

    def add(self, record):
        """Adds the next record. Skips a record of another version that lacks a member."""
        with contextlib.suppress(LookupError, TypeError):
            self._add(record)

    def _add(self, record):
        kind = record.get("kind")
        if kind == "remember":
            self.remembered.pop(record["key"], None)
            if record["value"] is not None:
                self.remembered[record["key"]] = record["value"]
        elif kind == "open":
            self.last_number = max(self.last_number, record["number"])
            self.runs, self.blocks = {record["number"]: row_of(record)}, {}
        elif kind == "close":
            if self.runs.pop(record["number"], None) is not None:
                self.blocks = {}
        elif kind == "lumi_block" and record["run"] in self.runs:
            self.blocks[record["first_trigger"]] = {name: record[name] for name in BLOCK}
        elif kind == "alarm":
            if record["acked_by"] is not None and record["cleared_ns"] is not None:
                self.alarms.pop(record["cause"], None)
            else:
                self.alarms[record["cause"]] = {name: record[name] for name in STANDING}


def row_of(record):
    """Makes the row of an open run, in the form of `open_runs`."""
    return {
        "number": record["number"],
        "system": record["system"],
        "type": record["type"],
        "state": "OPEN",
        "asked_ns": record["asked_ns"],
        "first_event_ns": None,
        "holder": record["holder"],
        "comment": record["comment"],
        "build": record["build"],
        "flags": [],
    }
