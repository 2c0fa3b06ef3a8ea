"""An event selection in Python, for filter nodes: rodeo farm filter examples/farm/node.toml --set farm.node.selection.type=python

Events whose first ROB has more than 1000 bytes of data go to the stream Main; each hundredth event also goes to calibration_Sample.
"""

import rodeo

SAMPLE = rodeo.Stream("Sample", type="calibration")


@rodeo.select
def large_ones(event):
    """Returns the streams of the event; an event without streams is rejected."""
    first = min(event.robs)
    streams = ["Main"] if len(event.robs[first].data) > 1000 else []
    if event.global_id % 100 == 0:
        streams.append(SAMPLE)
    return streams
