"""Readout cards from Python: registers by name or byte address, and superpages as NumPy arrays that are not copied.

    import rodeo.card
    bar = rodeo.card.open("#0").bar(2)
    bar.read("temperature")                       # or bar.read(0x10008)
    bar.modify("user_control", position=16, width=12, value=0x123)

    with rodeo.card.open("0245:0").dma(data_source="fee", superpage_bytes=1 << 20) as superpages:
        for superpage in superpages:              # superpage.data: what the card wrote, read only
            print(superpage.link, len(superpage.data))

A forked child must open cards itself. Its calls on objects that the parent opened raise errors and never reach the card.
Cards have the names that the option `--id` of the command takes. Errors are ValueError with the text that the command
prints. A card that does not answer in time raises TimeoutError; a card that is gone raises ConnectionError.
"""

from dataclasses import dataclass

import numpy

from rodeo import _card

__all__ = ["Bar", "Card", "Dma", "Superpage", "list_cards", "open"]

Bar = _card.Bar
list_cards = _card.list_cards


@dataclass(frozen=True)
class Superpage:
    """What a card wrote. `data` is the card's memory, not a copy: it returns to the card when any thread asks for the next superpage. Copy data that you
    keep longer. An array that is kept may change later, but remains readable, even after the `with`; then nothing writes to it any more."""

    link: int  # the link; -1: the superpage has data of several links (FELIX)
    data: numpy.ndarray


class Dma:
    """A DMA channel: an iterator over superpages, and a context manager that starts the channel, then stops and closes it.

    This object owns the channel until close(), which the end of `with` calls. Then any process may open the channel, even while arrays of
    superpages exist. Any thread may call any method. Threads that share an iterator get different superpages; a superpage returns to the card
    as soon as one of these threads asks for the next."""

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
        """Ends DMA. The iterator still returns the superpages that the card has filled, then ends; it also ends in threads that wait for more."""
        self._channel.stop()

    def close(self):
        """Ends DMA and releases the channel, also if the card is gone; then it raises the error. Unread data are lost; iterators end, arrays stay valid.
        In a forked child it does nothing."""
        self._channel.close()

    @property
    def place(self):
        """Where the iterating thread runs: on the card's NUMA node, or the reason why it is not pinned."""
        return self._channel.place

    def __next__(self):
        """Waits at most `patience_s` for a superpage. The iteration ends after this time, or when the channel is stopped and empty. ValueError if the
        channel was never started, or if the card is gone or broke the rules of its DMA."""
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
        """Registers of one BAR: read(register), write(register, value), modify(register, position, width, value). modify() changes `width` bits from
        bit `position` up, locked against modify() of other processes, and returns the value written. A register is a name, name[index], or a byte
        address. A write to a register declared read only is a ValueError (card.read_only) unless `force=True`. Attributes: number, bytes (the BAR's size)."""
        return _card.bar(self._card, number)

    def dma(
        self,
        channel=0,
        data_source="internal",
        buffer_bytes=64 << 20,
        superpage_bytes=1 << 20,
        patience_s=5.0,
        numa="card",
        check_firmware=True,
    ):
        """Superpages of a channel; see Dma. `superpage_bytes` is a multiple of 32 KiB (FELIX: of its blocks), below 16 MiB for a CRU, and at most half of the
        buffer; a FELIX card's buffer is a whole number of superpages. The iterating thread stays on the CPUs of the card's NUMA node from the first superpage
        to the end of the `with`, unless it is pinned already. `numa` is "card", "off", or a node's number as a text."""
        return Dma(
            _card.dma(self._card, channel, data_source, buffer_bytes, superpage_bytes, numa, check_firmware), patience_s
        )


def open(card_id, register_map=""):
    """A card by PCI address ("3b:00.0"), place in the list ("#2") or serial number and endpoint ("0233:1"). `register_map` is for a FELIX that has the
    registers of a known map, "254.0", but names another one. An unknown map is a ValueError (card.unknown_map)."""
    return Card(_card.open(card_id, register_map))
