"""Histograms of sampled events. A monitor is a function that fills histograms.

    import hist
    import rodeo

    @rodeo.monitor(size=hist.Hist.new.Reg(64, 0, 256, label="chunk size [bytes]").Double())
    def chunks(event, size):
        for fragment in event.fragments:
            size.fill(fragment.chunks.size)

`rodeo events monitor FILE.py` gives it the events of a running readout or of data files; docs/how-to/monitoring.md describes everything.
"""

from rodeo.monitoring.monitor import Monitor, monitor

__all__ = ["Monitor", "monitor"]
