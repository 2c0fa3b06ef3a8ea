"""The page in a real browser with a real system: whole cycles by mouse or only by keyboard, a killed process, an alarm, a stale page, a phone, axe-core.

All tests share one browser, system and page; each test brings the system to its first state. Tests never wait for times, only for content of the page."""

import contextlib
import os
import re
import signal

import pytest
from browsing import LONG_S, Served, sees, shows, until
from conftest import scaled
from rodeo.control.refused import Refused
from running_room import RunningRoom
from small_systems import emulator_file, process, readout_file, write
from test_page_build import build

STEADY = {
    "OFF": "launch",
    "READY": "start",
    "PAUSED": "resume",
    "ERROR": "recover",
    "RUNNING": None,
}  # state -> the command that leads towards a run
PAGES = {"r": "Run", "u": "Runs", "a": "Standing alarms", "l": "Logs", "h": "Hosts", "c": "System"}


def two_readouts(directory):
    """One emulator with two cards, and two essential readouts, which both write files."""
    emulator_file(directory, cards=2)
    readout_file(directory)
    other = ['readout.input.cards=["0000:02:00.0"]', "readout.input.connector=1", "readout.rob[0].source_id=0x00610002"]
    return write(
        directory,
        process("cards", "emulator", configuration="emulator.toml"),
        process("readout", "readout", configuration="readout.toml"),
        process("other", "readout", configuration="readout.toml", set=other),
    )


@pytest.fixture(scope="module")
def served(place):
    with RunningRoom(two_readouts(place)) as running:
        served = Served(running)
        try:
            served.open()
            yield served
        finally:
            served.close()


@pytest.fixture(scope="module")
def asked(browser):
    """All addresses that pages of this module have requested, and all errors of these pages."""
    return {"addresses": [], "errors": []}


@pytest.fixture(scope="module")
def context(browser, asked):
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(scaled(LONG_S) * 1000)
    context.on("request", lambda request: asked["addresses"].append(request.url))
    context.on("weberror", lambda error: asked["errors"].append(str(error.error)))
    context.on(
        "console",
        lambda message: asked["errors"].append(message.text) if "Content Security Policy" in message.text else None,
    )
    yield context
    context.close()


@pytest.fixture(scope="module")
def page(context, served, asked):
    page = context.new_page()
    page.on("websocket", lambda socket: asked["addresses"].append(socket.url))
    page.goto(served.address())
    return page


@pytest.fixture(scope="module")
def axe():
    done = build("--packages")
    assert done.returncode == 0, done.stderr
    with open(os.path.join(done.stdout.strip(), "axe-core", "axe.min.js"), encoding="utf-8") as file:
        return file.read()


# Checks and actions
def button(page, name):
    return page.locator(f'[data-command="{name}"] button')


def brings(page, name, do, *states):
    """Clicks the command `name` and waits until the page shows one of the states. Repeats the click if nothing happens, because on a busy machine
    the page may be stale at that moment."""
    from playwright.sync_api import expect

    tries = 10
    for left in reversed(range(tries)):
        expect(page.locator("[data-state]")).not_to_have_attribute("data-state", "STALE")
        if button(page, name).is_enabled():
            do()
        try:
            return expect(page.locator("[data-state]")).to_have_attribute(
                "data-state", re.compile(f"^({'|'.join(states)})$"), timeout=scaled(LONG_S) / tries * 1000
            )
        except AssertionError:
            if left == 0:
                raise


def start(page):
    page.keyboard.press("Escape")
    button(page, "start").click()
    page.get_by_label("Comment").fill("seen by a test")
    page.get_by_role("button", name="Start", exact=True).click()


def hold(page, name):
    """Holds the button of a command with the mouse until the command is sent."""
    from playwright.sync_api import expect

    at = button(page, name)
    before = at.get_attribute("data-held")
    for _ in range(100):
        at.hover()
        page.mouse.down()
        if at.evaluate(
            "(button, before) => button.classList.contains('held') || button.dataset.held !== before", before
        ):
            break
        page.mouse.up()  # the button has moved away from the pointer
    expect(at).not_to_have_attribute("data-held", before)
    page.mouse.up()


def hold_enter(page):
    """Holds Enter on the button of the next command until the command is sent."""
    from playwright.sync_api import expect

    page.keyboard.press("s")
    at = page.locator("button:focus")
    before = at.get_attribute("data-held")
    page.keyboard.down("Enter")
    expect(at).not_to_have_attribute("data-held", before)
    page.keyboard.up("Enter")


def enter(page):
    page.keyboard.press("s")
    page.keyboard.press("Enter")


def at_page(page, served, path="/"):
    page.goto(f"http://127.0.0.1:{served.port}{path}")


def running(page, served):
    """Brings system and page to a run, from any state."""
    room = served.running
    for _ in range(10):
        state = room.until(
            lambda document: document["state"] in STEADY and not document["act"] and document["state"],
            "no act is in progress",
        )
        if state == "RUNNING":
            break
        with contextlib.suppress(Refused):  # an automatic reaction may be faster
            room.command(STEADY[state])
    at_page(page, served)
    shows(page, "RUNNING")


def test_a_whole_cycle_by_clicks(page, served):
    at_page(page, served)
    shows(page, "OFF")
    sees(page, '[data-command="start"] .why', re.compile(r"\w"))  # the page says why no run can start
    brings(page, "launch", button(page, "launch").click, "READY")
    brings(page, "start", lambda: start(page), "RUNNING")
    sees(page, '[data-number="trigger rate"]', re.compile(r"[1-9][\d.]* (k?)Hz"))
    sees(page, '[data-number="events"] dd', re.compile(r"^\s*[1-9]\d"))
    sees(page, "[data-way]", "cards")
    assert page.locator("[data-way] [data-class]").count() == 3
    brings(page, "pause", button(page, "pause").click, "PAUSED")
    brings(page, "resume", button(page, "resume").click, "RUNNING")
    number = served.running.document()["run"]["number"]
    brings(page, "stop", lambda: hold(page, "stop"), "READY")
    page.get_by_role("link", name="Runs").click()
    sees(page, "[data-runs] tr", "seen by a test")
    page.get_by_role("link", name=str(number), exact=True).click()
    sees(page, f'[data-run="{number}"] h1', served.running.row(number)["condition"])
    page.get_by_role("link", name=re.compile("^Run( |$)")).first.click()
    sees(page, "[data-audit] tr", "stop")
    brings(page, "close", lambda: hold(page, "close"), "OFF")


def test_acceptance_23_a_whole_cycle_by_the_keyboard_alone(page, served):
    at_page(page, served)
    shows(page, "OFF")
    brings(page, "launch", lambda: enter(page), "READY")

    def starts():
        page.keyboard.press("Escape")
        enter(page)
        page.locator("dialog[open]").wait_for()
        page.keyboard.press("Enter")

    brings(page, "start", starts, "RUNNING")
    page.keyboard.press("s")
    assert "Stop" in page.evaluate("document.activeElement.textContent")
    page.evaluate(
        """() => { for (const what of ['keydown', 'keyup']) document.activeElement.dispatchEvent(new KeyboardEvent(what, { key: 'Enter', bubbles: true })) }"""
    )
    assert page.evaluate("document.activeElement.dataset.held") == "0"  # Enter was pressed only for a moment
    brings(page, "stop", lambda: hold_enter(page), "READY")
    for key, title in PAGES.items():
        page.keyboard.press("g")
        page.keyboard.press(key)
        page.locator(f'section[aria-label="{title}"], h1:text-is("{title}")').first.wait_for(state="attached")
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog[open]").wait_for(state="hidden")


def test_the_state_is_seen_from_afar_and_the_age_of_the_data_always(page, served):
    running(page, served)
    word = page.locator("[data-state] .word").bounding_box()
    assert word["height"] >= 0.06 * 900
    assert page.locator("[data-state] svg").bounding_box()["height"] >= 0.06 * 900
    sees(page, "[data-age]", re.compile(r"data [\d.]+ s old"))
    for path in ("/runs", "/alarms", "/logs", "/hosts", "/config"):
        at_page(page, served, path)
        shows(page, "RUNNING")
        sees(page, "[data-age]", re.compile(r"data [\d.]+ s old"))


def test_every_link_has_a_name_and_an_explanation(page, served):
    running(page, served)
    page.locator("[data-link]").nth(
        3
    ).wait_for()  # waits for the links of both readouts, because the order of the list may change until then
    fids = [page.locator("[data-link]").nth(i).get_attribute("data-link") for i in range(2)]
    page.locator("[data-link]").nth(0).hover()
    sees(page, "[data-about]", fids[0])
    page.locator("[data-link]").nth(0).focus()
    page.keyboard.press("ArrowRight")
    sees(page, "[data-about]", fids[1])
    sees(page, "[data-about]", "chunks")


def test_the_page_asks_for_links_and_curves_as_seldom_as_it_says(page, served, asked):
    """The page requests the links of all readouts every three seconds, and curves at the end of a run. It requests nothing when a message comes."""
    running(page, served)
    page.locator("[data-link]").nth(3).wait_for()
    room, hears = served.running, 6
    page.evaluate("0")  # gives pending requests time to be recorded
    before, document = len(asked["addresses"]), room.document()
    for _ in range(hears):
        sequence = document["sequence"]
        document = room.until(lambda now: now["sequence"] > sequence and now, "the next document is there")
    page.evaluate("0")
    new = [address.split("?")[0].rsplit("/", 1)[1] for address in asked["addresses"][before:]]
    assert new.count("links") <= 2 * hears and new.count("series") <= 2, new


def test_acceptance_16_an_old_page_is_stale_and_heals(page, served):
    running(page, served)
    with served.hanging():
        shows(page, "STALE")
        sees(page, "[data-stale]", "nothing was heard")
        sees(page, '[aria-label="Commands"]', "the control room does not answer")
        assert page.locator('[data-command] button:not([aria-disabled="true"])').count() == 0
    shows(page, "RUNNING")


def test_a_room_that_was_started_anew_tells_where_it_is(page, served):
    running(page, served)
    served.close()
    shows(page, "STALE")
    served.open()
    sees(page, '[aria-label="No session"]', "open the address")
    page.goto(served.address())
    shows(page, "RUNNING")


def test_an_alarm_is_put_on_the_shelf_and_taken_back(page, served):
    running(page, served)
    served.running.command("alarm_test", rule="dead_time")
    at_page(page, served, "/alarms")
    alarm = page.locator('[data-alarm="test:dead_time"]')
    alarm.get_by_role("button", name=re.compile("^Shelve 30 min")).click()
    sees(page, '[data-alarm="test:dead_time"] [data-shelved]', re.compile("shelved by .* until"))
    alarm.get_by_role("button", name=re.compile("^Take back")).click()
    alarm.get_by_role("button", name=re.compile("^Acknowledge")).click()
    served.running.until(
        lambda document: not any(each["cause"] == "test:dead_time" for each in document["alarms"]),
        "its ten seconds are over",
    )
    sees(page, '[aria-label="Rules"] td', "dead_time")
    at_page(page, served)


def test_logs_are_searched_by_run_level_audience_and_text(page, served):
    running(page, served)
    number = served.running.document()["run"]["number"]
    at_page(page, served, "/logs")
    sees(page, "[data-log] p", f"run {number} begins")
    page.locator("[data-run]").fill(str(number))
    page.locator("[data-run]").press("Enter")
    page.locator("[data-audience]").select_option("operator")
    page.locator("[data-search]").fill("begins")
    page.locator("[data-search]").press("Enter")
    page.locator("[data-log] p", has_text=f"run {number} begins").first.wait_for()
    until(page, "[...document.querySelectorAll('[data-log] p')].every(line => line.textContent.includes('begins'))")
    assert re.search(rf"run={number}.*audience=operator.*search=begins", page.url)
    page.locator("[data-least]").select_option("error")
    sees(page, "[data-log]", "no lines")
    at_page(page, served)


def test_a_killed_process_is_shown_with_its_cause_and_its_alarm_is_acknowledged(page, served):
    running(page, served)
    os.kill(served.running.pid("other"), signal.SIGKILL)
    sees(page, '[data-process="other"]', re.compile("failed.*signal 9", re.DOTALL))
    sees(page, '[data-alarm*="other"]', "DO THIS")
    page.keyboard.press("a")
    cause = page.evaluate("document.activeElement.closest('[data-alarm]').dataset.alarm")
    page.keyboard.press("Enter")
    page.locator(f'[data-alarm="{cause}"]', has_text="acknowledged by").wait_for()
    alarm = next(each for each in served.running.document()["alarms"] if each["cause"] == cause)
    assert alarm["acked_by"] == page.evaluate(
        "fetch('/api/session').then(answer => answer.json()).then(session => session.name)"
    )
    sees(page, ".choice", "other")
    brings(page, "stop", lambda: hold(page, "stop"), "READY", "ERROR")
    at_page(page, served, "/runs")
    sees(page, "[data-runs] tr", "INTERRUPTED")


def test_viewers_may_look_only(browser, served, page):
    running(page, served)
    context = browser.new_context()
    context.set_default_timeout(scaled(LONG_S) * 1000)
    viewer = context.new_page()
    viewer.goto(served.address("viewer"))
    sees(viewer, '[aria-label="Commands"]', "you may look only")
    assert viewer.locator('[data-command] button:not([aria-disabled="true"])').count() == 0
    context.close()


NARROW = {"width": 390, "height": 844}
HEIGHT = "document.documentElement.scrollHeight / innerHeight"


def test_a_phone_reads_without_scrolling_sideways_or_far(browser, served, page, asked):
    running(page, served)
    number = served.running.document()["run"]["number"]
    context = browser.new_context(**{**browser.devices["Pixel 5"], "viewport": NARROW})
    context.set_default_timeout(scaled(LONG_S) * 1000)
    phone = context.new_page()
    phone.goto(served.address("shifter"))
    shows(phone, "RUNNING")
    for path in ("/", "/runs", f"/runs/{number}", "/alarms", "/logs", "/hosts", "/config"):
        at_page(phone, served, path)
        shows(phone, "RUNNING")
        phone.locator("main section").first.wait_for()
        assert phone.evaluate("document.documentElement.scrollWidth <= innerWidth"), path
        assert phone.evaluate(HEIGHT) <= 2.5, path
    at_page(phone, served)
    phone.locator("[data-act]").wait_for()
    assert phone.locator("[data-command] button").first.is_hidden()
    assert phone.locator("[data-link]").count() == 0
    phone.locator('[data-fold="Links"]').click()
    phone.locator("[data-link]").first.wait_for()
    context.close()


def test_the_first_screen_of_a_narrow_page_has_state_cause_and_commands(page, served):
    running(page, served)
    wide = page.viewport_size
    page.set_viewport_size(NARROW)
    try:
        page.locator("[data-fold]").first.wait_for()
        seen = ["[data-state] .word", "[data-recording]", "[data-what]", "[data-alarms]", *COMMANDS_OF_A_RUN]
        assert [each for each in seen if below(page, each) > NARROW["height"]] == []
        assert below(page, '[data-command="abort"]') < page.locator('[aria-label="Alarms"]').bounding_box()["y"]
        assert below(page, '[aria-label="Alarms"] h2') <= NARROW["height"]
    finally:
        page.set_viewport_size(wide)


COMMANDS_OF_A_RUN = [f'[data-command="{name}"] button' for name in ("pause", "resume", "stop", "close", "abort")]


def below(page, selector):
    """Where an element ends, in pixels from the top of the page."""
    page.evaluate("scrollTo(0, 0)")
    box = page.locator(selector).first.bounding_box()
    return box["y"] + box["height"]


def test_acceptance_23_axe_finds_nothing(page, served, axe):
    running(page, served)
    for path in (
        "/",
        "/runs",
        f"/runs/{served.running.document()['run']['number']}",
        "/alarms",
        "/logs",
        "/hosts",
        "/config",
    ):
        at_page(page, served, path)
        shows(page, "RUNNING")
        page.locator("main section").first.wait_for()
        found_nothing(page, axe, path)
    at_page(page, served)
    page.keyboard.press("?")
    page.locator("dialog[open]").wait_for()
    found_nothing(page, axe, "help")
    page.keyboard.press("Escape")


def found_nothing(page, axe, where):
    page.evaluate(axe)
    found = page.evaluate(
        "axe.run().then(done => done.violations.map(each => [each.id, each.nodes.map(node => node.target.join(' ') + ': ' + node.failureSummary)]))"
    )
    assert found == [], where


def test_acceptance_24_nothing_was_asked_of_anybody_else(page, served, asked):
    """Checks everything that the pages of the tests above did."""
    at_page(page, served)
    page.locator("[data-state]").wait_for()
    assert len(asked["addresses"]) > 4
    elsewhere = [
        address
        for address in asked["addresses"]
        if not re.match(rf"(http|ws)://127\.0\.0\.1:{served.port}/|data:|about:", address)
    ]
    assert elsewhere == []
    assert asked["errors"] == []
