"""Starts and ends processes of the system through their hosts, and waits for them. The transitions decide which processes, and when."""

import asyncio
import contextlib
import logging
import signal
import time
from pathlib import Path

from rodeo.control import paths
from rodeo.control.processes import launch_spec, overrides
from rodeo.control.refused import Refused
from rodeo.control.state.system import CHECKS_AT_ONCE

LOG = logging.getLogger("rodeo.control")
ASK_S = 5.0  # a living process answers an order at once
STOP_S = 5.0  # an abort waits for an orderly end, and then sends TERM
GRACE_S = 5.0  # an abort waits after TERM, and then sends KILL
LAST_WORDS = 5  # number of shown log lines of a process that did not become ready


class Late(Exception):
    """A limit has passed."""


class Launching:
    """Used by the controller's loop; `c` is the controller."""

    def __init__(self, c):
        self.c = c
        self.lines = {}  # settings of commands: class or process (None: all) -> KEY=VALUE
        self.configured = {}  # class -> Configured of its first process
        self.before = {}  # class -> the same Configured without the settings of the control room
        self._checked = {}

    # Configuration
    def lines_of(self, member):
        """The `set` lines of a process: first those of its class, then those of commands, from general to specific."""
        return [
            *member.process_class.set,
            *self.lines.get(None, ()),
            *self.lines.get(member.process_class.name, ()),
            *(self.lines.get(member.name, ()) if member.name != member.process_class.name else ()),
        ]

    async def prepare(self, members):
        """Reads the current configurations of classes. Refused(control.configuration) before anything is launched."""
        firsts = {}
        for member in members:
            if member.kind != "program":
                firsts.setdefault(member.process_class.name, member)
        self.before |= await self._check_all(
            {
                name: (
                    member,
                    [overrides.replaced(line, member, self.c.system.name, "") for line in self.lines_of(member)],
                )
                for name, member in firsts.items()
            }
        )
        for each in members:
            if each.process_class.name in firsts:
                self.c.observer.members[each.name].writers = launch_spec.writers_of(
                    firsts[each.process_class.name], self.before[each.process_class.name]
                )
        self.configured |= await self._check_all(
            {name: (member, self._settings(member, self.before[name])) for name, member in firsts.items()}
        )

    def settings(self, member):
        """Returns the settings KEY=VALUE for a launch of the process now. Call it after prepare()."""
        configured = self.configured.get(member.process_class.name)
        return self._settings(member, configured) if configured else []

    def _settings(self, member, before):
        return overrides.settings_of(
            member,
            self.c.system.name,
            self.c.folders.place(member.name),
            before.values,
            self.lines_of(member),
            self._farm(),
            self.c.system.lumi_block_s,
        )

    def _farm(self):
        """The names of the farm's processes, from the configurations read last."""
        return overrides.farm_names(
            self.c.system.members, self.c.system.name, {name: found.values for name, found in self.before.items()}
        )

    async def _check_all(self, wanted):
        """Checks {name: (member, settings)}, CHECKS_AT_ONCE at a time, and returns {name: Configured}. Of several errors raises the first in this order."""
        several = asyncio.Semaphore(CHECKS_AT_ONCE)

        async def one(member, settings):
            async with several:
                return await self._check(member, settings)

        found = await asyncio.gather(*(one(*each) for each in wanted.values()), return_exceptions=True)
        for each in found:
            if isinstance(each, BaseException):
                raise each
        return dict(zip(wanted, found))

    async def _check(self, member, settings):
        """Checks a file; remembers the result until the file changes."""
        file = member.process_class.configuration
        with contextlib.suppress(OSError):
            found = file.stat()
            key = (str(file), found.st_mtime_ns, found.st_size, tuple(settings))
            if key not in self._checked:
                if len(self._checked) > 1000:
                    self._checked.clear()
                self._checked[key] = await launch_spec.configured(self.c.rodeo, file, settings)
            return self._checked[key]
        raise Refused("control.configuration", f"{file} cannot be read", "")

    # Begin
    async def launch(self, name, wanted=lambda: True):
        """Starts one process, after prepare(). Calls `wanted` directly before the start. Returns whether it was started. Refused if its host cannot."""
        from rodeo.control.processes.host import LaunchSpec

        each = self.c.observer.members[name]
        member, system, folders = each.member, self.c.system, self.c.folders
        host = self.c.observer.host_of(name)
        settings = self.settings(member)
        async with self.c.observer.lock:
            if each.alive or not wanted():
                return False
            with contextlib.suppress(Refused):
                await host.forget(name)
            each.forget()
            each.launches += 1
            if member.per_run:
                await asyncio.to_thread(folders.hold, name, each.writers)
            each.report, each.settings = str(folders.report(name, each.launches)), settings
            with contextlib.suppress(OSError):
                Path(each.report).unlink()
            each.expected_sha256, each.remembered = None, (None, None)
            runtime = paths.runtime_directory()
            spec = LaunchSpec(
                name=name,
                argv=launch_spec.command_line(
                    member,
                    self.c.rodeo,
                    system.name,
                    settings=settings,
                    report=each.report,
                    run_directory=folders.place(name),
                ),
                environment=launch_spec.environment(runtime),
                directory=str(system.file.parent),
                tag={
                    "system": system.name,
                    "class": member.process_class.name,
                    "launch": each.launches,
                    "report": each.report,
                    "settings": settings,
                },
                socket=overrides.socket_name(system.name, member),
                core=True,
            )
            each.launched_s = time.monotonic()
            try:
                process = await host.launch(spec)
            except Refused:
                each.launched_s = None
                raise
            each.pid, each.alive = process.pid, True
            return True

    async def ready(self, act, names, note=None):
        """Waits until each process is ready, has ended, or has passed the limit of its class. Returns {name: why} of processes that are not ready."""
        began_s, bad = time.monotonic(), {}

        def done():
            bad.clear()
            waiting = []
            for name in names:
                each = self.c.observer.members[name]
                phase, limit_s = each.phase, each.member.process_class.launch_limit_s
                if phase in ("ready", "running") and (each.alive is not False):
                    self._seen_ready(each)
                elif phase in ("failed", "done"):
                    bad[name] = each.exit.text() if each.exit else "reports that it has failed"
                elif phase == "absent" and each.launched_s is None:
                    bad[name] = "does not run"
                elif time.monotonic() - began_s > limit_s:
                    bad[name] = f"was not ready within {limit_s:g} s ({phase})"
                else:
                    waiting.append(f"{name}: {phase} {time.monotonic() - began_s:.1f} s")
            act.waiting_for = waiting
            return not waiting

        await self.c.until(act, done)
        for name in bad:
            bad[name] = await self._with_last_words(name, bad[name])
        return dict(bad)

    def _seen_ready(self, each):
        """Expects the configuration's checksum that a ready process reports from now on."""
        process = each.process
        each.expected_sha256 = each.expected_sha256 or process.get("configuration_sha256")

    async def _with_last_words(self, name, why):
        try:
            lines = await self.c.observer.host_of(name).tail(name, LAST_WORDS)
        except Refused:
            return why
        words = [line.strip() for line in lines if line.strip()]
        self.c.observer.members[name].said = "\n".join(words)
        return why + (f": {words[-1][:300]}" if words else "")

    # End
    async def ask_to_stop(self, name):
        """Asks a process to end in order. Returns whether the process has received the order."""
        each = self.c.observer.members[name]
        try:
            if each.member.kind == "program":
                await self.c.observer.host_of(name).signal(name, signal.SIGTERM)
            else:
                await self.c.observer.host_of(name).ask(name, {"command": "stop"}, ASK_S * self.c.patience)
        except Refused as refused:
            LOG.info("%s did not receive the stop: %s", name, refused.what)
            return False
        return True

    async def end_in_order(self, act, names, *, limit_s=None):
        """Asks processes to end and waits until they have, without a limit, or for `limit_s`, then Late. Asks again until a process answers."""
        told, began_s = set(), time.monotonic()

        async def done():
            alive = [name for name in names if self.c.observer.members[name].alive is not False]
            untold = [name for name in alive if name not in told and self.c.observer.members[name].unanswered == 0]
            for name, heard in zip(untold, await asyncio.gather(*(self.ask_to_stop(name) for name in untold))):
                if heard:
                    told.add(name)
            act.waiting_for = [
                f"{name}: {self.c.observer.members[name].phase} {time.monotonic() - began_s:.1f} s" for name in alive
            ]
            return not alive

        await self.c.until(act, done, limit_s=limit_s)

    async def end_at_once(self, act, names, *, stop_s=STOP_S, grace_s=GRACE_S):
        """Asks processes to end, after `stop_s` TERM, then KILL. Returns the names of those that still run."""
        sealed, act.sealed = act.sealed, True
        try:
            alive = [name for name in names if self.c.observer.members[name].alive is not False]
            with contextlib.suppress(Late):
                await self.end_in_order(act, alive, limit_s=stop_s * self.c.patience)
            alive = [name for name in alive if self.c.observer.members[name].alive is not False]
            act.waiting_for = [f"{name}: ended by TERM, then KILL" for name in alive]
            await asyncio.gather(*(self._end(name, grace_s) for name in alive))
            with contextlib.suppress(Late):
                await self.c.until(
                    act,
                    lambda: all(self.c.observer.members[name].alive is False for name in alive),
                    limit_s=5.0 * self.c.patience,
                )
            return [name for name in alive if self.c.observer.members[name].alive is not False]
        finally:
            act.sealed = sealed

    async def _end(self, name, grace_s):
        self.c.observer.members[name].ended_here = True
        try:
            await self.c.observer.host_of(name).end(name, grace_s)
        except Refused as refused:
            LOG.warning("%s was not ended: %s", name, refused.what)

    async def end_left(self, act, names):
        """Ends the descendants that outlived these processes: TERM, then KILL."""
        await self.c.look()
        names = [name for name in names if self.c.observer.members[name].left]
        act.waiting_for = [f"{name}: processes that it started are ended by TERM, then KILL" for name in names]
        for result in await asyncio.gather(
            *(self.c.observer.host_of(name).end(name, GRACE_S) for name in names), return_exceptions=True
        ):
            if isinstance(result, Exception):
                LOG.warning("descendants of an ended process were not ended: %s", getattr(result, "what", result))

    async def forget(self, names):
        """Makes launchers forget ended processes, and removes their leftover sockets. Returns sentences on sockets that cannot be removed and on descendants
        that still run."""
        left = []
        async with self.c.observer.lock:
            for name in names:
                each = self.c.observer.members[name]
                if each.alive is not False:
                    continue
                try:
                    await self.c.observer.host_of(name).forget(name)
                except Refused as refused:
                    if refused.code == "control.runs":
                        left.append(refused.what)
                        continue
                each.forget()
                if each.member.host == "local" and (socket := overrides.socket_name(self.c.system.name, each.member)):
                    left += await asyncio.to_thread(remove_socket, socket)
        return left


def remove_socket(name):
    """Removes an unused control socket and its lock. Returns the paths that stay. Blocks briefly."""
    path = paths.runtime_socket(name)
    lock = Path(f"{path}.lock")
    if not path.exists() and not lock.exists():
        return []
    held = paths.hold(path)
    if held is None:
        return [str(path)]
    paths.remove_held(path, held)
    return []
