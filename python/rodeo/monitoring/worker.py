"""The process that runs the user's monitors. If a monitor hangs or crashes, other processes are not affected."""

import ctypes
import faulthandler
import glob
import itertools
import os
import resource
import signal
import sys
import time
import traceback

from rodeo.monitoring.errors import FAILED, REFUSED, UNREACHABLE, MonitorError
from rodeo.monitoring.loading import load, said, where
from rodeo.monitoring.monitor import TooLarge

# Indices of the shared array that the supervisor reads at any time.
CURRENT, SINCE, EVENTS, MISSED, STATES = range(5)
IDLE, LOADING = -1, -2  # values of CURRENT while no monitor runs

_SNAPSHOT_S = 0.2
_PATIENCE_S = 0.1
_MOST_TOLD = 3
_PR_SET_PDEATHSIG = 1
_MOST_MEMORY = 2 << 30


def work(path, source, carry_on, state, connection, trace, output, debug):
    """`carry_on` is the state of the previous worker: histograms by monitor and name, events, and monitors to leave out."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # the process ends with the supervisor
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the supervisor handles Ctrl-C
    resource.setrlimit(
        resource.RLIMIT_DATA, (_MOST_MEMORY, _MOST_MEMORY)
    )  # one bad value may make a histogram grow without limit
    os.dup2(output.fileno(), 1)
    os.dup2(output.fileno(), 2)
    sys.stdout.reconfigure(
        line_buffering=True
    )  # output must precede the last message: the supervisor reads no output after it
    faulthandler.register(signal.SIGUSR1, file=open(trace, "w"), all_threads=False)
    state[SINCE] = time.monotonic()
    try:
        monitors = load(path)
        state[CURRENT] = IDLE
        _Worker(monitors, path, source, carry_on, state, connection, debug).run()
    except MonitorError as error:
        if debug:
            traceback.print_exc()
        connection.send(("failed", str(error), error.status))
    except (BrokenPipeError, EOFError):
        pass


class _Worker:
    def __init__(self, monitors, path, source, carry_on, state, connection, debug):
        self.monitors, self.path, self.source, self.state, self.connection, self.debug = (
            monitors,
            path,
            source,
            state,
            connection,
            debug,
        )
        self.left_out = set(carry_on["left_out"])
        self.events, self.missed, self.damaged = carry_on["events"], carry_on["missed"], 0
        self.next_snapshot = 0.0
        self.samples = self.opened = None
        self.told_of = 0  # number of damaged events reported so far
        self.threw = {}  # by monitor: count, place and text of the errors since the last snapshot
        for one in monitors:
            one.histograms.update(carry_on["histograms"].get(one.name, {}))

    def run(self):
        events = self._open()
        self.connection.send(("began", [one.name for one in self.monitors]))
        self._send_snapshot()
        while not self.connection.poll():
            try:
                event = next(events)
            except TimeoutError:
                event = None
            except StopIteration:
                break
            except ValueError as error:  # the publisher refuses, or has sent something that is not an event
                raise MonitorError.of(str(error), REFUSED if self.source["network"] else FAILED) from error
            if event is not None:
                self._show(event)
            self._send_snapshot()
        sys.stdout.flush()  # the last line may be incomplete
        self._send_snapshot(last=True)

    def _open(self):
        import rodeo.data
        import rodeo.events

        try:
            if self.source["files"]:
                self.opened = rodeo.data.open(self.source["files"], damaged="skip")
                missing = next(
                    (path for path in self.source["files"] if not glob.has_magic(path) and not os.path.exists(path)),
                    None,
                )
                if missing is not None:
                    raise MonitorError(
                        "file.open", f"there is no file {missing}", "put patterns in quotes: --input '*.data'"
                    )
                return itertools.islice(iter(self.opened), self.events, None)
            self.samples = rodeo.events.sample(self.source["readout"], timeout_s=_PATIENCE_S, **self.source["network"])
            return self.samples
        except ValueError as error:
            status = 1 if self.source["files"] else UNREACHABLE
            raise MonitorError.of(str(error), status) from error

    def _show(self, event):
        for number, one in enumerate(self.monitors):
            if one.name in self.left_out:
                continue
            self.state[SINCE] = time.monotonic()
            self.state[CURRENT] = number
            try:
                one(event)
            except BaseException as error:
                self._threw(one, error)
            self.state[CURRENT] = IDLE
        self.events += 1
        self.state[EVENTS] = self.events

    def _threw(self, one, error):
        if self.debug:
            traceback.print_exception(error)
        if isinstance(error, MemoryError):
            self.left_out.add(one.name)
            one.histograms.clear()  # the supervisor keeps the histograms that were sent last
            why = (
                str(error)
                if isinstance(error, TooLarge)
                else f"it needs more memory than the {_MOST_MEMORY >> 30} GiB that monitors have together"
            )
            return self.connection.send(("left out", one.name, why))
        times = self.threw.get(one.name, (0,))[0]
        self.threw[one.name] = (times + 1, where(error, self.path), said(error))

    def _send_snapshot(self, last=False):
        now = time.monotonic()
        if not last and now < self.next_snapshot:
            return
        missed = self.missed + (self.samples.missed if self.samples is not None else 0)
        damaged = 0 if self.opened is None else self.opened.error_count
        if damaged > self.told_of and self.told_of < _MOST_TOLD:
            for error in self.opened.errors[self.told_of : _MOST_TOLD]:
                self.connection.send(("tell", str(error)))
            self.told_of = damaged
        self.state[MISSED] = missed
        self.connection.send(
            (
                "snapshot",
                {one.name: one.histograms for one in self.monitors if one.histograms},
                self.events,
                missed,
                damaged,
                self.threw,
                last,
            )
        )
        self.threw = {}
        # Large histograms take long to send and are sent less often.
        self.next_snapshot = now + max(_SNAPSHOT_S, 10 * (time.monotonic() - now))
