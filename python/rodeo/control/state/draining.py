"""At the end of a run, after its readouts: waits until the routers have read all data of the cards. Only then their counters account for the data."""

from rodeo.control.state.numbers import functions_sum, grown, total, value

QUIET_S = 0.5  # when nothing has changed for this time, the rest will not be read
MOST_S = 10.0


class Draining:
    """Over when all is read, when nothing has changed for QUIET_S, or after MOST_S. Times are of the monotonic clock; `patience` multiplies them."""

    def __init__(self, cards_before, routers_before, patience=1.0):
        self.cards_before, self.routers_before, self.patience = cards_before, routers_before, patience
        self.began_s = self.since_s = self.before = None

    def done(self, cards, routers, now_s):
        """Returns (whether it is over, sentences on what each router still has). `cards`, `routers`: {name: status} of processes that answer now."""
        left = unread(self.cards_before, cards, self.routers_before, routers)
        held = {name: _held(status) for name, status in sorted(routers.items())}
        if not left and not any(held.values()):
            return True, []
        if self.began_s is None:
            self.began_s = now_s
        if (left, held) != self.before:
            self.before, self.since_s = (left, held), now_s
        over = now_s - self.since_s >= QUIET_S * self.patience or now_s - self.began_s >= MOST_S * self.patience
        behind = [f"{name}: {count} chunks not taken" for name, count in held.items() if count]
        return over, ([f"routers: {left} chunks not read"] if left else []) + behind


def unread(cards_before, cards, routers_before, routers):
    """Chunks sent by cards in a run that routers have not read; None if a process does not report its count."""
    sent = [grown(_sent(before), _sent(cards.get(name))) for name, before in cards_before.items()]
    read = [
        grown(value(before, "chunks", "sent"), value(routers.get(name), "chunks", "sent"))
        for name, before in routers_before.items()
    ]
    if not sent or not read or None in sent or None in read:
        return None
    return int(sum(sent) - sum(read))


def _sent(status):
    chunks = functions_sum(status, "chunks")
    return None if chunks is None else chunks - functions_sum(status, "counters", "chunks_looped_back")


def _held(status):
    """Chunks in pages for subscribers of data."""
    return (
        total(value(one, "pending_chunks") for one in status.get("subscribers") or () if one.get("kind") != "monitor")
        or 0
    )
