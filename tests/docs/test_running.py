"""The reader of pages (page.py, running.py): what it does with each kind of block, and that a page with a fault fails."""

import re
import textwrap

import pytest
import running
from page import Block, CtrlC, commands, indented_blocks, missing_line, steps
from running import PageError, Reader


def read(page, **options):
    with Reader(**options) as reader:
        return reader.read(textwrap.dedent(page))


def test_blocks_come_with_the_paragraph_before_them():
    page = "# Title\n\nOne\nsentence:\n\n```sh\nls\n```\n\n```text\nhere\n```\nPress Ctrl-C in the second terminal.\n"
    assert steps(page) == [
        Block(7, "sh", "ls\n", "One sentence:"),
        Block(11, "text", "here\n", ""),
        CtrlC(13, 2),
    ]


def test_a_block_of_a_list_loses_its_indent():
    [block] = steps("1. Type\n\n   ```sh\n   for i in 1; do\n     ls\n   done\n   ```\n")
    assert block.text == "for i in 1; do\n  ls\ndone\n"


def test_a_block_without_an_end_is_refused():
    with pytest.raises(ValueError, match="line 2: the block has no end"):
        steps("```sh\nls\n")


@pytest.mark.parametrize(
    ("before", "terminal", "file", "appends", "status"),
    [
        ("Write `a/histogram.py`:", None, "a/histogram.py", False, 0),
        ("Write at the end of `run.toml`:", None, "run.toml", True, 0),
        ("With `rodeo.data`:", None, None, False, 0),
        ("`run.toml` names it. Start it in a second terminal:", 2, None, False, 0),
        ("Press Ctrl-C in the second terminal. Then:", None, None, False, 0),
        ("It ends with exit status 7:", None, None, False, 7),
    ],
)
def test_the_paragraph_before_says_what_to_do(before, terminal, file, appends, status):
    block = Block(1, "sh", "", before)
    assert (block.terminal, block.file, block.appends, block.exit_status) == (terminal, file, appends, status)


def test_commands_of_several_lines_are_one():
    assert commands("ls \\\n  -l\n\npwd\n") == ["ls \\\n  -l\n", "pwd\n"]


def test_indented_blocks_are_found():
    assert indented_blocks("text:\n\n    ls\n\n```sh\n\n    ls\n```\n") == [3]


@pytest.mark.parametrize(
    ("expected", "output", "missing"),
    [
        ("a\nb\n", "a\nbetween\n  b  \n", None),
        ("b\na\n", "a\nb\n", "a"),
        ("a\n", "ab\n", "a"),
        ("written ... to a file\n", "written 3 MB to a file\n", None),
        ("12 events, 0 lost\n", "232 200 events, 0 lost\n", None),
        ("12 events, 0 lost\n", "12 events, 3 lost\n", "12 events, 0 lost"),
        ("12 events, 3 lost\n", "12 events, 0 lost\n", None),
        ("dead time 0.00 %\n", "dead time 0.00 %\n", None),
        ("dead time 0 %\n", "dead time 0.01 %\n", "dead time 0 %"),
        ("link 0x10\n", "link 0x11\n", "link 0x10"),
    ],
)
def test_an_output_has_the_lines_of_the_page(expected, output, missing):
    assert missing_line(expected, output) == missing


def test_a_page_is_read_in_one_folder_and_one_shell():
    page = """
    ```sh
    mkdir here
    cd here
    export WORD=hello
    ```
    Write `greeting.py`:
    ```python
    import os
    print(os.environ["WORD"], os.path.basename(os.getcwd()))
    ```
    Write at the end of `greeting.py`:
    ```python
    print("end")
    ```
    ```sh
    python3 greeting.py
    ```
    ```text
    hello here
    end
    ```
    Statements go on:
    ```python
    number = 6
    ```
    ```python
    print(number * 7, "is the answer")
    ```
    ```text
    42 is the answer
    ```
    A fault of the reader ends with exit status 1:
    ```sh
    ls
    false
    ```
    """
    assert read(page) == 8


def test_what_a_second_terminal_says_is_awaited_and_ctrl_c_ends_it():
    page = """
    In a second terminal:
    ```sh
    bash -c 'trap "echo interrupted; exit 0" INT; sleep 0.2; echo ready; while true; do sleep 0.1; done'
    ```
    ```text
    ready
    ```
    ```sh
    echo between
    ```
    Press Ctrl-C in the second terminal:
    ```text
    interrupted
    ```
    """
    assert read(page) == 2


def test_a_block_that_does_not_reach_the_other_terminal_is_typed_again():
    page = """
    In a second terminal:
    ```sh
    sleep 0.5; touch there; sleep 60
    ```
    ```sh
    ls there || (exit 4)
    ```
    """
    assert read(page) == 2


@pytest.mark.parametrize(
    ("page", "fault"),
    [
        ("```sh\nls no_such_file\nls\n```", "line 2: ended with 2"),
        ("```sh\nno_such_command_42\n```", "line 2: ended with 127"),
        ("```sh\nfalse | true\n```", "line 2: ended with 1"),
        ("```sh\n(exit 4)\n```", "line 2: ended with 4"),
        ("It has exit status 7:\n```sh\ntrue\n```", "line 3: ended with 0"),
        ("```sh\necho one\n```\n```text\none\ntwo\n```", "line 5: the output has no line `two`"),
        ("```python\nraise ValueError\n```", "line 2: ended with 1"),
        ("```toml\na = 1\n```", "line 2: what the reader does with this `toml` is not said"),
        ("```cpp\nint no_excerpt;\n```", "line 2: what the reader does with this `cpp` is not said"),
        ("In a second terminal:\n```sh\nfalse\n```\n```text\nready\n```", "line 6: the output has no line `ready`"),
        ("In a second terminal:\n```sh\nfalse\n```\n```sh\nsleep 0.3\n```", "what ran in terminal 2 ended with 1"),
        (
            "In a second terminal:\n```sh\ntrue\n```\n```sh\nsleep 0.3\n```\nPress Ctrl-C in the second terminal.",
            "nothing runs that Ctrl-C",
        ),
        ("```sh\nsetsid sleep 30 > sleep.output 2>&1 &\n```", "these still run: .*sleep 30"),
    ],
)
def test_a_page_with_a_fault_fails(page, fault, monkeypatch):
    monkeypatch.setattr(running, "LAST_END_S", 0.3)
    with pytest.raises(PageError) as failed:
        read(page)
    assert re.search(fault, str(failed.value)), failed.value


def test_a_command_that_cannot_run_here_is_left_out_alone():
    page = "```sh\nsudo halt\necho one > file\n```\n```sh\ncat file\n```\n```text\none\n```"
    assert read(page, left_out=lambda command: "needs root" if command.startswith("sudo ") else None) == 2
