"""Runs the process of the monitors: takes its histograms, finds out when it hangs, and starts it again."""

import math
import multiprocessing
import os
import re
import signal
import tempfile
import time
from pathlib import Path

from rodeo.monitoring import worker
from rodeo.monitoring.errors import FAILED, INVALID, UNREACHABLE, MonitorError
from rodeo.monitoring.loading import code_at, is_same

# A monitor that hangs so often on a running readout is left out. With files once is enough, because the same event comes again.
_MOST_HANGS = 3
# After this many deaths in a row without an event between them, while no monitor ran, the process is not started again.
_MOST_DEATHS = 3
_LOAD_S = 60.0  # time limit for loading the monitors' file and its imports
_END_S = 5.0
_MOST_LINES = 200


class Count:
    """Failures of one monitor."""

    def __init__(self):
        self.threw = self.hung = 0
        self.last_place = ""  # the last place that was reported
        self.left_out = False


class Supervisor:
    """Used by one thread. Calls `tell` with a line for the user when something important happened."""

    def __init__(self, path, source, hang_s, debug, tell, load_s=_LOAD_S):
        self.path, self.source, self.hang_s, self.debug, self.tell = Path(path), source, hang_s, debug, tell
        self.load_s = max(load_s, hang_s)
        self.histograms, self.counts = {}, {}
        self.events = self.missed = self.damaged = 0
        self.ended = False
        self.deaths = 0
        self._deaths_since_event, self._events_at_death = 0, 0
        self._directory = tempfile.TemporaryDirectory(prefix="rodeo-monitor-")
        self._context = multiprocessing.get_context("spawn")
        self._process = None

    def start(self):
        here, there = self._context.Pipe()
        said, output = self._context.Pipe(duplex=False)
        os.set_blocking(said.fileno(), False)
        self._state = self._context.RawArray("d", [worker.LOADING, math.inf, self.events, self.missed, 0])
        self._trace = Path(self._directory.name) / "where"
        carry_on = {
            "histograms": self.histograms,
            "events": self.events,
            "missed": self.missed,
            "left_out": [name for name, one in self.counts.items() if one.left_out],
        }
        self._process = self._context.Process(
            target=worker.work,
            args=(str(self.path), self.source, carry_on, self._state, there, str(self._trace), output, self.debug),
            daemon=True,
        )
        self._process.start()
        there.close()
        output.close()
        self._connection, self._output, self._line = here, said, b""

    def poll(self, seconds):
        """Handles messages of the process for up to `seconds`. MonitorError if the process cannot start or restart; the last histograms stay."""
        if self._connection.poll(seconds):
            self._take_messages()
        self._take_output()
        if self.ended:
            return
        if not self._process.is_alive():
            self._take_messages()
            self._take_output()
            if not self.ended:
                self._died()
        elif self._state[worker.CURRENT] == worker.LOADING:
            self._check_loading()
        elif (name := self._hangs()) is not None:
            self._end_hanging(name)

    def end(self):
        """Asks for the last histograms. If the process hangs, its previous histograms stay."""
        deadline = time.monotonic() + min(_END_S, self.hang_s)
        try:
            self._connection.send("end")
        except OSError:
            pass
        while not self.ended and self._process.is_alive() and time.monotonic() < deadline:
            if self._connection.poll(0.05):
                self._take_messages()
            self._take_output()
        self._take_messages()
        self._take_output()
        if not self.ended and self._process.is_alive():
            self.tell("the monitors did not end: their last histograms are used")
        self.close()

    def close(self):
        if self._process is not None:
            self._end_process()
            self._process = None
        self._directory.cleanup()

    def _end_process(self):
        """Kills the process and reports what it has printed, also an incomplete line."""
        self._process.kill()
        self._process.join()
        self._take_output()
        if self._line:
            self.tell(self._line.decode(errors="replace"))
        self._connection.close()
        self._output.close()

    def _take_messages(self):
        try:
            while self._connection.poll():
                self._take(*self._connection.recv())
        except (EOFError, OSError):
            pass

    def _take(self, what, *rest):
        if what == "began":
            for name in rest[0]:
                self.counts.setdefault(name, Count())
        elif what == "snapshot":
            histograms, self.events, self.missed, self.damaged, threw, self.ended = rest
            self.histograms = {**self.histograms, **histograms}
            for name, (times, where, error) in threw.items():
                self._threw(self.counts[name], name, times, where, error)
        elif what == "tell":
            self.tell(*rest)
        elif what == "left out":
            self._leave_out(*rest)
        elif what == "failed":
            text, status = rest
            if status == UNREACHABLE and self.histograms:  # the run ended during the restart of the process
                self.ended = True
                return
            raise MonitorError.of(text, status)

    def _threw(self, count, name, times, where, error):
        count.threw += times
        if where != count.last_place:
            self.tell(f"monitor {name} threw at {where}: {error}")
        count.last_place = where

    def _leave_out(self, name, why):
        self.counts[name].left_out = True
        self.tell(f"monitor {name} is left out from now on: {why}")

    def _take_output(self):
        """Reports what monitors print, line by line."""
        try:
            while came := os.read(self._output.fileno(), 65536):
                *lines, self._line = (self._line + came).split(b"\n")
                for line in lines[-_MOST_LINES:]:
                    self.tell(line.decode(errors="replace"))
                self._line = self._line[-4096:]
        except BlockingIOError:
            pass

    def _name(self, number):
        names = list(self.counts)
        return names[int(number)] if 0 <= number < len(names) else None

    def _hangs(self):
        name = self._name(self._state[worker.CURRENT])
        return name if name is not None and time.monotonic() - self._state[worker.SINCE] > self.hang_s else None

    def _check_loading(self):
        if time.monotonic() - self._state[worker.SINCE] <= self.load_s:
            return
        line = self._line_where_it_is()
        raise MonitorError(
            "monitor.file",
            f"{self.path} hangs while it is loaded{line}: nothing for {self.load_s:g} s",
            "do long work in a monitor, or before",
            INVALID,
        )

    def _end_hanging(self, name):
        line = self._line_where_it_is()
        self._process.kill()
        self._process.join()
        self._take_messages()
        count = self.counts[name]
        count.hung += 1
        self.tell(f"monitor {name} hangs{line}: nothing for {self.hang_s:g} s; it restarts with its last histograms")
        self._begin_again(name, count)

    def _died(self):
        name = self._name(self._state[worker.CURRENT])
        code = self._process.exitcode
        how = f"signal {signal.Signals(-code).name}" if code < 0 else f"exit status {code}"
        if name is None:
            return self._died_idle(how)
        self.counts[name].hung += 1
        self.tell(f"monitor {name} ended its process ({how}); it restarts with its last histograms")
        self._begin_again(name, self.counts[name])

    def _died_idle(self, how):
        """The process died while no monitor ran: it was killed, or memory ran out. Restarts it, unless it never started or no longer reaches an event."""
        self._deaths_since_event = self._deaths_since_event + 1 if self.events == self._events_at_death else 1
        self._events_at_death = self.events
        if not self.counts or self._deaths_since_event >= _MOST_DEATHS:
            raise MonitorError(
                "monitor.ended", f"the process of the monitors ended with {how}", "`--log debug` says more", FAILED
            )
        self.deaths += 1
        self.tell(
            f"the process of the monitors ended ({how}) while no monitor ran; it restarts with the last histograms"
        )
        self._start_again()

    def _begin_again(self, name, count):
        most = 1 if self.source["files"] else _MOST_HANGS
        if count.hung >= most:
            self._leave_out(
                name, f"it failed {count.hung} times" if most > 1 else "it would fail at the same event again"
            )
        self._start_again()

    def _start_again(self):
        self._end_process()
        self.start()

    def _line_where_it_is(self):
        """Asks Python's faulthandler by SIGUSR1 where the process is; this works even in an endless loop."""
        os.kill(self._process.pid, signal.SIGUSR1)
        deadline = time.monotonic() + 1
        while time.monotonic() < deadline:
            time.sleep(0.02)
            found = re.findall(r'File "(.*)", line (\d+)', self._trace.read_text()) if self._trace.exists() else []
            for file, line in found:
                if is_same(file, self.path):
                    return f" in {self.path}:{line} (`{code_at(self.path, int(line))}`)"
            if found:
                break
        return ""
