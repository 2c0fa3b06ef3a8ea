"""An event selection in Python, for filter nodes: rodeo farm filter examples/farm/node.toml --set farm.node.selection.type=python

Here all events go to the stream Main whose first ROB has more than 1000 bytes of data; each hundredth goes to calibration_Sample besides.
"""

import rodeo

SAMPLE = rodeo.Stream("Sample", type="calibration")


@rodeo.select
def large_ones(event):
    """Returns which streams the event goes to; none: it is rejected."""
    first = min(event.robs)
    streams = ["Main"] if len(event.robs[first].data) > 1000 else []
    if event.global_id % 100 == 0:
        streams.append(SAMPLE)
    return streams
