"""Completion in real shells, and manual pages through the tools that read them. Both come from the command's tree of verbs."""

import os
import pty
import re
import select
import shlex
import socket
import subprocess
import time

import pytest
from conftest import BUILD, scaled


@pytest.fixture
def shell(rodeo, tmp_path):
    """The environment of a shell that finds `rodeo` and does not read the user's start-up files."""
    rodeo.environment.update(
        {
            "PATH": f"{BUILD}:{os.environ['PATH']}",
            "HOME": str(tmp_path),
            "ZDOTDIR": str(tmp_path),
            "XDG_CONFIG_HOME": str(tmp_path / "config"),
            "TERM": "dumb",
        }
    )
    rodeo.environment.pop("BASH_ENV", None)
    (tmp_path / "rodeo.bash").write_text(rodeo("completion", "bash").stdout)
    (tmp_path / "_rodeo").write_text(rodeo("completion", "zsh").stdout)
    (tmp_path / "rodeo.fish").write_text(rodeo("completion", "fish").stdout)
    return rodeo


def run(rodeo, *command):
    done = subprocess.run(
        command,
        cwd=rodeo.directory,
        env=rodeo.environment,
        capture_output=True,
        text=True,
        timeout=scaled(60),
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0 and done.stderr == "", done
    return done.stdout


def answer(rodeo, *words):
    """Returns the directives, and the candidates without their descriptions."""
    done = rodeo("completion", "answer", "--", *words)
    assert done.stderr == ""
    first, *lines = done.stdout.splitlines()
    return first.split(), [line.split("\t")[0] for line in lines]


def in_bash(rodeo, line, breaks=" \t\n\"'><=;|&(:"):
    """The candidates that bash would use for the last word: COMPREPLY after a call of the function as bash does it."""
    words = [word for word in re.split(r"\s+|([=:]+)", line) if word]
    if line.endswith(" "):
        words.append("")
    script = f"""
source rodeo.bash
complete -p rodeo > /dev/null
compopt() {{ :; }}
COMP_WORDBREAKS={shlex.quote(breaks)}
COMP_LINE={shlex.quote(line)} COMP_POINT={len(line)} COMP_WORDS=({" ".join(map(shlex.quote, words))}) COMP_CWORD={len(words) - 1}
_rodeo rodeo "${{COMP_WORDS[COMP_CWORD]}}" ""
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
    return run(rodeo, "bash", "--norc", "-c", script).split("\n")[:-1]


def test_verbs_options_and_choices_come_from_the_tree(rodeo):
    assert answer(rodeo, "vers") == ([], ["version"])
    assert "list" in answer(rodeo, "card", "")[1]
    assert answer(rodeo, "version", "--out") == ([], ["--output"])
    assert answer(rodeo, "version", "-o", "")[1] == ["table", "json", "csv"]
    assert answer(rodeo, "version", "--output=j")[1] == ["--output=json"]
    assert answer(rodeo, "version", "--log", "war")[1] == ["warning"]
    assert "remove" in answer(rodeo, "help", "readout", "link", "r")[1]
    assert answer(rodeo, "no-such-verb", "") == ([], [])


def test_an_option_is_offered_once_unless_it_may_be_repeated(rodeo):
    assert "--output" not in answer(rodeo, "version", "-o", "json", "--")[1]
    assert "--set" in answer(rodeo, "readout", "--set", "readout.name=a", "--")[1]


def test_files_are_left_to_the_shell(rodeo):
    assert answer(rodeo, "check", "")[0] == ["files"]
    assert answer(rodeo, "doctor", "--directory", "")[0] == ["directories"]
    assert answer(rodeo, "readout", "--json=")[0] == ["files"]


def test_keys_of_set_and_their_values_are_those_of_the_configuration(rodeo):
    directives, keys = answer(rodeo, "readout", "x.toml", "--set", "readout.builder.t")
    assert directives == ["nospace"] and "readout.builder.timeout=" in keys and "readout.builder.type=" in keys
    assert "readout.builder.type=gbt" in answer(rodeo, "check", "--set", "readout.builder.type=")[1]


def test_names_to_explain_are_known(rodeo):
    assert "config.unknown_key" in answer(rodeo, "explain", "config.")[1]
    assert "late" in answer(rodeo, "explain", "lat")[1]


def test_verbs_of_python_are_known_as_well(rodeo):
    assert {"launch", "start", "stop"} <= set(answer(rodeo, "control", "")[1])
    assert answer(rodeo, "control", "")[0] == ["files"]
    assert "--comment" in answer(rodeo, "control", "start", "--")[1]
    assert answer(rodeo, "runs", "show", "-o", "")[1] == ["table", "json", "csv"]


def test_cards_are_offered_by_address_without_being_asked(rodeo, tmp_path):
    """A socket that does not answer: completion offers it, and does not wait for it."""
    cards = tmp_path / "rodeo" / "cards"
    cards.mkdir(parents=True, mode=0o700)
    (tmp_path / "rodeo").chmod(0o700)
    with socket.socket(socket.AF_UNIX) as silent:
        silent.bind(str(cards / "0000:3b:00.0.sock"))
        silent.listen()
        assert answer(rodeo, "card", "status", "--id", "")[1] == ["0000:3b:00.0"]


def test_answering_loads_no_network_and_opens_no_socket(rodeo):
    traced = rodeo.directory / "maps"
    environment = {**rodeo.environment, "LD_DEBUG": "files", "LD_DEBUG_OUTPUT": str(traced)}
    subprocess.run(
        [rodeo.binary, "completion", "answer", "--", "card", ""],
        env=environment,
        check=True,
        capture_output=True,
        timeout=scaled(60),
    )
    (log,) = rodeo.directory.glob("maps.*")
    assert "librodeo.so" in log.read_text() and "libfabric" not in log.read_text()


def test_bash_completes(shell):
    assert in_bash(shell, "rodeo vers") == ["version"]
    assert in_bash(shell, "rodeo version -o ") == ["table", "json", "csv"]
    assert in_bash(shell, "rodeo version --output=j") == ["json"]
    assert "readout.builder.timeout=" in in_bash(shell, "rodeo check x --set readout.builder.time")
    assert "gbt" in in_bash(shell, "rodeo check --set readout.builder.type=g")
    assert in_bash(shell, "rodeo version --output=j", breaks=" \t\n") == ["--output=json"]
    (shell.directory / "my run.toml").touch()
    assert in_bash(shell, "rodeo check my") == ["my run.toml"]
    assert in_bash(shell, "rodeo readout --json=my") == ["my run.toml"]


def plain(shown):
    return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]|[\x00-\x1f]", "", shown)


def typed(rodeo, command, line, until, ready):
    """Types into an interactive shell on a terminal and waits for `until` (a regular expression). Returns the output without control sequences."""
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(rodeo.directory)
        os.execvpe(command[0], command, rodeo.environment)
    shown, sent, deadline = "", False, time.monotonic() + scaled(60)
    try:
        while not re.search(until, plain(shown)):
            assert time.monotonic() < deadline, shown
            if not sent and ready in shown:
                os.write(terminal, line.encode())
                sent, shown = True, ""
            if select.select([terminal], [], [], 0.1)[0]:
                shown += os.read(terminal, 4096).decode(errors="replace")
        return plain(shown)
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


def test_bash_completes_what_is_typed_on_a_terminal(shell):
    (shell.directory / "bashrc").write_text("source ./rodeo.bash\nbind 'set bell-style none'\nPS1='ready> '\n")
    shown = typed(
        shell,
        ["bash", "--rcfile", "bashrc", "-i"],
        "rodeo check --set readout.builder.timeo\t7ms --sche\t#",
        r"--schema +#",
        "ready> ",
    )
    assert "rodeo check --set readout.builder.timeout=7ms --schema #" in shown


def test_zsh_completes_what_is_typed_on_a_terminal(shell):
    (shell.directory / ".zshrc").write_text(
        "fpath=($PWD $fpath)\nautoload -Uz compinit\ncompinit -u -D\nPS1='ready> '\nunsetopt beep zle_bracketed_paste 2> /dev/null\n"
    )
    shown = typed(
        shell, ["zsh", "-i"], "rodeo check --set readout.builder.timeo\t7ms --sche\t#", r"--schema *#", "ready> "
    )
    assert "timeout=7ms" in shown


def test_fish_completes(shell):
    def in_fish(line):
        return [
            each.split("\t")[0]
            for each in run(
                shell, "fish", "--no-config", "-c", f"source rodeo.fish; complete -C {shlex.quote(line)}"
            ).splitlines()
        ]

    assert in_fish("rodeo vers") == ["version"]
    assert sorted(in_fish("rodeo version -o ")) == ["csv", "json", "table"]
    assert in_fish("rodeo version --output=j") == ["--output=json"]
    (shell.directory / "run.toml").touch()
    assert "run.toml" in in_fish("rodeo check ru")
    assert in_fish("rodeo readout --json=ru") == ["--json=run.toml"]


def test_there_is_a_manual_page_for_each_noun_and_no_tool_complains(rodeo, tmp_path):
    rodeo("man", "pages")
    pages = sorted((tmp_path / "pages").iterdir())
    nouns = answer(rodeo, "")[1]
    assert [page.name for page in pages] == sorted(["rodeo.1", *(f"rodeo-{noun}.1" for noun in nouns)])
    # A page without lint errors is also printed by groff without messages.
    lint = subprocess.run(["mandoc", "-Tlint", "-Wwarning", *pages], capture_output=True, text=True, timeout=scaled(60))
    assert lint.returncode == 0, lint.stdout
    for page in pages:
        done = subprocess.run(
            ["groff", "-man", "-Tutf8", "-ww", page], capture_output=True, text=True, timeout=scaled(60)
        )
        assert done.returncode == 0 and done.stderr == ""


def test_manual_pages_say_what_help_says(rodeo, tmp_path):
    rodeo("man", "pages")
    for noun, verb in (("card", "list"), ("readout", "link remove"), ("net", "size"), ("control", "start")):
        page = subprocess.run(
            ["mandoc", "-Tascii", tmp_path / "pages" / f"rodeo-{noun}.1"], capture_output=True, text=True, check=True
        ).stdout
        page = " ".join(re.sub(r".\x08", "", page).split())
        options = re.findall(r"^ +(?:-\w, |    )?(--[\w-]+)", rodeo(noun, *verb.split(), "--help").stdout, re.MULTILINE)
        assert options and not [option for option in options if option not in page], noun
        assert f"rodeo {noun} {verb}" in page


def test_a_directory_that_cannot_be_is_an_error_with_its_reason(rodeo, tmp_path):
    (tmp_path / "taken").touch()
    assert "error[cli.output]" in rodeo("man", "taken/pages", exit_code=None).stderr
