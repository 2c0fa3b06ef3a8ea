"""Access: tokens, sessions, Host, Origin, CSRF, roles, sizes; and refusals in the audit."""

import contextlib
import json
import os
import socket
import stat

import httpx
import pytest
from idle_room import IdleRoom
from rodeo.control import paths
from rodeo.control.http import security
from rodeo.control.http.room import hold_room, listen_address
from rodeo.control.refused import Refused
from rodeo.control.state.commands import COMMANDS, allowed, checked, command


@pytest.fixture(scope="module")
def room(idle_room):
    return idle_room


@pytest.fixture(autouse=True)
def a_minute_later(request):
    """Resets the audit's limit of refusals between tests."""
    if "room" in request.fixturenames:
        request.getfixturevalue("room").clock_s += security.RefusalLimit.PER_S


@contextlib.contextmanager
def browser(room, role="expert"):
    """An httpx client that has opened the address of a role, as a browser does."""
    with httpx.Client(base_url=room.base, timeout=60) as client:
        answer = client.get("/", params={"token": room.tokens[role]})
        assert answer.status_code == 303, answer.text
        yield client


def csrf(client):
    return {"X-Rodeo-CSRF": client.get("/api/session").json()["csrf"]}


def refusals(room):
    return [row[6] for row in room.rows if row[5] == "refused"]


def test_the_token_becomes_a_cookie_and_leaves_the_address(room):
    with httpx.Client(base_url=room.base, timeout=60) as client:
        answer = client.get("/", params={"token": room.tokens["viewer"]})
        cookie = answer.headers["set-cookie"]
        assert answer.status_code == 303 and answer.headers["location"] == "/"
        assert "HttpOnly" in cookie and "SameSite=Strict" in cookie and room.tokens["viewer"] not in cookie
        assert client.get("/api/session").json()["role"] == "viewer"


def test_nobody_is_let_in_without_a_session(room):
    for path in ("/", "/api/state", "/api/session", "/api/openapi.json", "/assets/x.js", "/api/nothing"):
        assert httpx.get(room.base + path, timeout=60).status_code == 401, path


def test_acceptance_14_a_wrong_token_is_refused_and_audited(room):
    before = len(refusals(room))
    assert httpx.get(room.base + "/?token=guess", timeout=60).status_code == 403
    assert httpx.get(room.base + "/?token=%FF%00", timeout=60).status_code == 403
    assert httpx.get(room.base + "/api/state", headers={"Authorization": "Bearer guess"}, timeout=60).status_code == 403
    assert sum("control.token" in row for row in refusals(room)[before:]) == 3


def test_every_answer_forbids_what_is_not_the_rooms_own(room):
    with browser(room) as client:
        for answer in (
            client.get("/api/state"),
            client.get("/api/nothing"),
            client.post("/api/commands/stop"),
            httpx.get(room.base + "/", timeout=60),
        ):
            policy = answer.headers["content-security-policy"]
            assert (
                "default-src 'none'" in policy
                and "script-src 'self'" in policy
                and "unsafe" not in policy
                and "frame-ancestors 'none'" in policy
            )
            assert (
                answer.headers["x-content-type-options"] == "nosniff" and answer.headers["cache-control"] == "no-store"
            )
            assert "server" not in answer.headers


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1", "127.0.0.1:1", "", "localhost.evil.example:{port}"])
def test_acceptance_14_another_host_is_refused_and_audited(room, host):
    before = len(refusals(room))
    with browser(room) as client:
        answer = client.get("/api/state", headers={"Host": host.format(port=room.port)})
    assert answer.status_code in (400, 403)  # 400 if the request is not HTTP
    if answer.status_code == 403:
        assert answer.json()["code"] == "control.host" and any("control.host" in row for row in refusals(room)[before:])


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "http://127.0.0.1", "https://127.0.0.1:{port}", "http://localhost:{port}"],
)
def test_acceptance_14_another_origin_is_refused_and_audited(room, origin):
    with browser(room) as client:
        before = len(refusals(room))
        answer = client.post("/api/commands/stop", headers={**csrf(client), "Origin": origin.format(port=room.port)})
        assert (answer.status_code, answer.json()["code"]) == (403, "control.origin")
        assert ["control.origin" in row for row in refusals(room)[before:]] == [True]
        assert client.post("/api/commands/stop", headers={**csrf(client), "Origin": room.base}).status_code == 200


@pytest.mark.parametrize("sent", [{}, {"X-Rodeo-CSRF": ""}, {"X-Rodeo-CSRF": "guess"}, {"X-Rodeo-CSRF": "\xff"}])
def test_acceptance_14_a_post_without_the_number_of_its_session_does_nothing_and_is_audited(room, sent):
    with browser(room) as client:
        before, refused_before = room.call(lambda: len(room.controller.commands)), len(refusals(room))
        headers = [(name.encode(), value.encode("latin-1")) for name, value in sent.items()]
        answer = client.post("/api/commands/stop", headers=headers)
        assert (answer.status_code, answer.json()["code"]) == (403, "control.csrf")
        assert room.call(lambda: len(room.controller.commands)) == before
        assert ["control.csrf" in row for row in refusals(room)[refused_before:]] == [True]


def test_the_number_of_another_session_does_not_do(room):
    with browser(room) as one, browser(room) as other:
        assert one.post("/api/commands/stop", headers=csrf(other)).status_code == 403


def test_refusals_are_audited_but_do_not_fill_the_audit():
    limit = security.RefusalLimit()
    answers = [limit.admit(float(n) / 100) for n in range(1000)]
    assert answers[:20] == [0] * 20 and answers[20:] == [None] * 980
    assert limit.admit(70.0) == 980


def test_log_out_ends_this_session_and_no_other(room):
    with browser(room) as one, browser(room) as other:
        assert one.post("/api/session/end", headers=csrf(one)).status_code == 200
        answer = one.get("/api/state")
        assert (answer.status_code, answer.json()["code"]) == (401, "control.session")
        assert other.get("/api/state").status_code == 200


def test_a_session_that_nobody_uses_ends():
    sessions = security.Sessions("ana")
    cookie = sessions.open(sessions.tokens["viewer"], 0.0)
    assert sessions.find(cookie, security.IDLE_S).role == "viewer"
    with pytest.raises(Refused):
        sessions.find(cookie, 2 * security.IDLE_S + 1)


def test_one_session_too_many_ends_the_one_that_was_idle_longest():
    sessions = security.Sessions("ana")
    cookies = [sessions.open(sessions.tokens["viewer"], float(n)) for n in range(security.MOST_SESSIONS)]
    first, ended = sessions.find(cookies[0], 1000.0), []
    sessions.find(cookies[1], 1001.0).on_end.append(lambda: ended.append(1))
    sessions.find(cookies[2], 3.0).on_end.append(lambda: ended.append(2))
    sessions.open(sessions.tokens["viewer"], 2000.0)
    assert ended == [2] and not first.ended


def test_acceptance_15_viewers_command_nothing(room):
    with browser(room, "viewer") as client:
        number = csrf(client)
        before = len(room.rows)
        for name in COMMANDS:
            needs = {
                "cause": "x",
                "text": "x",
                "rule": "dead_time",
                "subsystem": "muons",
                "verdict": "good",
                "confirm": True,
            }
            body = {key: needs[key] for key, argument in COMMANDS[name].arguments.items() if argument.needed}
            answer = client.post(f"/api/commands/{name}", headers=number, json=body)
            assert (answer.status_code, answer.json()["code"]) == (403, "control.role"), name
        rows = room.rows[before:]
        assert [row[3] for row in rows] == list(COMMANDS) and {row[5] for row in rows} == {"refused"}
        assert client.get("/api/state").status_code == 200


def test_shifters_do_not_abort_nor_change_configurations_nor_take_at_once():
    for name, arguments in (("abort", {"confirm": True}), ("launch", {"set": ["a=1"]}), ("take", {"at_once": True})):
        with pytest.raises(Refused) as found:
            allowed(name, checked(name, arguments), "shifter")
        assert found.value.code == "control.role"
        allowed(name, checked(name, arguments), "expert")
    for name in ("launch", "start", "pause", "resume", "stop", "go_on", "recover", "close", "take", "ask", "release"):
        allowed(name, checked(name, {}), "shifter")


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("start", {"coment": "x"}, "did you mean `comment`?"),
        ("start", {"comment": 3}, ""),
        ("start", {"run_type": "cosmic"}, "did you mean `cosmics`?"),
        ("start", {"run_type": ["x"]}, ""),
        ("ack", {"cause": "two\nlines"}, ""),
        ("start", [], ""),
        ("start", {"comment": "x" * 20_001}, ""),
        ("launch", {"set": "a=1"}, ""),
        ("launch", {"set": [1]}, ""),
        ("launch", {"set": ["a"] * 101}, ""),
        ("ack", {}, ""),
        ("note", {"text": " "}, ""),
        ("note", {"text": "x", "run": True}, ""),
        ("note", {"text": "x", "run": 0}, ""),
        ("note", {"text": "\x1b[2J"}, ""),
        ("note", {"text": "\ud800"}, ""),
        ("abort", {}, ""),
        ("abort", {"confirm": False}, "confirm"),
        ("abort", {"confirm": "yes"}, ""),
        ("take", {"at_once": 1}, ""),
    ],
)
def test_arguments_are_checked(name, arguments, said):
    with pytest.raises(Refused) as found:
        checked(name, arguments)
    assert found.value.code == "control.argument" and said in found.value.next


def test_arguments_that_are_left_out_have_defaults_so_that_equal_commands_are_equal():
    assert checked("start", {}) == checked("start", {"comment": None}) == {"run_type": "physics", "comment": ""}
    assert checked("launch", {}) == {"set": []}


def test_an_unknown_command_is_told_what_was_meant():
    with pytest.raises(Refused) as found:
        command("strat")
    assert (found.value.code, found.value.next) == ("control.unknown_command", "did you mean `start`?")


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "192.168.1.1:0", "[::]:0", "example.org:1", ":1"])
def test_another_address_than_loopback_is_refused(listen):
    with pytest.raises(Refused) as found:
        listen_address(listen)
    assert found.value.code in ("control.not_loopback", "control.listen")


def test_addresses_of_loopback_are_taken():
    assert (
        listen_address("127.0.0.1:0") == ("127.0.0.1", 0)
        and listen_address("localhost:80") == ("127.0.0.1", 80)
        and listen_address("[::1]:9") == ("::1", 9)
    )
    for bad in ("127.0.0.1", "127.0.0.1:x", "127.0.0.1:65536", "127.0.0.1:-1"):
        with pytest.raises(Refused):
            listen_address(bad)


@pytest.mark.parametrize(
    "body", [b"{", b"[1]", b'"x"', b'{"a": NaN}', b"\xff\xfe", b"[" * 60_000, b'{"fence": ' + b"9" * 10_000 + b"}"]
)
def test_a_body_that_is_no_object_is_refused_and_the_room_goes_on(room, body):
    headers = {"Authorization": f"Bearer {room.tokens['expert']}", "Content-Type": "application/json"}
    answer = httpx.post(room.base + "/api/commands/stop", content=body, headers=headers, timeout=60)
    assert answer.status_code == 400 and answer.json()["code"] in ("config.bad_json", "control.argument")
    assert httpx.get(room.base + "/api/state", headers=headers, timeout=60).status_code == 200


def test_a_form_of_a_web_page_is_no_command(room):
    headers = {"Authorization": f"Bearer {room.tokens['expert']}"}
    assert (
        httpx.post(room.base + "/api/commands/stop", data={"reason": "x"}, headers=headers, timeout=60).status_code
        == 400
    )


def test_what_is_too_long_is_refused(room):
    headers = {"Authorization": f"Bearer {room.tokens['expert']}", "Content-Type": "application/json"}
    long = json.dumps({"reason": "x" * 70_000}).encode()
    assert httpx.post(room.base + "/api/commands/stop", content=long, headers=headers, timeout=60).status_code == 413
    assert (
        httpx.post(
            room.base + "/api/commands/stop", content=iter([long[:40_000], long[40_000:]]), headers=headers, timeout=60
        ).status_code
        == 413
    )
    with socket.create_connection(("127.0.0.1", room.port), timeout=60) as raw:  # the address never ends
        raw.sendall(b"GET /" + b"a" * 40_000 + b" HTTP/1.1\r\n")
        assert raw.recv(100).startswith(b"HTTP/1.1 400")
    assert httpx.get(room.base + "/api/state", headers=headers, timeout=60).status_code == 200


def test_the_unix_socket_is_of_one_user(room):
    mode = os.stat(room.socket).st_mode
    assert stat.S_ISSOCK(mode) and stat.S_IMODE(mode) == 0o600
    with httpx.Client(
        transport=httpx.HTTPTransport(uds=str(room.socket)), base_url="http://room", timeout=60
    ) as client:
        assert client.get("/api/session").json()["role"] == "expert"
        assert set(client.get("/api/addresses").json()["addresses"]) == {"viewer", "shifter", "expert"}
        assert client.get("/api/session", headers={"X-Rodeo-Name": "%0A"}).status_code == 400


def test_addresses_are_not_told_to_a_browser(room):
    with browser(room) as client:
        assert client.get("/api/addresses").status_code == 403


def test_a_name_has_one_room(room):
    with pytest.raises(Refused) as found:
        hold_room("idle")
    assert found.value.code == "control.room_runs" and paths.rooms() == ["idle"]


def test_a_runtime_directory_that_others_may_write_to_is_refused(tmp_path, monkeypatch):
    tmp_path.chmod(0o777)
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path))
    with pytest.raises(Refused) as found:
        paths.runtime_directory()
    assert found.value.code == "base.runtime_dir"


def test_nothing_is_left_of_a_room_that_ended(tmp_path, monkeypatch):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path / "r"))
    with IdleRoom("short", listen=None):
        assert paths.rooms() == ["short"]
    assert paths.rooms() == [] and list((tmp_path / "r").iterdir()) == []


def test_what_a_dead_room_left_is_taken_over(tmp_path, monkeypatch):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path))
    left = socket.socket(socket.AF_UNIX)
    left.bind(str(tmp_path / "dead.room"))
    left.close()
    (tmp_path / "dead.room.lock").touch()
    assert paths.rooms() == []
    with IdleRoom("dead", listen=None):
        assert paths.rooms() == ["dead"]
