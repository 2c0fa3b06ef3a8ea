"""Limits of simultaneous requests in a control room, per session and per role; and of waiting connections."""

import contextlib
import socket

import httpx
import pytest
import websockets.exceptions
from conftest import scaled
from rodeo.control.http.request_limits import MOST_WAITING, OF_ONE, OF_ROLE, Shares, Waiting
from rodeo.control.refused import Refused
from websockets.sync.client import connect as websocket


@pytest.fixture(scope="module")
def room(idle_room):
    return idle_room


def take(shares, into, role, who, times):
    for _ in range(times):
        into.enter_context(shares.taken(role, who))


def test_one_session_has_its_share_and_no_more_until_something_ends():
    shares = Shares()
    with contextlib.ExitStack() as first:
        take(shares, first, "viewer", 1, OF_ONE)
        with pytest.raises(Refused) as refused, shares.taken("viewer", 1):
            pass
        assert refused.value.code == "control.too_many"
        with shares.taken("viewer", 2), shares.taken("shifter", 1):
            pass
    with shares.taken("viewer", 1):
        pass


def test_a_role_has_its_share_and_the_others_theirs():
    shares = Shares()
    with contextlib.ExitStack() as all_:
        for who in range(OF_ROLE["viewer"] // OF_ONE):
            take(shares, all_, "viewer", who, OF_ONE)
        with pytest.raises(Refused), shares.taken("viewer", 99):
            pass
        with shares.taken("shifter", 99):
            pass


def test_the_unix_socket_is_one_users_and_has_one_share():
    shares = Shares()
    with contextlib.ExitStack() as all_:
        take(shares, all_, "unix", None, OF_ROLE["unix"])
        with pytest.raises(Refused), shares.taken("unix", None):
            pass


def test_of_too_many_connections_that_wait_the_oldest_goes():
    waiting = Waiting(2)
    assert [waiting.add(each) for each in "abac"] == [None, None, None, "b"]
    waiting.remove("a")
    waiting.remove("nobody")
    assert [waiting.add(each) for each in "de"] == [None, "c"]


def program(room, role):
    return httpx.Client(
        base_url=room.base, headers={"Authorization": f"Bearer {room.tokens[role]}"}, timeout=scaled(60)
    )


def test_half_requests_keep_nobody_out(room):
    with contextlib.ExitStack() as half:
        for _ in range(MOST_WAITING + 40):
            connection = half.enter_context(socket.create_connection(("127.0.0.1", room.port)))
            connection.sendall(b"GET / HTTP/1.1\r\nHost: ")
        with program(room, "viewer") as client:
            assert [client.get("/api/state").status_code for _ in range(3)] == [200] * 3


def test_websockets_of_one_viewer_keep_no_shifter_out(room):
    address, headers = f"ws://127.0.0.1:{room.port}/api/live", {"Authorization": f"Bearer {room.tokens['viewer']}"}
    with contextlib.ExitStack() as many:
        for _ in range(OF_ONE):
            many.enter_context(websocket(address, additional_headers=headers, open_timeout=scaled(60)))
        with pytest.raises(websockets.exceptions.InvalidStatus) as refused:
            websocket(address, additional_headers=headers, open_timeout=scaled(60))
        assert refused.value.response.status_code == 503
        with program(room, "viewer") as client:
            assert client.get("/api/state").json()["code"] == "control.too_many"
        with program(room, "shifter") as client:
            assert client.get("/api/state").status_code == 200
