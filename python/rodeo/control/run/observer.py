"""Reads every process of the system: asks its launcher and the process itself. Other modules decide."""

import asyncio
import logging
import time

from rodeo.control.processes.supervised import Supervised
from rodeo.control.refused import Refused
from rodeo.control.run.command_lock import cancelled

LOG = logging.getLogger("rodeo.control")
POLL_S = 1.0  # a process that takes longer has missed a poll


class Observer:
    """The controller's loop uses it. A look holds `lock`, and so does code that launches or forgets processes."""

    def __init__(self, system, hosts, patience=1.0):
        self.system, self.hosts, self.patience = system, hosts, patience
        self.members = {member.name: Supervised(member, patience) for member in system.members}
        self.lock = asyncio.Lock()
        self.strangers = ()  # running processes that are missing in the system file
        self.silent_hosts = {}  # name -> why
        self.changed = False  # a process has begun or ended since the reader cleared this
        self.host_seen_ns = {}
        self._answers = {}  # host -> monotonic time of its last answer
        self._asking = {}

    def host_of(self, name):
        return self.hosts[self.members[name].member.host]

    async def look(self, statuses=True):
        """Reads all hosts once and, with `statuses`, all processes."""
        async with self.lock:
            self.changed |= await self._list()
            if statuses:
                await self._ask_all()

    async def _list(self):
        names = list(self.hosts)
        answers = await asyncio.gather(*(self._list_of(self.hosts[name]) for name in names))
        changed, strangers, now_s = False, [], time.monotonic()
        for name, answer in zip(names, answers):
            mine = [each for each in self.members.values() if each.member.host == name]
            if answer is None:
                for each in mine:
                    each.host_silent()
                continue
            self.silent_hosts.pop(name, None)
            self.host_seen_ns[name] = time.time_ns()
            by_name = {each.name: each for each in answer}
            for each in mine:
                changed |= each.listed(by_name.pop(each.name, None), now_s)
            strangers += [
                each.name for each in by_name.values() if each.state != "exited" and each.name not in self.members
            ]
        self.strangers = tuple(sorted(strangers))
        return changed

    async def _list_of(self, host):
        try:
            return await asyncio.wait_for(host.list(), 2 * POLL_S * self.patience)
        except (Refused, OSError, asyncio.TimeoutError) as error:
            self.silent_hosts[host.name] = getattr(error, "what", None) or str(error) or "no answer"
            return None

    async def _ask_all(self):
        """Asks all processes, and waits only for those that answered last time: a process that hangs must not delay the others."""
        waited = []
        for each in self.members.values():
            if each.alive is False or each.member.kind == "program" or each.name in self._asking:
                continue
            task = asyncio.ensure_future(self._ask_one(each))
            self._asking[each.name] = task
            task.add_done_callback(lambda _, name=each.name: self._asking.pop(name, None))
            if each.alive is None and each.answered_s is None:
                continue  # the process is on a silent host
            if each.unanswered == 0 or each.answered_s is None:
                waited.append(
                    task
                )  # a process without any answer is being launched; without a socket the request fails at once
        if waited:
            await asyncio.wait(waited)

    async def _ask_one(self, each):
        pid = each.pid
        try:
            status = await self.hosts[each.member.host].ask(each.name, {"command": "status"}, POLL_S * self.patience)
        except Refused as refused:
            if each.pid == pid:
                each.not_answered(each.answered_s is not None)
            LOG.debug("%s does not answer: %s", each.name, refused.what)
            return
        except Exception:
            LOG.exception("asking %s", each.name)
            return
        if each.pid == pid:
            each.answered(status, time.monotonic(), time.time_ns())

    def looks(self):
        """Returns a Look at each member, in the order of the system file."""
        now_s = time.monotonic()
        return tuple(each.snapshot(now_s) for each in self.members.values())

    async def close(self):
        await cancelled(self._asking.values())
