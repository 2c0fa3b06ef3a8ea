"""--help in the style of the `rodeo` command: usage, purpose, tables of options and verbs, exit statuses, wrapped to the terminal."""

import argparse
import difflib
import shutil
import textwrap

from rodeo.control.refused import Refused

EXITS = "0 done, 1 failed, 2 usage, 3 invalid configuration, 4 unreachable or timed out, 5 refused, 6 partial ({partial}), 7 {seven}"


def columns():
    return max(40, min(100, shutil.get_terminal_size((100, 24)).columns))


def wrapped(text, indent="  "):
    return textwrap.fill(
        text, columns(), initial_indent=indent, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )


def table(rows):
    """Rows (name, text) in two columns."""
    width, lines = max(len(name) for name, _ in rows) + 2, []
    for name, text in rows:
        lines += textwrap.wrap(
            text,
            columns(),
            initial_indent="  " + name.ljust(width),
            subsequent_indent=" " * (width + 2),
            break_long_words=False,
            break_on_hyphens=False,
        )
    return "\n".join(lines)


def page(usages, what, *, tables=(), remark="", exits=""):
    """A help text: `usages` are lines, `tables` (title, rows)."""
    parts = ["Usage\n" + "\n".join(f"  {usage}" for usage in usages)]
    parts += [wrapped(what, "")] if what else []
    parts += [f"{title}\n{table(rows)}" for title, rows in tables if rows]
    parts += [wrapped(remark, "")] if remark else []
    return "\n\n".join([*parts, f"Exit status\n{wrapped(exits)}"])


class Parser(argparse.ArgumentParser):
    """Reports errors and prints help in Rodeo's style. `epilog` contains the exit statuses."""

    def error(self, message):
        raise Refused("control.argument", f"{self.prog}: {message}", f"{self.prog} --help")

    def parse_args(self, args=None, namespace=None):
        known, rest = self.parse_known_args(args, namespace)
        if not rest:
            return known
        name = next((each for each in rest if each.startswith("-")), rest[0]).split("=")[0]
        if not name.startswith("-"):
            raise Refused("control.argument", f"{self.prog}: unexpected argument `{name}`", f"{self.prog} --help")
        near = difflib.get_close_matches(name, self._option_string_actions, 1, 0.6)
        raise Refused(
            "control.argument",
            f"{self.prog}: there is no option `{name}`",
            (f"did you mean `{near[0]}`?    " if near else "") + f"{self.prog} --help",
        )

    def format_help(self):
        named = [action for action in self._actions if not action.option_strings]
        usage = " ".join([self.prog, *(_shown(action) for action in named), "[options]"])
        arguments = [(_shown(action), _sentence(action.help)) for action in named]
        options = [
            (_flags(action), _sentence(action.help))
            for action in self._actions
            if action.option_strings and not isinstance(action, argparse._HelpAction)
        ]
        return (
            page(
                [usage],
                self.description,
                tables=[("Arguments", arguments), ("Options", [*options, ("-h, --help", "This text")])],
                exits=self.epilog,
            )
            + "\n"
        )


def _shown(action):
    name = str(action.metavar or action.dest.upper())
    return f"[{name}]" if action.nargs in ("?", "*") else name


def _flags(action):
    value = (
        ""
        if action.nargs == 0
        else " "
        + str(action.metavar or ("|".join(map(str, action.choices)) if action.choices else action.dest.upper()))
    )
    long = next((flag for flag in action.option_strings if flag.startswith("--")), "")
    short = next((flag for flag in action.option_strings if not flag.startswith("--")), "")
    return f"{short + ', ' if short else '    '}{long}{value}"


def _sentence(text):
    return (text or "")[:1].upper() + (text or "")[1:]
