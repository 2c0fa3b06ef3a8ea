"""Events of a running readout, as its consumer event_sampler shows them: the same Event as of files.

    import rodeo
    for event in rodeo.events.sample("my_readout"):
        print(event.l1_id, event.fragments[0].chunks.size.sum())

It never slows the run: what is not read in time is left out, and counted.
"""

import os

from rodeo.data._module import Event, module

__all__ = ["Event", "Samples", "sample"]


class Samples:
    """An iterator over sampled events, which ends with the run. `taken` events came so far; `missed` did not, because this program had not read the one before
    yet; `time_ns` and `sequence` are of the last one: when its sample was taken (nanoseconds since 1970), and the number of its trigger."""

    def __init__(self, sampler, timeout_s, most):
        self._sampler, self._timeout_s, self._most = sampler, timeout_s, most
        self.taken = self.missed = 0
        self.sequence = self.time_ns = None

    def __iter__(self):
        return self

    def __next__(self):
        if self._sampler is None or self._most is not None and self.taken >= self._most:
            raise StopIteration
        found = self._sampler.next(float("inf") if self._timeout_s is None else self._timeout_s)
        if found is True:
            self.close()
            raise StopIteration
        if found is False:
            raise TimeoutError(f"error[data.timeout]: no event came for {self._timeout_s} s: the run is paused, or has no triggers\n  wait longer with timeout_s, or see `rodeo readout status`")
        event, self.sequence, self.time_ns, missed = found
        self.taken += 1
        self.missed += missed
        return event

    def close(self):
        """Leaves the readout; the iteration ends."""
        self._sampler = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def sample(readout="", *, timeout_s=None, events=None):
    """Connects to a readout on this machine by its name, or by the path of its socket (anything with a slash); without either to the only one that runs.
    The iteration ends after so many `events`, if that is given. ValueError (readout.no_sampler) if nobody is there; TimeoutError where no event comes for
    `timeout_s`, after which iteration may go on; Ctrl-C ends it."""
    text = os.fsdecode(readout)
    if timeout_s is not None and not timeout_s >= 0:
        raise ValueError(f"timeout_s is a time in seconds, not {timeout_s}")
    sampler = module.Sampler("", text) if "/" in text else module.Sampler(text, "")
    return Samples(sampler, timeout_s, events)
