"""Respects signals that were ignored when the process started, as SIGHUP after nohup: they stay ignored."""

import signal


def heard(*numbers):
    """The given signals that are not ignored."""
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
