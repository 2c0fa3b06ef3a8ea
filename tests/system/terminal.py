"""Runs the command on a terminal of a given width, and reads the final screen."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import termios

from conftest import scaled


def on_a_terminal(rodeo, *arguments, columns=80, rows=40, exit_code=0):
    """All bytes that the command writes to a terminal of that size on stdout and stderr."""
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    environment = {**rodeo.environment, "TERM": "xterm"}
    process = subprocess.Popen(
        [rodeo.binary, *map(str, arguments)], cwd=rodeo.directory, env=environment, stdout=follower, stderr=follower
    )
    os.close(follower)
    text = b""
    try:
        while True:
            try:
                piece = os.read(leader, 65536)
            except OSError:  # the other side is closed
                break
            if not piece:
                break
            text += piece
        assert process.wait(timeout=scaled(60)) == exit_code, text
    finally:
        process.kill()
        process.wait()
        os.close(leader)
    return text.decode().replace("\r\n", "\n")


def screen(text):
    """The lines on the final screen of a program that moves the cursor up and erases."""
    lines, row, column = [""], 0, 0
    for code, plain in re.findall(r"(\x1b\[[\d;]*[A-Za-z]|[\r\n])|([^\x1b\r\n]+)", text):
        if plain:
            lines[row] = lines[row].ljust(column)[:column] + plain + lines[row][column + len(plain) :]
            column += len(plain)
        elif code in "\r\n":
            row, column = row + (code == "\n"), 0
            if row == len(lines):
                lines.append("")
        elif code.endswith("F"):
            row, column = row - int(code[2:-1]), 0
        elif code.endswith("J"):
            lines[row:] = [lines[row][:column]]
    return lines
