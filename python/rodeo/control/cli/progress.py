"""Shows progress while a command runs: lines on stderr from the room's document."""

import contextlib
import sys
import threading

from rodeo.control.printed import plain
from rodeo.control.refused import Refused
from rodeo.saying import say

FIRST_S = 1.0  # shorter commands print nothing


@contextlib.contextmanager
def shown(open_client, stream=None):
    """Within this context the processes that the room waits for are printed, each change once. `open_client` makes a client for the thread."""
    over = threading.Event()
    thread = threading.Thread(
        target=_watch, args=(open_client, over, stream or sys.stderr), daemon=True, name="progress"
    )
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(5.0)


def _watch(open_client, over, stream):
    said = None
    with contextlib.suppress(Refused):
        if over.wait(FIRST_S):
            return
        with open_client() as client:
            document = client.status()
            while not over.is_set():
                waiting = document.get("waiting_for") or []
                words = f"{document['state']}: " + (
                    "; ".join(waiting[:4]) + (f" and {len(waiting) - 4} more" if len(waiting) > 4 else "")
                    if waiting
                    else document.get("what") or "..."
                )
                whom = (document["state"], tuple(each.split(":")[0] for each in waiting))
                if whom != said and not over.is_set():
                    say(plain(words), stream)
                    said = whom
                document = client.get("/api/state", after=document["sequence"], wait=1)
                over.wait(0.5)
