"""Histograms of any readout's events.   rodeo events monitor examples/monitor.py

For files:   rodeo events monitor examples/monitor.py --input run7.data
"""

import hist
import rodeo

BUNCH_CROSSINGS = 3564


@rodeo.monitor(
    size=hist.Hist.new.Reg(64, 0, 512, label="bytes in a chunk").Double(),
    link=hist.Hist.new.StrCat([], growth=True, label="ROB and link id").Double(),
)
def chunks(event, size, link):
    for fragment in event.fragments:
        found = fragment.chunks
        size.fill(found.size)
        link.fill([f"{fragment.source_id:#010x} {one:#010x}" for one in found.link])


@rodeo.monitor(
    bcid=hist.Hist.new.Reg(99, 0, BUNCH_CROSSINGS, label="BCID").Double(),
    count=hist.Hist.new.Reg(64, 0, 256, label="chunks in an event").Double(),
    status=hist.Hist.new.IntCat([], growth=True, label="status of the fragment").Double(),
)
def events(event, bcid, count, status):
    bcid.fill(event.bcid)
    count.fill(sum(len(fragment.chunks) for fragment in event.fragments))
    status.fill([fragment.status[0] for fragment in event.fragments if fragment.status])


@rodeo.monitor(
    size_of_bcid=hist.Hist.new.Reg(33, 0, BUNCH_CROSSINGS, label="BCID")
    .Reg(32, 0, 8192, label="bytes in an event")
    .Double(),
)
def structure(event, size_of_bcid):
    size_of_bcid.fill(event.bcid, sum(int(fragment.chunks.size.sum()) for fragment in event.fragments))
