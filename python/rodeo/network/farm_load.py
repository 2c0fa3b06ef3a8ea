"""A real farm as the load of a network: readouts, supervisor and filter nodes, in the namespaces of a laboratory or on loopback.

`rodeo net lab --load farm` starts this module and exchanges JSON objects with it, one per line (docs/explanation/network-laboratory.md, "A load of your own").
Readouts generate fragments ahead of the trigger and keep them. The trigger authority is an emulator without readers. Nodes build whole events and reject all.
"""

import contextlib
import json
import os
import secrets
import shutil
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

RUN = 1
LINKS = 8  # E-links of a readout; each gives one chunk to a fragment
CHUNK_HEADER_BYTES = 8
FRAGMENT_HEADER_BYTES = 84  # bytes of the ROB and ROD headers around the chunks
KEPT_BYTES = 64 << 20  # limit of the fragments in a readout, in bytes
AHEAD = 2  # generator rate relative to the trigger rate; readouts fill their memory at this rate
WARM_UP = 0.4  # the shortest warm-up, in seconds
PATIENCE = 60  # limit in seconds for processes to start or end
CONGESTION_CONTROL = "reno"  # this TCP setting is made in each namespace, because sockets of libraries use its default
SOUND = (
    "debug",
    "lost",
    "partial",
    "given_up",
    "let_go",
)  # event counters of a node that invalidate the run if they are not 0


class LoadFailed(Exception):
    pass


def chunk_bytes(event_bytes, readouts):
    """The chunk size for whole events of about `event_bytes`, headers included. Chunks are whole words."""
    fragment = event_bytes / readouts
    return max(40, round((fragment - FRAGMENT_HEADER_BYTES) / LINKS - CHUNK_HEADER_BYTES) // 4 * 4)


def fragment_bytes(event_bytes, readouts):
    return LINKS * (chunk_bytes(event_bytes, readouts) + CHUNK_HEADER_BYTES) + FRAGMENT_HEADER_BYTES


class FarmLoad:
    """One run: start(), measure(), stop(). On errors the caller calls close(), which ends all processes and deletes all files."""

    def __init__(self, readouts, nodes, settings, rodeo):
        self.readouts, self.nodes, self.settings, self.rodeo = readouts, nodes, settings, rodeo
        self.folder = Path(tempfile.mkdtemp(prefix="load-"))
        self.processes = {}
        runtime = self.folder / "run"
        runtime.mkdir(mode=0o700)
        self.environment = {**os.environ, "RODEO_RUNTIME_DIR": str(runtime)}
        secret = self.folder / "secret"
        secret.touch(mode=0o600)
        secret.write_text(secrets.token_hex(32))

    def start(self):
        for place in (*self.readouts, *self.nodes):
            if place.get("namespace"):
                subprocess.run(
                    [
                        *entered(place),
                        "sh",
                        "-c",
                        f"echo {CONGESTION_CONTROL} > /proc/sys/net/ipv4/tcp_congestion_control",
                    ],
                    check=True,
                )
        self._begin("trigger", None, ["emulate", self._write("trigger", self._trigger())])
        self._begin(
            "supervisor",
            self.readouts[0],
            [
                "farm",
                "supervise",
                self._write("supervisor", self._supervisor(self.readouts[0]["address"])),
                "--json",
                "supervisor.json",
            ],
        )
        for number, place in enumerate(self.readouts):
            name = f"readout{number}"
            self._begin(
                name,
                place,
                ["readout", self._write(name, self._readout(name, number, place["address"])), "--json", f"{name}.json"],
            )
        for number, place in enumerate(self.nodes):
            name = f"node{number}"
            self._begin(
                name,
                place,
                ["farm", "filter", self._write(name, self._node(name, place["address"])), "--json", f"{name}.json"],
            )
        self._until(
            lambda: all(
                status is not None
                and status["supervisor"]["connected"]
                and len(status["readouts"]) == len(self.readouts)
                and all(one["connected"] for one in status["readouts"])
                for status in self._nodes()
            ),
            "every node has its supervisor and all readouts",
        )
        # Start triggers only now: waiting events would be built faster than triggers come.
        released = subprocess.run(
            [self.rodeo, "emulate", "release"], env=self.environment, cwd=self.folder, capture_output=True, text=True
        )
        if released.returncode != 0:
            raise LoadFailed(f"the trigger cannot be released: {released.stderr.strip()}")
        self._until(self._follows_the_trigger, "events come with the trigger")
        # Warms up as with emulators: congestion windows open, and the initial burst passes.
        end = time.monotonic() + max(WARM_UP, 12 * len(self.nodes) / float(self.settings["rate"]))
        self._until(
            lambda: time.monotonic() > end and all(self._decided(status) > 0 for status in self._nodes()),
            "every node has decided events",
        )

    def measure(self, seconds):
        before, since = self._nodes(), time.monotonic()
        end = since + seconds
        while (left := end - time.monotonic()) > 0:
            time.sleep(min(left, 0.1))
            self._all_run()
        after, until = self._nodes(), time.monotonic()
        for status in after:
            spoilt = {key: status["events"][key] for key in SOUND if status["events"][key] > 0}
            if spoilt:
                raise LoadFailed(f"{status['run']['name']} has events that are not whole: {spoilt}")
        decided = sum(map(self._decided, after)) - sum(map(self._decided, before))
        size = sum(status["bytes"]["fragments"] for status in after) / max(
            1, sum(status["counters"]["fragments"] for status in after)
        )
        latency = [status["latency_us"] for status in after]
        return {
            "seconds": until - since,
            "events_requested": decided + sum(status["events"]["under_way"] for status in after),
            "events_completed": decided,
            "rate_hz": decided / (until - since),
            "event_bytes": size * len(self.readouts),
            "latency_p50_us": statistics.median(one["collecting_p50"] for one in latency),
            "latency_p99_us": max(one["collecting_p99"] for one in latency),
            "building_p50_us": statistics.median(one["building_p50"] for one in latency),
            "building_p99_us": max(one["building_p99"] for one in latency),
            "waits_for_credit": sum(status["counters"]["waits_for_credit"] for status in after),
            "tcp": self._congestion_control(),
        }

    def stop(self):
        """Ends the processes in order, so that the supervisor's sum contains every event."""
        self._end("supervisor")
        for name in [name for name in self.processes if name.startswith("node")]:
            self._end(name)
        report = json.loads((self.folder / "supervisor.json").read_text())
        self.close()
        return {"condition": report["run"]["condition"], "events": report["events"]}

    def close(self):
        for process in self.processes.values():
            if process.poll() is None:
                process.kill()
            process.wait()
        self.processes.clear()
        shutil.rmtree(self.folder, ignore_errors=True)

    # Processes

    def _begin(self, name, place, arguments):
        log = open(self.folder / f"{name}.log", "w")
        with log:
            self.processes[name] = subprocess.Popen(
                [*entered(place), self.rodeo, *arguments],
                cwd=self.folder,
                env=self.environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _end(self, name):
        process = self.processes.pop(name)
        process.send_signal(signal.SIGTERM)  # SIGINT is ignored in the background of a script
        try:
            process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise LoadFailed(f"{name} does not end") from None

    def _all_run(self):
        for name, process in self.processes.items():
            if process.poll() is not None:
                said = (self.folder / f"{name}.log").read_text().strip().splitlines()
                raise LoadFailed(f"{name} ended with {process.returncode}: {' '.join(said[-2:]) or 'it said nothing'}")

    def _until(self, condition, what):
        end = time.monotonic() + PATIENCE
        while not condition():
            self._all_run()
            if time.monotonic() > end:
                raise LoadFailed(f"not reached within {PATIENCE} s: {what}")
            time.sleep(0.05)

    def _status(self, name):
        """The status of a process; None while it does not answer."""
        path = next((path for path in (self.folder / "run").rglob(f"{name}.control")), None)
        if path is None:
            return None
        with contextlib.suppress(OSError, ValueError, KeyError), socket.socket(socket.AF_UNIX) as client:
            client.settimeout(PATIENCE)
            client.connect(str(path))
            client.sendall(b'{"command": "status"}\n')
            return json.loads(client.makefile().readline())["reply"]
        return None

    def _follows_the_trigger(self):
        """A starting supervisor has all events built that the readouts hold, at once and before their triggers. This waits until triggers have caught up."""
        status = self._status("supervisor")
        return status is not None and (status["trigger"] or {}).get("received", 0) >= status["counters"]["offered"] > 0

    def _nodes(self):
        return [self._status(f"node{number}") for number in range(len(self.nodes))]

    @staticmethod
    def _decided(status):
        return 0 if status is None else status["events"]["accepted"] + status["events"]["rejected"]

    def _congestion_control(self):
        place = self.readouts[0]
        return subprocess.run(
            [*entered(place), "cat", "/proc/sys/net/ipv4/tcp_congestion_control"],
            capture_output=True,
            text=True,
            check=True,
        ).stdout.strip()

    # Configurations

    def _write(self, name, text):
        (self.folder / f"{name}.toml").write_text(text)
        return f"{name}.toml"

    def _network(self, address):
        return f'bus = "{self.folder}/bus"\naddress = "{address}"\nproviders = ["tcp"]\nsecret_file = "{self.folder}/secret"\n'

    def _in_flight(self):
        return int(self.settings["events_in_flight"])

    def _kept(self):
        """The number of fragments that a readout keeps: several times the events in flight, limited by memory."""
        size = fragment_bytes(float(self.settings["event_size"]), len(self.readouts))
        return int(min(max(64, 4 * self._in_flight() * len(self.nodes)), max(64, KEPT_BYTES / size)))

    def _trigger(self):
        spacing = {"periodic": "periodic", "poisson": "random"}.get(self.settings["arrivals"])
        if spacing is None:
            raise LoadFailed("the farm's trigger is periodic or random (arrivals = periodic or poisson)")
        return f"""
[emulator]
name = "trigger"
[[emulator.card]]
type = "felix"
name = "unread"
address = "0000:3b:00.0"
links = 1
elinks_per_link = 1
[emulator.trigger]
rate = "{float(self.settings["rate"]):.6g}Hz"
spacing = "{spacing}"
seed = {self.settings["seed"]}
serve = "load"
system = "load"
wait_for = 1
hold = true
"""

    def _readout(self, name, number, address):
        bytes = chunk_bytes(float(self.settings["event_size"]), len(self.readouts))
        return f"""
[run]
number = {RUN}
[readout]
name = "{name}"
[readout.input]
type = "generator"
links = {LINKS}
first_card = {number}
rate = "{AHEAD * float(self.settings["rate"]):.6g}Hz"
chunk_bytes = "{bytes}B"
page_bytes = "{max(64 << 10, 4 * (bytes + 64)) // 4096 * 4096 + 4096}B"
memory = "16MiB"
[readout.builder]
type = "gbt"
chunk_size = "{bytes}B"
window = 256
[readout.extractor]
type = "rodeo"
[[readout.rob]]
source_id = "0x{0x610001 + number:08x}"
[[readout.consumer]]
type = "hlt_request_handler"
name = "hlt"
max_fragments = {self._kept()}
queue = 16
sending = {8 * self._in_flight() + 64}
garbage_age = "1h"
linger = "100ms"
{self._network(address)}"""

    def _supervisor(self, address):
        readouts = ", ".join(f'"readout{number}.hlt"' for number in range(len(self.readouts)))
        return f"""
[farm.supervisor]
name = "supervisor"
run_number = {RUN}
trigger = "load"
system = "load"
readouts = [{readouts}]
nodes = {len(self.nodes)}
assignment = "{self.settings["assignment"].replace("-", "_")}"
events_in_flight = {self._kept() - 16}
event_timeout = "60s"
readout_grace = "30s"
node_grace = "30s"
{self._network(address)}"""

    def _node(self, name, address):
        return f"""
[farm.node]
name = "{name}"
supervisor = "supervisor"
events = {self._in_flight()}
workers = 1
credit_fragments = {self.settings["request_credits"]}
readout_grace = "30s"
{self._network(address)}
[farm.node.selection]
type = "fraction"
fraction = 0.0
"""


def entered(place):
    """The command prefix that starts a program in the namespace of a place."""
    return ["nsenter", f"--net={place['namespace']}", "--"] if place and place.get("namespace") else []


def run_here(settings, seconds, rodeo=None):
    """Runs on loopback without root: it measures rate and latency, without a switch."""
    here = {"address": "127.0.0.1", "namespace": None}
    load = FarmLoad(
        [here] * int(settings["readouts"]),
        [here] * int(settings["nodes"]),
        settings,
        rodeo or os.environ.get("RODEO", "rodeo"),
    )
    try:
        load.start()
        measured = load.measure(seconds)
        return {**measured, **load.stop()}
    finally:
        load.close()


def main():
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    load = None
    try:
        for line in sys.stdin:
            said = json.loads(line)
            try:
                if said["do"] == "start":
                    load = FarmLoad(said["readouts"], said["nodes"], said["settings"], os.environ.get("RODEO", "rodeo"))
                    load.start()
                    answer = {"started": len(load.processes)}
                elif said["do"] == "measure":
                    answer = load.measure(said["seconds"])
                else:
                    answer = load.stop()
            except (LoadFailed, OSError, subprocess.SubprocessError) as failed:
                if load is not None:
                    load.close()
                answer = {"error": str(failed), "code": "network.load"}
            print(json.dumps(answer), flush=True)
    finally:
        if load is not None:
            load.close()


if __name__ == "__main__":
    main()
