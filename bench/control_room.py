#!/usr/bin/env python3
"""The cost and the speed of the control room, with real processes: `.venv/bin/python bench/control_room.py [--processes 100] [--json FILE]`.

Runs a system of readouts and the control room, started as users start it, with its port open. Opens the page in a real browser (chromium); without one,
reads the page's WebSocket. Up to 32 processes: one emulator with a card for each readout, which writes files. More: two such readouts, and crates; a crate is
an emulator with five cards that are not read. (A readout takes a hundredth of a core at least; a hundred of them would run on other hosts.)
`--log-lines 1000` adds a program that writes this number of lines of JSON a second.
`--slurm` runs one emulator and one readout in a job of a real Slurm (Debian's packages, root). Everything runs on this machine and competes with the
controller for CPU time; the CPU of the controller is measured alone."""

import argparse
import contextlib
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
CHROMIUM = "/usr/bin/chromium"
SETTLES_S = 8.0  # until the page has loaded and has the answers to its first requests
WATCHED_S = 30.0
MOST_CARDS = 32
CRATES, CARDS = 9, 5  # crates of a rack, cards of a crate
# It follows the clock, not a pause, so that it writes exactly the requested rate.
CHATTER = """
import json, os, sys, time
lines_per_s, said, began = float(sys.argv[1]), 0, time.monotonic()
with open(os.environ['RODEO_LOG_JSON'], 'a') as file:
    while True:
        time.sleep(0.05)
        while said < (time.monotonic() - began) * lines_per_s:
            said += 1
            line = {'time_ns': time.time_ns(), 'level': 'warning', 'audience': 'operator', 'process': 'chatter', 'pid': os.getpid(), 'message': f'line {said}'}
            file.write(json.dumps(line) + chr(10))
        file.flush()
"""


def write_system(directory, processes, log_lines):
    """`processes` processes that take data, at a rate that does not fill the machine, and one that writes log lines."""
    from small_systems import process, write

    directory.mkdir(parents=True, exist_ok=True)
    classes = cards_and_readouts(directory, processes) if processes <= MOST_CARDS else crates(directory, processes)
    if log_lines:
        (directory / "chatter.py").write_text(CHATTER)
        classes.append(
            process(
                "chatter",
                "program",
                command=[sys.executable, str(directory / "chatter.py"), str(log_lines)],
                role="expendable",
            )
        )
    return write(directory, *classes, name="bench")


def cards_and_readouts(directory, processes):
    """One emulator with a card for each readout; files are written."""
    from small_systems import emulator_file, process, readout_file

    emulator_file(directory, cards=processes - 1, rate="100Hz")
    readout_file(directory)
    return [
        process("cards", "emulator", configuration="emulator.toml"),
        *(
            process(
                f"readout-{number}",
                "readout",
                configuration="readout.toml",
                set=[f'readout.input.cards=["0000:{number:02x}:00.0"]', f"readout.rob[0].source_id={number}"],
            )
            for number in range(1, processes)
        ),
    ]


def crates(directory, processes):
    """Two readouts that take data, and racks of crates, each crate an emulator of five cards that are not read: it has counters and costs almost nothing."""
    from small_systems import CARD, process

    classes = cards_and_readouts(directory, 3)
    left = processes - 3
    for rack in range(1, 2 + (left - 1) // CRATES):
        cards = "".join(CARD.format(number=card) for card in range(1, CARDS + 1))
        (directory / f"rack-{rack}.toml").write_text(
            f'[emulator]\nname = "rack"\n{cards}\n[emulator.trigger]\nrate = "1Hz"\nwait_for = {CARDS}\n'
        )
        own = [f"emulator.card[{card}].address={rack:04x}:0{{number}}:0{card}.0" for card in range(CARDS)]
        classes.append(
            process(
                f"rack-{rack}",
                "emulator",
                configuration=f"rack-{rack}.toml",
                count=min(CRATES, left - CRATES * (rack - 1)),
                set=own,
            )
        )
    return classes


def cpu_seconds(pid):
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / TICKS


class Page(threading.Thread):
    """The data that a page receives: `bytes` of its WebSocket and of its requests, and the times of documents as (arrival, own time), in seconds."""

    def __init__(self, address):
        super().__init__(daemon=True)
        self.address, self.bytes, self.times = address, 0, []
        self.over, self.browser, self.error = threading.Event(), os.path.exists(CHROMIUM), None

    def run(self):
        try:
            (self._in_a_browser if self.browser else self._socket_alone)()
        except Exception as error:
            self.error = error

    def _message(self, text):
        self.bytes += len(text.encode())
        message = json.loads(text)
        if "time_ns" in (told := message.get("whole") or message["changed"]):
            self.times.append((time.time(), told["time_ns"] / 1e9))

    def _in_a_browser(self):
        from playwright.sync_api import sync_playwright

        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(
                executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"]
            )
            page = browser.new_page(viewport={"width": 1440, "height": 1000})
            network = page.context.new_cdp_session(page)
            network.send("Network.enable")
            network.on("Network.webSocketFrameReceived", lambda event: self._message(event["response"]["payloadData"]))
            network.on("Network.dataReceived", lambda event: self._count(event["dataLength"]))
            page.goto(self.address)
            while not self.over.is_set():
                page.wait_for_timeout(20)
            browser.close()

    def _count(self, more):
        self.bytes += more

    def _socket_alone(self):
        import httpx
        from websockets.sync.client import connect

        base, _, _ = self.address.partition("/?")
        with httpx.Client(follow_redirects=True, trust_env=False) as browser:
            browser.get(self.address)
            cookie = "; ".join(f"{name}={value}" for name, value in browser.cookies.items())
        with connect(
            base.replace("http", "ws") + "/api/live",
            origin=base,
            additional_headers={"Cookie": cookie},
            proxy=None,
            max_size=None,
        ) as live:
            while not self.over.is_set():
                self._message(live.recv(timeout=60))

    def figures(self, bytes_before, seconds):
        """Figures of the last `seconds`. The state on a page is oldest right before the next one comes."""
        began = time.time() - seconds
        times = [each for each in self.times if each[0] >= began]
        shown = [after[0] - before[1] for before, after in zip(times, times[1:])]
        return {
            "page_bytes_per_second": (self.bytes - bytes_before) / seconds,
            "page_of": "chromium" if self.browser else "its WebSocket alone",
            "state_age_on_arrival_s_max": max((came - told for came, told in times), default=None),
            "state_age_s_max": max(shown, default=None),
            "state_age_s_median": statistics.median(shown) if shown else None,
        }


def timed(call):
    began = time.monotonic()
    result = call()
    return time.monotonic() - began, result


class Room:
    """`rodeo control SYSTEM`, and a client of it."""

    def __init__(self, file):
        self.file, self.said = file, file.parent / "room.log"

    def begin(self):
        with open(self.said, "ab") as log:
            self.process = subprocess.Popen(
                [str(BUILD / "rodeo"), "control", str(self.file)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self.address = self.process.stdout.readline().strip()
        if not self.address:
            raise SystemExit(self.said.read_text())

    def client(self):
        from rodeo.control.client import connect

        return connect("bench")

    def kill(self):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()

    def end(self):
        """With all that it runs."""
        with contextlib.suppress(Exception), self.client() as client:
            client.abort()
        self.process.terminate()
        self.process.wait(120)


@contextlib.contextmanager
def room_of(make):
    """A control room for the system file that `make(directory)` writes; leaves nothing behind."""
    directory = Path(tempfile.mkdtemp(prefix="rc-", dir="/tmp"))
    (directory / "run").mkdir(mode=0o700)
    os.environ["RODEO_RUNTIME_DIR"] = str(directory / "run")
    room = Room(make(directory))
    try:
        yield room
    finally:
        room.end()
        shutil.rmtree(directory, ignore_errors=True)


def say(text):
    print(text, file=sys.stderr, flush=True)


def runs_of(client, runs):
    """Start, a second of data, stop: medians, and the worst condition of a run."""
    starts, events, stops, closed, conditions = [], [], [], [], set()
    for number in range(runs):
        before = time.time_ns()
        seconds, begun = timed(client.start)
        starts.append(seconds)
        time.sleep(1.0)
        asked = time.time_ns()
        stops.append(timed(client.stop)[0])
        row = client.run(begun["run"])
        events.append((row["first_event_ns"] - before) / 1e9)
        closed.append((row["closed_ns"] - asked) / 1e9)
        conditions.add(row["condition"])
        say(
            f"run {number + 1} of {runs}: started in {starts[-1]:.2f} s, stopped in {stops[-1]:.2f} s, {row['condition']}"
        )
    median = statistics.median
    return {
        "start_to_first_event_s": median(events),
        "start_s": median(starts),
        "stop_to_closed_s": median(closed),
        "stop_to_next_ready_s": median(stops),
        "conditions": sorted(conditions),
    }


def watched(room, client, log_lines):
    """A run with an open page: the CPU of the controller, the bytes to the page, the number of metrics."""
    run = client.start()["run"]
    page = Page(room.address)
    page.start()
    time.sleep(SETTLES_S)
    before, bytes_before, began = cpu_seconds(room.process.pid), page.bytes, time.monotonic()
    said_before = said_lines(room) if log_lines else 0
    time.sleep(WATCHED_S)
    seconds = time.monotonic() - began
    figures = {
        "controller_core_fraction": (cpu_seconds(room.process.pid) - before) / seconds,
        **page.figures(bytes_before, seconds),
    }
    if log_lines:
        figures["log_lines_per_second"] = (said_lines(room) - said_before) / seconds
    looks = len({told for came, told in page.times if came >= time.time() - seconds}) / seconds
    statuses = [numbers_of(each["name"]) for each in client.status()["processes"] if each["kind"] != "program"]
    figures |= {
        "looks_per_second": looks,
        "metrics": sum(statuses),
        "metrics_per_second": sum(statuses) * looks,
        "load": os.getloadavg()[0],
    }
    page.over.set()
    page.join(30)
    if page.error:
        raise page.error
    return run, figures


def numbers_of(name):
    """The number of metrics of a process: as many as the controller reads each time."""
    import asyncio

    from rodeo.control import paths
    from rodeo.control.processes import json_lines

    socket = next(each for each in Path(paths.runtime_directory()).glob(f"bench-{name}.*") if each.is_socket())
    return _numbers(asyncio.run(json_lines.ask(str(socket), {"command": "status"}, 30.0)))


def _numbers(value):
    if isinstance(value, dict):
        return sum(map(_numbers, value.values()))
    if isinstance(value, list):
        return sum(map(_numbers, value))
    return int(isinstance(value, (int, float)) and not isinstance(value, bool))


def said_lines(room):
    """The number of the last log line of the chattering program."""
    with room.client() as client:
        return max(
            (int(each["message"].split()[1]) for each in client.logs("chatter", search="line ", lines=5, fold=False)),
            default=0,
        )


def measure(processes, runs, log_lines):
    figures = {
        "processes": processes,
        "system": "cards and readouts" if processes <= MOST_CARDS else "crates and readouts",
        "cores": os.cpu_count(),
    }
    with room_of(lambda directory: write_system(directory, processes, log_lines)) as room:
        figures["serves_s"], _ = timed(room.begin)
        with room.client() as client:
            figures["launch_s"], _ = timed(client.launch)
            say(f"launched in {figures['launch_s']:.2f} s")
            figures |= runs_of(client, runs)
            run, seen = watched(room, client, log_lines)
            figures |= seen
        room.kill()
        began = time.monotonic()
        room.begin()
        with room.client() as client:
            document = client.wait(state="RUNNING", timeout=60)
            figures["adopted_s"] = time.monotonic() - began
            assert document["run"]["number"] == run, document["run"]
            client.stop()
            figures["adopted_condition"] = client.run(run)["condition"]
            figures["close_s"], _ = timed(client.close)
    return figures


def measure_slurm(runs):
    """One emulator and one readout, in one job on a node."""
    from slurm_cluster import MISSING, Cluster
    from small_systems import elsewhere, one_card

    if MISSING or os.geteuid() != 0:
        raise SystemExit("a Slurm needs root and " + " ".join(MISSING or ["Debian's packages"]))
    home = Path(tempfile.mkdtemp(prefix="rs-", dir="/tmp"))
    cluster = Cluster(home)
    try:
        cluster.open()
        os.environ.update({name: cluster.environment[name] for name in ("PATH", "SLURM_CONF")})
        figures = {"processes": 2, "system": "card and readout in a job of Slurm", "cores": os.cpu_count()}
        with room_of(
            lambda directory: elsewhere(one_card(directory, name="bench"), name="node", launcher="slurm", address="n1")
        ) as room:
            figures["serves_s"], _ = timed(room.begin)
            with room.client() as client:
                figures["launch_s"], _ = timed(client.launch)
                figures |= runs_of(client, runs)
                figures["close_s"], _ = timed(client.close)
        return figures
    finally:
        cluster.close()
        shutil.rmtree(home, ignore_errors=True)


TARGETS = {
    "serves_s": ("control room serves", "s", "2"),
    "launch_s": ("launch of all processes", "s", "3 for 20"),
    "start_to_first_event_s": ("start to the first event of every readout", "s", "1; Slurm 5"),
    "stop_to_closed_s": ("stop to the closed row: files closed and hashed", "s", "2"),
    "stop_to_next_ready_s": ("stop to the next run's readouts ready", "s", ""),
    "controller_core_fraction": ("controller and page, of a core", "", "0.10"),
    "metrics_per_second": ("metrics looked at", "/s", "10,000 for 100"),
    "page_bytes_per_second": ("page, all that it is sent", "B/s", "20000"),
    "state_age_on_arrival_s_max": ("oldest state as it came to the page", "s", ""),
    "state_age_s_median": ("age of the state right before the next one, median", "s", ""),
    "state_age_s_max": ("the same, at most", "s", "1"),
    "log_lines_per_second": ("lines that a program said", "/s", ""),
    "adopted_s": ("kill -9 of the controller; the next one has adopted the run", "s", "5"),
    "close_s": ("close", "s", ""),
    "load": ("load of the machine while it was watched", "", ""),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--processes", type=int, default=20, help="of the system (default 20)")
    parser.add_argument("--runs", type=int, help="of which medians are taken (default 5, of many processes 1)")
    parser.add_argument("--log-lines", type=int, default=0, help="that a program writes in a second")
    parser.add_argument("--slurm", action="store_true", help="one emulator and one readout on a node of Slurm")
    parser.add_argument("--json", help="write the figures to a file; - is stdout")
    options = parser.parse_args()
    runs = options.runs or (5 if options.processes <= MOST_CARDS else 1)
    figures = measure_slurm(runs) if options.slurm else measure(max(2, options.processes), runs, options.log_lines)
    if options.json:
        text = json.dumps(figures, indent=2) + "\n"
        sys.stdout.write(text) if options.json == "-" else Path(options.json).write_text(text)
    if options.json != "-":
        print(
            f"{figures['processes']} processes ({figures['system']}) on {figures['cores']} cores; runs were {', '.join(figures['conditions'])}"
        )
        for key, (what, unit, target) in TARGETS.items():
            if (value := figures.get(key)) is not None:
                print(
                    f"  {what:62} {f'{value:.3g}' if value < 1000 else f'{value:.0f}':>8} {unit:4} {f'(target {target})' if target else ''}".rstrip()
                )


if __name__ == "__main__":
    main()
