"""Numbers stated in the text of the network paper (EPJ Web of Conferences 295, 02005 (2024)), none read from its pictures."""

EVENT_SIZE_MB, RATE_KHZ = 5.0, 12.0  # section 4: target of one rack's switch
SHALLOW_SHARED_MB, SHALLOW_DEDICATED_MB = 27.0, 5.0  # section 3.1: QFX5120
DEEP_RATE_KHZ = 14.2  # section 4, Figure 3: ACX7100 at 5 MB; limited by applications and servers
SHALLOW_RATE_KHZ = 1.8  # section 4, Figure 3: QFX at 5 MB
SHALLOW_SIZE_AT_TARGET_MB = 2.5  # section 4: the QFX reaches 12 kHz only with smaller events
K = 1.5  # section 4, Figure 4
FIT_MB = (71.0, 1.0)  # section 4: surface through laboratory points, extrapolated
FIT_R2 = 0.99
SIMULATION_48_MB = (109.0, 4.0)  # section 4: 48 readouts
SIMULATION_600_MB = (115.0, 3.0)  # section 4: 600 readouts
