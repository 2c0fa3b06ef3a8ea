"""Opens and closes the row of a run. At the begin: its number, its processes, the counters of the cards. At the end: reports, books, files, run.json."""

import asyncio
import contextlib
import logging
import time
from pathlib import Path

from rodeo.control.database.run_json import OF_THE_RUN
from rodeo.control.processes.overrides import directories_of_files
from rodeo.control.refused import Refused
from rodeo.control.run import event_files, open_run
from rodeo.control.run.open_run import OpenRun
from rodeo.control.state.luminosity_blocks import Block, blocks_of, with_recorded
from rodeo.control.state.numbers import counters_of, fragments_per_event

LOG = logging.getLogger("rodeo.control")


class Closing:
    """Used by the controller's loop; `c` is the controller."""

    def __init__(self, c):
        self.c = c
        self.last_books = None  # of the last run that this room has closed
        self.router_links = {}  # {router: fids that it delivers} of the open run
        self._of_blocks = asyncio.Lock()  # older values must not overwrite newer ones

    async def open_run(self, act, arguments, readouts):
        """Draws a number and inserts its row in one transaction, then makes the folders of the readouts. If Refused, only a closed row remains."""
        c = self.c
        for each in readouts:
            if each.expected_sha256 and each.process.get("configuration_sha256") != each.expected_sha256:
                raise Refused(
                    "control.not_started",
                    f"the configuration of {each.name} has changed since its launch",
                    "close, and launch again",
                )
        configuration = {name: found.as_json() for name, found in c.launching.configured.items()}
        processes = [
            {
                "name": each.name,
                "class": each.member.process_class.name,
                "kind": each.member.kind,
                "host": each.member.host,
                "role": each.member.role,
                "pid": each.pid,
                "build": each.process.get("build"),
                "settings": list(each.settings),
            }
            for each in c.observer.members.values()
            if each.alive
        ]
        asked_ns = time.time_ns()
        build = next((each.process.get("build") for each in readouts if each.process.get("build")), "")
        number = await c.writer.open_run(
            c.system.name,
            arguments.get("run_type") or "physics",
            act.actor,
            arguments.get("comment") or "",
            {
                "system": c.system.public_text,
                "file": str(c.system.file),
                "sha256": c.system.sha256,
                "classes": configuration,
            },
            build,
            processes,
        )
        c.run = OpenRun(
            number=number,
            type=arguments.get("run_type") or "physics",
            holder=act.actor,
            comment=arguments.get("comment") or "",
            directory=str(c.folders.run(number)),
            asked_ns=asked_ns,
            expected=[each.name for each in readouts],
            lives={each.name: [each.report] for each in readouts},
            cards_before=self._statuses("emulator"),
            routers_before=self._statuses("router"),
        )
        c.telling.left_open = {}
        if c.derived.degraded:
            c.run.flags.add("DEGRADED")
        await c.keep_run()
        try:
            if await asyncio.to_thread(_has_files, c.folders.run(number)):
                raise Refused(
                    "control.run_folder",
                    f"{c.folders.run(number)} exists already, and each run needs a new folder",
                    "start again: the next run has the next number",
                )
            for each in readouts:
                await asyncio.to_thread(c.folders.assign, number, each.name, each.writers)
            await self._links_of_routers()
        except Refused as refused:
            await c.writer.close_run(
                number,
                "ABORTED",
                "ABORTED",
                sorted(c.run.flags),
                f"not started: {refused.what}",
                None,
                time.time_ns(),
                time.time_ns(),
            )
            await c.forget_run()
            raise
        return c.run

    async def join(self, run, each):
        """Lets a restarted process join the open run, with a place of its own for its files."""
        lives = run.lives.setdefault(each.name, [])
        # A restarted recorder finds its earlier files; each launch of a readout has its own files.
        folder = each.name if not lives or each.member.kind == "recorder" else f"{each.name}.{len(lives) + 1}"
        await asyncio.to_thread(self.c.folders.assign, run.number, each.name, each.writers, folder)
        order = {"command": "start", "run": run.number, "run_type": run.type, "configuration_sha256": each.said_sha256}
        lives.append(each.report)
        await self.c.keep_run()
        try:
            await self.c.observer.host_of(each.name).ask(
                each.name, order, each.member.process_class.start_limit_s * self.c.patience
            )
        except Refused as refused:
            if refused.code.startswith("process."):  # the process has refused, and takes no part in the run
                lives.remove(each.report)
                await self.c.keep_run()
            raise

    async def keep_blocks(self, *, over=False, files=()):
        """Writes the luminosity blocks that the run's trigger authority has marked to the database. `over`: no more blocks will come; `files` give the
        recorded events of each. With several authorities the run has no blocks."""
        async with self._of_blocks:
            await self._keep_blocks(over, files)

    async def _keep_blocks(self, over, files):
        c, run = self.c, self.c.run
        names = c.trigger.authorities()
        if run is None or len(names) != 1:
            return
        before = ((run.cards_before.get(names[0]) or {}).get("trigger") or {}).get("accepted")
        if before is None:
            return
        known = [block for each in run.blocks if (block := Block.from_json(each))]
        blocks = blocks_of(
            known, (c.observer.members[names[0]].status or {}).get("trigger"), before, time.time_ns(), over=over
        )
        if over and files:
            blocks = with_recorded(blocks, files)
        if changed := [block for block in blocks if block not in known]:
            with contextlib.suppress(Refused):
                for block in changed:
                    await c.writer.lumi_block(run.number, block)
            await c.keep_run(blocks=[block.as_json() for block in blocks])

    def _statuses(self, kind):
        """Returns the last status of each process of a kind. The status of a lost process is too old for the books, and is left out."""
        return {
            each.name: each.status
            for each in self.c.observer.members.values()
            if each.member.kind == kind and each.alive and each.phase != "lost" and each.status
        }

    async def _links_of_routers(self):
        """Asks the routers for their links; they answer only while they run."""
        self.c.run.links_before = await self._read_of_links()
        self.router_links = {name: set(links) for name, links in self.c.run.links_before.items()}
        await self.c.keep_run()

    async def _read_of_links(self):
        """Returns {router that answers: {link: chunks read from it}}."""
        found = {}
        for each in self.c.observer.members.values():
            if each.member.kind == "router" and each.alive and each.phase != "lost":
                with contextlib.suppress(Refused):
                    status = await self.c.observer.host_of(each.name).ask(
                        each.name, {"command": "status", "links": True}, 5.0 * self.c.patience
                    )
                    by_link = status.get("by_link") if isinstance(status, dict) else None
                    found[each.name] = {
                        link["fid"]: link["chunks"]
                        for link in by_link or []
                        if isinstance(link, dict)
                        and isinstance(link.get("fid"), str)
                        and isinstance(link.get("chunks"), int)
                    }
        return found

    async def close_books(self, act, state, aborted):
        """Closes the books of a run after its processes. Returns its summary: run, condition, flags, events, sent, built, lost, reasons, files, bytes."""
        c, run = self.c, self.c.run
        kinds = {member.name: member.kind for member in c.system.members}
        reports, missing = await open_run.collect_reports(c.folders, run, kinds)
        cards_after, routers_after = self._statuses("emulator"), self._statuses("router")
        if len(reports) == 0 and run.lives:
            LOG.warning("run %d has no reports", run.number)
        per_event = {
            each.name: fragments_per_event(each.status)
            for each in c.observer.members.values()
            if each.member.kind == "readout"
        }
        books = open_run.settle(
            run,
            reports,
            cards_after,
            routers_after,
            links_after=await self._read_of_links(),
            per_event=per_event,
            kinds=kinds,
            missing=missing,
            decided=await asyncio.to_thread(event_files.decided_in, c.folders.run(run.number), reports, kinds),
            aborted=aborted,
        )
        files, left_open = await self._files(act, run, reports, kinds)
        await self.keep_blocks(
            over=True, files=[each for each in files if kinds.get(Path(each["path"]).parent.name) == "recorder"]
        )
        reason = open_run.reason_of(run, books, left_open)
        flags = sorted(set(books.flags) | run.flags)
        stopped_ns, closed_ns = run.stopped_ns or time.time_ns(), time.time_ns()
        with contextlib.suppress(Refused):
            for name, report in reports.items():
                each = c.observer.members.get(name.split("#")[0])
                if each is not None:
                    ended = (
                        each.exit
                        if "#" not in name
                        and len(run.lives.get(name, ())) == 1
                        or name.endswith(f"#{len(run.lives.get(name.split('#')[0], ()))}")
                        else None
                    )
                    await c.writer.process(
                        run.number,
                        name,
                        each.member.host,
                        each.member.role,
                        ended and ended.status,
                        ended and ended.signal,
                        ended and ended.core,
                        report,
                    )
            for name, after in {**cards_after, **routers_after}.items():
                each = c.observer.members[name]
                await c.writer.process(run.number, name, each.member.host, each.member.role, None, None, None, after)
            for each in files:
                await c.writer.file(
                    run.number,
                    each["path"],
                    "local",
                    each["bytes"],
                    each["sha256"],
                    each["events"],
                    each["verified"],
                    each["state"],
                )
            for name, report in reports.items():
                if counted := counters_of(report):
                    await c.writer.counters(run.number, name, counted, closed_ns)
            if books.events is not None:
                await c.writer.counters(run.number, OF_THE_RUN, {"events": books.events}, closed_ns)
            await c.telling.keep_externals(closed_ns)
        if c.observer.strangers:
            LOG.warning("strangers: %s", c.observer.strangers)
        await c.writer.close_run(
            run.number, state, books.condition, flags, reason, run.first_event_ns, stopped_ns, closed_ns
        )
        summary = {
            "run": run.number,
            "condition": books.condition,
            "flags": flags,
            "events": books.events,
            "sent": books.sent,
            "built": books.built,
            "lost": books.lost,
            **({"farm": books.farm} if books.farm else {}),
            "reasons": list(books.reasons),
            "files": len(files),
            "bytes": sum(each["bytes"] for each in files),
        }
        self.last_books = books
        c.telling.closed(run, books.condition, flags, reason, state)
        await self._leave_run_json(run.number)
        await c.forget_run()
        return summary

    async def _files(self, act, run, reports, kinds):
        """Recovers open files, then returns (the files of the run in the database's form; a sentence for each file that a process left open)."""
        folder = self.c.folders.run(run.number)
        living = {each.name for each in self.c.observer.members.values() if each.alive is not False}
        living |= {f"{name}.{life + 1}" for name in living for life in range(len(run.lives.get(name, ())))}

        def told(path):
            act.waiting_for = [f"{path.name}: its events go to a closed file"]

        left_open, files = {}, []
        try:
            left_open = await event_files.recover_open(self.c.rodeo, folder, living, told)
            self.c.telling.left_open = await asyncio.to_thread(event_files.still_open, left_open)
            files = await asyncio.to_thread(event_files.files_of, folder)
        except OSError as error:
            LOG.warning("files of run %d: %s", run.number, error)
            return files, list(left_open.values())
        event_files.mark_verified(files, folder, reports, kinds)
        host = self.c.hosts.get("local") or next(iter(self.c.hosts.values()))
        act.waiting_for = ["reports, files and sums"]
        return await event_files.hashed(host, files), list(left_open.values())

    async def _leave_run_json(self, number):
        """Writes run.json from the room's own file, which needs no server. The row closes even if the disk is full."""
        from rodeo.control.database import run_json

        try:
            record = await self.c.database.here.run(number)
            if not await asyncio.to_thread(run_json.keep, self.c.folders.run(number), record):
                LOG.error(
                    "%s belongs to another run %d, and is not overwritten",
                    self.c.folders.run(number) / run_json.NAME,
                    number,
                )
        except (Refused, OSError) as error:
            LOG.warning("run.json of run %d: %s", number, getattr(error, "what", error))


def _has_files(folder):
    return folder.is_dir() and any(each.is_file() for each in folder.rglob("*"))


__all__ = ["Closing", "directories_of_files"]
