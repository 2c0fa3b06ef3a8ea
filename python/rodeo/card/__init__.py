"""Readout cards from Python: registers by name or byte address, and superpages as NumPy arrays that are not copied.

    import rodeo.card
    bar = rodeo.card.open("#0").bar(2)
    bar.read("temperature")                       # or bar.read(0x10008)
    bar.modify("user_control", position=16, width=12, value=0x123)

    with rodeo.card.open("0245:0").dma(data_source="fee", superpage_bytes=1 << 20) as superpages:
        for superpage in superpages:              # superpage.data: what the card wrote, read only
            print(superpage.link, len(superpage.data))

A name of a card is what `--id` of the command takes. Errors are ValueError with the text that the command prints.
"""

from dataclasses import dataclass

import numpy

from rodeo import _card

__all__ = ["Bar", "Card", "Dma", "Superpage", "list_cards", "open"]

Bar = _card.Bar
list_cards = _card.list_cards


@dataclass(frozen=True)
class Superpage:
    """What a card wrote. `data` is the memory itself: it goes back to the card when the next superpage is asked for, so copy what is to stay."""

    link: int  # -1: of several links (FELIX)
    data: numpy.ndarray


class Dma:
    """A DMA channel, owned from its making to the end of its process or of the last array from it; a context manager that starts and stops it, and an iterator."""

    def __init__(self, channel, patience_s):
        self._channel, self._patience_s = channel, patience_s

    def __enter__(self):
        self._channel.start()
        return self

    def __exit__(self, *_):
        self._channel.stop()

    def __iter__(self):
        return self

    @property
    def place(self):
        """Where the thread that iterates runs: on the card's NUMA node, or why it stays free."""
        return self._channel.place

    def __next__(self):
        """Waits at most `patience_s` for data; ends the iteration then."""
        found = self._channel.next(self._patience_s)
        if found is None:
            raise StopIteration
        return Superpage(*found)


class Card:
    def __init__(self, card):
        self._card = card

    type = property(lambda self: self._card.type)
    pci_address = property(lambda self: self._card.pci_address)
    serial = property(lambda self: self._card.serial)
    endpoint = property(lambda self: self._card.endpoint)

    def bar(self, number):
        """Registers of one BAR: read(register), write(register, value), modify(register, position, width, value). A register is a name,
        name[index], or a byte address."""
        return _card.bar(self._card, number)

    def dma(self, channel=0, data_source="internal", buffer_bytes=64 << 20, superpage_bytes=1 << 20, patience_s=5.0, numa="card"):
        """Superpages of a channel; see Dma. The thread that iterates stays on the CPUs of the card's NUMA node (`numa`: "card", "off", or a
        node's number as a text) from the first superpage to the end of the `with`, unless it is pinned already."""
        return Dma(_card.dma(self._card, channel, data_source, buffer_bytes, superpage_bytes, numa), patience_s)


def open(card_id):
    return Card(_card.open(card_id))
