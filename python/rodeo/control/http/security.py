"""Access to a control room over HTTP: tokens, sessions, and the rules for Host, Origin and CSRF. Pure, except for random numbers."""

import hashlib
import hmac
import secrets
from dataclasses import dataclass, field

from rodeo.control.refused import Refused
from rodeo.control.state.commands import ROLES

IDLE_S = 12 * 3600.0  # a session ends when it was unused for this time
MOST_SESSIONS = 256  # limit of each role; a further session ends the one that was idle longest
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; font-src 'self'; connect-src 'self'; "
    "manifest-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


@dataclass
class Session:
    """The session of one browser. `ended` is set at its end; the server of its WebSocket checks it."""

    role: str
    name: str
    csrf: str
    used_s: float
    ended: bool = False
    on_end: list = field(default_factory=list)  # functions that are called once, when the session ends


class Sessions:
    """Tokens and sessions of one room; new with every start. Look-ups use hashes of the secrets, so that the time of a look-up reveals nothing."""

    def __init__(self, name):
        self.name = name  # the name of clients with a token until they set their own
        self.tokens = {role: secrets.token_urlsafe(24) for role in ROLES}
        self._sessions = {}

    def role_of(self, token: str) -> str | None:
        """The role of a token, or None."""
        found = None
        for role, known in self.tokens.items():
            if hmac.compare_digest(token.encode(errors="replace"), known.encode()):
                found = role
        return found

    def open(self, token: str, now_s: float) -> str:
        """Opens a session for a valid token. Returns the value of its cookie. Refused(control.token)."""
        role = self.role_of(token)
        if role is None:
            raise Refused(
                "control.token",
                "the token of this address is wrong: the room was restarted, or it is another room",
                "rodeo control status --addresses prints the current addresses",
            )
        of_role = [each for each in self._sessions.values() if each.role == role]
        if len(of_role) >= MOST_SESSIONS:
            self.end(min(of_role, key=lambda each: each.used_s))
        cookie = secrets.token_urlsafe(32)
        self._sessions[_hash(cookie)] = Session(role, self.name, secrets.token_urlsafe(24), now_s)
        return cookie

    def find(self, cookie: str | None, now_s: float) -> Session:
        """The session of a cookie; notes its use. Refused(control.session) if it does not exist or has ended."""
        session = self._sessions.get(_hash(cookie)) if cookie else None
        if session is not None and now_s - session.used_s > IDLE_S:
            self.end(session)
            session = None
        if session is None:
            raise Refused(
                "control.session",
                "this browser has no session, or it has ended",
                "open the address that `rodeo control` printed (rodeo control status --addresses)",
            )
        session.used_s = now_s
        return session

    def end(self, session: Session):
        """Ends a session and its open connections."""
        self._sessions = {key: each for key, each in self._sessions.items() if each is not session}
        session.ended = True
        while session.on_end:
            session.on_end.pop()()


def _hash(text: str) -> bytes:
    return hashlib.sha256(text.encode(errors="replace")).digest()


def hosts_of(port: int) -> set[str]:
    """The valid values of `Host` for a room that listens on this port of loopback."""
    return {f"{host}:{port}" for host in ("127.0.0.1", "localhost", "[::1]")} | (
        {"127.0.0.1", "localhost", "[::1]"} if port == 80 else set()
    )


def check_addressed(host: str | None, origin: str | None, hosts: set[str]) -> None:
    """Refuses requests that a foreign web page makes a browser send, under another Host or with its Origin. Refused(control.host, control.origin)."""
    if host is None or host.lower() not in hosts:
        raise Refused(
            "control.host",
            f"the request is for the host `{(host or '')[:80]}`, which is not this room's",
            "open the address as it was printed",
        )
    if origin is not None and origin.lower() != f"http://{host.lower()}":
        raise Refused(
            "control.origin",
            f"the request comes from a page of `{origin[:80]}`, not of this room",
            "open the address as it was printed",
        )


def check_csrf(session: Session, sent: str | None) -> None:
    """Checks the number that only a page of this room knows. Refused(control.csrf)."""
    if sent is None or not hmac.compare_digest(sent.encode(errors="replace"), session.csrf.encode()):
        raise Refused(
            "control.csrf",
            "the request does not have the CSRF number of its session",
            "load the page again; programs send Authorization: Bearer TOKEN",
        )


def check_name(name) -> str:
    """A name for the lease and the audit. Refused(control.argument)."""
    if not isinstance(name, str) or not 1 <= len(name.strip()) <= 60 or not name.isprintable():
        raise Refused("control.argument", "a name must have 1 to 60 printable characters", "")
    return name.strip()


class RefusalLimit:
    """Bounds the refusals of the door in the audit: 20 a minute; the others are counted. A page with a thousand requests a second cannot fill the database."""

    MOST, PER_S = 20, 60.0

    def __init__(self):
        self.began_s, self.count, self.not_recorded = float("-inf"), 0, 0

    def admit(self, now_s: float) -> int | None:
        """The number of refusals that were only counted since the last audited one; None if this refusal is only counted, too."""
        if now_s - self.began_s >= self.PER_S:
            self.began_s, self.count = now_s, 0
        self.count += 1
        if self.count > self.MOST:
            self.not_recorded += 1
            return None
        not_recorded, self.not_recorded = self.not_recorded, 0
        return not_recorded
