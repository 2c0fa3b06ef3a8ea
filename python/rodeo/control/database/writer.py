"""Writes the control room's records to the run database. Each call returns when the record is on disk.

All calls are coroutines, for any loop and thread. Times are UTC in ns, sizes in bytes.
"""

import asyncio
import json
import math
import time

from rodeo.control.database import queries
from rodeo.control.database.apply_records import canonical

DISK_S = 5.0  # limit of a call's wait for the disk; the record is written when the disk permits
LONGEST_TEXT = 20_000  # limit of characters in a reason, a comment, a note


class Writer:
    """Writes to one Database. If its file is gone, open_run() and questions are refused; see health()."""

    def __init__(self, database):
        self._database = database

    @property
    def system(self):
        return self._database.system

    def health(self):
        """Returns Database.health(). This is not a coroutine."""
        return self._database.health()

    async def _put(self, kind, **record):
        future = asyncio.wrap_future(self._database.submit(_json({"kind": kind, **record})))
        await asyncio.wait({future}, timeout=DISK_S)

    async def open_run(self, system, run_type, holder, comment, configuration, build, processes, asked_ns=None):
        """Draws a run number and writes its row, in one transaction; returns the number. `configuration`: a JSON object with all that a repetition of the run
        needs (database/configuration_files.py). `processes`: objects with name, class, kind, host, role, pid, build, settings.

        Refused: control.run_open if a run of the system is open, control.database if the file is gone or no run number is left."""
        record = _json(
            {
                "system": str(system),
                "type": _text(run_type),
                "holder": _text(holder),
                "comment": _text(comment),
                "configuration": configuration,
                "build": _text(build),
                "processes": processes or [],
                "asked_ns": asked_ns or time.time_ns(),
            }
        )
        return await asyncio.wrap_future(self._database.draw(record))

    async def close_run(self, number, state, condition, flags, reason, first_event_ns, stopped_ns, closed_ns):
        """Closes the row of a run. `state`: CLOSED or ABORTED; `condition` as in its report; `flags` of DEGRADED, INTERRUPTED, TAINTED."""
        await self._put(
            "close",
            system=self.system,
            number=number,
            state=state,
            condition=condition,
            flags=[str(flag) for flag in flags],
            reason=_text(reason),
            first_event_ns=first_event_ns,
            stopped_ns=stopped_ns,
            closed_ns=closed_ns,
        )

    async def flags(self, number, add=(), remove=()):
        """Changes the flags of a closed run; the flags are those of close_run()."""
        await self._put("flags", number=number, add=[str(flag) for flag in add], remove=[str(flag) for flag in remove])

    async def transition(self, run, name, from_, to, actor, began_ns, ended_ns, outcome, detail=""):
        """Records a transition of a run. `outcome`: done, undone, late, refused."""
        await self._put(
            "transition",
            run=run,
            name=name,
            from_state=from_ or "",
            to_state=to or "",
            actor=_text(actor),
            began_ns=began_ns,
            ended_ns=ended_ns,
            outcome=outcome,
            detail=_text(detail),
        )

    async def process(self, run, name, host, role, exit, signal, core, report):
        """Records one launch of a process in a run, after its end. `report` is a JSON object or None."""
        await self._put(
            "process",
            run=run,
            name=name,
            host=host,
            role=role,
            exit=exit,
            signal=signal,
            core=None if core is None else str(core),
            report=None if report is None else canonical(_json(report)),
        )

    async def file(self, run, path, host, bytes, sha256, events, verified, state):
        """Records a file of a run. `state`: part, closed, recovered or missing. Unknown values are None."""
        await self._put(
            "file",
            run=run,
            path=str(path),
            host=host or "",
            bytes=bytes,
            sha256=sha256,
            events=events,
            verified=bool(verified),
            state=state,
        )

    async def counters(self, run, process, values, when_ns):
        """Records counters {name: number} of a process, and leaves out values that are not finite."""
        kept = {
            str(name): float(value)
            for name, value in values.items()
            if isinstance(value, (int, float)) and math.isfinite(value)
        }
        await self._put("counters", run=run, process=process, values=kept, when_ns=when_ns)

    async def lumi_block(self, run, block):
        """Records a luminosity block of a run (blocks.Block) at every change."""
        await self._put("lumi_block", run=run, **block.as_json())

    async def alarm(self, alarm, run=None):
        """Records an alarm from Alarm.as_json() at every change: raised, acknowledged, cleared. Its key is cause and raised_ns."""
        text = {name: None if alarm.get(name) is None else _text(alarm[name]) for name in ("process", "acked_by")}
        values = {name: alarm.get(name) for name in ("acked_ns", "cleared_ns", "value", "limit")}
        await self._put(
            "alarm",
            system=self.system,
            run=run,
            cause=_text(alarm["cause"]),
            raised_ns=alarm["raised_ns"],
            severity=_text(alarm.get("severity") or "alarm"),
            what=_text(alarm.get("what")),
            do=_text(alarm.get("do")),
            **text,
            **values,
        )

    async def note(self, run, author, text, replaces=None):
        """Records a note, with or without a run. `replaces` is the id of the older version of this note."""
        await self._put(
            "note", run=run, author=_text(author), written_ns=time.time_ns(), text=_text(text), replaces=replaces
        )

    async def quality(self, run, subsystem, from_ns, to_ns, verdict, by, verified_by=None):
        """Records the quality of a subsystem's data in a part of a run. `verdict` is good, bad, test or none."""
        await self._put(
            "quality",
            run=run,
            subsystem=subsystem,
            from_ns=from_ns,
            to_ns=to_ns,
            verdict=verdict,
            by=_text(by),
            verified_by=verified_by,
        )

    async def audit(self, actor, whence, role, command, arguments, outcome, detail=""):
        """Records an audit row: actor, command and outcome. Checksums chain the rows."""
        await self._put(
            "audit",
            system=self.system,
            time_ns=time.time_ns(),
            actor=_text(actor),
            whence=_text(whence),
            role=_text(role),
            command=_text(command),
            arguments=canonical(_json(arguments)),
            outcome=_text(outcome),
            detail=_text(detail),
        )

    async def remember(self, key, value):
        """Remembers a fact of the controller that cannot be derived, as JSON. The value None forgets it."""
        await self._put("remember", system=self.system, key=key, value=value)

    async def recall(self, key):
        """Returns the remembered fact, or None."""
        return (await self._ask(queries.remembered, self.system)).get(key)

    async def open_runs(self):
        """Returns the rows of open runs, oldest first. A run that has ended according to its run.json is closed."""

        def ask(connection):
            self._database.close_ended(connection)
            return queries.open_runs(connection)

        return await self._ask(ask)

    async def blocks(self):
        """Returns the luminosity blocks of the open run, in order, in the form of blocks.Block.as_json()."""
        return await self._ask(queries.blocks, self.system)

    async def alarms_standing(self):
        """Returns the alarms that are not both acknowledged and cleared, in the form of Alarm.as_json()."""
        return await self._ask(queries.alarms_standing, self.system)

    async def _ask(self, function, *arguments):
        return await asyncio.wrap_future(self._database.ask(lambda connection: function(connection, *arguments)))


def _text(value):
    """Makes text that every database accepts: without NUL and lone surrogates, bounded in length."""
    text = "" if value is None else str(value)
    return text.replace("\0", "").encode("utf-8", "replace").decode()[:LONGEST_TEXT]


def _json(value):
    """Returns the value as JSON: other types become text, NaN and infinity become null."""
    return json.loads(json.dumps(value, default=str), parse_constant=lambda _: None)
