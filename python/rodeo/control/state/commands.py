"""The commands of a control room: the role and control that each needs, and its arguments. Pure; shell, Python and page derive theirs from here."""

import difflib
from dataclasses import dataclass, field

from rodeo.control.refused import Refused

ROLES = ("viewer", "shifter", "expert")  # each role includes the roles before it
RUN_TYPES = ("physics", "calibration", "cosmics", "test")  # the values of a readout's run.type
VERDICTS = ("good", "bad", "test", "none")  # the quality of a subsystem's data
LONGEST_TEXT = 20_000  # limit of the characters of a note
LONGEST_LINE = 1_000  # limit of the characters of any other argument


@dataclass(frozen=True)
class Argument:
    """kind: text, line (one line), lines (list of them), choice (one of `choices`), flag, number (>= 1, or null), time (UTC in ns, or null)."""

    kind: str
    default: object = None
    needed: bool = False
    what: str = ""
    choices: tuple[str, ...] = ()


@dataclass(frozen=True)
class Command:
    """`control`: needed; free (allowed without control); lease (the command concerns control itself). `audit`: it leaves an audit row.
    `expert_with`: names of arguments that only an expert may give."""

    what: str
    role: str = "shifter"
    control: str = "needed"
    arguments: dict[str, Argument] = field(default_factory=dict)
    expert_with: tuple[str, ...] = ()
    audit: bool = True


COMMANDS = {
    "launch": Command(
        "Starts all processes, and waits until they are ready",
        expert_with=("set",),
        arguments={
            "set": Argument(
                "lines",
                (),
                what="KEY=VALUE or CLASS:KEY=VALUE to override the configurations; processes that this changes are restarted",
            )
        },
    ),
    "start": Command(
        "Begins a run: takes a number, and waits until every readout has built an event",
        arguments={
            "run_type": Argument(
                "choice", "physics", what="what the run is for: physics, calibration, cosmics, test", choices=RUN_TYPES
            ),
            "comment": Argument("text", "", what="is stored in the run's row"),
        },
    ),
    "pause": Command("Holds the trigger; the run stays open"),
    "resume": Command("Releases the trigger"),
    "advance": Command(
        "Begins the next luminosity block at the next trigger; triggers before it belong to the old block",
        arguments={"scan_step": Argument("flag", False, what="also begins the next scan step")},
    ),
    "stop": Command(
        "Ends the run in order: trigger, cards, router, readout; then sums and files",
        control="free",
        arguments={"reason": Argument("text", "", what="is stored in the run's row")},
    ),
    "go_on": Command("After the loss of an essential process: continues without its links"),
    "abort": Command(
        "Ends the run at once: stop, then TERM, then KILL. Events are lost",
        role="expert",
        arguments={"confirm": Argument("flag", False, needed=True, what="true: events may be lost")},
    ),
    "recover": Command("Leaves ERROR: ends leftover processes, closes the run's row"),
    "close": Command("Ends all processes in order"),
    "take": Command(
        "Takes control, if it is free",
        control="lease",
        expert_with=("at_once",),
        arguments={"at_once": Argument("flag", False, what="takes it from its holder")},
    ),
    "ask": Command("Asks for control: you get it when the holder gives it back, or after 60 s", control="lease"),
    "release": Command("Gives control back", control="lease"),
    "renew": Command("The holder is still present", control="lease", audit=False),
    "ack": Command(
        "Acknowledges an alarm: you have seen it and work on it",
        control="free",
        arguments={"cause": Argument("line", needed=True, what="as `rodeo control status` lists it")},
    ),
    "shelve": Command(
        "Shelves an alarm for a while: it is known, and cannot be mended now. A shelved alarm does not block the start of a run",
        control="free",
        arguments={
            "cause": Argument("line", needed=True, what="as `rodeo control alarms` lists it"),
            "minutes": Argument("number", 30, what="for how long; at most a day"),
            "back": Argument("flag", False, what="unshelves it: it must be acknowledged again"),
        },
    ),
    "alarm_test": Command(
        "Raises the alarm of a rule for ten seconds, to test that users notice it; it must be acknowledged as any other",
        control="free",
        arguments={"rule": Argument("line", needed=True, what="its name, as `rodeo control alarms --rules` lists it")},
    ),
    "note": Command(
        "Writes a note to the run, or to the system if none is open",
        control="free",
        arguments={
            "text": Argument("text", needed=True),
            "run": Argument("number", what="the run; default: the open one"),
        },
    ),
    "quality": Command(
        "Records how good the data of a subsystem are in a run, as a row of the run database",
        control="free",
        arguments={
            "subsystem": Argument("line", needed=True, what="the subsystem: muons, calorimeter, ..."),
            "verdict": Argument("choice", needed=True, what="good, bad, test or none", choices=VERDICTS),
            "run": Argument("number", what="the run; default: the open one, else the last"),
            "from_ns": Argument("time", what="from this time; default: its begin"),
            "to_ns": Argument("time", what="until this time; default: its end"),
            "confirm": Argument("flag", False, what="confirms the verdict of another person"),
        },
    ),
    "taint": Command(
        "Marks a run TAINTED: its data must not be used without asking",
        control="free",
        arguments={
            "text": Argument("text", needed=True, what="the reason; it is added to the notes of the run"),
            "run": Argument("number", what="the run; default: the open one, else the last"),
            "back": Argument("flag", False, what="removes the mark"),
        },
    ),
}


def may(role: str, needed: str) -> bool:
    """Whether a role includes another one."""
    return ROLES.index(role) >= ROLES.index(needed)


def command(name: str) -> Command:
    """The Command of a name. Refused(control.unknown_command) suggests a similar name."""
    if name in COMMANDS:
        return COMMANDS[name]
    near = nearest(name, COMMANDS)
    raise Refused(
        "control.unknown_command",
        f"there is no command `{name[:40]}`",
        f"did you mean `{near}`?" if near else "one of: " + ", ".join(COMMANDS),
    )


def nearest(name: str, names) -> str | None:
    """The most similar name, None if none is similar."""
    found = difflib.get_close_matches(name[:40], list(names), 1, 0.6)
    return found[0] if found else None


def allowed(name: str, arguments: dict, role: str) -> None:
    """Refused(control.role) if the role may not send the command with these (checked) arguments."""
    known = command(name)
    with_ = next((each for each in known.expert_with if arguments.get(each)), None)
    needed = "expert" if with_ else known.role
    if not may(role, needed):
        raise Refused(
            "control.role",
            f"`{name}`{f' with `{with_}`' if with_ else ''} needs the role {needed}, and you are {role}",
            "rodeo control status --addresses prints the addresses of the other roles",
        )


def checked(name: str, arguments) -> dict:
    """All arguments, with defaults; Refused(control.argument) names the wrong one."""
    known = command(name).arguments
    if not isinstance(arguments, dict):
        raise Refused("control.argument", f"the arguments of `{name}` are not a JSON object", "")
    for each in arguments:
        if each not in known:
            near = nearest(str(each), known)
            raise Refused(
                "control.argument",
                f"`{name}` has no argument `{str(each)[:40]}`",
                f"did you mean `{near}`?" if near else "it has " + (", ".join(known) or "none"),
            )
    result = {}
    for each, declared in known.items():
        if each not in arguments or arguments[each] is None:
            if declared.needed:
                raise Refused("control.argument", f"`{name}` needs `{each}`", declared.what)
            result[each] = list(declared.default) if declared.kind == "lines" else declared.default
            continue
        result[each] = _value(name, each, declared, arguments[each])
    if name == "abort" and not result["confirm"]:
        raise Refused(
            "control.argument",
            "abort loses events; it was not confirmed",
            "send `confirm`: true (rodeo control abort --confirm); stop ends a run in order",
        )
    return result


def _value(name, each, declared, value):
    kind = declared.kind

    def wrong(what):
        return Refused("control.argument", f"`{each}` of `{name}` {what}", "")

    if kind == "flag":
        if not isinstance(value, bool):
            raise wrong("is neither true nor false")
    elif kind == "number":
        if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value < 2**53:
            raise wrong("is not a run number" if each == "run" else "is not a whole number from 1 on")
    elif kind == "time":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
            raise wrong("is not a time in ns since 1970")
    elif kind == "choice":
        if value not in declared.choices:
            near = nearest(value, declared.choices) if isinstance(value, str) else None
            raise Refused(
                "control.argument",
                f"`{each}` of `{name}` is none of {', '.join(declared.choices)}",
                f"did you mean `{near}`?" if near else "",
            )
    elif kind == "lines":
        if not isinstance(value, list) or len(value) > 100:
            raise wrong("is not a list of at most 100 texts")
        return [_line(line, wrong) for line in value]
    elif kind == "line":
        return _line(value, wrong)
    elif (
        not isinstance(value, str)
        or len(value) > LONGEST_TEXT
        or not _printable(value.replace("\n", "").replace("\t", ""))
    ):
        raise wrong(f"is not a text of at most {LONGEST_TEXT} characters")
    elif each == "text" and not value.strip():
        raise wrong("is empty")
    return value


def _line(value, wrong):
    if not isinstance(value, str) or len(value) > LONGEST_LINE or not _printable(value):
        raise wrong(f"is not a line of text of at most {LONGEST_LINE} characters")
    return value


def _printable(text) -> bool:
    """True without control characters and lone surrogates, which databases and terminals should not get."""
    return all(character >= " " and character != "\x7f" and not "\ud800" <= character <= "\udfff" for character in text)
