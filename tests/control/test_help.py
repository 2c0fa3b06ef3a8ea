"""The documentation site, which a room serves under /help/ with the rules of its page."""

import contextlib

import httpx
import pytest
from rodeo.control.http import security


@pytest.fixture
def site(tmp_path, monkeypatch):
    folder = tmp_path / "site"
    for name, text in (
        ("docs/index.html", "<h1>Rodeo</h1>"),
        ("_static/site.css", "h1 {}"),
        ("figures/one.svg", "<svg/>"),
    ):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    (tmp_path / "secret").write_text("not of the site")
    monkeypatch.setenv("RODEO_SITE", str(folder))
    return folder


@contextlib.contextmanager
def viewer(room):
    with httpx.Client(base_url=room.base, timeout=60) as client:
        client.get("/", params={"token": room.tokens["viewer"]})
        yield client


def test_every_role_reads_the_pages(idle_room, site):
    with viewer(idle_room) as client:
        first = client.get("/help/", follow_redirects=True)
        assert first.url.path == "/help/docs/index.html" and first.text == "<h1>Rodeo</h1>"
        kinds = {
            name: client.get(f"/help/{name}").headers["content-type"]
            for name in ("_static/site.css", "figures/one.svg")
        }
        assert kinds["_static/site.css"].startswith("text/css") and kinds["figures/one.svg"] == "image/svg+xml"


def test_pages_have_the_rules_of_the_room_and_may_search(idle_room, site):
    with viewer(idle_room) as client:
        headers = client.get("/help/docs/index.html").headers
    rules = headers["content-security-policy"]
    assert (
        "form-action 'self'" in rules
        and rules.replace("form-action 'self'", "form-action 'none'") == (security.HEADERS["Content-Security-Policy"])
    )
    assert headers["x-frame-options"] == "DENY" and headers["x-content-type-options"] == "nosniff"


def test_a_session_is_needed(idle_room, site):
    assert httpx.get(idle_room.base + "/help/docs/index.html", timeout=60).status_code == 401


@pytest.mark.parametrize(
    "path", ["../secret", "%2e%2e/secret", "docs/%2e%2e/%2e%2e/secret", "docs", "docs/nothing.html"]
)
def test_only_files_of_the_site_are_served(idle_room, site, path):
    with viewer(idle_room) as client:
        answer = client.get(f"/help/{path}")
        assert "not of the site" not in answer.text
        assert answer.status_code == 404 or not answer.url.path.startswith("/help/")


def test_a_link_out_of_the_site_is_not_followed(idle_room, site):
    (site / "out.html").symlink_to(site.parent / "secret")
    with viewer(idle_room) as client:
        assert client.get("/help/out.html").status_code == 404


@pytest.mark.parametrize("made", ["nowhere", ""])
def test_without_a_site_a_page_names_what_builds_it(idle_room, tmp_path, monkeypatch, made):
    monkeypatch.setenv("RODEO_SITE", str(tmp_path / made) if made else "")
    with viewer(idle_room) as client:
        answer = client.get("/help/")
        assert answer.status_code == 404 and answer.headers["content-type"].startswith("text/html")
        assert "tools/docs" in answer.text
