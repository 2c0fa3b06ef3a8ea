"""The routes of a control room: its state as JSON, the commands, the WebSocket and the page. openapi.json describes them; a test compares the two."""

import asyncio
import contextlib
import inspect
import json
import logging
import mimetypes
import os
from pathlib import Path

from rodeo.control.http import security
from rodeo.control.http.auth import LONGEST_BODY, Door, body_of, status_of
from rodeo.control.http.live_messages import Feed, encoded
from rodeo.control.paths import needed
from rodeo.control.processes import log_records
from rodeo.control.refused import Refused

LOG = logging.getLogger("rodeo.control.http.server")
HERE = Path(__file__).parents[1]
PAGE = (HERE / "page").resolve()  # build/python links to the sources
HELP = "docs/index.html"  # the first page of the documentation site
NO_HELP = """<!doctype html><html lang="en"><meta charset="utf-8"><title>No documentation</title>
<h1>The documentation was not built for this copy</h1>
<p>In a clone, <code>tools/docs</code> builds it; then load this page again. Rodeo's packages have it.</p>
<p><a href="/">Back to the control room</a></p></html>
"""
LONGEST_WAIT_S = 30.0
BODY_S = 10.0  # a request whose body takes longer is refused
ENDED = 4401  # the close code of a WebSocket whose session has ended


class Server:
    """One application per room; door() wraps it for each entrance. `addresses` by role, for experts on the Unix socket."""

    def __init__(self, controller, desk, sessions):
        self.controller, self.desk, self.sessions = controller, desk, sessions
        self.addresses = {}
        self.ending = asyncio.Event()
        self.app = self._application()

    def door(self, way, port=0):
        """The application behind its door, for uvicorn."""
        return Door(self.app, self.desk, self.sessions, way, port)

    # Each route: method, path, handler. openapi.json uses the same paths.
    def routes(self):
        return [
            ("GET", "/api/session", self.session),
            ("POST", "/api/session/name", self.session_name),
            ("POST", "/api/session/end", self.session_end),
            ("GET", "/api/state", self.state),
            ("POST", "/api/commands/{name}", self.command),
            ("GET", "/api/runs", self.runs),
            ("GET", "/api/runs/compare", self.compare),
            ("GET", "/api/runs/{number}", self.run),
            ("GET", "/api/runs/{number}/configuration", self.run_configuration),
            ("GET", "/api/series", self.series),
            ("GET", "/api/links", self.links),
            ("GET", "/api/logs", self.logs),
            ("GET", "/api/configuration", self.configuration),
            ("GET", "/api/alarms", self.alarms),
            ("GET", "/api/rules", self.rules),
            ("GET", "/api/metrics", self.metrics),
            ("GET", "/api/audit", self.audit),
            ("GET", "/api/notes", self.notes),
            ("GET", "/api/addresses", self.by_role),
            ("GET", "/api/openapi.json", self.openapi),
        ]

    def _application(self):
        starlette = needed("starlette.applications")
        routing = needed("starlette.routing")
        routes = [
            routing.Route(path, self._answered(handler), methods=[method]) for method, path, handler in self.routes()
        ]
        routes += [
            routing.WebSocketRoute("/api/live", self.live),
            routing.Route("/api/{rest:path}", self._answered(self.no_route), methods=["GET", "POST"]),
            routing.Route("/help/{path:path}", self._answered(self.help), methods=["GET"]),
            routing.Route("/{path:path}", self._answered(self.page), methods=["GET"]),
        ]
        return starlette.Starlette(routes=routes, exception_handlers={404: self._plain_error, 405: self._plain_error})

    def _answered(self, handler):
        """Makes a handler an endpoint: its result becomes JSON, a refusal an HTTP status."""
        Response = needed("starlette.responses").Response

        async def endpoint(request):
            try:
                result = handler(request)
                result = await result if inspect.isawaitable(result) else result
            except Refused as refused:
                return Response(body_of(refused), status_of(refused), media_type="application/json")
            except Exception as error:
                LOG.exception("%s %s", request.method, request.url.path)
                refused = Refused(
                    "control.internal",
                    f"{type(error).__name__}: {error}",
                    "the log of the control room has the details",
                )
                return Response(body_of(refused), 500, media_type="application/json")
            return result if isinstance(result, Response) else Response(encoded(result), media_type="application/json")

        return endpoint

    async def _plain_error(self, request, error):
        refused = Refused(
            "control.no_route",
            f"there is no {request.method} {request.url.path[:80]}",
            "GET /api/openapi.json lists all routes",
        )
        return needed("starlette.responses").Response(
            body_of(refused), error.status_code, media_type="application/json"
        )

    # The client
    def session(self, request):
        session, actor = request.scope["rodeo.session"], request.scope["rodeo.actor"]
        return {
            "name": actor.name,
            "role": actor.role,
            "whence": actor.whence,
            "csrf": session.csrf if session else None,
            "system": self.controller.document()["system"]["name"],
        }

    async def session_name(self, request):
        session, actor = _browser(request), request.scope["rodeo.actor"]
        name = security.check_name((await _json(request)).get("name"))
        await self.desk.audit(actor, "name", {"name": name}, "done", "")
        session.name = name
        return {"name": name}

    async def session_end(self, request):
        session = _browser(request)
        self.sessions.end(session)
        await self.desk.audit(request.scope["rodeo.actor"], "log out", {}, "done", "")
        return {}

    def by_role(self, request):
        if request.scope["rodeo.way"] != "unix":
            raise Refused(
                "control.role",
                "addresses with their tokens are available only on the Unix socket",
                "rodeo control status --addresses",
            )
        return {"addresses": self.addresses}

    # State
    async def state(self, request):
        after, wait = _number(request, "after", None, 0), _number(request, "wait", 0, 0, LONGEST_WAIT_S, kind=float)
        if after is not None and wait:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait):
                    await self._changed(after)
        return self.controller.document()

    async def _changed(self, after):
        """Returns when the document has another sequence than `after`, or the room ends."""
        waits = [asyncio.ensure_future(self.controller.wait_change(after)), asyncio.ensure_future(self.ending.wait())]
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for each in waits:
                each.cancel()

    async def live(self, socket):
        """Serves one WebSocket. A slow client delays only itself: its next message is made after it has accepted the last."""
        disconnected = needed("starlette.websockets").WebSocketDisconnect
        session, feed, clock = socket.scope["rodeo.session"], Feed(), self.desk.monotonic
        over = asyncio.Event()
        await socket.accept()
        if session is not None:
            if session.ended:
                over.set()
            session.on_end.append(over.set)
        reader = asyncio.ensure_future(self._listen(socket))
        ends = [reader, asyncio.ensure_future(over.wait()), asyncio.ensure_future(self.ending.wait())]
        try:
            while not any(each.done() for each in ends):
                sending = asyncio.ensure_future(socket.send_text(feed.next(self.controller.document(), clock())))
                await asyncio.wait([sending, *ends], return_when=asyncio.FIRST_COMPLETED)
                if not sending.done():
                    sending.cancel()
                    break
                sending.result()
                if session is not None:
                    session.used_s = clock()
                at_least, at_most = feed.wait_s(clock())
                await asyncio.wait(ends, timeout=at_least, return_when=asyncio.FIRST_COMPLETED)
                change = asyncio.ensure_future(self.controller.wait_change(feed.sequence))
                await asyncio.wait(
                    [change, *ends], timeout=max(0.0, at_most - at_least), return_when=asyncio.FIRST_COMPLETED
                )
                change.cancel()
            code = ENDED if over.is_set() else 1001 if self.ending.is_set() else 1008
            with contextlib.suppress(disconnected, RuntimeError, OSError, TimeoutError):
                async with asyncio.timeout(2.0):
                    await socket.close(code)
        except (disconnected, RuntimeError, OSError):
            pass  # the client has disconnected
        finally:
            if session is not None and over.set in session.on_end:
                session.on_end.remove(over.set)
            for each in ends:
                each.cancel()
            await asyncio.gather(*ends, return_exceptions=True)

    async def _listen(self, socket):
        """Handles the holder's renewals; returns at the end of the connection, or on any other message."""
        while True:
            message = await socket.receive()
            if message["type"] != "websocket.receive":
                return
            try:
                fence = json.loads(message.get("text") or "")["renew"]
                session, actor = socket.scope["rodeo.session"], socket.scope["rodeo.actor"]
                if session is not None and session.name != actor.name:  # the user has changed the name
                    actor = type(actor)(session.name, actor.whence, actor.role, actor.address)
                with contextlib.suppress(Refused):
                    await self.desk.do(actor, "renew", {}, fence)
            except (ValueError, KeyError, TypeError, RecursionError):
                return

    async def series(self, request):
        names = [each for each in request.query_params.get("names", "").split(",") if each][:40]
        if not names:  # all series would block the controller's loop for seconds
            raise Refused(
                "control.argument",
                "`names` contains no name of a series",
                "for example ?names=trigger_rate_hz,readout.rate_hz; 40 at most",
            )
        return {"series": await _awaited(self.controller.series(names, _number(request, "seconds", 300, 1, 86400)))}

    async def links(self, request):
        return {"links": await _awaited(self.controller.links(_text(request, "process")))}

    async def logs(self, request):
        lines = await _awaited(
            self.controller.log_lines(
                _text(request, "process") or None,
                lines=_number(request, "lines", 100, 1, 2000),
                search=_text(request, "search"),
                run=_number(request, "run", None, 1),
                level=_choice(request, "level", log_records.LEVELS, "debug"),
                audience=_choice(request, "audience", log_records.AUDIENCES, "developer"),
                since_ns=_number(request, "since_ns", None, 0, 2**63),
                fold=_choice(request, "fold", ("yes", "no"), "yes") == "yes",
            )
        )
        return {"lines": lines}

    async def configuration(self, request):
        return await _awaited(self.controller.configuration())

    # History
    async def runs(self, request):
        filters = {
            name: request.query_params[name][:100]
            for name in ("state", "condition", "type", "system")
            if request.query_params.get(name)
        }
        return {
            "runs": await _awaited(
                self.controller.reads.runs(
                    _number(request, "limit", 50, 1, 1000), _number(request, "before", None, 1), filters
                )
            )
        }

    async def run(self, request):
        return await _awaited(self.controller.reads.run(_run_number(request.path_params["number"])))

    async def run_configuration(self, request):
        return await _awaited(self.controller.reads.configuration(_run_number(request.path_params["number"])))

    async def compare(self, request):
        return await _awaited(
            self.controller.reads.diff(_run_number(_text(request, "a")), _run_number(_text(request, "b")))
        )

    async def alarms(self, request):
        return {"alarms": await _awaited(self.controller.reads.alarm_history(_number(request, "limit", 100, 1, 1000)))}

    def rules(self, request):
        return {"rules": self.controller.rules()}

    def metrics(self, request):
        return needed("starlette.responses").Response(
            self.controller.metrics(), media_type="text/plain; version=0.0.4; charset=utf-8"
        )

    async def audit(self, request):
        return {"audit": await _awaited(self.controller.reads.audit(_number(request, "limit", 100, 1, 1000)))}

    async def notes(self, request):
        return {"notes": await _awaited(self.controller.reads.notes(_number(request, "run", None, 1)))}

    # Commands and files
    async def command(self, request):
        arguments = await _json(request)
        fence = arguments.pop("fence", None)
        return await self.desk.do(request.scope["rodeo.actor"], request.path_params["name"], arguments, fence)

    def no_route(self, request):
        raise Refused(
            "control.no_route",
            f"there is no {request.method} {request.url.path[:80]}",
            "GET /api/openapi.json lists all routes",
        )

    def openapi(self, request):
        return json.loads((HERE / "openapi.json").read_text())

    def page(self, request):
        """Files of the page; any other path returns index.html, and the page evaluates the path."""
        responses = needed("starlette.responses")
        path = request.path_params["path"]
        file = (PAGE / path).resolve()
        if not path or ("." not in path.rsplit("/", 1)[-1] and not file.is_file()):
            file = PAGE / "index.html"
        if not file.is_relative_to(PAGE.resolve()) or not file.is_file():
            if file == PAGE / "index.html":
                raise Refused("control.no_route", "the page was not built for this copy", "web/build builds it")
            raise Refused("control.no_route", f"the page has no file /{path[:80]}", "")
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        return responses.Response(file.read_bytes(), media_type=kind, headers={"Cache-Control": "no-cache"})

    def help(self, request):
        """Files of the documentation site."""
        responses = needed("starlette.responses")
        path, site = request.path_params["path"], Path(os.environ.get("RODEO_SITE") or "none").resolve()
        if not (site / HELP).is_file():
            return responses.HTMLResponse(NO_HELP, 404)
        if not path:
            return responses.RedirectResponse(f"/help/{HELP}")
        file = (site / path).resolve()
        if not file.is_relative_to(site) or not file.is_file():
            raise Refused(
                "control.no_route", f"the documentation has no file /{path[:80]}", f"/help/{HELP} is its first page"
            )
        kind = mimetypes.guess_type(file.name)[0] or "application/octet-stream"
        rules = security.HEADERS["Content-Security-Policy"].replace(
            "form-action 'none'", "form-action 'self'"
        )  # its search
        headers = {"Cache-Control": "no-cache", "Content-Security-Policy": rules}
        return responses.FileResponse(file, media_type=kind, headers=headers)


def _browser(request):
    if request.scope["rodeo.session"] is None:
        raise Refused("control.session", "only a browser has a session", "")
    return request.scope["rodeo.session"]


async def _awaited(value):
    return await value if inspect.isawaitable(value) else value


def _no_constant(text):
    raise ValueError(f"{text} is not a number in JSON")


async def _json(request) -> dict:
    """The body, a JSON object of at most LONGEST_BODY bytes; an empty body means {}."""
    body = bytearray()
    try:
        async with asyncio.timeout(BODY_S):
            async for part in request.stream():
                body += part
                if len(body) > LONGEST_BODY:
                    raise Refused("control.too_long", f"a request may have at most {LONGEST_BODY} bytes", "")
    except TimeoutError:
        raise Refused("control.too_long", f"the request was not complete after {BODY_S:.0f} s", "") from None
    if not body.strip():
        return {}
    if request.headers.get("content-type", "").split(";")[0].strip().lower() != "application/json":
        raise Refused("control.argument", "the body is not application/json", "")
    try:
        value = json.loads(bytes(body), parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        raise Refused("config.bad_json", f"the body is not JSON: {str(error)[:100]}", "") from None
    if not isinstance(value, dict):
        raise Refused("control.argument", "the body is not a JSON object", "")
    return value


def _text(request, name):
    return request.query_params.get(name, "")[:200]


def _choice(request, name, choices, default):
    text = _text(request, name) or default
    if text not in choices:
        raise Refused("control.argument", f"`{name}` must be one of {', '.join(choices)}, not `{text[:20]}`", "")
    return text


def _run_number(text):
    if not (text.isascii() and text.isdigit() and 0 < int(text[:18])):
        raise Refused("control.argument", f"`{text[:20]}` is not a run number", "")
    return int(text[:18])


def _number(request, name, default, least, most=2**53, kind=int):
    text = request.query_params.get(name)
    if text is None:
        return default
    try:
        value = kind(text[:20])
    except ValueError:
        value = None
    if value is None or not least <= value <= most:
        raise Refused("control.argument", f"`{name}` is not a number from {least} to {most:g}", "")
    return value
