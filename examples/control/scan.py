"""A scan of a setting over ten runs: the trigger's rate against dead time and events. Begin a control room first (`rodeo control SYSTEM`), then

PYTHONPATH=build/python .venv/bin/python3 examples/control/scan.py [POINTS] [SECONDS]
"""

import sys

import rodeo.control

points = int(sys.argv[1]) if len(sys.argv) > 1 else 10
seconds = float(sys.argv[2]) if len(sys.argv) > 2 else 10.0

with rodeo.control.connect() as room:
    room.take()  # keeps control until the end of the `with`, so that no other user starts or pauses a run
    print("   rate     run  condition       events  dead time")
    for point in range(points):
        rate = 200 * (point + 1)
        run = room.start(
            set={"cards:emulator.trigger.rate": f"{rate}Hz"}, run_type="calibration", comment=f"{rate} Hz"
        )["run"]
        numbers = room.wait(seconds=seconds)["numbers"]
        room.stop()
        row = room.run(run)
        dead = numbers["dead_time_fraction"]
        print(
            f"{rate:5} Hz  {run:6}  {row['condition']:10}  {numbers['events'] or 0:9}  {'-' if dead is None else f'{dead:.2%}':>9}"
        )
    room.close()
