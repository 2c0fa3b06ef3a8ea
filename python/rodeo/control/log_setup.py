"""Logging of the control room's processes: for people on stderr, and as lines of JSON in a file (docs/reference/protocols/logs.md), bounded in rate and length."""

import logging
import logging.handlers
import os
import sys
import time

from rodeo.control.paths import needed
from rodeo.control.printed import plain_lines
from rodeo.control.refused import Refused

LONGEST_FILE = 16 * 1024 * 1024  # limit in bytes; a longer file is renamed to NAME.jsonl.1
LINES_PER_S, BURST = 2000.0, 4000.0
LEVELS = {
    logging.DEBUG: "debug",
    logging.INFO: "info",
    logging.WARNING: "warning",
    logging.ERROR: "error",
    logging.CRITICAL: "error",
}
AUDIENCES = {"debug": "developer", "info": "expert", "warning": "operator", "error": "operator"}
RUN = {"number": None}  # the run of this process


def set_run(number):
    """Sets the run of all further lines; None: no run."""
    RUN["number"] = number


def begin(name, file, *, level=logging.INFO, human="%(asctime)s %(levelname).1s %(message)s", datefmt=None):
    """Sets up logging, once per process. If the file cannot be written, only stderr is used."""
    logging.basicConfig(stream=sys.stderr, level=level, format=human, datefmt=datefmt)
    for handler in logging.getLogger().handlers:
        handler.setFormatter(Plain(human, datefmt))
    try:
        logging.getLogger().addHandler(Records(name, file))
    except (Refused, OSError) as error:  # a failure of the log file must not stop the process
        logging.getLogger("rodeo").warning("no lines of JSON: %s", error)


class Plain(logging.Formatter):
    """For a terminal: removes control characters, because messages may quote processes."""

    def format(self, record):
        return plain_lines(super().format(record), "  ")


class Bounded(logging.Filter):
    """Limits the lines of a second and counts the dropped ones; the next passed line reports their number. `clock` in seconds, monotonic."""

    def __init__(self, lines_per_s=LINES_PER_S, burst=BURST, clock=time.monotonic):
        super().__init__()
        self.lines_per_s, self.burst, self.clock = lines_per_s, burst, clock
        self.room, self.at_s, self.left_out, self.lost = burst, clock(), 0, 0

    def filter(self, record):
        now_s = self.clock()
        self.room, self.at_s = min(self.burst, self.room + (now_s - self.at_s) * self.lines_per_s), now_s
        if self.room < 1:
            self.left_out += 1
            self.lost += 1
            return False
        self.room -= 1
        if self.left_out:
            record.left_out, self.left_out = self.left_out, 0
        return True


class Records(logging.handlers.RotatingFileHandler):
    """Lines of JSON by structlog; a call adds members with `extra={"audience": ..., "fields": {...}, "run": ...}`. `lost`: lines that could not be written."""

    def __init__(self, name, file, bounded=None):
        file = os.fspath(file)
        os.makedirs(os.path.dirname(file) or ".", exist_ok=True)
        super().__init__(file, maxBytes=LONGEST_FILE, backupCount=1, delay=True, encoding="utf-8")
        self.name_, self.lost = name, 0
        stdlib, processors = needed("structlog.stdlib"), needed("structlog.processors")
        self.setFormatter(
            stdlib.ProcessorFormatter(
                foreign_pre_chain=[self._members], processors=[processors.JSONRenderer(separators=(",", ":"))]
            )
        )
        self.addFilter(bounded or Bounded())

    def _members(self, _logger, _method, event):
        record = event["_record"]
        level = LEVELS.get(record.levelno, "info")
        message = event["event"]
        if record.exc_info:
            message += "\n" + logging.Formatter().formatException(record.exc_info)
        said = {
            "time_ns": int(record.created * 1e9),
            "level": level,
            "audience": getattr(record, "audience", AUDIENCES[level]),
            "process": self.name_,
            "pid": os.getpid(),
        }
        run = getattr(record, "run", None) or RUN["number"]
        if run:
            said["run"] = run
        said["message"] = message
        found = {name: str(value) for name, value in getattr(record, "fields", {}).items()}
        if left_out := getattr(record, "left_out", 0):
            found["left_out_before"] = str(left_out)
        return {**said, **({"fields": found} if found else {})}

    def handleError(self, record):
        self.lost += 1
