"""The program of `rodeo events monitor`: python -m rodeo.monitoring FILE.py ..."""

import argparse
import json
import os
import signal
import sys
import time
import traceback

from rodeo.monitoring.errors import DONE, FAILED, PARTIAL, MonitorError, needs
from rodeo.monitoring.terminal import Terminal
from rodeo.saying import say
from rodeo.signals import heard

_LOOK_S = 0.1
_DRAW_S = 1.0


class _Stop:
    """The first Ctrl-C or SIGTERM ends the monitors in order; the second ends the process at once."""

    def __init__(self):
        self.asked = False
        for one in heard(signal.SIGINT, signal.SIGTERM):
            signal.signal(one, self._ask)

    def _ask(self, *_):
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True


def run(arguments):
    needs("hist")
    from rodeo.monitoring import saving
    from rodeo.monitoring.page import Page
    from rodeo.monitoring.supervisor import Supervisor

    stem = os.path.splitext(os.path.basename(arguments.file))[0]
    paths = [] if arguments.no_save else arguments.save or [f"{stem}.root", f"{stem}.h5"]
    saving.check(paths)
    stop = _Stop()
    network = {}
    if arguments.stream:
        network = {
            "stream": arguments.stream,
            "bus": arguments.bus,
            "provider": arguments.provider,
            "secret_file": arguments.secret_file,
        }
    source = {"readout": arguments.name, "files": arguments.input, "network": network}
    page = None if arguments.no_page else Page(os.path.basename(arguments.file), arguments.port)
    terminal = Terminal(page.address if page is not None else "", arguments.json == "-")
    monitors = Supervisor(arguments.file, source, arguments.hang, arguments.debug, terminal.tell)
    failures = []
    try:
        try:
            monitors.start()
            _watch(monitors, page, terminal, stop, arguments.events)
            monitors.end()
        except (MonitorError, OSError) as error:
            if not monitors.events:
                raise
            failures.append(error)
        terminal.close()
        saved = _save(paths if monitors.histograms else [], monitors, terminal, failures)
    finally:
        terminal.close()
        monitors.close()
        if page is not None:
            page.close()
    terminal.print_last(_blocks(monitors))
    status = _report(monitors, saved, arguments)
    for error in failures[:-1]:
        say(error)
    if failures:
        raise failures[-1]
    return status


def _save(paths, monitors, terminal, failures):
    """Writes each file, even if others failed."""
    from rodeo.monitoring import saving

    saved = []
    for path in paths:
        try:
            saved.append(str(saving.save(path, monitors.histograms, terminal.tell)))
        except MonitorError as error:
            failures.append(error)
    return saved


def _watch(monitors, page, terminal, stop, most):
    drawn = 0.0
    while not monitors.ended and not stop.asked and not (most and monitors.events >= most):
        monitors.poll(_LOOK_S)
        if not monitors.histograms:
            continue
        if page is not None:
            page.show(_state(monitors), _blocks(monitors), terminal.messages)
        terminal.begin()
        if time.monotonic() - drawn >= _DRAW_S:
            drawn = time.monotonic()
            terminal.show(_state(monitors), _blocks(monitors))


def _blocks(monitors):
    return [(f"{monitor}/{name}", one) for monitor, of_it in monitors.histograms.items() for name, one in of_it.items()]


def _state(monitors):
    parts = [f"{monitors.events:,} events"]
    if monitors.missed:
        parts.append(f"{monitors.missed:,} left out (not read in time)")
    if monitors.damaged:
        parts.append(f"{monitors.damaged:,} damaged")
    if monitors.deaths:
        parts.append(f"all restarted {_times(monitors.deaths)}")
    for name, count in monitors.counts.items():
        if count.threw:
            parts.append(f"{name} threw {_times(count.threw)}")
        if count.hung:
            parts.append(f"{name} restarted {_times(count.hung)}")
        if count.left_out:
            parts.append(f"{name} is left out")
    return ", ".join(parts)


def _times(count):
    return "once" if count == 1 else f"{count:,} times"


def _report(monitors, saved, arguments):
    say(f"{_state(monitors)}; saved: {', '.join(saved) or 'nothing'}")
    if arguments.json:
        text = (
            json.dumps(
                {
                    "events": monitors.events,
                    "missed": monitors.missed,
                    "damaged": monitors.damaged,
                    "restarts": monitors.deaths,
                    "saved": saved,
                    "monitors": {
                        name: {"threw": one.threw, "hung": one.hung, "left_out": one.left_out}
                        for name, one in monitors.counts.items()
                    },
                },
                indent=2,
            )
            + "\n"
        )
        if arguments.json == "-":
            sys.stdout.write(text)
        else:
            with open(arguments.json, "w") as file:
                file.write(text)
    return (
        PARTIAL
        if monitors.damaged
        or monitors.deaths
        or any(one.threw or one.hung or one.left_out for one in monitors.counts.values())
        else DONE
    )


def main():
    parser = argparse.ArgumentParser(prog="rodeo events monitor")
    parser.add_argument("file")
    parser.add_argument("--name", default="")
    parser.add_argument("--input", action="append", default=[])
    parser.add_argument("--from", dest="stream", default="")
    parser.add_argument("--bus", default="")
    parser.add_argument("--provider", default="auto")
    parser.add_argument("--secret-file", default="")
    parser.add_argument("--events", type=int, default=0)
    parser.add_argument("--save", action="append", default=[])
    parser.add_argument("--no-save", action="store_true")
    parser.add_argument("--port", type=int, default=0)
    parser.add_argument("--no-page", action="store_true")
    parser.add_argument("--hang", type=float, default=5.0)
    parser.add_argument("--json", default="")
    parser.add_argument("--debug", action="store_true")
    arguments = parser.parse_args()
    try:
        return run(arguments)
    except MonitorError as error:
        if arguments.debug:
            traceback.print_exc()
        say(error)
        return error.status
    except KeyboardInterrupt:
        return FAILED
    except BrokenPipeError:  # the reader of stdout has ended
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        return FAILED
    except OSError as error:
        if arguments.debug:
            traceback.print_exc()
        say(f"error[monitor.failed]: {error}")
        return FAILED


if __name__ == "__main__":
    sys.exit(main())
