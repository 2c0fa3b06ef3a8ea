"""One run of one method: settings in, a flat dict of numbers out. What executors send to workers."""

import json
import os
import socket
import subprocess
import time
from dataclasses import dataclass, field

METHODS = ("formula", "simulation", "laboratory")


@dataclass(frozen=True)
class Task:
    method: str
    settings: dict = field(hash=False)  # seed among them

    def with_settings(self, **changes):
        return Task(self.method, {**self.settings, **changes})


class Overload(Exception):
    """More is asked for than the network carries: no buffer is large enough."""


def run(task):
    """The numbers of one run. ValueError: impossible settings; Overload: more than the links carry."""
    return {"formula": by_formula, "simulation": by_simulation, "laboratory": by_laboratory}[task.method](task.settings)


def timed(task):
    start = time.monotonic()
    try:
        result = run(task)
    except Overload as overload:
        result = {"overload": str(overload)}
    return result, time.monotonic() - start, socket.gethostname()


def by_formula(settings):
    """The exact form as occupancy; drops are 1 where a finite buffer is smaller than that."""
    from . import units
    from .closed_forms import formula
    from .scenario import formula_arguments

    forms = formula(**formula_arguments(settings))
    if forms.exact_bytes is None:
        raise Overload(forms.why)
    buffer = settings.get("buffer", "infinite")
    limit = float("inf") if buffer == "infinite" else units.size(buffer)
    return {"max_buffer_bytes": forms.exact_bytes, "paper_bytes": forms.paper_bytes, "bound_bytes": forms.bound_bytes,
            "drops": int(forms.exact_bytes > limit)}


def by_simulation(settings):
    from .simulation import simulate

    try:
        return simulate(**settings).numbers
    except ValueError as refused:
        if "network.overload" in str(refused):
            raise Overload(str(refused)) from None
        raise


def by_laboratory(settings):
    """`rodeo net lab run` with these settings as flags; RODEO names the command."""
    command = [os.environ.get("RODEO", "rodeo"), "net", "lab", "run"]
    for name, value in settings.items():
        command += [f"--{name.replace('_', '-')}", str(value)]
    done = subprocess.run([*command, "--json", "-"], text=True, capture_output=True)
    if done.returncode != 0:
        raise RuntimeError(done.stderr.strip() or f"{' '.join(command)} ended with {done.returncode}")
    return {name: value for name, value in json.loads(done.stdout).items() if isinstance(value, (int, float, str, bool))}
