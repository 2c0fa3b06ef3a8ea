"""Log lines of all processes of the system: read from the agents, sorted by time, repeats folded, bounded."""

import asyncio
import contextlib
import time
from dataclasses import replace

from rodeo.control.processes import log_records
from rodeo.control.refused import Refused

OWN = "control"  # the control room itself
AGENT = "agent"  # the agent of this host; the agent of host X is agent@X
BEFORE_NS = 5 * 10**9  # lines from this time before the run's row still belong to the run
AFTER_NS = 10 * 10**9  # lines from this time after the run's end still belong to the run, also without its number
MOST_BYTES = 512 * 1024  # limit of all messages in one answer


class Logs:
    """Used by the controller's loop; `c` is the controller."""

    def __init__(self, c):
        self.c = c
        self.file = (
            c.system.directory / "control.log"
        )  # names control.jsonl, which is beside it; control.log itself is not written

    def names(self):
        """The names of all processes with a log."""
        agents = [AGENT if name == "local" else f"{AGENT}@{name}" for name in self.c.hosts]
        return [*self.c.observer.members, OWN, *agents]

    async def lines(
        self,
        process=None,
        *,
        lines=100,
        search="",
        run=None,
        level="debug",
        audience="developer",
        since_ns=None,
        fold=True,
    ):
        """Records, oldest first. Refused: control.no_process, control.no_run_number."""
        if process and process not in self.names():
            raise Refused(
                "control.no_process", f"there is no process `{process}`", f"one of: {', '.join(self.names())[:300]}"
            )
        wanted = log_records.Wanted(
            search=search, level=level, audience=audience, since_ns=since_ns, lines=lines, fold=fold
        )
        if run is not None:
            wanted = replace(wanted, after_ns=since_ns, **await self._span_of(run))
        found = await asyncio.gather(
            *(self._of_host(name, host, process, wanted) for name, host in self.c.hosts.items()),
            self._own(process, wanted),
        )
        together = log_records.in_order(record for each in found for record in each)
        together = (log_records.folded(together) if fold else together)[-lines:]
        return bounded(together)

    async def _span_of(self, run):
        """The time span in which lines without a number belong to a run."""
        if self.c.run is not None and self.c.run.number == run:
            return {"run": run, "since_ns": self.c.run.asked_ns - BEFORE_NS, "until_ns": time.time_ns() + AFTER_NS}
        row = await self.c.reads.run(run)
        return {
            "run": run,
            "since_ns": row["asked_ns"] - BEFORE_NS,
            "until_ns": (row.get("closed_ns") or row.get("stopped_ns") or time.time_ns()) + AFTER_NS,
        }

    async def _of_host(self, name, host, process, wanted):
        """Records of one host; none if it is silent, which is an alarm elsewhere."""
        agent = AGENT if name == "local" else f"{AGENT}@{name}"
        names = [
            each.name
            for each in self.c.observer.members.values()
            if each.member.host == name and process in (None, "", each.name)
        ]
        found = []
        with contextlib.suppress(Refused, asyncio.TimeoutError):
            asked = names + ([AGENT] if process in (None, "", agent) else [])
            found = await host.records(asked, wanted) if asked else []
        return [{**each, "process": agent} if each.get("process") == AGENT else each for each in found]

    async def _own(self, process, wanted):
        return (
            await asyncio.to_thread(
                log_records.newest, {OWN: (self.file, ((), ()))}, wanted, log_records.LONGEST_SEARCH
            )
            if process in (None, "", OWN)
            else []
        )


def bounded(found):
    """The newest records whose messages fit into one answer."""
    size, kept = 0, []
    for record in reversed(found):
        size += len(record["message"]) + 100
        if size > MOST_BYTES and kept:
            kept.append(
                log_records.not_looked_at(
                    record["process"], record["time_ns"], "this line and older ones are left out: the answer is full"
                )
            )
            break
        kept.append(record)
    return kept[::-1]
