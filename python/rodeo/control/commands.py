"""The commands of a control room: who may send each, whether it needs control, and what it takes. Pure; shell, Python and page follow from here."""

import difflib
from dataclasses import dataclass, field

from rodeo.control.refused import Refused

ROLES = ("viewer", "shifter", "expert")  # each may what those before it may
RUN_TYPES = ("physics", "calibration", "cosmics", "test")  # as run.type of a readout has them
VERDICTS = ("good", "bad", "test", "none")  # on the data of a subsystem
LONGEST_TEXT = 20_000  # characters of a note
LONGEST_LINE = 1_000  # characters of anything else


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
    """`control`: needed; free (anybody of the role, whoever has control); lease (it is about control itself). `audit`: leaves a row.
    `expert_with`: names of arguments that only an expert may give."""

    what: str
    role: str = "shifter"
    control: str = "needed"
    arguments: dict[str, Argument] = field(default_factory=dict)
    expert_with: tuple[str, ...] = ()
    audit: bool = True


COMMANDS = {
    "launch": Command("Starts all processes, and waits until they are ready", expert_with=("set",), arguments={
        "set": Argument("lines", (), what="KEY=VALUE or CLASS:KEY=VALUE over the configurations; processes that this changes are started anew")}),
    "start": Command("Begins a run: takes a number, and waits until every readout has built an event", arguments={
        "run_type": Argument("choice", "physics", what="what the run is for: physics, calibration, cosmics, test", choices=RUN_TYPES),
        "comment": Argument("text", "", what="stands in the run's row")}),
    "pause": Command("Holds the trigger; the run stays open"),
    "resume": Command("Releases the trigger"),
    "advance": Command("The luminosity block goes on with the next trigger: what is under way belongs to the one before", arguments={
        "scan_step": Argument("flag", False, what="the scan step goes on as well")}),
    "stop": Command("Ends the run in order: trigger, cards, router, readout; then sums and files", control="free", arguments={
        "reason": Argument("text", "", what="stands in the run's row")}),
    "go_on": Command("After an essential process was lost: goes on without its links"),
    "abort": Command("Ends the run at once: stop, then TERM, then KILL. Events are lost", role="expert", arguments={
        "confirm": Argument("flag", False, needed=True, what="true: events may be lost")}),
    "recover": Command("Leaves ERROR: ends what is left over, closes the run's row"),
    "close": Command("Ends all processes in order"),
    "take": Command("Takes control, if nobody has it", control="lease", expert_with=("at_once",), arguments={
        "at_once": Argument("flag", False, what="take it from whoever has it")}),
    "ask": Command("Asks for control: it is yours when its holder gives it back, or after 60 s", control="lease"),
    "release": Command("Gives control back", control="lease"),
    "renew": Command("The holder is there", control="lease", audit=False),
    "ack": Command("Acknowledges an alarm: seen, being worked on", control="free", arguments={
        "cause": Argument("line", needed=True, what="as `rodeo control status` lists it")}),
    "shelve": Command("Puts an alarm away for a while: known, and nothing can be done now. It does not keep a run from starting", control="free", arguments={
        "cause": Argument("line", needed=True, what="as `rodeo control alarms` lists it"),
        "minutes": Argument("number", 30, what="for how long; at most a day"),
        "back": Argument("flag", False, what="takes it back: it wants to be seen again")}),
    "alarm_test": Command("Raises the alarm of a rule for ten seconds, to see that it is heard; it wants to be acknowledged as any other", control="free", arguments={
        "rule": Argument("line", needed=True, what="its name, as `rodeo control alarms --rules` lists it")}),
    "note": Command("Writes a note to the run, or to the system if none is open", control="free", arguments={
        "text": Argument("text", needed=True), "run": Argument("number", what="the run, if not the one that is open")}),
    "quality": Command("Says how good the data of a subsystem are in a run: a row of the run database", control="free", arguments={
        "subsystem": Argument("line", needed=True, what="whose data: muons, calorimeter, ..."),
        "verdict": Argument("choice", needed=True, what="good, bad, test or none", choices=VERDICTS),
        "run": Argument("number", what="the run, if not the one that is open, or else ended last"),
        "from_ns": Argument("time", what="since when, if not from its begin"),
        "to_ns": Argument("time", what="until when, if not to its end"),
        "confirm": Argument("flag", False, what="confirms the verdict of another person")}),
    "taint": Command("Marks a run TAINTED: its data are not to be used without asking", control="free", arguments={
        "text": Argument("text", needed=True, what="why; it stands among the notes of the run"),
        "run": Argument("number", what="the run, if not the one that is open, or else ended last"),
        "back": Argument("flag", False, what="takes the mark back")}),
}


def may(role: str, needed: str) -> bool:
    """Whether a role includes another one."""
    return ROLES.index(role) >= ROLES.index(needed)


def command(name: str) -> Command:
    """Refused(control.unknown_command) says which was meant."""
    if name in COMMANDS:
        return COMMANDS[name]
    near = nearest(name, COMMANDS)
    raise Refused("control.unknown_command", f"there is no command `{name[:40]}`", f"did you mean `{near}`?" if near else "one of: " + ", ".join(COMMANDS))


def nearest(name: str, names) -> str | None:
    """What was meant, if anything is near."""
    found = difflib.get_close_matches(name[:40], list(names), 1, 0.6)
    return found[0] if found else None


def allowed(name: str, arguments: dict, role: str) -> None:
    """Refused(control.role) if the role may not send the command with these (checked) arguments."""
    known = command(name)
    with_ = next((each for each in known.expert_with if arguments.get(each)), None)
    needed = "expert" if with_ else known.role
    if not may(role, needed):
        raise Refused("control.role", f"`{name}`{f' with `{with_}`' if with_ else ''} needs the role {needed}, and you are {role}",
                      "rodeo control status --addresses prints the addresses of the other roles")


def checked(name: str, arguments) -> dict:
    """Arguments with their defaults, all of them; Refused(control.argument) names what is wrong."""
    known = command(name).arguments
    if not isinstance(arguments, dict):
        raise Refused("control.argument", f"the arguments of `{name}` are not a JSON object", "")
    for each in arguments:
        if each not in known:
            near = nearest(str(each), known)
            raise Refused("control.argument", f"`{name}` has no argument `{str(each)[:40]}`", f"did you mean `{near}`?" if near else
                          "it has " + (", ".join(known) or "none"))
    result = {}
    for each, declared in known.items():
        if each not in arguments or arguments[each] is None:
            if declared.needed:
                raise Refused("control.argument", f"`{name}` needs `{each}`", declared.what)
            result[each] = list(declared.default) if declared.kind == "lines" else declared.default
            continue
        result[each] = _value(name, each, declared, arguments[each])
    if name == "abort" and not result["confirm"]:
        raise Refused("control.argument", "abort loses events; it was not confirmed", "send `confirm`: true (rodeo control abort --confirm); stop ends a run in order")
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
            raise wrong("is no number of a run" if each == "run" else "is no whole number from 1 on")
    elif kind == "time":
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 2**63:
            raise wrong("is no time in ns since 1970")
    elif kind == "choice":
        if value not in declared.choices:
            near = nearest(value, declared.choices) if isinstance(value, str) else None
            raise Refused("control.argument", f"`{each}` of `{name}` is none of {', '.join(declared.choices)}", f"did you mean `{near}`?" if near else "")
    elif kind == "lines":
        if not isinstance(value, list) or len(value) > 100:
            raise wrong("is no list of at most 100 texts")
        return [_line(line, wrong) for line in value]
    elif kind == "line":
        return _line(value, wrong)
    elif not isinstance(value, str) or len(value) > LONGEST_TEXT or not _printable(value.replace("\n", "").replace("\t", "")):
        raise wrong(f"is no text of at most {LONGEST_TEXT} characters")
    elif each == "text" and not value.strip():
        raise wrong("is empty")
    return value


def _line(value, wrong):
    if not isinstance(value, str) or len(value) > LONGEST_LINE or not _printable(value):
        raise wrong(f"is no line of text of at most {LONGEST_LINE} characters")
    return value


def _printable(text) -> bool:
    """No control characters and no half of a surrogate pair, which no database and no terminal should get."""
    return all(character >= " " and character != "\x7f" and not "\ud800" <= character <= "\udfff" for character in text)
