"""Drives many sequences of runs at once. A sequence is a generator of tasks. Runs in the journal are not repeated."""

import sys
import time

from rodeo.saying import say


class Runner:
    """Calls progress(runs done, runs known from the journal, sequences of the phase that have ended, all of them, the phase)."""

    def __init__(self, journal, executor, progress=None):
        self.journal, self.executor = journal, executor
        self.progress = progress or (lambda *_: None)
        self.ran = self.known = 0
        self.begin("")

    def begin(self, phase, sequences=0):
        """The sequences that follow belong to this phase, whose number of sequences is at least the given one. A phase has several calls of drive(),
        and its progress grows over all of them."""
        self.phase, self.expected, self.ended = phase, sequences, 0

    def drive(self, sequences):
        """sequences: {name: generator}. Returns {name: return value of the generator}. An error of a run ends everything; completed runs
        are in the journal."""
        results, waiting = {}, {}
        left = dict(sequences)
        before = self.ended

        def advance(name, value):
            """Sends results to a sequence until it asks for a run that the journal does not have."""
            generator = left[name]
            try:
                task = generator.send(value)
                while (result := self.journal.find(task.method, task.settings)) is not None:
                    self.known += 1
                    task = generator.send(result)
            except StopIteration as end:
                results[name] = end.value
                del left[name]
                return
            waiting[self.executor.submit(task)] = (name, task)

        def tell():
            self.progress(
                self.ran, self.known, before + len(results), max(self.expected, before + len(sequences)), self.phase
            )

        for name in list(left):
            advance(name, None)
        pending = set(waiting)
        while waiting:
            done, pending = self.executor.wait(set(waiting))
            for future in done:
                name, task = waiting.pop(future)
                result, seconds, host = future.result()
                if "failed" not in result:  # a failed measurement is tried again next time
                    self.journal.write(task.method, task.settings, result, seconds, host)
                self.ran += 1
                advance(name, result)
            tell()
        tell()  # reports progress even if the journal has all runs
        self.ended = before + len(sequences)
        return results

    def all(self, tasks):
        """Results of independent runs, in order."""

        def one(task):
            return (yield task)

        found = self.drive({index: one(task) for index, task in enumerate(tasks)})
        return [found[index] for index in range(len(tasks))]


class Progress:
    """On a terminal one line, redrawn and erased at the end; elsewhere a line every ten seconds."""

    def __init__(self, stream=None):
        self.stream = stream or sys.stderr
        self.terminal = self.stream.isatty()
        self.next = time.monotonic() + (0.2 if self.terminal else 10)

    def __call__(self, ran, known, ended, all, phase):
        now = time.monotonic()
        if ended == all:
            if self.terminal:
                say("\r\033[K", self.stream, end="")
            return
        if now < self.next:
            return
        self.next = now + (0.2 if self.terminal else 10)
        text = (
            (f"{phase}: " if phase else "")
            + f"{ended} of {all} points, {ran} runs"
            + (f", {known} more from the journal" if known else "")
        )
        say(f"\r{text}\033[K" if self.terminal else text, self.stream, end="" if self.terminal else "\n")
