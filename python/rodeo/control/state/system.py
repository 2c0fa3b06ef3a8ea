"""The system file as values: classes of processes, their members, limits. `rodeo check` reads and checks it, so only one set of rules and messages exists."""

import hashlib
import json
import math
import re
import subprocess
import tomllib
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from rodeo.control.refused import Refused
from rodeo.control.state.kinds import KINDS, kind_of
from rodeo.control.state.rules import DEFAULT, Rules, rules_of

ROLES = ("essential", "at_least", "expendable")
RESTARTS = ("never", "between_runs", "in_run")
CHECKS_AT_ONCE = 8
CHECK_LIMIT_S = 60
_BYTES = {
    "B": 1,
    "kB": 10**3,
    "MB": 10**6,
    "GB": 10**9,
    "TB": 10**12,
    "KiB": 2**10,
    "MiB": 2**20,
    "GiB": 2**30,
    "TiB": 2**40,
    "": 1,
}
_SECONDS = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}


@dataclass(frozen=True)
class ProcessClass:
    """One [[control.process]]: the program of its processes, their number, hosts, and the effect of a loss. Limits in seconds."""

    name: str
    kind: str
    configuration: Path | None = None
    command: tuple = ()
    count: int = 1
    hosts: tuple = ()
    role: str = "essential"
    at_least: float = 1
    restart: str = "never"
    set: tuple = ()
    order: int = 0
    launch_limit_s: float = 60.0
    start_limit_s: float = 10.0
    stop_limit_s: float = 60.0

    @property
    def per_run(self):
        """Whether its processes live for one run: they are launched held, started once, and end with the run."""
        return kind_of(self.kind).per_run

    @property
    def needed(self):
        """The number of its processes that must be good."""
        if self.role == "expendable":
            return 0
        if self.role == "at_least":
            wanted = math.ceil(self.at_least * self.count) if self.at_least < 1 else math.ceil(self.at_least)
            return max(0, min(self.count, wanted))
        return self.count

    @property
    def start_order(self):
        """Classes with larger numbers start first."""
        return self.order or kind_of(self.kind).order

    def members(self):
        hosts = self.hosts or ("local",)
        return tuple(
            Member(self.name if self.count == 1 else f"{self.name}-{index + 1}", self, index, hosts[index % len(hosts)])
            for index in range(self.count)
        )


@dataclass(frozen=True)
class Member:
    """One process of the system, as configured: without its state."""

    name: str
    process_class: ProcessClass
    index: int = 0
    host: str = "local"

    @property
    def kind(self):
        return self.process_class.kind

    @property
    def role(self):
        return self.process_class.role

    @property
    def per_run(self):
        return self.process_class.per_run


@dataclass(frozen=True)
class HostEntry:
    """One [[control.host]]."""

    name: str
    launcher: str = "local"
    address: str = ""


@dataclass(frozen=True)
class External:
    """One [[control.external]]: `format` prometheus or json; `keep`: metrics that are kept with each run."""

    name: str
    address: str
    format: str = "prometheus"
    every_s: float = 5.0
    timeout_s: float = 2.0
    keep: tuple = ()


def without_password(text, address):
    """The text of a system file, whose `control.database` is `address`, with *** for the password in it."""
    found = [
        match[1]
        for match in (re.match(r"[^:/?#]+://[^:/?#@]*:([^/]*)@", address), re.search(r"[?&]password=([^&#]*)", address))
        if match and match[1]
    ]
    for password in found:
        text = text.replace(f":{password}@", ":***@").replace(f"password={password}", "password=***")
    if (
        found and address and tomllib.loads(text).get("control", {}).get("database") == address
    ):  # the file may have the address with escapes
        text = re.sub(r"(?m)^(.*\bdatabase\s*=).*$", r'\1 "***"', text)
    return text


@dataclass(frozen=True)
class System:
    """One system file. Paths are absolute, sizes in bytes, limits in seconds. `values` are the effective values with origins from `rodeo check`."""

    name: str
    file: Path
    directory: Path
    database: str = ""
    listen: str = "127.0.0.1:0"
    disk_stop_bytes: int = 3 * 10**9
    disk_warn_bytes: int = 10 * 10**9
    disk_time_s: float = 600.0
    event_limit_s: float = 30.0
    choose_limit_s: float = 60.0
    lumi_block_s: float = 0.0  # length of a luminosity block; 0: blocks change only by command
    umask: int = 0o027  # the umask of the room, its agents and their processes
    group: str = ""  # the group of the files in `directory`; empty: the user's group
    patience: float = 1.0  # factor of all times after which silence counts, for slow machines
    classes: tuple = ()
    hosts: tuple = ()
    externals: tuple = ()
    rules: Rules = DEFAULT
    text: str = ""
    values: tuple = ()

    @property
    def members(self):
        return tuple(member for one in self.classes for member in one.members())

    @property
    def public_text(self):
        """The file's text for all readers: without the password of the database."""
        return without_password(self.text, self.database)

    @property
    def sha256(self):
        """The checksum of the file's text."""
        return hashlib.sha256(self.text.encode()).hexdigest()

    def member(self, name):
        """The member of this name, or None."""
        return next((one for one in self.members if one.name == name), None)

    def in_start_order(self):
        """Groups of members that start together, as tuples: sinks first, sources last."""
        orders = sorted({one.start_order for one in self.classes}, reverse=True)
        return tuple(
            tuple(member for one in self.classes if one.start_order == order for member in one.members())
            for order in orders
        )

    def in_stop_order(self):
        """The reverse: sources first."""
        return tuple(reversed(self.in_start_order()))


def replaced(text, member, system_name, run_directory=""):
    """`text` of a `set` or `command`, with {index} (from 0), {number} (from 1), {name}, {system} and {run_directory} replaced; other braces stay."""
    known = {
        "index": str(member.index),
        "number": str(member.index + 1),
        "name": member.name,
        "system": system_name,
        "run_directory": str(run_directory),
    }
    return re.sub(r"\{(index|number|name|system|run_directory)\}", lambda found: known[found.group(1)], text)


def load(file, rodeo, *, check_classes=True):
    """The System of `file`, checked by the command `rodeo` (a path); with `check_classes` also each class's configuration. Blocks while the checks run.

    Raises Refused("control.system") with every error of `rodeo check`, with file:line:column and "did you mean".
    """
    file = Path(file).absolute()
    try:
        text = file.read_bytes().decode()  # read_bytes() keeps the line ends
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(
            "control.system", f"cannot read {file}: {error}", "rodeo control init writes a system file for this machine"
        ) from None
    _refuse_other_files(file, text)
    answer = check(rodeo, file, effective=True)
    _refuse_errors([answer])
    system = from_values(answer["values"], file, text)
    if check_classes:
        with ThreadPoolExecutor(
            CHECKS_AT_ONCE
        ) as pool:  # a hundred processes need up to a hundred checks; a room that adopts a run must be quick
            _refuse_errors(list(pool.map(lambda one: check(rodeo, one[0], overrides=one[1]), _configurations(system))))
    return system


def _refuse_other_files(file, text):
    """Refuses other configurations, for example a readout's: errors in their tables would only confuse."""
    try:
        other = "control" not in tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return  # `rodeo check` reports this error with its place
    if other:
        raise Refused(
            "control.system",
            f"{file} is not a system file: it has no table [control]",
            "rodeo control init writes a system file for this machine",
        )


def check(rodeo, file, *, effective=False, overrides=()):
    """The result of `rodeo check` for one file: {"file", "valid", "errors", "values"}. Raises Refused("control.check") if its output cannot be parsed."""
    argv = [
        str(rodeo),
        "check",
        str(file),
        "--alone",
        "-o",
        "json",
        *(["--effective"] if effective else []),
        *(f"--set={one}" for one in overrides),
    ]
    try:
        done = subprocess.run(argv, capture_output=True, text=True, timeout=CHECK_LIMIT_S, stdin=subprocess.DEVNULL)
        answer = json.loads(done.stdout)
        found = answer[0]
        if isinstance(found.get("errors"), list) and (
            found["errors"] or not effective or isinstance(found.get("values"), list)
        ):
            return found
    except (OSError, subprocess.TimeoutExpired) as error:
        raise Refused(
            "control.check", f"cannot run {rodeo} check: {error}", "set RODEO to the command, or build it: ./run"
        ) from None
    except (ValueError, LookupError, AttributeError, TypeError):
        pass
    raise Refused(
        "control.check", f"the output of {rodeo} check for {file} cannot be parsed: {done.stderr.strip()[-500:]}"
    )


def _refuse_errors(answers):
    errors = [error for answer in answers for error in answer["errors"] if isinstance(error, dict)]
    if not errors:
        return
    lines = [
        ": ".join(part for part in (error.get("where"), error.get("what")) if part) + f" [{error.get('code')}]"
        for error in errors
    ]
    raise Refused("control.system", "\n".join(lines), errors[0].get("next") or "")


def _configurations(system):
    """Pairs of a class's file and the overrides of a member, each pair once. Their check finds errors in a `set` before a launch."""
    seen = {}
    for member in system.members:
        one = member.process_class
        if one.configuration is not None:
            overrides = tuple(
                replaced(text, member, system.name, system.directory / "runs" / "000000") for text in one.set
            )
            seen.setdefault((one.configuration, overrides))
    return tuple(seen)


def from_values(values, file, text=""):
    """The System of effective values [{"key", "value", "origin", "where"}]; pure. Raises Refused("control.system") for errors of the system as a whole."""
    file = Path(file)
    tree = _Tree(values)
    name = tree.text("control.name", "rodeo")
    base = file.parent
    classes = tuple(
        _process_class(tree.table(f"control.process[{index}]"), base) for index in range(tree.count("control.process"))
    )
    hosts = tuple(
        HostEntry(table.text("name"), table.text("launcher", "local"), table.text("address"))
        for table in (tree.table(f"control.host[{index}]") for index in range(tree.count("control.host")))
    )
    system = System(
        name=name,
        file=file,
        directory=base / (tree.text("control.directory") or name),
        database=tree.text("control.database"),
        listen=tree.text("control.listen", "127.0.0.1:0"),
        disk_stop_bytes=tree.bytes("control.disk_stop", 3 * 10**9),
        disk_warn_bytes=tree.bytes("control.disk_warn", 10 * 10**9),
        disk_time_s=tree.seconds("control.disk_time", 600.0),
        event_limit_s=tree.seconds("control.event_limit", 30.0),
        choose_limit_s=tree.seconds("control.choose_limit", 60.0),
        patience=float(tree.number("control.patience", 1.0)),
        lumi_block_s=tree.seconds("control.lumi_block", 0.0),
        umask=_umask(tree.text("control.umask", "0027")),
        group=tree.text("control.group", ""),
        classes=classes,
        hosts=hosts,
        externals=tuple(
            _external(tree.table(f"control.external[{index}]")) for index in range(tree.count("control.external"))
        ),
        rules=rules_of([_alarm(tree.table(f"control.alarm[{index}]")) for index in range(tree.count("control.alarm"))]),
        text=text,
        values=tuple(values),
    )
    problems = problems_of(system)
    if problems:
        raise Refused("control.system", "\n".join(f"{file}: {problem}" for problem in problems))
    return system


def _umask(text):
    """The number of an octal text; Refused like `rodeo check`."""
    if not re.fullmatch(r"0*[0-7]{1,3}", text) or int(text, 8) & 0o700:
        raise Refused(
            "control.system",
            f"control.umask: `{text}` is not a umask",
            "octal digits that leave its owner all: 0027, 0022, 0077",
        )
    return int(text, 8)


def problems_of(system):
    """The faults of a system as a whole, a sentence each; `rodeo check` reports the same with line and column where known."""
    problems = []
    if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", system.name):
        problems.append(
            f"control.name: `{system.name}` cannot name sockets and files; use at most 64 letters, digits and . _ -"
        )
    names = [member.name for member in system.members]
    for name in sorted({one for one in names if names.count(one) > 1}):
        problems.append(f"control.process: two processes would be called `{name}`")
    if not system.classes:
        problems.append("control.process: there is no class of processes")
    if sum(one.count for one in system.classes if one.kind == "supervisor") > 1:
        problems.append(
            "control.process: a system has one supervisor: it tells nodes which readouts and recorders there are"
        )
    known = {"local"} | {host.name for host in system.hosts}
    for one in system.classes:
        where = f"control.process `{one.name}`"
        if not re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}", one.name):
            problems.append(f"{where}: a name is at most 64 letters, digits and . _ -")
        if one.kind not in KINDS:
            problems.append(f"{where}: there is no kind `{one.kind}`; there are {', '.join(sorted(KINDS))}")
        if one.role not in ROLES:
            problems.append(f"{where}: there is no role `{one.role}`; there are {', '.join(ROLES)}")
        if one.restart not in RESTARTS:
            problems.append(f"{where}: there is no restart `{one.restart}`; there are {', '.join(RESTARTS)}")
        if one.kind == "program" and not one.command:
            problems.append(f"{where}: a program needs a command")
        if one.kind != "program" and one.configuration is None:
            problems.append(f"{where}: {'an' if one.kind == 'emulator' else 'a'} {one.kind} needs a configuration")
        if one.role == "essential" and one.restart == "in_run":
            problems.append(
                f"{where}: an essential process is not restarted in a run; use between_runs, or another role"
            )
        if one.role == "at_least" and not 0 < one.at_least <= one.count:
            problems.append(
                f"{where}: at_least {one.at_least:g} of {one.count} processes; expected a number from 1 to {one.count}, or a share below 1"
            )
        for host in one.hosts:
            if host not in known:
                problems.append(f"{where}: there is no host `{host}`; there are {', '.join(sorted(known))}")
    return problems


def _process_class(table, base):
    configuration = table.text("configuration")
    return ProcessClass(
        name=table.text("name"),
        kind=table.text("kind"),
        configuration=base / configuration if configuration else None,
        command=tuple(str(one) for one in table.list("command")),
        count=max(1, int(table.number("count", 1))),
        hosts=tuple(str(one) for one in table.list("hosts")),
        role=table.text("role") or "essential",
        at_least=float(table.number("at_least", 1)),
        restart=table.text("restart") or "never",
        set=tuple(str(one) for one in table.list("set")),
        order=int(table.number("order", 0)),
        launch_limit_s=table.seconds("launch_limit", 60.0),
        start_limit_s=table.seconds("start_limit", 10.0),
        stop_limit_s=table.seconds("stop_limit", 60.0),
    )


def _external(table):
    return External(
        name=table.text("name"),
        address=table.text("address"),
        format=table.text("format", "prometheus"),
        every_s=table.seconds("every", 5.0),
        timeout_s=table.seconds("timeout", 2.0),
        keep=tuple(str(one) for one in table.list("keep")),
    )


def _alarm(table):
    """The values given in a [[control.alarm]]; a built-in rule keeps its other values."""
    given = table.given()
    values = {
        key: table.text(key)
        for key in ("name", "of", "value", "comparison", "priority", "text", "do", "when", "gone")
        if key in given
    }
    values.update({key: float(table.number(key, 0)) for key in ("limit",) if key in given})
    values.update({key: int(table.number(key, 0)) for key in ("times", "of_last") if key in given})
    values.update({key: bool(table.number(key, False)) for key in ("per_second", "enabled") if key in given})
    return {**values, **({"hold": table.seconds("hold", 0.0)} if "hold" in given else {})}


class _Tree:
    """Effective values by key. A value is TOML text, which for these types is also JSON."""

    def __init__(self, values, prefix="", defaults=frozenset()):
        self._prefix = prefix
        self._values = values if isinstance(values, dict) else {one["key"]: _value(one["value"]) for one in values}
        self._defaults = (
            defaults if isinstance(values, dict) else {one["key"] for one in values if one.get("origin") == "default"}
        )

    def table(self, prefix):
        return _Tree(self._values, prefix + ".", self._defaults)

    def given(self):
        """Keys of this table that are not defaults."""
        return {
            key.removeprefix(self._prefix)
            for key in self._values
            if key.startswith(self._prefix) and key not in self._defaults
        }

    def count(self, key):
        found = {
            int(match.group(1)) for name in self._values if (match := re.match(re.escape(key) + r"\[(\d+)\]\.", name))
        }
        return max(found) + 1 if found else 0

    def _get(self, key, default):
        value = self._values.get(self._prefix + key)
        return default if value is None else value

    def text(self, key, default=""):
        return str(self._get(key, default))

    def number(self, key, default):
        value = self._get(key, default)
        if isinstance(value, str):
            value = float(value)
        return value

    def list(self, key):
        value = self._get(key, [])
        return value if isinstance(value, list) else [value] if value != "" else []

    def bytes(self, key, default):
        value = self._get(key, None)
        return default if value is None else bytes_of(value)

    def seconds(self, key, default):
        value = self._get(key, None)
        return default if value is None else seconds_of(value)


def _value(text):
    try:
        return json.loads(text) if isinstance(text, str) else text
    except ValueError:
        return text


def bytes_of(text):
    """Bytes of "3GB", "64MiB" or a plain number. Raises Refused("control.system")."""
    return int(_quantity(text, _BYTES, "a size as 3GB"))


def seconds_of(text):
    """Seconds of "10min", "500ms". Raises Refused("control.system")."""
    return float(_quantity(text, _SECONDS, "a time as 10s"))


def _quantity(text, units, wanted):
    if isinstance(text, (int, float)) and not isinstance(text, bool):
        return text
    match = re.fullmatch(r"\s*([0-9.]+(?:[eE][+-]?[0-9]+)?)\s*([A-Za-z]*)\s*", str(text))
    try:
        return float(match.group(1)) * units[match.group(2)]
    except (AttributeError, KeyError, ValueError):
        raise Refused("control.system", f"expected {wanted}, got `{text}`") from None
