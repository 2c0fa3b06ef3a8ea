"""The answers of the server: state, commands, control, the WebSocket, the page's files; openapi.json describes exactly the existing routes."""

import asyncio
import contextlib
import json
import re
import socket
import threading
import time

import httpx
import pytest
import websockets.exceptions
from conftest import scaled
from idle_room import DOCUMENT, Idle, IdleRoom
from rodeo.control.client import Client
from rodeo.control.http import live_messages
from rodeo.control.http.room import _bound_port, serve
from rodeo.control.http.server import ENDED, HERE
from rodeo.control.refused import Refused
from rodeo.control.state.commands import COMMANDS
from websockets.sync.client import connect as websocket

PATIENCE_S = scaled(60)


@pytest.fixture(scope="module")
def room(idle_room):
    return idle_room


@pytest.fixture(autouse=True)
def nobody_has_control(room):
    room.clock_s += 120.0
    room.run(room.room.desk.tick())
    room.clock_s += 120.0  # requests for control of the previous test lapse, too
    room.run(room.room.desk.tick())


def shell(room, name=None, whence="shell"):
    return Client(room.socket, "idle", name=name, whence=whence)


def program(room, role="expert", name=None, **headers):
    """A client on TCP with the token of a role."""
    named = {"X-Rodeo-Name": name} if name else {}
    return httpx.Client(
        base_url=room.base,
        headers={"Authorization": f"Bearer {room.tokens[role]}", **named, **headers},
        timeout=PATIENCE_S,
    )


def until(condition):
    end = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


@contextlib.contextmanager
def page(room, role="expert"):
    """A browser's session and its WebSocket."""
    with httpx.Client(base_url=room.base, timeout=PATIENCE_S) as client:
        client.get("/", params={"token": room.tokens[role]})
        cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
        client.headers["X-Rodeo-CSRF"] = client.get("/api/session").json()["csrf"]
        with websocket(
            f"ws://127.0.0.1:{room.port}/api/live",
            origin=room.base,
            additional_headers={"Cookie": cookie},
            open_timeout=PATIENCE_S,
            proxy=None,
        ) as live_socket:
            yield client, live_socket


def received(live_socket):
    return json.loads(live_socket.recv(timeout=PATIENCE_S))


def test_the_state_is_one_document(room):
    with shell(room) as client:
        document = client.status()
        assert set(DOCUMENT) == set(document) and document["system"]["name"] == "idle"


def test_who_waits_for_a_change_gets_it(room):
    with shell(room) as client:
        now = client.status()["sequence"]
        found = []
        waiter = threading.Thread(target=lambda: found.append(client.get("/api/state", after=now, wait=30)))
        waiter.start()
        room.call(lambda: room.controller.put(what="changed"))
        waiter.join(PATIENCE_S)
        assert found[0]["sequence"] > now and found[0]["what"] == "changed"


def test_who_waits_for_no_change_gets_what_there_is(room):
    with shell(room) as client:
        now = client.status()["sequence"]
        assert client.get("/api/state", after=now, wait=0.05)["sequence"] == now


def test_commands_reach_the_controller_with_all_their_arguments(room):
    with shell(room) as client:
        assert client.start(comment="cosmics") == {"run": 7}
        assert room.call(lambda: room.controller.commands[-1]) == (
            "start",
            {"run_type": "physics", "comment": "cosmics"},
            client.session()["name"],
        )


def test_what_the_controller_refuses_is_a_conflict_and_audited(room):
    with shell(room) as client, pytest.raises(Refused) as found:
        client.pause()
    assert (found.value.code, found.value.what, found.value.next) == (
        "control.state",
        "no run is open",
        "rodeo control start",
    )
    assert room.rows[-1][3:] == ("pause", {}, "refused", "control.state: no run is open")


def test_a_fault_of_the_controller_is_told_and_audited(room):
    with program(room) as client:
        answer = client.post("/api/commands/resume")
        assert (answer.status_code, answer.json()["code"]) == (500, "control.internal")
    assert room.rows[-1][5] == "failed" and "ZeroDivisionError" in room.rows[-1][6]


def test_equal_commands_of_shell_python_and_browser_leave_equal_rows(room):
    with shell(room) as one, shell(room, whence="python") as two, page(room) as (three, _):
        before = len(room.rows)
        for act in (
            lambda c: c.command("start", comment="x"),
            lambda c: c.command("stop"),
            lambda c: c.command("pause"),
            lambda c: c.command("note", text="y"),
        ):
            for client in (one, two):
                with contextlib.suppress(Refused):
                    act(client)
        for name, body in (
            ("start", {"comment": "x"}),
            ("stop", {}),
            ("pause", {}),
            ("note", {"text": "y", "fence": None}),
        ):
            three.post(f"/api/commands/{name}", json=body)
        rows = room.rows[before:]
    by = {whence: [row[:1] + row[2:] for row in rows if row[1] == whence] for whence in ("shell", "python", "browser")}
    assert len(by["shell"]) == 4 and by["shell"] == by["python"] == by["browser"]


def test_a_command_takes_free_control_but_not_what_somebody_has(room):
    with shell(room, "ana") as ana, shell(room, "ben") as ben:
        ana.start()
        assert ana.status()["lease"]["holder"] == "ana"
        with pytest.raises(Refused) as found:
            ben.start()
        assert found.value.code == "control.not_holder" and "ana" in found.value.what


def test_stop_needs_no_control(room):
    with shell(room, "ana") as ana, program(room, "shifter", "ben") as ben:
        ana.take()
        assert ben.post("/api/commands/stop").status_code == 200


def test_acceptance_13_a_stale_number_is_refused_after_control_changed_hands(room):
    with program(room, name="ana") as ana, program(room, name="eve") as eve:
        old = ana.post("/api/commands/take").json()["fence"]
        assert eve.post("/api/commands/take").status_code == 409
        assert eve.post("/api/commands/take", json={"at_once": True}).json()["fence"] > old
        answer = ana.post("/api/commands/start", json={"fence": old})
        assert (answer.status_code, answer.json()["code"]) == (409, "control.stale_lease")
        eve.post("/api/commands/release")
        assert (
            ana.post("/api/commands/start", json={"fence": old}).status_code == 409
        )  # control is free again, but requests with the old fencing number stay stale


def test_a_command_whose_sender_loses_control_before_it_begins_is_refused(room):
    with program(room, name="ana") as ana, program(room, name="eve") as eve:
        ana.post("/api/commands/take")
        room.call(lambda: setattr(room.controller, "hold", asyncio.Event()))
        before, answers = room.call(lambda: len(room.controller.commands)), []
        sender = threading.Thread(target=lambda: answers.append(ana.post("/api/commands/start")))
        sender.start()
        until(lambda: room.call(lambda: len(room.controller.commands)) > before)
        eve.post("/api/commands/take", json={"at_once": True})
        room.call(room.controller.hold.set)
        sender.join(PATIENCE_S)
        room.call(lambda: setattr(room.controller, "hold", None))
        assert (answers[0].status_code, answers[0].json()["code"]) == (409, "control.stale_lease")
        eve.post("/api/commands/release")


def test_who_asks_has_control_after_a_minute_and_the_audit_says_by_itself(room):
    with program(room, name="ana") as ana, program(room, name="ben") as ben:
        fence = ana.post("/api/commands/take").json()["fence"]
        assert 59 < ben.post("/api/commands/ask").json()["seconds"] <= 60
        assert ben.get("/api/state").json()["lease"]["asked_by"] == "ben"
        for _ in range(4):
            room.clock_s += 16.0
            answer = ana.post("/api/commands/renew", json={"fence": fence})
        assert answer.status_code == 409
        assert ben.get("/api/state").json()["lease"]["holder"] == "ben"
        assert ("ben", "rule", "shifter", "control", {}, "done", "granted") in room.rows


def test_renewals_keep_control_and_leave_no_rows(room):
    with program(room, name="ana") as ana:
        fence = ana.post("/api/commands/take").json()["fence"]
        before = len(room.rows)
        for _ in range(5):
            room.clock_s += 15.0
            assert ana.post("/api/commands/renew", json={"fence": fence}).status_code == 200
        assert ana.get("/api/state").json()["lease"]["holder"] == "ana" and len(room.rows) == before


def test_numbers_go_on_after_the_room_was_started_anew(room):
    with shell(room) as client:
        fence = client.take()["fence"]
    assert room.call(lambda: room.controller.writer.remembered["lease.fence"]) >= fence


def test_a_command_goes_on_when_its_sender_hangs_up(room):
    room.call(lambda: setattr(room.controller, "hold", asyncio.Event()))
    before = room.call(lambda: len(room.controller.commands))
    with socket.socket(socket.AF_UNIX) as sender:
        sender.connect(str(room.socket))
        body = b'{"comment": "gone"}'
        sender.sendall(
            b"POST /api/commands/start HTTP/1.1\r\nHost: room\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%b"
            % (len(body), body)
        )
        until(lambda: room.call(lambda: len(room.controller.commands)) > before)
    room.call(room.controller.hold.set)
    until(lambda: room.rows[-1][4] == {"run_type": "physics", "comment": "gone"} and room.rows[-1][5] == "done")
    room.call(lambda: setattr(room.controller, "hold", None))


def test_the_web_socket_has_the_whole_and_then_what_changed(room):
    with page(room) as (_, live_socket):
        document = received(live_socket)["whole"]
        room.call(lambda: room.controller.put(what="something"))
        while document["what"] != "something":
            message = received(live_socket)
            assert set(message) == {"base", "sequence", "changed"} and "system" not in message["changed"]
            document = live_messages.merge(document, message)
        assert document["sequence"] == room.call(room.controller.document)["sequence"]


def test_the_web_socket_says_something_every_second_although_nothing_changes(room):
    with page(room) as (_, live_socket):
        received(live_socket)
        assert received(live_socket)["changed"] == {} and received(live_socket)["changed"] == {}


def test_the_web_socket_renews_control(room):
    with page(room) as (client, live_socket):
        fence = client.post("/api/commands/take").json()["fence"]
        until_ns = client.get("/api/state").json()["lease"]["until_ns"]
        live_socket.send(json.dumps({"renew": fence}))
        until(lambda: client.get("/api/state").json()["lease"]["until_ns"] > until_ns)


@pytest.mark.parametrize("sent", ["x", "[]", '{"renew": 1', '{"other": 1}', b"x", "[" * 4000])
def test_anything_else_on_the_web_socket_ends_it(room, sent):
    with page(room) as (_, live_socket):
        live_socket.send(sent)
        with pytest.raises(websockets.exceptions.ConnectionClosed):
            while True:
                received(live_socket)


def test_log_out_closes_the_web_socket_of_that_session(room):
    with page(room) as (client, live_socket), page(room) as (_, other):
        received(other)
        client.post("/api/session/end")
        with pytest.raises(websockets.exceptions.ConnectionClosed) as found:
            while True:
                received(live_socket)
        assert found.value.rcvd.code == ENDED
        assert received(other)


@pytest.mark.parametrize(("origin", "cookie"), [("https://evil.example", True), (None, True), ("own", False)])
def test_a_web_socket_of_another_page_or_of_nobody_is_refused(room, origin, cookie):
    with page(room) as (client, _):
        headers = {"Cookie": "; ".join(f"{name}={value}" for name, value in client.cookies.items())} if cookie else {}
        with pytest.raises(websockets.exceptions.InvalidStatus) as found:
            websocket(
                f"ws://127.0.0.1:{room.port}/api/live",
                origin=room.base if origin == "own" else origin,
                additional_headers=headers,
                open_timeout=PATIENCE_S,
                proxy=None,
            )
        assert found.value.response.status_code in (401, 403)


def test_a_web_socket_for_another_host_is_refused(room):
    upgrade = {
        "Connection": "Upgrade",
        "Upgrade": "websocket",
        "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
        "Sec-WebSocket-Version": "13",
    }
    with page(room) as (client, _):
        answer = client.get("/api/live", headers={**upgrade, "Host": "evil.example", "Origin": "http://evil.example"})
        assert (answer.status_code, answer.json()["code"]) == (403, "control.host")


def test_a_client_that_reads_slowly_gets_one_message_for_what_it_missed():
    feed, document = live_messages.Feed(), dict(DOCUMENT)
    mine = live_messages.merge(None, json.loads(feed.next(document, 0.0)))
    for n in range(2, 50):
        document = {**document, "sequence": n, "what": str(n)}
    message = json.loads(feed.next(document, 1.0))
    assert live_messages.merge(mine, message) == document
    assert (
        json.loads(feed.next({**document, "sequence": 60}, 1.0 + live_messages.LATE_S + 0.1))["whole"]["sequence"] == 60
    )  # the client has not read for too long


def test_a_large_system_sends_state_each_time_and_tables_as_they_fit():
    feed, mine, sent, tables = live_messages.Feed(), None, 0, 0
    processes = [
        {"name": f"readout-{n}", "phase": "running", "numbers": {"rate_hz": 1000.0}, "what": "x" * 300}
        for n in range(100)
    ]
    for second in range(60):
        document = {
            **DOCUMENT,
            "sequence": second + 1,
            "what": str(second),
            "processes": [{**each, "second": second} for each in processes],
        }
        text = feed.next(document, float(second))
        sent += len(text)
        mine = live_messages.merge(mine, json.loads(text))
        tables += mine["processes"] == document["processes"]
        assert mine["what"] == str(second)
    assert sent < 60 * live_messages.BYTES_PER_S * 1.1 and 15 <= tables < 60


def test_a_delta_that_does_not_fit_is_no_document():
    assert live_messages.merge(None, {"base": 1, "sequence": 2, "changed": {}}) is None
    assert live_messages.merge({"sequence": 3}, {"base": 1, "sequence": 4, "changed": {}}) is None


def test_what_is_no_number_is_null():
    assert json.loads(live_messages.encoded({"a": [float("nan"), 1.0], "b": float("inf")})) == {
        "a": [None, 1.0],
        "b": None,
    }


def test_logs_links_and_series_are_asked_for_by_process(room):
    with shell(room) as client:
        asked = client.logs("cards", lines=3, search="x", run=7, level="warning", audience="operator", fold=False)
        assert asked[0]["process"] == "cards"
        assert json.loads(asked[0]["message"]) == {
            "search": "x",
            "run": 7,
            "level": "warning",
            "audience": "operator",
            "since_ns": None,
            "fold": False,
        }
        for wrong in ({"level": "loud"}, {"audience": "everybody"}, {"run": 0}, {"fold": "perhaps"}):
            with pytest.raises(Refused) as refused:
                client.get("/api/logs", **wrong)
            assert refused.value.code == "control.argument"
        assert client.links("cards") == [{"fid": "0x1", "process": "cards"}]
        assert client.get("/api/series", names="rate", seconds=10)["series"] == {"rate": {"t": [1], "v": [10]}}
        for path, query in (
            ("/api/logs", {"lines": 0}),
            ("/api/logs", {"lines": "x"}),
            ("/api/series", {"names": "rate", "seconds": 1e9}),
            ("/api/series", {"seconds": 10}),
            ("/api/runs/x", {}),
            ("/api/runs/0", {}),
        ):
            with pytest.raises(Refused) as found:
                client.get(path, **query)
            assert found.value.code == "control.argument", path


def test_rules_and_metrics_are_asked_for_by_the_token_of_a_viewer(room):
    with program(room, role="viewer") as client:
        assert client.get("/api/rules").json() == {"rules": [{"name": "dead_time"}]}
        answer = client.get("/api/metrics")
        assert answer.text == "rodeo_room_run_number 0\n" and answer.headers["content-type"].startswith(
            "text/plain; version=0.0.4"
        )
        assert client.post("/api/commands/alarm_test", json={"rule": "dead_time"}).status_code == 403
    assert httpx.get(f"{room.base}/api/metrics", timeout=PATIENCE_S).status_code == 401


def test_what_there_is_not_is_said(room):
    with program(room) as client:
        for method, path in (
            ("GET", "/api/nothing"),
            ("POST", "/api/state"),
            ("DELETE", "/api/state"),
            ("GET", "/x.js"),
            ("GET", "/../server.py"),
            ("GET", "/%2e%2e/server.py"),
        ):
            answer = client.request(method, path)
            assert answer.status_code in (404, 405) and answer.json()["code"] == "control.no_route", path
        answer = client.post("/api/commands/strat")
        assert answer.status_code == 404 and answer.json()["next"] == "did you mean `start`?"
    assert room.rows[-1][3] == "strat"


def test_the_description_for_machines_is_of_the_routes_there_are(room):
    described = json.loads((HERE / "openapi.json").read_text())
    there_are = {(method.lower(), path) for method, path, _ in room.room.server.routes()} | {("get", "/api/live")}
    assert {
        (method, path) for path, item in described["paths"].items() for method in item if method != "parameters"
    } == there_are
    schemas = described["components"]["schemas"]
    for path, item in described["paths"].items():
        named = set(re.findall(r"\{(\w+)\}", path))
        for operation in (value for method, value in item.items() if method != "parameters"):
            parameters = [*item.get("parameters", []), *operation.get("parameters", [])]
            assert {each["name"] for each in parameters if each["in"] == "path"} == named, path
            assert operation["summary"] and operation["responses"], path
    assert set(schemas["Command"]["enum"]) == set(COMMANDS)
    for name, command in COMMANDS.items():
        properties = schemas[f"arguments of {name}"]["properties"]
        assert set(properties) == {*command.arguments, "fence"}, name
    assert set(schemas["Document"]["required"]) == set(DOCUMENT)
    references = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(described)))
    assert references <= set(schemas)


def test_who_sits_at_a_browser_says_so(room):
    with page(room) as (client, _):
        assert client.post("/api/session/name", json={"name": " Ana "}).json() == {"name": "Ana"}
        assert client.get("/api/session").json()["name"] == "Ana"
        client.post("/api/commands/take")
        assert client.get("/api/state").json()["lease"]["holder"] == "Ana"
        for bad in ("", "x" * 61, 3, None, "a\nb"):
            assert client.post("/api/session/name", json={"name": bad}).status_code == 400


def test_waiting_ends_when_no_run_is_open_any_more(room):
    with shell(room) as client:
        with pytest.raises(Refused) as found:
            client.wait(events=10)
        assert found.value.code == "control.no_run"
        with pytest.raises(Refused) as found:
            client.wait(state="OFF", timeout=0.1)
        assert found.value.code == "control.timeout"
        assert client.wait(state="READY")["state"] == "READY"


def test_a_room_that_is_gone_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path))
    with IdleRoom("gone", listen=None) as other:
        client = Client(other.socket, "gone")
        client.status()
    with pytest.raises(Refused) as found:
        client.status()
    assert found.value.code == "control.gone"
    client.leave()


def test_a_room_that_cannot_begin_leaves_the_token_of_the_one_that_serves(tmp_path, monkeypatch):
    monkeypatch.setenv("RODEO_RUNTIME_DIR", str(tmp_path))

    class Refusing(Idle):
        async def open(self):
            raise Refused("control.database", "another control room writes runs.db", "")

    token = tmp_path / "viewer.token"
    token.write_text("of the room that serves\n")
    with pytest.raises(Refused):
        asyncio.run(serve(Refusing(), "second", ("127.0.0.1", 0), token_file=token, signals=()))
    assert token.read_text() == "of the room that serves\n"


def test_a_port_that_is_taken_and_an_address_of_another_host_have_their_own_advice():
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Refused) as found:
        _bound_port(taken.getsockname())
    assert (found.value.code, found.value.next) == ("control.listen", "use another port, or 0 for a free one")
    with pytest.raises(Refused) as found:
        _bound_port(("192.0.2.1", 0))  # this address is reserved for documents: no host has it
    assert found.value.code == "control.listen" and "use an address of this host" in found.value.next
