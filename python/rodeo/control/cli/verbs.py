"""The shell's verbs: `rodeo control SYSTEM`, `rodeo control VERB`. state/commands.py declares the commands; this module has texts, options and exit statuses."""

import contextlib
import json
import os
import subprocess
import sys
import time

from rodeo.control import paths
from rodeo.control.cli import help_text, status_text
from rodeo.control.printed import folded, plain_lines, terminal_columns
from rodeo.control.processes import log_records
from rodeo.control.refused import Refused
from rodeo.control.state import commands
from rodeo.saying import say

EXITS = {
    "control.argument": 2,
    "control.unknown_verb": 2,
    "control.which_room": 2,
    "control.no_room": 4,
    "control.gone": 4,
    "control.timeout": 4,
    "control.command": 1,
}
EPILOGUE = help_text.EXITS.format(partial="degraded", seven="data did not verify")
FOLLOW_S = 1.0
ROOM = "Starts the control room of a system file, and prints the address of its page"


def parser(verb, what, **options):
    made = help_text.Parser(
        prog=f"rodeo control {verb}".strip(), description=what + ".", epilog=EPILOGUE, allow_abbrev=False, **options
    )
    return made


def client_parser(verb, what):
    made = parser(verb, what)
    made.add_argument("--system", metavar="NAME", help="the system of the control room, if several of yours run")
    made.add_argument(
        "--as",
        dest="name",
        metavar="NAME",
        default=os.environ.get("RODEO_OPERATOR") or None,
        help="your name in lease and audit (default: RODEO_OPERATOR, else your login name)",
    )
    made.add_argument("-o", "--output", choices=("text", "json"), default="text", help="the output format")
    return made


def connected(options):
    from rodeo.control.client import connect

    return connect(options.system, name=options.name, whence="shell")


def show(options, value, text):
    print(json.dumps(value) if options.output == "json" else folded(plain_lines(text), terminal_columns()), flush=True)


def commanded(name, options, arguments):
    """Sends a command; on a terminal shows the processes that the room waits for. Returns its result and the document after it."""
    from rodeo.control.cli.progress import shown

    with connected(options) as client:
        with shown(lambda: connected(options)) if sys.stderr.isatty() else contextlib.nullcontext():
            result = client.command(name, **arguments)
        return result, client.status()


def simple(name, verb=None):
    """Makes the verb of a command that prints the state after the command."""

    def run(argv):
        declared = commands.COMMANDS[name]
        made = client_parser(verb or name, declared.what)
        for argument, known in declared.arguments.items():
            option = "--type" if argument == "run_type" else f"--{argument.removesuffix('_ns').replace('_', '-')}"
            if known.kind == "flag":
                made.add_argument(option, dest=argument, action="store_true", help=known.what)
            elif known.kind == "lines":
                made.add_argument(
                    option, dest=argument, action="append", default=[], metavar="KEY=VALUE", help=known.what
                )
            elif known.needed:
                made.add_argument(argument, metavar=argument.upper(), help=known.what)
            elif known.kind == "time":
                from rodeo.control.cli.runs_verbs import moment

                made.add_argument(
                    option,
                    dest=argument,
                    type=moment,
                    metavar="TIME",
                    help=f"{known.what}: 2026-11-24T12:00 (UTC), or 2h ago",
                )
            else:
                made.add_argument(
                    option,
                    dest=argument,
                    type=int if known.kind == "number" else str,
                    default=known.default,
                    help=known.what,
                )
        options = made.parse_args(argv)
        arguments = {argument: getattr(options, argument) for argument in declared.arguments}
        result, document = commanded(name, options, arguments)
        show(options, {**result, "state": document["state"]}, said(name, result, document))
        return exit_of(name, document)

    return run


def said(name, result, document):
    """The result of a command, in a line or two."""
    if name == "stop" and document.get("last_run"):
        farm = [f"  {status_text.farm(result['farm'])}"] if result.get("farm") else []
        not_ready = [f"  not ready for the next run: {result['not_ready']}"] if result.get("not_ready") else []
        return "\n".join([status_text.ended(document["last_run"]), *farm, *not_ready, status_text.headline(document)])
    if name == "advance":
        return f"luminosity block {result.get('lumi_block')}, scan step {result.get('scan_step')}: from trigger {result.get('sequence')} on"
    if name == "quality" and "verdict" in result:
        return f"run {result['run']}: {result['subsystem']} is {result['verdict']}"
    if name == "taint" and "tainted" in result:
        return f"run {result['run']} is {'TAINTED' if result['tainted'] else 'no longer TAINTED'}"
    if name in ("take", "ask") and result.get("seconds"):
        return f"you get control in {result['seconds']:g} s at most: {document['lease']['holder']} was asked"
    return status_text.headline(document)


def exit_of(name, document):
    """6 for a partial success (DEGRADED), 7 for a run with the condition WRONG, else 0."""
    if name == "stop" and (document.get("last_run") or {}).get("condition") == "WRONG":
        return 7
    return 6 if name in ("launch", "start", "go_on") and "DEGRADED" in document["flags"] else 0


def run_start(argv):
    """`start --set` launches with these settings first."""
    made = client_parser("start", commands.COMMANDS["start"].what)
    made.add_argument(
        "--type", dest="run_type", default="physics", help=commands.COMMANDS["start"].arguments["run_type"].what
    )
    made.add_argument("--comment", default="", help="is stored in the run's row")
    made.add_argument(
        "--set",
        dest="set",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="first launches with this setting over the configurations (experts)",
    )
    options = made.parse_args(argv)
    if options.set:
        commanded("launch", options, {"set": options.set})
    result, document = commanded("start", options, {"run_type": options.run_type, "comment": options.comment})
    show(options, {**result, "state": document["state"]}, status_text.headline(document))
    return exit_of("start", document)


def run_status(argv):
    made = client_parser("status", "Shows the state of the system")
    made.add_argument(
        "--addresses",
        action="store_true",
        help="the page's address for viewers, shifters and experts; each with its token",
    )
    options = made.parse_args(argv)
    with connected(options) as client:
        if options.addresses:
            addresses = client.addresses()
            show(
                options,
                addresses,
                "\n".join(f"{role:8} {address}" for role, address in addresses.items())
                or "this room has no page (--no-page)",
            )
        else:
            document = client.status()
            show(options, document, status_text.text(document, time.time_ns(), terminal_columns()))
    return 0


def run_take(argv):
    made = client_parser("take", commands.COMMANDS["take"].what)
    made.add_argument("--at-once", action="store_true", help=commands.COMMANDS["take"].arguments["at_once"].what)
    made.add_argument(
        "--hold",
        action="store_true",
        help="stays and keeps control until Ctrl-C; otherwise control is free 30 s after your last command",
    )
    options = made.parse_args(argv)
    with connected(options) as client:
        if not options.hold:
            result = client.command("take", at_once=options.at_once)
            show(options, result, status_text.headline(client.status()))
            return 0
        result = client.take(at_once=options.at_once)
        show(options, result, status_text.headline(client.status()))
        with contextlib.suppress(KeyboardInterrupt):
            client.wait(lambda document: document["lease"]["fence"] != result["fence"], timeout=10**9)
            say("another user has control now")
            return 5
    return 0


def run_ack(argv):
    made = client_parser("ack", commands.COMMANDS["ack"].what)
    made.add_argument("cause", nargs="?", help="as `rodeo control status` lists it")
    made.add_argument("--all", action="store_true", help="all standing alarms")
    options = made.parse_args(argv)
    with connected(options) as client:
        causes = (
            [each["cause"] for each in client.status()["alarms"] if not each.get("acked_ns")]
            if options.all
            else [options.cause]
        )
        if causes == [None]:
            raise Refused(
                "control.argument",
                "rodeo control ack: no alarm is named",
                "rodeo control ack CAUSE, or --all; rodeo control status lists them",
            )
        for cause in causes:
            client.ack(cause)
        show(options, {"acknowledged": causes}, f"acknowledged: {', '.join(causes) or 'none'}")
    return 0


def run_alarms(argv):
    made = client_parser("alarms", "Shows standing alarms with their actions")
    made.add_argument("--rules", action="store_true", help="shows the rules instead, with their actions")
    made.add_argument("--history", action="store_true", help="shows past alarms, the newest first")
    made.add_argument("--lines", type=int, default=50, help="number of past alarms to show (default 50)")
    options = made.parse_args(argv)
    with connected(options) as client:
        if options.rules:
            rules = client.rules()
            show(options, rules, "\n".join(status_text.rules(rules, terminal_columns())))
        elif options.history:
            history = client.alarm_history(limit=options.lines)
            show(options, history, "\n".join(status_text.history(history, terminal_columns())) or "no past alarms")
        else:
            document = client.status()
            show(options, document["alarms"], "\n".join(status_text.alarms(document, time.time_ns())) or "no alarms")
    return 0


def run_alarm(argv):
    made = client_parser(
        "alarm", "`alarm test NAME` raises the alarm of a rule for ten seconds, to test that users notice it"
    )
    made.add_argument("what", choices=("test",), help="test")
    made.add_argument("rule", metavar="NAME", help="name of the rule: rodeo control alarms --rules lists the rules")
    options = made.parse_args(argv)
    with connected(options) as client:
        result = client.test_alarm(options.rule)
        show(
            options,
            result,
            f"{result['cause']} is raised; when users have noticed it: rodeo control ack {result['cause']}",
        )
    return 0


def run_prometheus(argv):
    from pathlib import Path

    from rodeo.control.cli import prometheus_files
    from rodeo.control.state.system import load

    made = parser("prometheus", "Writes the alarm rules of a system file as a rule file of Prometheus, on stdout")
    made.add_argument("system", metavar="SYSTEM", nargs="?", help="the system file")
    made.add_argument(
        "--dashboard", action="store_true", help="writes a dashboard for Grafana instead, for all systems"
    )
    options = made.parse_args(argv)
    if not options.dashboard and not options.system:
        raise Refused(
            "control.argument",
            "rodeo control prometheus: no system file is named",
            "rodeo control prometheus SYSTEM, or --dashboard",
        )
    print(
        prometheus_files.dashboard_text()
        if options.dashboard
        else prometheus_files.rule_file(load(Path(options.system), paths.rodeo_command(), check_classes=False)),
        end="",
    )
    return 0


def run_logs(argv):
    made = client_parser("logs", "Shows log lines of all processes, by process, run, level, audience and text")
    made.add_argument("process", nargs="?", help="its name (default: all)")
    made.add_argument("--lines", type=int, default=50, help="number of lines to show (default 50)")
    made.add_argument("--search", default="", metavar="TEXT", help="only lines with this text")
    made.add_argument("--run", type=int, metavar="NUMBER", help="only lines of this run")
    made.add_argument("--level", choices=log_records.LEVELS, default="debug", help="only lines of this level or worse")
    made.add_argument(
        "--audience",
        choices=log_records.AUDIENCES,
        default="developer",
        help="only lines for this audience: operator, or expert (includes operators' lines)",
    )
    made.add_argument("--no-fold", action="store_true", help="shows repeats one by one")
    made.add_argument("--follow", action="store_true", help="continues with new lines, until Ctrl-C")
    options = made.parse_args(argv)
    wanted = {
        "search": options.search,
        "run": options.run,
        "level": options.level,
        "audience": options.audience,
        "fold": not options.no_fold,
    }
    with connected(options) as client:
        lines = client.logs(options.process, lines=options.lines, **wanted)
        show(options, lines, "\n".join(status_text.log_line(each) for each in lines))
        since_ns = 0 if lines else time.time_ns()
        while options.follow:
            since_ns = max([since_ns, *(each["time_ns"] + 1 for each in lines if each["time_ns"])])
            time.sleep(FOLLOW_S)
            if lines := client.logs(options.process, lines=1000, since_ns=since_ns, **wanted):
                show(options, lines, "\n".join(status_text.log_line(each) for each in lines))
    return 0


def run_wait(argv):
    made = client_parser("wait", "Waits for a state, or for events or seconds of the run")
    made.add_argument("--state", type=str.upper, help="READY, RUNNING, ...")
    made.add_argument("--events", type=int, help="waits for this number of events of the open run")
    made.add_argument("--seconds", type=float, help="waits until the open run has lasted this number of seconds")
    made.add_argument(
        "--timeout", type=float, default=600.0, metavar="SECONDS", help="exit status 4 after this time (default 600)"
    )
    options = made.parse_args(argv)
    with connected(options) as client:
        document = client.wait(
            state=options.state, events=options.events, seconds=options.seconds, timeout=options.timeout
        )
    show(options, document, status_text.headline(document))
    return 0


def run_init(argv):
    from rodeo.control.cli import init

    made = parser("init", "Writes a system file for this machine, and the configurations of its classes")
    made.add_argument("directory", nargs="?", default=".", help="the directory (default: here)")
    made.add_argument("--name", help="name of the system (default: the directory's name)")
    options = made.parse_args(argv)
    for line in init.write(options.directory, options.name):
        print(line)
    return 0


def run_agent(argv):
    from rodeo.control.processes import agent

    return agent.main(argv)


def run_room(argv):
    from rodeo.control.http.room import main as room

    made = parser("", ROOM)
    made.add_argument("system", metavar="SYSTEM", help="the system file (TOML); rodeo control init writes one")
    made.add_argument(
        "--listen",
        metavar="ADDRESS",
        help="address and port of the page, instead of control.listen: 127.0.0.1:0 takes a free port",
    )
    made.add_argument("--no-page", action="store_true", help="no port: shell and Python only")
    made.add_argument("--verbose", action="store_true", help="also debug lines on stderr")
    options = made.parse_args(argv)
    return room(options.system, listen=options.listen, page=not options.no_page, verbose=options.verbose)


VERBS = {
    "init": (run_init, "Writes a system file for this machine"),
    "launch": (simple("launch"), None),
    "start": (run_start, None),
    "pause": (simple("pause"), None),
    "resume": (simple("resume"), None),
    "advance": (simple("advance"), None),
    "stop": (simple("stop"), None),
    "go-on": (simple("go_on", "go-on"), commands.COMMANDS["go_on"].what),
    "abort": (simple("abort"), None),
    "recover": (simple("recover"), None),
    "close": (simple("close"), None),
    "status": (run_status, "Shows the state of the system; --addresses shows the addresses of its page"),
    "wait": (run_wait, "Waits for a state, for events or for seconds of the run"),
    "take": (run_take, None),
    "ask": (simple("ask"), None),
    "release": (simple("release"), None),
    "ack": (run_ack, None),
    "shelve": (simple("shelve"), None),
    "alarms": (run_alarms, "Shows standing alarms; --rules, --history"),
    "alarm": (run_alarm, "alarm test NAME raises an alarm, to test that users notice it"),
    "prometheus": (run_prometheus, "Writes the alarm rules as a rule file of Prometheus"),
    "note": (simple("note"), None),
    "quality": (simple("quality"), None),
    "taint": (simple("taint"), None),
    "logs": (run_logs, "Shows log lines of processes, by run, level, audience and text"),
}
HIDDEN = {"agent": run_agent}  # the room starts it on each host


def usage():
    rows = [(verb, what or commands.COMMANDS[verb].what) for verb, (_, what) in VERBS.items()]
    return help_text.page(
        ["rodeo control SYSTEM [--listen ADDRESS] [--no-page]", "rodeo control VERB"],
        ROOM + ", or talks to a running one.",
        tables=[("Verbs", rows)],
        remark="A verb talks to your running control room; if several run, --system NAME chooses one.",
        exits=EPILOGUE,
    )


def dispatch(argv):
    """Runs one verb and returns its exit status. Refused on errors."""
    if not argv or argv[0] in ("-h", "--help"):
        print(usage())
        return 0 if argv else 2
    verb = argv[0]
    if verb in VERBS:
        return VERBS[verb][0](argv[1:])
    if verb in HIDDEN:
        return HIDDEN[verb](argv[1:])
    if verb.startswith("-") or os.path.exists(verb) or "/" in verb or verb.endswith(".toml"):
        return run_room(argv)
    near = commands.nearest(verb, VERBS)
    raise Refused(
        "control.unknown_verb",
        f"rodeo control: there is no verb `{verb[:40]}`, and no file of that name",
        f"did you mean `{near}`?" if near else "rodeo control --help lists the verbs",
    )


def exit_status(code):
    """The exit status of an error code, from `rodeo explain`; 5 (refused) for an unknown code."""
    if code in EXITS:  # these codes occur without the command, or often
        return EXITS[code]
    with contextlib.suppress(Refused, OSError, ValueError, KeyError, subprocess.SubprocessError):
        asked = subprocess.run(
            [paths.rodeo_command(), "explain", code, "-o", "json"],
            capture_output=True,
            text=True,
            timeout=20,
            stdin=subprocess.DEVNULL,
        )
        return int(json.loads(asked.stdout)["exit_status"])
    return 5


def main(argv=None):
    """Runs one verb. Returns the exit status, as in `rodeo --help`."""
    try:
        return dispatch(sys.argv[1:] if argv is None else argv) or 0
    except Refused as refused:
        say(refused)
        return exit_status(refused.code)
    except KeyboardInterrupt:
        say("interrupted; the command continues in the control room: rodeo control status")
        return 130


if __name__ == "__main__":
    sys.exit(main())
