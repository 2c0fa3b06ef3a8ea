"""A control room for Python: the commands of the page and the shell as calls that wait until the command is done.

    import rodeo.control
    with rodeo.control.connect() as room:
        room.launch()
        run = room.start(comment="cosmics")["run"]
        room.wait(events=10_000)
        room.stop()

A call raises Refused if the room refuses the command.
"""

import contextlib
import threading
import time
from urllib.parse import quote

from rodeo.control import paths
from rodeo.control.refused import Refused

RENEW_S = 10.0
CONNECT_S = 10.0
READ_S = 60.0  # time-out of requests other than commands; commands have none


def connect(system=None, *, name=None, whence="python"):
    """A Client of the control room of `system` (None: the only one of this user). `name`: your name, if not your login name.
    Refused: control.no_room, control.which_room."""
    running = paths.rooms()
    if system is None:
        if len(running) > 1:
            raise Refused(
                "control.which_room",
                f"{len(running)} control rooms run: {', '.join(running)}",
                'name one: --system NAME, or connect("NAME")',
            )
        system = running[0] if running else None
    if system is None or system not in running:
        raise Refused(
            "control.no_room",
            f"no control room {f'of `{system}` ' if system else ''}runs"
            + (f"; {', '.join(running)} does" if running and system else ""),
            "rodeo control SYSTEM starts one",
        )
    return Client(paths.room_socket(system), system, name=name, whence=whence)


class Client:
    """Every command returns a small dict, or raises Refused(code, what, next). Times in seconds. One thread at a time.
    A command that needs control takes it if it is free. After take() control is renewed in the background until release() or leave()."""

    def __init__(self, socket, system, *, name=None, whence="python"):
        self._httpx = paths.needed("httpx")
        self.system, self._socket = system, socket
        self._headers = {"X-Rodeo-Client": whence, **({"X-Rodeo-Name": quote(name)} if name else {})}
        self._http = self._open()
        self._fence, self._renewer, self._over = None, None, threading.Event()

    def _open(self):
        return self._httpx.Client(
            transport=self._httpx.HTTPTransport(uds=str(self._socket)),
            base_url="http://room",
            headers=self._headers,
            timeout=self._httpx.Timeout(READ_S, connect=CONNECT_S),
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.leave()

    def leave(self):
        """Gives back control, if it was taken here, and disconnects. The system continues unchanged; the end of a `with` calls this."""
        if self._fence is not None:
            with contextlib.suppress(Refused):
                self.release()
        self._stop_renewing()
        self._http.close()

    # Commands: see state/commands.py
    def launch(self, *, set=()):
        """Starts the processes and waits until they are ready. `set` overrides their configurations: {"KEY" or "CLASS:KEY": value} or a list of "KEY=VALUE"."""
        return self.command("launch", set=_settings(set))

    def start(self, *, run_type="physics", comment="", set=None):
        """Begins a run and waits until every readout has built an event. Returns {"run": number, ...}. With `set` it first launches with these settings."""
        if set is not None:
            self.launch(set=set)
        return self.command("start", run_type=run_type, comment=comment)

    def advance(self, scan_step=False):
        """Begins the next luminosity block at the next trigger; with `scan_step` also the next scan step."""
        return self.command("advance", scan_step=scan_step)

    def pause(self):
        return self.command("pause")

    def resume(self):
        return self.command("resume")

    def stop(self, *, reason=""):
        """Ends the run in order, and waits until its files are closed and its sums are known. Returns {"run": number, ...}."""
        return self.command("stop", reason=reason)

    def go_on(self):
        """After the loss of an essential process: continues without its links."""
        return self.command("go_on")

    def abort(self):
        """Ends the run at once. Events are lost."""
        return self.command("abort", confirm=True)

    def recover(self):
        """Leaves ERROR."""
        return self.command("recover")

    def close(self):
        """Ends all processes in order. (leave() ends this client.)"""
        return self.command("close")

    def take(self, *, at_once=False):
        """Takes control, and keeps it until release() or leave(). `at_once`: also from its holder (experts)."""
        self._stop_renewing()
        self._fence = None
        result = self.command("take", at_once=at_once)
        self._renew_from(result["fence"])
        return result

    def ask(self, *, wait=False):
        """Asks for control; with `wait` returns when it is ours (after 60 s at most, unless another user takes it)."""
        result = self.command("ask")
        if wait and result["seconds"]:
            mine = self.session()["name"]
            self.wait(
                lambda document: mine in (document["lease"]["holder"], None) or document["lease"]["asked_by"] != mine,
                timeout=120.0,
            )
            result = self.command("take", at_once=False)
        if not result.get("seconds"):
            self._renew_from(result["fence"])
        return result

    def release(self):
        """Gives control back."""
        self._stop_renewing()
        fence, self._fence = self._fence, None
        return self.command("release", **({"fence": fence} if fence is not None else {}))

    def ack(self, cause):
        return self.command("ack", cause=cause)

    def shelve(self, cause, *, minutes=30, back=False):
        """Shelves an alarm for this number of minutes; `back` unshelves it."""
        return self.command("shelve", cause=cause, minutes=minutes, back=back)

    def test_alarm(self, rule):
        """Raises the alarm of a rule for ten seconds."""
        return self.command("alarm_test", rule=rule)

    def note(self, text, *, run=None):
        return self.command("note", text=text, run=run)

    def quality(self, subsystem, verdict, *, run=None, from_ns=None, to_ns=None, confirm=False):
        """Records how good the data of a subsystem are, from and to a time in UTC ns. `verdict`: good, bad, test or none. `run` None: the open run, else the
        last one. `confirm`: confirms the verdict of another person."""
        return self.command(
            "quality", subsystem=subsystem, verdict=verdict, run=run, from_ns=from_ns, to_ns=to_ns, confirm=confirm
        )

    def taint(self, text, *, run=None, back=False):
        """Marks a run TAINTED, and notes why; `back` removes the mark."""
        return self.command("taint", text=text, run=run, back=back)

    def command(self, name, **arguments):
        """Any command by name. Waits until it is done."""
        if self._fence is not None:
            arguments.setdefault("fence", self._fence)
        return self._answer(
            "POST",
            f"/api/commands/{quote(name, safe='')}",
            json=arguments,
            timeout=self._httpx.Timeout(None, connect=CONNECT_S),
        )

    # State
    def status(self):
        """The document: the whole state of the system (docs/reference/protocols/control-room.md)."""
        return self.get("/api/state")

    def session(self):
        """The name, role and origin that the room has for this client."""
        return self.get("/api/session")

    def addresses(self):
        """The page's address with its token for each role; empty if the room has no page."""
        return self.get("/api/addresses")["addresses"]

    def logs(
        self,
        process=None,
        *,
        lines=50,
        search="",
        run=None,
        level="debug",
        audience="developer",
        since_ns=None,
        fold=True,
    ):
        """The last log lines of a process (None: of all), oldest first: a list of {"time_ns", "level", "audience", "run", "process", "message", "fields",
        "repeats"}. `level`: the lowest level; `audience`: the reader; `run`: only of this run."""
        return self.get(
            "/api/logs",
            process=process or "",
            lines=lines,
            search=search,
            run=run,
            level=level,
            audience=audience,
            since_ns=since_ns,
            fold="yes" if fold else "no",
        )["lines"]

    def links(self, process):
        return self.get("/api/links", process=process)["links"]

    def rules(self):
        """The alarm rules, built-in ones first: name, about, severity, limit, times, of_last, do, enabled."""
        return self.get("/api/rules")["rules"]

    def alarm_history(self, *, limit=100):
        """Past alarms, the newest first."""
        return self.get("/api/alarms", limit=limit)["alarms"]

    def runs(self, *, limit=50, before=None, **filters):
        """Runs, newest first. Filters: state, condition, type."""
        return self.get("/api/runs", limit=limit, before=before, **filters)["runs"]

    def run(self, number):
        """All that the database contains about a run."""
        return self.get(f"/api/runs/{int(number)}")

    def audit(self, *, limit=100):
        """Rows of the audit, newest first."""
        return self.get("/api/audit", limit=limit)["audit"]

    def wait(self, condition=None, *, state=None, events=None, seconds=None, timeout=600.0):
        """Waits for condition(document), for a state, or for a number of events or seconds of the open run. Returns the document.
        Refused: control.timeout after `timeout` seconds; control.no_run if `events` or `seconds` is given and no run is open (any more)."""
        end, document = time.monotonic() + timeout, self.status()
        while not _is(document, condition, state, events, seconds):
            if (events is not None or seconds is not None) and document["run"] is None:
                raise Refused(
                    "control.no_run",
                    f"no run is open: {document['state']}" + (f", {document['what']}" if document.get("what") else ""),
                    "",
                )
            left = end - time.monotonic()
            if left <= 0:
                raise Refused(
                    "control.timeout",
                    f"waited {timeout:g} s: {document['state']}"
                    + (f", {document['what']}" if document.get("what") else ""),
                    "",
                )
            document = self.get("/api/state", after=document["sequence"], wait=round(min(left, 10.0), 3))
        return document

    def get(self, path, **parameters):
        """The answer to a GET request."""
        return self._answer(
            "GET", path, params={name: value for name, value in parameters.items() if value is not None}
        )

    def _answer(self, method, path, **options):
        try:
            answer = self._http.request(method, path, **options)
        except self._httpx.TransportError as error:
            raise Refused(
                "control.gone",
                f"the control room of `{self.system}` does not answer: {error or type(error).__name__}",
                "its processes continue without it; rodeo control SYSTEM starts it again",
            ) from None
        try:
            value = answer.json()
        except ValueError:
            raise Refused(
                "control.gone", f"the control room answered {answer.status_code} without JSON: {answer.text[:200]}", ""
            ) from None
        if answer.status_code >= 400:
            raise Refused(
                value.get("code", "control.internal"),
                value.get("what", f"status {answer.status_code}"),
                value.get("next", ""),
            )
        return value

    def _renew_from(self, fence):
        """Renews control from a thread with its own connection, until _stop_renewing() or until another user has control."""
        self._stop_renewing()
        self._fence, self._over = fence, threading.Event()

        def renew(over):
            with self._open() as http:
                while not over.wait(RENEW_S):
                    with contextlib.suppress(self._httpx.TransportError):
                        if http.post("/api/commands/renew", json={"fence": fence}).status_code == 409:
                            return

        self._renewer = threading.Thread(target=renew, args=(self._over,), daemon=True, name="renew control")
        self._renewer.start()

    def _stop_renewing(self):
        self._over.set()
        if self._renewer is not None:
            self._renewer.join(READ_S)
            self._renewer = None


def _settings(set):
    return (
        [f"{key}={_written(value)}" for key, value in set.items()]
        if isinstance(set, dict)
        else [str(each) for each in set]
    )


def _written(value):
    """A value in the syntax of a configuration."""
    return {True: "true", False: "false"}.get(value, value) if isinstance(value, bool) else value


def _is(document, condition, state, events, seconds):
    run = document["run"] or {}
    return (
        (condition is None or bool(condition(document)))
        and (state is None or document["state"] == state)
        and (events is None or (bool(run) and (document["numbers"]["events"] or 0) >= events))
        and (seconds is None or (run.get("seconds") or 0) >= seconds)
    )
