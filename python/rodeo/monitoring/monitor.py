"""A monitor: a function with the histograms that it fills."""

import functools
import inspect

# The limit of a histogram: bad values would make an axis that grows with its values fill the memory.
MOST_BYTES = 64 << 20


class Monitor:
    """The object that @rodeo.monitor returns. Called with an event, it calls the function with the event and its histograms."""

    def __init__(self, function, histograms, name=None):
        functools.update_wrapper(self, function)
        self.function, self.name, self.histograms = function, name or function.__name__, dict(histograms)
        self._check()
        self._growing = [key for key, one in self.histograms.items() if any(axis.traits.growth for axis in one.axes)]

    def __call__(self, event):
        self.function(event, **self.histograms)
        for name in self._growing:
            if bytes_of(self.histograms[name]) > MOST_BYTES:
                raise TooLarge(f"histogram {name} has grown beyond {MOST_BYTES >> 20} MiB: give its axis bounds")

    def __repr__(self):
        return f"<monitor {self.name}: {', '.join(self.histograms)}>"

    def _check(self):
        if not self.histograms:
            raise TypeError(f"monitor {self.name} has no histogram: @rodeo.monitor(size=hist.Hist(...))")
        for name, one in self.histograms.items():
            if not (hasattr(one, "axes") and hasattr(one, "fill") and hasattr(one, "view")):
                raise TypeError(
                    f"{name} of monitor {self.name} is {type(one).__name__}, not a histogram of the package hist"
                )
            if bytes_of(one) > MOST_BYTES:
                raise ValueError(
                    f"histogram {name} of monitor {self.name} has {bytes_of(one) >> 20} MiB; at most {MOST_BYTES >> 20} can be shown and kept"
                )
        taken = inspect.signature(self.function).parameters.values()
        if not any(one.kind is one.VAR_KEYWORD for one in taken):
            missing = [name for name in self.histograms if name not in {one.name for one in taken}]
            if missing:
                raise TypeError(
                    f"monitor {self.name} takes no argument {missing[0]}: def {self.name}(event, {', '.join(self.histograms)})"
                )


class TooLarge(MemoryError):
    """A histogram has grown too large. Its monitor is left out from then on."""


def bytes_of(histogram):
    return histogram.view(flow=True).nbytes


def monitor(function=None, *, name=None, **histograms):
    """Makes a monitor of a function. It takes an event and, by name, histograms of the package hist, and fills them."""
    if function is not None:
        raise TypeError("a monitor has histograms: @rodeo.monitor(size=hist.Hist(...))")

    def make(function):
        return Monitor(function, histograms, name)

    return make
