"""Signals as the process was started with them: what was ignored then, as SIGHUP is after nohup, stays ignored."""

import signal


def heard(*numbers):
    """Those of the signals that are not ignored."""
    return [number for number in numbers if signal.getsignal(number) != signal.SIG_IGN]
