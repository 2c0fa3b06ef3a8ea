"""Published results of the ATLAS software ROD: values stated in its paper's text and its slides, not values read from pictures.

Paper: S. Kolos, "New software based readout driver for the ATLAS experiment" (2020). Slides: the talk of the same name.
Testbed: two Xeon Gold 5218 (32 cores), 100 GbE with RoCE, data from a second computer through NetIO.
"""

NETWORK_BITS_PER_SECOND = 91.3e9  # section IX.B, ib_send_bw
NETIO_OVERHEAD_BYTES = 12  # overhead of each chunk, eq. (5)
LINKS_PER_CARD = 192  # Table I

RUN3_RATE_HZ = 100e3  # section VII
RUN4_RATE_HZ = 1e6  # section IX.E

SIX_CARDS_RATE_HZ = 150e3  # slides, "GBT mode algorithm performance": ~150 kHz from 1152 E-links
ONE_STREAM_RATE_HZ = 1.76e6  # section IX.D: 24 links in one stream, the only point not limited by the network

# Slides, "GBT mode algorithm performance": S(n) by number of cards.
SPEEDUP_BY_CARDS = {2: {1: 1.82, 2: 1.84, 3: 1.85, 4: 1.90}, 3: {1: 2.65, 2: 2.64}}
# Paper, Table II: average S(n), C_FA, P.
TABLE2 = {2: (1.86, 7.5, 0.925), 3: (2.65, 6.6, 0.934)}

POOL_GAIN = (
    "almost 50 %"  # section IX.E: blocks in a tbb::concurrent_queue instead of new and delete; the slides say ~40 %
)
MASK_GAIN = "10 %"  # slides, "Data receiving thread optimization example": gain in the whole
BRANCH_LOSS = (
    "20 %"  # slides, "ROBFragmentConsumer interface performance optimization": of the whole, with two consumers
)

# Slides on FelixCore's statistics: throughput against that of the first design, in which every count went through a queue.
STATISTICS_TO_QUEUE = {"queue": 1, "central": 1.05, "push": 4, "pull": 5}  # central: gains "< 5 %"
STATISTICS_OF_NONE = 0.15  # relative to the first design: "~85 % performance hit"


def network_limit_hz(cards, overhead_bytes=NETIO_OVERHEAD_BYTES, chunk_bytes=40):
    """Eq. (5): the trigger rate at which the chunks of this number of cards fill the network."""
    return link_limit_hz(NETWORK_BITS_PER_SECOND, cards, chunk_bytes + overhead_bytes)


def link_limit_hz(bits_per_second, cards, wire_bytes):
    """Eq. (5) for another network, and for chunks that take this number of bytes on it."""
    return bits_per_second / (LINKS_PER_CARD * cards * wire_bytes * 8)


def full_mode_network_limit_hz(streams, chunk_bytes=5000):
    """The rate of each stream at which FULL-mode chunks alone fill the same network."""
    return NETWORK_BITS_PER_SECOND / (streams * chunk_bytes * 8)
