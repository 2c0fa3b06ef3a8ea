"""A running room with its page, and functions that check the page in a real browser (the fixture `browser`)."""

import contextlib
import re
import threading
import time

from conftest import scaled

CHROMIUM = "/usr/bin/chromium"
LONG_S = 300.0  # ends a test that would hang


@contextlib.contextmanager
def chromium():
    from playwright.sync_api import expect, sync_playwright

    expect.set_options(timeout=scaled(LONG_S) * 1000)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=CHROMIUM, args=["--no-sandbox", "--disable-dev-shm-usage"], timeout=scaled(LONG_S) * 1000
        )
        browser.devices = playwright.devices
        yield browser
        browser.close()


class Served:
    """A running room with a page: `served.address(role)`. During `served.hanging()` the room does not answer."""

    def __init__(self, running):
        self.running, self.room, self.port = running, None, 0

    def open(self):
        """Listens on the previous port, if there is one. Sessions are new."""
        from rodeo.control.http.room import Room

        async def opened():
            self.room = Room(self.running.controller, self.running.controller.system.name, ("127.0.0.1", self.port))
            await self.room.open()

        self.running.do(opened())
        self.port = int(re.search(r":(\d+)/", self.room.addresses["expert"])[1])

    def close(self):
        if self.room is not None:
            room, self.room = self.room, None
            self.running.do(room.close())

    def address(self, role="expert"):
        return self.room.addresses[role]

    @contextlib.contextmanager
    def hanging(self):
        goes_on = threading.Event()
        self.running.loop.call_soon_threadsafe(goes_on.wait, scaled(LONG_S))
        try:
            yield
        finally:
            goes_on.set()


def shows(page, *states):
    """Waits until the page shows one of these states."""
    from playwright.sync_api import expect

    expect(page.locator("[data-state]")).to_have_attribute("data-state", re.compile(f"^({'|'.join(states)})$"))


def until(page, expression, argument=None):
    """Polls the page until the expression is true. Playwright's own waiting evaluates strings repeatedly, which the Content Security Policy forbids."""
    deadline = time.monotonic() + scaled(LONG_S)
    while not page.evaluate(expression, argument):
        assert time.monotonic() < deadline, f"waited in vain for {expression}"
        page.wait_for_timeout(50)


def sees(page, selector, text):
    """Waits for a visible element with this text (a string or a pattern)."""
    page.locator(selector, has_text=text).first.wait_for()
