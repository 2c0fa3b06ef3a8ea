"""Events of a running readout from its consumer event_sampler, with the same class Event as events of files.

    import rodeo
    for event in rodeo.events.sample("my_readout"):
        print(event.l1_id, event.fragments[0].chunks.size.sum())
    rodeo.events.sample(stream="my_readout.publish", bus="/shared/bus")       # from another host

Sampling never slows the run: events that are not read in time are left out and counted.
"""

import os

from rodeo.data._module import Event, module

__all__ = ["Event", "Samples", "sample"]


class Samples:
    """An iterator over sampled events; it ends with the run. `taken` counts the events received, `missed` those left out because this program had not yet
    read the one before. `time_ns` (nanoseconds since 1970) and `sequence` are the sampling time and the trigger number of the last event."""

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
            raise TimeoutError(
                f"error[data.timeout]: no event came for {self._timeout_s} s: the run is paused, or has no triggers\n  wait longer with timeout_s, or see `rodeo readout status`"
            )
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


def sample(readout="", *, timeout_s=None, events=None, stream=None, bus="", provider="auto", secret_file=""):
    """Connects to a readout on this machine by name or by the path of its socket (any text with a slash); by default to the only running readout.
    `stream` (READOUT.CONSUMER on the bus, or "" for the only one) connects to the consumer `publish` of a readout on any host: `bus` is the directory of
    the bus, `provider` the network, `secret_file` a file with the publisher's secret. If this program is slow, it loses events; the readout never waits.
    If `events` is given, the iteration ends after this number. ValueError (readout.no_sampler) if no such readout runs; TimeoutError if no event comes
    for `timeout_s`; iteration may continue after it. Ctrl-C ends it."""
    text = os.fsdecode(readout)
    if timeout_s is not None and not timeout_s >= 0:
        raise ValueError(f"timeout_s is a time in seconds, not {timeout_s}")
    if stream is not None:
        if text:
            raise ValueError("a readout of this machine, or a stream of the network, not both")
        if not hasattr(module.Sampler, "from_network"):
            raise ValueError(
                "error[data.no_network]: this package has no network: the wheel reads files and the readouts of this machine"
            )
        sampler = module.Sampler.from_network(
            stream, bus=os.fsdecode(bus), provider=provider, secret_file=os.fsdecode(secret_file)
        )
    else:
        sampler = module.Sampler("", text) if "/" in text else module.Sampler(text, "")
    return Samples(sampler, timeout_s, events)
