# %% [markdown]
# How much buffer does the laboratory of the network paper need, and how certain is this? The file has notebook cells (Jupyter, VS Code); run it
# as a script: PYTHONPATH=build/python .venv/bin/python3 examples/network/notebook.py [FOLDER]

# %%
import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

from rodeo import network

folder = Path(sys.argv[1] if len(sys.argv) > 1 else ".")

# %% The closed forms: as published, exact for even intervals, and a bound for any arrivals.
forms = network.formula("5MB", "12kHz", mtu=1500, readouts=48)
print(
    f"formula as published {forms.paper_bytes / 1e6:.1f} MB, exact {forms.exact_bytes / 1e6:.1f} MB, bound {forms.bound_bytes / 1e6:.1f} MB"
)

# %% The same network simulated, packet trains through queues, with TCP: the occupancy of the rack's switch against time.
even = network.simulate(
    preset="lab-2023", event_size="5MB", rate="12kHz", duration="10ms", engine="train", occupancy="10us"
)
poisson = network.simulate(
    preset="lab-2023",
    event_size="5MB",
    rate="12kHz",
    duration="10ms",
    engine="train",
    occupancy="10us",
    arrivals="poisson",
    seed=3,
)
print(
    f"simulated: even intervals {even.max_buffer_bytes / 1e6:.1f} MB, Poisson {poisson.max_buffer_bytes / 1e6:.1f} MB"
)
assert abs(even.max_buffer_bytes / forms.exact_bytes - 1) < 0.02

# %% Twenty seeds: how much the largest occupancy scatters.
maxima = np.array(
    [
        network.simulate(
            preset="lab-2023",
            event_size="5MB",
            rate="6kHz",
            duration="10ms",
            engine="train",
            arrivals="poisson",
            seed=seed,
        ).max_buffer_bytes
        for seed in range(1, 21)
    ]
)
print(f"Poisson at 6 kHz: {maxima.mean() / 1e6:.1f} +- {maxima.std(ddof=1) / 1e6:.1f} MB over {len(maxima)} seeds")

# %% A picture.
figure, ax = plt.subplots(figsize=(7, 3.5))
for done, name in ((even, "even intervals"), (poisson, "Poisson")):
    ax.plot(done.occupancy["time_s"] * 1e3, done.occupancy["max_bytes"] / 1e6, label=name)
ax.axhline(forms.exact_bytes / 1e6, color="black", linestyle="--", label="exact form")
ax.set_xlabel("time [ms]")
ax.set_ylabel("buffer [MB]")
ax.legend()
figure.savefig(folder / "occupancy.png")
