"""What the thread that feeds the server does next. Pure: the caller gives the time."""

from dataclasses import dataclass

CONNECT, RESERVE, FEED, WAIT, END = "connect", "reserve", "feed", "wait", "end"


@dataclass(frozen=True)
class Look:
    """`next_s`: when the next attempt to connect is due. `waiting`: records that the server lacks and that can be read now. `left`: run numbers in the store, or
    None if it cannot take more now. `block`: how many numbers are reserved at once. `ending`: the room ends."""

    connected: bool
    next_s: float
    waiting: int
    left: int | None
    block: int
    ending: bool


def step(look, now_s, idle_s):
    """Returns (the next step, the longest wait in seconds). Reserves when half of a block is used, so that half a block always lasts without the server."""
    if look.ending and not (look.connected and look.waiting):
        return END, 0.0
    if not look.connected:
        return (CONNECT, 0.0) if now_s >= look.next_s else (WAIT, min(idle_s, look.next_s - now_s))
    if look.left is not None and 2 * look.left <= look.block and not look.ending:
        return RESERVE, 0.0
    return (FEED, 0.0) if look.waiting else (WAIT, idle_s)
