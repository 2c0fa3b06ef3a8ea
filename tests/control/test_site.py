"""The built documentation site in a real browser, as a room serves it and from files: links, search, colours, widths, versions."""

import subprocess
import sys

import pytest
from browsing import chromium
from conftest import ROOT
from playwright.sync_api import expect

pytestmark = pytest.mark.slow
WIDTHS = (1600, 1024, 390)
PAGES = (
    "docs/index.html",
    "docs/explanation/threads.html",
    "docs/how-to/control-room.html",
    "docs/reference/configuration.html",
    "docs/reference/cpp/consumers.html",
    "docs/reference/python/data.html",
    "src/cli/explain/error_codes.html",
)


@pytest.fixture(scope="module")
def site():
    folder = ROOT / "build/site"
    if not (folder / "docs/index.html").is_file():
        subprocess.run([ROOT / "tools/docs"], check=True)
    return folder


@pytest.fixture(scope="module")
def browser():
    with chromium() as started:
        yield started


@pytest.fixture
def page(browser):
    """A page. Errors of the site's pages, also those of the policy for scripts and styles, fail the test; the idle room has no data for its own page."""
    errors = []

    def note(message):
        if message.type == "error" and "/api/" not in message.location["url"]:
            errors.append(message.text)

    with browser.new_context() as context:
        context.on("console", note)
        context.on("weberror", lambda error: errors.append(str(error.error)))
        yield context.new_page()
    assert not errors


@pytest.fixture
def help_page(page, idle_room, site, monkeypatch):
    """The first page of the documentation, opened by the window Help of the room's page."""
    monkeypatch.setenv("RODEO_SITE", str(site))
    page.goto(f"{idle_room.base}/?token={idle_room.tokens['viewer']}")
    page.get_by_role("button", name="Help").click()
    with page.expect_popup() as opened:
        page.get_by_role("link", name="Documentation").click()
    shown = opened.value
    expect(shown.get_by_role("heading", name="Rodeo", exact=True).first).to_be_visible()
    page.close()
    return shown


def test_the_room_leads_to_the_documentation_and_its_search_works(help_page):
    help_page.get_by_role("link", name="what Rodeo cannot do").click()
    expect(help_page.get_by_role("heading", name="Limits", exact=False).first).to_be_visible()
    help_page.locator(".sidebar-search").fill("busy")
    help_page.locator(".sidebar-search").press("Enter")
    expect(help_page.locator("ul.search li a").first).to_be_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_pages_fit_the_window_in_both_colours(help_page, idle_room, width, scheme):
    help_page.emulate_media(color_scheme=scheme)
    help_page.set_viewport_size({"width": width, "height": 900})
    for name in PAGES:
        help_page.goto(f"{idle_room.base}/help/{name}")
        text, ground = help_page.evaluate(
            "['color', 'backgroundColor'].map((name) => getComputedStyle(document.body)[name].match(/\\d+/g).slice(0, 3).reduce((a, b) => a + Number(b), 0))"
        )
        assert (text < ground) == (scheme == "light") and abs(text - ground) > 380, name
        wide = help_page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
        assert wide <= 0, f"{name} is {wide} px wider than the window"


def test_search_and_the_choice_of_a_version_work_from_files(page, site, tmp_path):
    older = tmp_path / "older"
    for source, target in ((site, tmp_path / "new"), (site, older)):
        subprocess.run(["cp", "-r", source, target], check=True)
    for changed in older.rglob("*.html"):
        changed.write_text(changed.read_text().replace('data-version="', 'data-version="0.0.'))
    (older / "docs/explanation/limits.html").unlink()
    for each in (tmp_path / "new", older):
        subprocess.run([sys.executable, ROOT / "docs/site/publish.py", each, tmp_path / "published"], check=True)
    old, new = sorted(
        (path.name for path in (tmp_path / "published").iterdir() if path.is_dir()), key=len, reverse=True
    )
    page.goto(f"file://{tmp_path}/published/index.html")
    expect(page.get_by_label("Version")).to_have_value(new)
    page.goto(f"file://{tmp_path}/published/{new}/docs/how-to/data-files.html")
    page.get_by_label("Version").select_option(old)
    page.wait_for_url(f"**/{old}/docs/how-to/data-files.html")
    page.goto(f"file://{tmp_path}/published/{new}/docs/explanation/limits.html")
    page.get_by_label("Version").select_option(old)
    page.wait_for_url(f"**/{old}/docs/index.html")
    page.goto(f"file://{tmp_path}/published/{new}/search.html?q=dead+time")
    expect(page.locator("ul.search li a").first).to_be_visible()


def test_a_single_version_shows_its_number(page, site):
    page.goto(f"file://{site}/docs/index.html")
    expect(page.locator(".version")).to_contain_text("Version 0.")
    assert page.get_by_label("Version").count() == 0
