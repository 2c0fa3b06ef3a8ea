"""The door of a control room, before all routes: it identifies each client, and admits or refuses it. Refusals go to the audit.

An ASGI application around another one. It puts `rodeo.actor`, `rodeo.session` (browsers only) and `rodeo.way` (unix or tcp) into the scope."""

import contextlib
import os
import pwd
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs, unquote

from rodeo.control.http import security
from rodeo.control.http.command_gate import Actor
from rodeo.control.http.live_messages import encoded
from rodeo.control.http.request_limits import Shares
from rodeo.control.refused import Refused

LONGEST_BODY = 64 * 1024
STATUS = {
    "control.session": 401,
    "control.token": 403,
    "control.role": 403,
    "control.csrf": 403,
    "control.origin": 403,
    "control.host": 403,
    "control.unknown_command": 404,
    "control.no_run": 404,
    "control.no_run_number": 404,
    "control.no_route": 404,
    "control.no_process": 404,
    "control.no_alarm": 404,
    "control.no_rule": 404,
    "control.argument": 400,
    "config.bad_json": 400,
    "control.too_long": 413,
    "control.database": 503,
    "control.too_many": 503,
    "control.package": 500,
    "control.internal": 500,
}


def status_of(refused: Refused) -> int:
    """The HTTP status of a refusal; 409 if the state of the system forbids the request."""
    return STATUS.get(refused.code, 409)


def body_of(refused: Refused) -> bytes:
    return encoded({"code": refused.code, "what": refused.what, "next": refused.next}).encode()


class Door:
    """`way`: unix (the kernel knows the user, who has all rights) or tcp (tokens and sessions). `port` is the port in a browser's `Host`."""

    def __init__(self, app, desk, sessions, way, port=0):
        self.app, self.desk, self.sessions, self.way = app, desk, sessions, way
        self.hosts = security.hosts_of(port)
        self.cookie = f"rodeo-{port}"
        self.refusal_limit = security.RefusalLimit()
        self.shares = Shares()

    async def __call__(self, scope, receive, send):
        if scope["type"] not in ("http", "websocket"):
            return await self.app(scope, receive, send)
        headers = _headers(scope)
        with contextlib.ExitStack() as share:
            try:
                if (answer := self._admit(scope, headers)) is not None:
                    return await _respond(scope, send, *answer)
                share.enter_context(self._share(scope))
            except Refused as refused:
                await self._audit_refusal(scope, headers, refused)
                return await _refuse(scope, receive, send, refused, headers)
            return await self.app(scope, receive, _with_headers(send) if scope["type"] == "http" else send)

    def _share(self, scope):
        """Bounds the concurrent requests of each role, and of each session or token of a role."""
        if self.way == "unix":
            return self.shares.taken("unix", None)
        session = scope["rodeo.session"]
        return self.shares.taken(scope["rodeo.actor"].role, "token" if session is None else id(session))

    def _admit(self, scope, headers):
        """Puts the client's identity into the scope. Returns a complete answer (status, headers, body), or None to continue. Refused: not admitted."""
        if self.way == "unix":
            scope["rodeo.way"], scope["rodeo.session"] = "unix", None
            scope["rodeo.actor"] = _named(headers, login_name(), "expert", "unix")
            _check_length(headers)
            return None
        scope["rodeo.way"] = "tcp"
        security.check_addressed(headers.get("host"), headers.get("origin"), self.hosts)
        now = self.desk.monotonic()
        address = "%s:%s" % tuple(scope["client"][:2]) if scope.get("client") else ""
        post = scope["type"] == "http" and scope["method"] not in ("GET", "HEAD")
        if (bearer := headers.get("authorization")) is not None:
            role = self.sessions.role_of(bearer.removeprefix("Bearer ").strip())
            if role is None:
                raise Refused(
                    "control.token",
                    "the token of the header Authorization is wrong",
                    "rodeo control status --addresses",
                )
            scope["rodeo.session"], scope["rodeo.actor"] = None, _named(headers, self.sessions.name, role, address)
        elif not post and scope["path"] == "/" and b"token=" in scope["query_string"] and scope["type"] == "http":
            token = parse_qs(scope["query_string"].decode("latin-1")).get("token", [""])[0]
            cookie = self.sessions.open(token, now)
            return (
                303,
                {"Location": "/", "Set-Cookie": f"{self.cookie}={cookie}; Path=/; HttpOnly; SameSite=Strict"},
                b"",
            )
        else:
            session = self.sessions.find(_cookie(headers.get("cookie", ""), self.cookie), now)
            if scope["type"] == "websocket" and "origin" not in headers:
                raise Refused(
                    "control.origin",
                    "a WebSocket of a session does not name its page",
                    "programs send Authorization: Bearer TOKEN",
                )
            if post:
                security.check_csrf(session, headers.get("x-rodeo-csrf"))
            scope["rodeo.session"], scope["rodeo.actor"] = (
                session,
                Actor(session.name, "browser", session.role, address),
            )
        _check_length(headers)
        return None

    async def _audit_refusal(self, scope, headers, refused):
        """Writes an audit row for a refusal. Its origin is "door", because the client is not identified."""
        if refused.code == "control.session":  # an open page asks every few seconds, which is not an attempt to enter
            return
        not_recorded = self.refusal_limit.admit(self.desk.monotonic())
        if not_recorded is not None:
            besides = f"; {not_recorded} earlier refusals were not recorded" if not_recorded else ""
            address = "%s:%s" % tuple(scope["client"][:2]) if scope.get("client") else self.way
            await self.desk.audit(
                Actor(address, "door", "none", address),
                f"{scope.get('method', 'WEBSOCKET')} {scope['path'][:40]}",
                {},
                "refused",
                f"{refused.code}: {refused.what}{besides}",
            )


def login_name() -> str:
    """The login name of this process's user; only this user can reach the Unix socket."""
    with contextlib.suppress(KeyError):
        return pwd.getpwuid(os.geteuid()).pw_name
    return f"uid-{os.geteuid()}"


def _headers(scope):
    """Headers by name. Repeated headers are joined with a comma, so that a repeated Host or Origin is invalid."""
    found = {}
    for name, value in scope["headers"]:
        name, value = name.decode("latin-1").lower(), value.decode("latin-1")
        found[name] = value if name not in found else f"{found[name]}, {value}"
    return found


def _named(headers, name, role, address):
    whence = headers.get("x-rodeo-client", "python")
    if "x-rodeo-name" in headers:
        name = security.check_name(unquote(headers["x-rodeo-name"]))
    return Actor(name, whence if whence in ("shell", "python") else "python", role, address)


def _cookie(header, name):
    cookies = SimpleCookie()
    with contextlib.suppress(CookieError):
        cookies.load(header)
    return cookies[name].value if name in cookies else None


def _check_length(headers):
    if (length := headers.get("content-length")) is not None and not (
        length.isascii() and length.isdigit() and int(length[:12]) <= LONGEST_BODY
    ):
        raise Refused(
            "control.too_long", f"a request may have at most {LONGEST_BODY} bytes, and this one has {length[:20]}", ""
        )


def _with_headers(send):
    async def wrapped(message):
        if message["type"] == "http.response.start":
            named = {name.lower() for name, _ in message.get("headers", [])}
            message = {
                **message,
                "headers": [
                    *message.get("headers", []),
                    *(
                        (name.lower().encode(), value.encode())
                        for name, value in security.HEADERS.items()
                        if name.lower().encode() not in named
                    ),
                ],
            }
        await send(message)

    return wrapped


async def _respond(scope, send, status, headers, body):
    kind = "websocket.http.response" if scope["type"] == "websocket" else "http.response"
    send = _with_headers(send) if scope["type"] == "http" else send
    await send(
        {
            "type": f"{kind}.start",
            "status": status,
            "headers": [
                *((name.lower().encode(), value.encode()) for name, value in headers.items()),
                (b"content-length", str(len(body)).encode()),
            ],
        }
    )
    await send({"type": f"{kind}.body", "body": body})


async def _refuse(scope, receive, send, refused, headers):
    if scope["type"] == "http" and "text/html" in headers.get("accept", "") and not scope["path"].startswith("/api/"):
        text = f'<!doctype html><html lang=en><title>Rodeo</title><h1>Not let in</h1><p>{_html(refused.what)}.<p>{_html(refused.next)}<p><a href="/">Try again</a>'
        return await _respond(
            scope, send, status_of(refused), {"Content-Type": "text/html; charset=utf-8"}, text.encode()
        )
    if scope["type"] == "websocket":
        await receive()
    await _respond(
        scope, send, status_of(refused), {"Content-Type": "application/json", "Connection": "close"}, body_of(refused)
    )


def _html(text):
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
