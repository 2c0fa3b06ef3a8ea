"""Access to the page: by the printed address, which has a token, or by the cookie that a browser gets with it."""

import contextlib
import hmac
import secrets
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qs

from rodeo.control.refused import Refused
from rodeo.control.http.security import check_addressed, hosts_of

_PRINTED = "open the address as `rodeo events monitor` has printed it"


class Door:
    """An ASGI application that guards another one, which answers only GET and HEAD. Every start makes a new token; earlier tokens are invalid."""

    def __init__(self, application, port):
        self._application, self._hosts = application, hosts_of(port)
        self._cookie_name = f"rodeo-monitor-{port}"
        self.token, self._cookie = secrets.token_urlsafe(24), secrets.token_urlsafe(32)

    async def __call__(self, scope, receive, send):
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        try:
            opened = self._opens(scope, headers)
        except Refused as refused:
            return await _answer(send, 403, {"Content-Type": "text/plain; charset=utf-8"}, f"{refused}\n".encode())
        if not opened:
            return await self._application(scope, receive, send)
        # Redirects to an address without the token, so that neither the history nor the screen shows the token.
        cookie = f"{self._cookie_name}={self._cookie}; Path=/; HttpOnly; SameSite=Strict"
        return await _answer(send, 303, {"Location": "/", "Set-Cookie": cookie}, b"")

    def _opens(self, scope, headers):
        """True: the request has the token and must get the cookie. False: it has the cookie. Raises Refused if it has neither."""
        check_addressed(headers.get("host"), headers.get("origin"), self._hosts)
        if scope["path"] == "/" and (given := parse_qs(scope["query_string"].decode("latin-1")).get("token")):
            if not _same(given[0], self.token):
                raise Refused(
                    "monitor.token",
                    "the token of this address is wrong: it belongs to an earlier start or another monitor",
                    _PRINTED,
                )
            return True
        if not _same(_cookie(headers.get("cookie", ""), self._cookie_name), self._cookie):
            raise Refused("monitor.token", "this address lacks the token of the page", _PRINTED)
        return False


def _same(given, known):
    return hmac.compare_digest(given.encode(errors="replace"), known.encode())


def _cookie(header, name):
    cookies = SimpleCookie()
    with contextlib.suppress(CookieError):
        cookies.load(header)
    return cookies[name].value if name in cookies else ""


async def _answer(send, status, headers, body):
    headers = {
        **headers,
        "Cache-Control": "no-store",
        "X-Content-Type-Options": "nosniff",
        "Referrer-Policy": "no-referrer",
        "Content-Length": str(len(body)),
    }
    await send(
        {
            "type": "http.response.start",
            "status": status,
            "headers": [(name.lower().encode(), value.encode()) for name, value in headers.items()],
        }
    )
    await send({"type": "http.response.body", "body": body})
