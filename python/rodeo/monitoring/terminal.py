"""The output of the monitors: a screen of histograms that is redrawn, or plain lines if there is no terminal."""

import os
import sys
import textwrap
import time

from rodeo.monitoring.drawing import draw, screen
from rodeo.saying import say

_ENTER, _LEAVE, _HOME, _REST_OF_LINE, _REST_OF_SCREEN = (
    "\x1b[?1049h\x1b[?25l",
    "\x1b[?25h\x1b[?1049l",
    "\x1b[H",
    "\x1b[K",
    "\x1b[J",
)
_FEW = 6  # limit of the messages on the screen
_PLAIN_S = 10.0


class Terminal:
    """Histograms go to stdout, messages to stderr."""

    def __init__(self, address, quiet):
        self.address, self.messages = address, []
        self.quiet = quiet  # a program reads stdout
        self.drawing = self._begun = False
        self._all, self._plain_at = [], 0.0

    def begin(self):
        """The monitors are loaded, and events may come."""
        if self._begun:
            return
        self._begun = True
        if self.address:
            say(f"page: {self.address}")
        self.drawing = not self.quiet and sys.stdout.isatty() and os.environ.get("TERM", "dumb") != "dumb"
        if self.drawing:
            sys.stdout.write(_ENTER)
            sys.stdout.flush()

    def tell(self, line):
        """A message for the user."""
        stamped = f"{time.strftime('%H:%M:%S')}  {line}"
        self.messages = [*self.messages, stamped][-_FEW:]
        if self.drawing:
            self._all = [*self._all, stamped][-200:]
        else:
            say(line)

    def show(self, state, blocks):
        if self.drawing:
            self._draw(state, blocks)
        elif time.monotonic() - self._plain_at >= _PLAIN_S:
            if self._plain_at:
                say(state)
            self._plain_at = time.monotonic()

    def close(self):
        """Restores the screen and prints the messages again."""
        if not self.drawing:
            return
        self.drawing = False
        try:
            sys.stdout.write(_LEAVE)
            sys.stdout.flush()
        except OSError:
            pass
        for line in self._all:
            say(line)

    def print_last(self, blocks):
        """Prints the final histograms."""
        if self.quiet:
            return
        width = min(_size().columns, 100) - 1
        for name, one in blocks:
            print("\n".join(line.rstrip() for line in draw(name, one, width, 8)), end="\n\n")

    def _draw(self, state, blocks):
        size = _size()
        head = [state, f"{self.address + '   ' if self.address else ''}Ctrl-C ends and saves", ""]
        said = [
            part
            for message in self.messages
            for part in textwrap.wrap(message, size.columns - 1, subsequent_indent=" " * 10)
        ]
        room = size.lines - len(head) - len(said) - 2
        lines, hidden = screen(blocks, size.columns, room)
        if hidden:
            lines.append(
                f"and {hidden} more, on the page" if self.address else f"and {hidden} more: make the terminal larger"
            )
        lines = [*head, *lines, *said][: size.lines - 1]
        sys.stdout.write(
            _HOME + "".join(line[: size.columns] + _REST_OF_LINE + "\n" for line in lines) + _REST_OF_SCREEN
        )
        sys.stdout.flush()


def _size():
    """The terminal's size, or a default: a terminal of unknown size reports 0."""
    try:
        size = os.get_terminal_size(sys.stdout.fileno())
    except (OSError, ValueError):
        size = (0, 0)
    return os.terminal_size((max(size[0] or 100, 2), size[1] or 40))
