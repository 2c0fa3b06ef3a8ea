"""How much buffer an event-building network needs: closed forms and superposition of events, as functions with arrays out."""

from .formula import Formula, formula, highest_rate, superposition

__all__ = ["Formula", "formula", "highest_rate", "superposition"]
