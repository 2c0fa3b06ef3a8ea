"""Readout cards from Python: registers by name or byte address, and superpages as NumPy arrays that are not copied.

    import rodeo.card
    bar = rodeo.card.open("#0").bar(2)
    bar.read("temperature")                       # or bar.read(0x10008)
    bar.modify("user_control", position=16, width=12, value=0x123)

    with rodeo.card.open("0245:0").dma(data_source="fee", superpage_bytes=1 << 20) as superpages:
        for superpage in superpages:              # superpage.data: what the card wrote, read only
            print(superpage.link, len(superpage.data))

A forked child opens cards itself: with what its parent has open every call is an error, and nothing that it does or leaves undone reaches the card.
A name of a card is what `--id` of the command takes. Errors are ValueError with the text that the command
prints; of a card that does not answer in time TimeoutError, of one that is gone ConnectionError.
"""

from dataclasses import dataclass

import numpy

from rodeo import _card

__all__ = ["Bar", "Card", "Dma", "Superpage", "list_cards", "open"]

Bar = _card.Bar
list_cards = _card.list_cards


@dataclass(frozen=True)
class Superpage:
    """What a card wrote. `data` is the memory itself: it goes back to the card when the next superpage is asked for, by whichever thread, so copy what
    is to stay. An array that is kept longer changes then, but it stays memory: also after the `with`, when nothing writes to it any more."""

    link: int  # -1: of several links (FELIX)
    data: numpy.ndarray


class Dma:
    """A DMA channel: a context manager that starts it, and stops and closes it in the end, and an iterator over superpages.

    The channel is owned from the making of this object to close(), which the end of `with` calls; whoever opens it next, in this process or another,
    finds it free, whatever arrays are still there. Any thread may call any method; threads that share an iterator get different superpages, each of
    which goes back as soon as any of them asks for the next."""

    def __init__(self, channel, patience_s):
        self._channel, self._patience_s = channel, patience_s

    def __enter__(self):
        self.start()
        return self

    def __exit__(self, *_):
        self.close()

    def __iter__(self):
        return self

    def start(self):
        """Resets the card's DMA and starts it. Ignored while it runs."""
        self._channel.start()

    def stop(self):
        """Ends DMA. What the card has filled still comes from the iterator, which ends then; a thread that waits for more gets nothing."""
        self._channel.stop()

    def close(self):
        """Ends DMA and gives the channel away, also if the card is gone, which it says. What was not read is lost; iterators end, arrays stay.
        In a forked child it does nothing."""
        self._channel.close()

    @property
    def place(self):
        """Where the thread that iterates runs: on the card's NUMA node, or why it stays free."""
        return self._channel.place

    def __next__(self):
        """Waits at most `patience_s` for a superpage; ends the iteration then, and once the channel is stopped and empty. ValueError if the channel was
        never started, the card is gone, or it broke the rules of its DMA."""
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
        """Registers of one BAR: read(register), write(register, value), modify(register, position, width, value), which changes `width` bits from
        bit `position` up while no other process does the same and returns what it wrote. A register is a name, name[index], or a byte address.
        ValueError (card.read_only) at a write to one that is declared as one that can only be read, unless `force=True`; number and bytes are the BAR's."""
        return _card.bar(self._card, number)

    def dma(
        self, channel=0, data_source="internal", buffer_bytes=64 << 20, superpage_bytes=1 << 20, patience_s=5.0, numa="card", check_firmware=True
    ):
        """Superpages of a channel; see Dma. `superpage_bytes` is a multiple of 32 KiB (FELIX: of its blocks), below 16 MiB for a CRU, and fits twice or more
        into the buffer; a FELIX card's buffer is whole superpages. The thread that iterates stays on the CPUs of the card's NUMA node (`numa`: "card", "off",
        or a node's number as a text) from the first superpage to the end of the `with`, unless it is pinned already."""
        return Dma(_card.dma(self._card, channel, data_source, buffer_bytes, superpage_bytes, numa, check_firmware), patience_s)


def open(card_id):
    """A card by PCI address ("3b:00.0"), place in the list ("#2") or serial number and endpoint ("0233:1")."""
    return Card(_card.open(card_id))
