"""External programs that report values over HTTP: Prometheus exporters, or addresses that answer with JSON. One task asks each of them periodically.

A program that fails or hangs delays nothing else."""

import asyncio
import json
import logging
import re
import time

from rodeo.control.paths import needed
from rodeo.control.state.system_rules import number

LOG = logging.getLogger("rodeo.control")
LONGEST_ANSWER = 4 * 1024 * 1024  # bytes
MOST_VALUES = 20_000
MOST_KEPT = 500  # limit of the values of one program that a run keeps
SELECTOR = re.compile(r"\s*([a-zA-Z_:][a-zA-Z0-9_:]*)\s*(?:\{(.*)\})?\s*", re.DOTALL)
LABEL = re.compile(r'\s*([a-zA-Z_][a-zA-Z0-9_]*)\s*=\s*"((?:[^"\\]|\\.)*)"\s*(?:,|$)')


class External:
    """One [[control.external]] and its last answer. `entry`: a system.External. Used by the controller's loop."""

    def __init__(self, entry):
        self.entry = entry
        self.values = {}  # name -> [(labels, value)]
        self.seen_ns = None
        self.problem = "it has not been asked yet"
        self.asked = False

    @property
    def name(self):
        return self.entry.name

    @property
    def answers(self):
        return self.seen_ns is not None and not self.problem

    def find(self, selector):
        """Values of a metric: NAME, NAME{LABEL="VALUE", ...} or a path into JSON. Empty without such a metric."""
        if self.entry.format == "json":
            return [value for _, value in self.values.get(selector, ())]
        parsed = parsed_selector(selector)
        if parsed is None:
            return []
        name, wanted = parsed
        return [
            value
            for labels, value in self.values.get(name, ())
            if all(labels.get(label) == text for label, text in wanted.items())
        ]

    def kept(self):
        """Returns {name with labels: value} of the values kept with a run, at most MOST_KEPT."""
        found = {}
        for name in self.entry.keep:
            if self.entry.format == "json":
                found.update({name: value for _, value in self.values.get(name, ())})
                continue
            metric, wanted = parsed_selector(name) or (name, {})
            for labels, value in self.values.get(metric, ()):
                if all(labels.get(label) == text for label, text in wanted.items()):
                    found[written(metric, labels)] = value
        return dict(list(found.items())[:MOST_KEPT])

    def took(self, values, now_ns):
        """The program has answered."""
        self.values, self.seen_ns, self.problem, self.asked = values, now_ns, "", True

    def failed(self, why):
        """The program has not answered; its old values are dropped."""
        self.values, self.problem, self.asked = {}, str(why)[:300], True

    def as_json(self):
        return {
            "name": self.name,
            "address": self.entry.address,
            "state": "good" if self.answers else "silent" if self.asked else "unknown",
            "what": self.problem,
            "seen_ns": self.seen_ns,
            "values": sum(len(each) for each in self.values.values()),
        }


def parsed_selector(text):
    """Returns (name, {label: value}) of NAME{LABEL="VALUE"}; None if the text is not a selector."""
    found = SELECTOR.fullmatch(text)
    if found is None:
        return None
    labels, rest = {}, (found.group(2) or "").strip()
    while rest:
        one = LABEL.match(rest)
        if one is None:
            return None
        labels[one.group(1)] = re.sub(r"\\(.)", r"\1", one.group(2))
        rest = rest[one.end() :]
    return found.group(1), labels


def written(name, labels):
    """NAME{LABEL="VALUE"}, labels in order."""
    inside = ",".join(f'{label}="{value}"' for label, value in sorted(labels.items()))
    return f"{name}{{{inside}}}" if inside else name


def values_of(text, form):
    """Returns {name: [(labels, value)]} of an answer. ValueError with the reason if it is invalid."""
    found, count = {}, 0
    for name, labels, value in (_of_json if form == "json" else _of_prometheus)(text):
        count += 1
        if count > MOST_VALUES:
            raise ValueError(f"it reports more than {MOST_VALUES} values")
        found.setdefault(name, []).append((labels, value))
    if not found:
        raise ValueError("its answer contains no number")
    return found


def _of_prometheus(text):
    parser = needed("prometheus_client.parser")
    try:
        for family in parser.text_string_to_metric_families(text):
            for sample in family.samples:
                value = number(sample.value)
                if value is not None and value == value:
                    yield sample.name, dict(sample.labels), value
    except (ValueError, IndexError, KeyError, AttributeError, TypeError) as error:
        raise ValueError(f"its answer is not Prometheus' text format: {error}") from None


def _of_json(text):
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"its answer is not JSON: {error}") from None
    yield from _numbers(answer, "", 0)


def _numbers(value, path, depth):
    if depth > 20:
        return
    if isinstance(value, dict):
        for name, one in value.items():
            yield from _numbers(one, f"{path}.{name}" if path else str(name), depth + 1)
    elif isinstance(value, list):
        for index, one in enumerate(value):
            yield from _numbers(one, f"{path}.{index}" if path else str(index), depth + 1)
    elif (found := number(value)) is not None and found == found:
        yield path, {}, found


class Externals:
    """All external programs of a system. Used by the controller's loop."""

    def __init__(self, entries):
        self.by_name = {entry.name: External(entry) for entry in entries}

    async def watch(self):
        """Asks each program with its own period; never returns."""
        if not self.by_name:
            return
        httpx = needed("httpx")
        # No proxy from the environment: these programs are on the local network.
        async with httpx.AsyncClient(trust_env=False, follow_redirects=False) as client:
            await asyncio.gather(*(self._watch_one(client, each) for each in self.by_name.values()))

    async def _watch_one(self, client, one):
        while True:
            began_s = time.monotonic()
            try:
                text = await asyncio.wait_for(_body(client, one.entry.address), one.entry.timeout_s)
                one.took(await asyncio.to_thread(values_of, text, one.entry.format), time.time_ns())
            except asyncio.TimeoutError:
                one.failed(f"it has not answered within {one.entry.timeout_s:g} s")
            except Exception as error:  # an error must not end this task
                one.failed(str(error) or type(error).__name__)
            await asyncio.sleep(max(0.1, one.entry.every_s - (time.monotonic() - began_s)))


async def _body(client, address):
    body = bytearray()
    async with client.stream("GET", address, timeout=None) as answer:
        if answer.status_code != 200:
            raise ValueError(f"it answers with status {answer.status_code}")
        async for part in answer.aiter_bytes():
            body += part
            if len(body) > LONGEST_ANSWER:
                raise ValueError(f"its answer is longer than {LONGEST_ANSWER >> 20} MiB")
    return body.decode(errors="replace")
