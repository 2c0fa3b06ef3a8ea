#!/usr/bin/env python3
"""What the control room costs and how fast it is, with real processes: `.venv/bin/python bench/control_room.py [--processes 100] [--json FILE]`.

A system of one emulator and readouts, each with a card of its own; the control room as users start it, with its port open, and one page that reads its
WebSocket. All of it runs on this machine, so processes that compute take the controller's time too; its CPU is counted alone."""

import argparse
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
BUILD = Path(os.environ.get("RODEO_BUILD_DIR", ROOT / "build")).resolve()
sys.path[:0] = [str(BUILD / "python"), str(ROOT / "tests" / "control"), str(ROOT / "tests")]
os.environ["PYTHONPATH"], os.environ["RODEO"] = str(BUILD / "python"), str(BUILD / "rodeo")

TICKS = os.sysconf("SC_CLK_TCK")
WATCHED_S = 20.0


def write_system(directory, processes):
    """One emulator with a card for each of `processes` - 1 readouts, at a rate that leaves the machine time."""
    from small_systems import emulator_file, process, readout_file, write

    readouts = processes - 1
    emulator_file(directory, cards=readouts, rate="100Hz")
    readout_file(directory, writes=False)
    classes = [process(f"readout-{number}", "readout", configuration="readout.toml",
                       set=[f'readout.input.cards=["0000:{number:02x}:00.0"]', f"readout.rob[0].source_id={number}"]) for number in range(1, readouts + 1)]
    return write(directory, process("cards", "emulator", configuration="emulator.toml"), *classes, name="bench")


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Page(threading.Thread):
    """Reads the WebSocket as a page does: bytes that came, and how old the document was then."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.bytes, self.ages = address, 0, []
        self.over = threading.Event()

    def run(self):
        import httpx
        from websockets.sync.client import connect

        base, _, _ = self.address.partition("/?")
        with httpx.Client(follow_redirects=True, trust_env=False) as browser:
            browser.get(self.address)
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        with connect(base.replace("http", "ws") + "/api/live", origin=base, additional_headers={"Cookie": cookie}, proxy=None, max_size=None) as live:
            while not self.over.is_set():
                text = live.recv(timeout=60)
                self.bytes += len(text.encode())
                message = json.loads(text)
                if "time_ns" in (told := message.get("whole") or message["changed"]):
                    self.ages.append((time.time_ns() - told["time_ns"]) / 1e9)


def timed(call):
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result


def measure(processes, runs):
    from rodeo.control.client import connect

    directory = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    (directory / "run").mkdir(mode=0o700)
    os.environ["RODEO_RUNTIME_DIR"] = str(directory / "run")
    figures = {"processes": processes, "cores": os.cpu_count()}
    file = write_system(directory, processes)
    with open(directory / "room.log", "wb") as log:
        room = subprocess.Popen([str(BUILD / "rodeo"), "control", str(file)], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=log, text=True)
        try:
            figures["serves_s"], address = timed(lambda: room.stdout.readline().strip())
            if not address:
                raise SystemExit((directory / "room.log").read_text())
            with connect("bench") as client:
                figures["launch_s"], _ = timed(client.launch)
                starts, stops = [], []
                for _ in range(runs):
                    starts.append(timed(client.start)[0])
                    time.sleep(1.0)
                    stops.append(timed(client.stop)[0])
                figures["start_to_first_event_s"], figures["stop_to_next_ready_s"] = statistics.median(starts), statistics.median(stops)
                client.start()
                page = Page(address)
                page.start()
                time.sleep(5.0)
                before, bytes_before, began = cpu_seconds(room.pid), page.bytes, time.monotonic()
                page.ages.clear()
                time.sleep(WATCHED_S)
                seconds = time.monotonic() - began
                figures["controller_core_fraction"] = (cpu_seconds(room.pid) - before) / seconds
                figures["page_bytes_per_second"] = (page.bytes - bytes_before) / seconds
                figures["state_age_s_max"] = max(page.ages, default=None)
                figures["metrics"] = sum(_numbers(each) for each in [client.status()])
                page.over.set()
                page.join(10)
                client.stop()
                figures["close_s"], _ = timed(client.close)
        finally:
            room.terminate()
            room.wait(120)
    shutil.rmtree(directory, ignore_errors=True)
    return figures


def _numbers(value):
    """How many numbers a document holds."""
    if isinstance(value, dict):
        return sum(map(_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(_numbers, value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


TARGETS = {"launch_s": ("launch of all processes", "s", "3 for 20"), "start_to_first_event_s": ("start to first event of every readout", "s", "1"),
           "stop_to_next_ready_s": ("stop to closed files and the next run's readouts ready", "s", "2"), "controller_core_fraction": ("controller and page, of a core", "", "0.10"),
           "page_bytes_per_second": ("page", "B/s", "20000"), "state_age_s_max": ("oldest state that the page saw", "s", "1"), "close_s": ("close", "s", ""),
           "serves_s": ("control room serves", "s", "2")}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=20, help="of the system (default 20)")
    parser.add_argument("--runs", type=int, default=5, help="of which medians are taken")
    parser.add_argument("--json", help="write the figures to a file; - is stdout")
    options = parser.parse_args()
    figures = measure(max(2, options.processes), options.runs)
    if options.json:
        text = json.dumps(figures, indent=2) + "\n"
        sys.stdout.write(text) if options.json == "-" else Path(options.json).write_text(text)
    if options.json != "-":
        print(f"{figures['processes']} processes on {figures['cores']} cores")
        for key, (what, unit, target) in TARGETS.items():
            value = figures.get(key)
            print(f"  {what:56} {'?' if value is None else f'{value:.3g}':>8} {unit:4} {f'(target {target})' if target else ''}")


if __name__ == "__main__":
    main()
