"""A farm under faults for some seconds: every event of the trigger's list must end in one place. `./test soak SECONDS SEED`.

Emulated cards, a router, readouts, supervisor, filter nodes and recorders are real processes. They are killed, stopped and cut off from each other; their disks are slow or full,
and a selection hangs, as the seed decides. This process is the checker and is never killed: it has the trigger authority's list and reads the files."""

import argparse
import contextlib
import json
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy

sys.path.insert(0, str(Path(__file__).resolve().parent))
import books as accounts  # noqa: E402
import configurations  # noqa: E402
import faults as plans  # noqa: E402
from farm import SYSTEM, Farm, wait_until  # noqa: E402
from trigger_list import TriggerList  # noqa: E402

BUILD = Path(__file__).resolve().parents[2] / "build"
VERDICTS = ["accepted", "rejected", "debug", "lost"]
DISK_BYTES = 192 << 20
BACK_AFTER = 0.7  # seconds until a killed process is started again
MOST_MEMORY_GROWTH = 1.25
UNDER_WAY = 300  # most events in flight, as events_in_flight of the supervisor (configurations.py) at 1 kHz


def numbers_named(tree, name):
    """The sum of all numbers of this name in a status."""
    if isinstance(tree, list):
        return sum(numbers_named(one, name) for one in tree)
    if not isinstance(tree, dict):
        return 0
    own = sum(value for key, value in tree.items() if key == name and isinstance(value, int))
    named = tree.get("value", 0) if tree.get("name") == name and isinstance(tree.get("value", 0), int) else 0
    return own + named + sum(numbers_named(value, name) for value in tree.values())


class Soak:
    def __init__(
        self, seconds, seed, rate_hz, directory, build=BUILD, say=print, kinds=None, python=True, authority_dies=False
    ):
        self.authority_dies = authority_dies
        self.seconds, self.seed, self.directory, self.build, self.say = seconds, seed, Path(directory), Path(build), say
        self.findings, self.counts, self.memory = [], {}, {}
        self.disks = [self.directory / f"disk{i}" for i in (1, 2)]
        self.mounted = []
        self.cut = set()  # processes whose connections are cut repeatedly
        for disk in self.disks:
            disk.mkdir()
        self.full_possible = self._mount()
        self.farm = Farm(
            self.build / "rodeo",
            self.directory,
            configurations.configurations(self.directory, self.disks, rate_hz, python),
        )
        kinds = [
            kind
            for kind in (plans.KINDS if kinds is None else kinds)
            if self._possible(kind) and (python or kind != plans.HANG)
        ]
        self.faults = plans.schedule(
            seconds,
            seed,
            configurations.PROCESSES,
            configurations.RECORDERS,
            ["node2"],
            kinds,
            only_stopped=["emulator"],
        )
        self.triggers = None

    def _mount(self):
        """Disks that can be full; False if this user may not mount."""
        for disk in self.disks:
            done = subprocess.run(
                ["mount", "-t", "tmpfs", "-o", f"size={DISK_BYTES}", "soak", str(disk)], capture_output=True
            )
            if done.returncode != 0:
                return False
            self.mounted.append(disk)
        return True

    def _possible(self, kind):
        if kind == plans.FULL_DISK:
            return self.full_possible
        if kind == plans.CUT:
            return shutil.which("ss") is not None and self.full_possible  # needs root
        return True

    # ---- one run

    def run(self):
        try:
            self._start()
            self._disturb()
            self._end()
            self._settle()
        finally:
            self._clean()
        return not self.findings

    def _start(self):
        self.farm.start("emulator")
        if not wait_until(lambda: list(self.directory.rglob("soak.trigger")), 30):
            raise RuntimeError(f"no trigger authority: {self.farm.last_words('emulator')}")
        self.triggers = TriggerList(
            next(self.directory.rglob("soak.trigger")), SYSTEM, self.directory / "triggers.list"
        )
        for name in self.farm.parts:
            if name != "emulator":
                self.farm.start(name)
        ready = lambda: self._status("emulator").get("trigger", {}).get("awaited_functions") == 0
        if not wait_until(ready, 60):
            raise RuntimeError(
                "not all are ready:\n" + "\n".join(f"{name}: {self.farm.last_words(name)}" for name in self.farm.parts)
            )
        self._release()
        if not wait_until(lambda: self.triggers.accepted > 0, 30):
            raise RuntimeError("there are no triggers")

    def _status(self, name):
        with contextlib.suppress(OSError, ValueError):
            return self._ask(name, {"command": "status"})
        return {}

    def _ask(self, name, request):
        """Sends one line of JSON to the control socket of a process and returns the answer (docs/reference/protocols/control.md)."""
        sockets = list(self.directory.rglob("soak.emulator" if name == "emulator" else f"{name}.control"))
        if not sockets:
            return {}
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(5)
            client.connect(str(sockets[0]))
            client.sendall(json.dumps(request).encode() + b"\n")
            line = b""
            while not line.endswith(b"\n"):
                data = client.recv(1 << 16)
                if not data:
                    break
                line += data
        answer = json.loads(line) if line else {}
        return answer.get("reply") or {} if answer.get("ok") else {"error": answer.get("what", "no answer")}

    def _release(self):
        answer = self._ask("emulator", {"command": "trigger_release"})
        if "error" in answer:
            raise RuntimeError(f"the trigger is not released: {answer}")

    def _hold(self):
        """Ends the triggers; returns their number."""
        answer = self._ask("emulator", {"command": "trigger_hold"})
        if "error" in answer:
            raise RuntimeError(f"the trigger is not held: {answer}")
        return answer["accepted"]

    def _disturb(self):
        begin = time.monotonic()
        pending, back = list(self.faults), []  # back: (time, function that ends a fault)
        while (now := time.monotonic() - begin) < self.seconds:
            while pending and pending[0].at <= now:
                fault = pending.pop(0)
                undo = self._do(fault)
                self.counts[fault.kind] = self.counts.get(fault.kind, 0) + 1
                self.say(
                    f"{now:7.1f} s  {fault.kind} {fault.target}" + (f" for {fault.lasts:.1f} s" if fault.lasts else "")
                )
                if undo:
                    back.append((now + (fault.lasts or BACK_AFTER), undo))
            for entry in [entry for entry in back if entry[0] <= now]:
                back.remove(entry)
                entry[1]()
            for name in self.farm.parts:
                if not self.farm.alive(name) and not any(getattr(undo, "name", None) == name for _, undo in back):
                    self.findings.append(f"{name} ended by itself:\n{self.farm.last_words(name)}")
                    self.farm.start(name)
            for name in self.cut:
                self._cut(name)
            self._look_at_memory(now)
            time.sleep(0.05)
        for _, undo in back:
            undo()

    def _do(self, fault):
        target = fault.target
        if fault.kind == plans.KILL:
            self.farm.kill(target)
            return Undo(lambda: self.farm.start(target), target)
        if fault.kind == plans.STOP:
            self.farm.stop(target, True)
            return Undo(lambda: self.farm.stop(target, False))
        if fault.kind == plans.CUT:
            self._cut(target)
            if not fault.lasts:
                return None
            self.cut.add(target)
            return Undo(lambda: self.cut.discard(target))
        if fault.kind == plans.SLOW_DISK:
            self._slow(target, 0.05)
            return Undo(lambda: self._slow(target, 0))
        if fault.kind == plans.FULL_DISK:
            return self._fill(target)
        (self.directory / "hang").touch()
        return Undo(lambda: (self.directory / "hang").unlink(missing_ok=True))

    def _cut(self, name):
        """Cuts every TCP connection of the process."""
        if self.farm.alive(name):
            shown = subprocess.run(["ss", "-tnpH", "state", "established"], capture_output=True, text=True).stdout
            for line in shown.splitlines():
                if f"pid={self.farm.parts[name].process.pid}," in line:
                    local = line.split()[2]
                    subprocess.run(["ss", "-K", "src", local], capture_output=True)

    def _slow(self, name, seconds):
        with contextlib.suppress(OSError, ValueError):
            self._ask(name, {"command": "slow_disk", "seconds": seconds})

    def _fill(self, name):
        ballast = self.disks[configurations.RECORDERS.index(name)] / "ballast"
        with contextlib.suppress(OSError), ballast.open("wb") as out:
            while True:
                out.write(bytes(1 << 20))
        return Undo(lambda: ballast.unlink(missing_ok=True))

    def _look_at_memory(self, now):
        for name in self.farm.parts:
            size = self.farm.resident_bytes(name)
            if size:
                self.memory.setdefault((name, self.farm.parts[name].lives), []).append((now, size))

    # ---- the end of it

    def _end(self):
        (self.directory / "hang").unlink(missing_ok=True)
        for name in self.farm.parts:
            if not self.farm.alive(name):
                self.farm.start(name)
        if self.authority_dies:
            self._lose_the_authority()
            return
        last = self._hold()
        said = "nothing"

        def decided():
            nonlocal said
            said = f"{len(self._decisions()[0])} of {last} events are decided, and {self.triggers.accepted} of them are in the trigger's list"
            return len(numpy.unique(self._decisions()[0])) >= last == self.triggers.accepted

        if not wait_until(decided, 60):
            self.findings.append(f"a minute after the last trigger {said}")
            for name in ["supervisor", *configurations.NODES]:
                self.say(f"{name}: {json.dumps(self._status(name))}")
        for name in configurations.READOUTS:
            self._judge_garbage(name, self._status(name))
        self.triggers.close()
        self._end_in_order()

    def _judge_garbage(self, name, said):
        if garbage := numbers_named(said, "garbage"):
            self.findings.append(
                f"{name} let {garbage} fragments go that no clear has named: their events have no verdict"
            )

    def _lose_the_authority(self):
        """Trigger and cards are one essential process: without it the run ends with the data in readouts. These end by themselves, because no card answers."""
        time.sleep(1)  # without faults, so that all processes work
        self.farm.kill("emulator")
        gone = lambda: not any(self.farm.alive(name) for name in configurations.READOUTS)
        if not wait_until(gone, 60):
            self.findings.append("a minute after its card was gone a readout has not ended")
        for name in configurations.READOUTS:
            report = self.directory / f"{name}.{self.farm.parts[name].lives}.json"
            self._judge_garbage(name, json.loads(report.read_text()) if report.exists() else {})
        self.triggers.close()
        self.triggers.error = None  # the connection's end is an error of a read or of a write
        self._end_in_order()

    def _end_in_order(self):
        for name in [
            "supervisor",
            *configurations.NODES,
            *configurations.RECORDERS,
            *configurations.READOUTS,
            configurations.ROUTER,
            "emulator",
        ]:
            code = self.farm.end(name, 40)
            if code is None:
                self.findings.append(f"{name} had to be killed at the end:\n{self.farm.last_words(name)}")
            elif code not in (0, 6):
                self.say(f"{name} ended with {code}: {self.farm.last_words(name, 2)}")

    def _decisions(self):
        """Ids and verdicts of the supervisor's file (docs/reference/formats/assignments.md)."""
        file = self.directory / "decisions"
        data = file.read_bytes() if file.exists() else b""
        records = numpy.frombuffer(data[: len(data) // 9 * 9], numpy.dtype([("id", "<u8"), ("verdict", "u1")]))
        return records["id"], records["verdict"]

    def _recorded(self):
        """Ids in the files of ordinary and debug streams; each file is verified byte by byte."""
        import rodeo.data

        ids = {False: [], True: []}
        files = sorted(file for disk in self.disks for file in disk.rglob("*.data*"))
        for file in files:
            if file.suffix != ".data":
                self.findings.append(f"a file was left open: {file.name}")
        whole = [file for file in files if file.suffix == ".data"]
        if whole:
            done = self.farm.ask("data", "verify", *whole)
            if done.returncode not in (0,):
                self.findings.append(f"the files do not verify:\n{done.stdout[-2000:]}{done.stderr[-2000:]}")
        for file in whole:
            ids["debug_" in file.name].append(
                rodeo.data.open(str(file)).read(fields=["global_id"])["global_id"].astype(numpy.uint64)
            )
        join = lambda some: numpy.concatenate(some) if some else numpy.empty(0, numpy.uint64)
        return join(ids[False]), join(ids[True]), len(whole)

    def _settle(self):
        if self.triggers.error:
            self.findings.append(f"the trigger's list ended early: {self.triggers.error}")
        ids, verdicts = self._decisions()
        first = numpy.unique(ids, return_index=True)[1]  # the first entry counts
        ids, verdicts = ids[first], verdicts[first]
        recorded, debug, files = self._recorded()
        triggered = accounts.ids_of(self.triggers.ranges)
        if self.authority_dies:
            triggered = accounts.told_at_the_end(triggered, ids, UNDER_WAY)
            self.findings += accounts.lost_before(triggered, ids[verdicts == 3], UNDER_WAY)
        lost = {"readout_died": ids[verdicts == 3]}
        if self.authority_dies:
            # If a readout had one of these, it would count it as garbage and report it.
            lost["authority_died"] = accounts.gone_with(triggered, numpy.concatenate([ids, recorded, debug]), UNDER_WAY)
        books = accounts.settle(triggered, recorded, debug, ids[verdicts == 1], lost)
        self.findings += books.wrong
        self.findings += accounts.decided_otherwise(
            ids[verdicts == 0], recorded, "accepted"
        ) + accounts.decided_otherwise(ids[verdicts == 2], debug, "debug")
        if (
            books.lost
            and not self.authority_dies
            and not any(self.farm.parts[name].kills for name in configurations.READOUTS)
        ):
            self.findings.append(f"events are lost, and no readout was killed: {books.lost}")
        self._judge_memory()
        total = max(self.triggers.accepted, 1)
        self.say(
            f"{total} events: {books.accepted} accepted, {books.rejected} rejected, {books.debug} debug, "
            f"{books.lost_events()} lost {books.lost or ''} ({100 * (books.accepted + books.rejected) / total:.2f} % accepted or rejected), in {files} files"
        )
        self.say("faults: " + ", ".join(f"{kind} {count}" for kind, count in sorted(self.counts.items())))
        self.books = books

    def _judge_memory(self):
        """Compares the memory in the last and second quarter of a long run: growth there would never end."""
        for (name, life), seen in self.memory.items():
            lasted = seen[-1][0] - seen[0][0]
            if lasted < 60:
                continue
            quarter = lambda i: numpy.median(
                [size for at, size in seen if seen[0][0] + lasted * i / 4 <= at <= seen[0][0] + lasted * (i + 1) / 4]
            )
            if quarter(3) > MOST_MEMORY_GROWTH * quarter(1):
                self.findings.append(
                    f"memory of {name} (life {life}) grows: {quarter(1) / 1e6:.1f} MB, later {quarter(3) / 1e6:.1f} MB"
                )

    def _clean(self):
        if self.triggers:
            self.triggers.close()
        self.farm.close()
        for disk in self.mounted:
            subprocess.run(["umount", str(disk)], capture_output=True)


class Undo:
    """The end of a fault; `name`: the process that is gone until then."""

    def __init__(self, function, name=None):
        self.function, self.name = function, name

    def __call__(self):
        self.function()


def main():
    parser = argparse.ArgumentParser(
        prog="./test soak", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("seconds", nargs="?", type=float, default=600)
    parser.add_argument("seed", nargs="?", type=int, default=int(time.time()))
    parser.add_argument("--rate", type=float, default=1000, help="triggers a second [Hz]")
    parser.add_argument(
        "--authority-dies", action="store_true", help="at the end the emulator is killed, with trigger and cards"
    )
    parser.add_argument("--keep", action="store_true", help="keep logs and files")
    arguments = parser.parse_args()
    directory = Path(tempfile.mkdtemp(prefix="rodeo-soak-"))
    print(f"soak of {arguments.seconds:g} s, seed {arguments.seed}: logs in {directory}", flush=True)
    soak = Soak(
        arguments.seconds,
        arguments.seed,
        arguments.rate,
        directory,
        say=lambda line: print(line, flush=True),
        authority_dies=arguments.authority_dies,
    )
    good = soak.run()
    for finding in soak.findings:
        print(f"WRONG: {finding}")
    print("every event is in one place" if good else f"again: ./test soak {arguments.seconds:g} {arguments.seed}")
    if good and not arguments.keep:
        shutil.rmtree(directory, ignore_errors=True)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
