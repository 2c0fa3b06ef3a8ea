"""The verbs of `rodeo control` and `rodeo runs` as data, for completion and manual pages: `python -m rodeo.control.cli.describe FILE`.

CMake runs it; the command reads the file. It needs only the standard library, as the parsers themselves."""

import argparse
import json
import sys
from pathlib import Path

from rodeo.control.cli import help_text, runs_verbs, verbs


class _Made(Exception):
    """Carries the parser of a verb, before it parses."""


class _Stops:
    """Within this context a verb stops when its parser is made."""

    def __enter__(self):
        self.parse = help_text.Parser.parse_args

        def stop(parser, *_):
            raise _Made(parser)

        help_text.Parser.parse_args = stop

    def __exit__(self, *_):
        help_text.Parser.parse_args = self.parse


def options(run):
    """Options and arguments of a verb, in order."""
    try:
        with _Stops():
            run([])
    except _Made as made:
        (parser,) = made.args
    else:
        raise AssertionError(f"{run} has no parser")
    found = []
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        choices = "|".join(map(str, action.choices)) if action.choices else ""
        flag = action.nargs == 0
        found.append(
            {
                "names": ",".join(sorted(action.option_strings, key=len)) or str(action.metavar or action.dest.upper()),
                "value": "" if flag else choices or str(action.metavar or action.dest.upper()),
                "help": help_text._sentence(action.help),
                "flag": flag,
                "many": action.nargs in ("*", "+") or isinstance(action, argparse._AppendAction),
            }
        )
    return found


def tree():
    control = [
        {"name": name, "help": help_text._sentence(what or verbs.commands.COMMANDS[name].what), "options": options(run)}
        for name, (run, what) in verbs.VERBS.items()
    ]
    runs = [{"name": name, "help": what, "options": options(run)} for name, (run, what) in runs_verbs.VERBS.items()]
    return {"control": {"options": options(verbs.run_room), "verbs": control}, "runs": {"options": [], "verbs": runs}}


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(json.dumps(tree(), indent=1) + "\n")
