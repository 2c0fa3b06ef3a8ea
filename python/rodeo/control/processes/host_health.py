"""The health of the hosts: clock offsets from this host, and temperatures. The agents are asked every EVERY_S."""

import asyncio
import contextlib
import logging
import math
import time

from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control")
EVERY_S = 10.0
TRIES = 4  # number of questions; the quickest answer counts


def offset_of(answers):
    """Returns (offset of a clock [s], error [s]) from [(asked, told, answered)] in ns: `told` is that clock's time, the others are ours. The quickest answer
    counts: `told` lies between `asked` and `answered`, so the error is at most half of this interval. (None, None) without an answer."""
    good = [(answered - asked, told - (asked + answered) / 2) for asked, told, answered in answers if answered >= asked]
    if not good:
        return None, None
    length, offset = min(good)
    return offset / 1e9, length / 2e9


def certain(offset_s, error_s):
    """The least possible offset of a clock; None if unknown."""
    if offset_s is None or not math.isfinite(offset_s):
        return None
    return max(0.0, abs(offset_s) - error_s)


class HostLooks:
    """Used by the controller's loop. `offsets` {name: (offset_s, error_s)}, `temperatures` {name: {sensor: degrees Celsius}}."""

    def __init__(self, hosts):
        self.hosts = hosts
        self.offsets, self.temperatures = {}, {}

    async def watch(self):
        """Looks every EVERY_S; never returns."""
        while True:
            await self.look()
            await asyncio.sleep(EVERY_S)

    async def look(self):
        """Asks all hosts once."""
        await asyncio.gather(*(self._look_at(name, host) for name, host in self.hosts.items()))

    async def _look_at(self, name, host):
        answers, temperatures = [], {}
        with contextlib.suppress(Refused, asyncio.TimeoutError, OSError):
            for _ in range(TRIES):
                asked = time.time_ns()
                answer = await host.health(temperatures=not answers)
                answered = time.time_ns()
                if type(answer.get("time_ns")) is int:
                    answers.append((asked, answer["time_ns"], answered))
                if isinstance(found := answer.get("temperatures"), dict):
                    temperatures = {
                        str(sensor)[:100]: float(one)
                        for sensor, one in list(found.items())[:256]
                        if isinstance(one, (int, float)) and math.isfinite(one)
                    }
        if answers:
            self.offsets[name], self.temperatures[name] = offset_of(answers), temperatures
        else:  # the host does not answer: its old values are dropped
            self.offsets.pop(name, None)
            self.temperatures.pop(name, None)

    def clock_offsets(self):
        """Returns {host: least possible offset of its clock in seconds}."""
        return {name: certain(*found) for name, found in self.offsets.items()}
