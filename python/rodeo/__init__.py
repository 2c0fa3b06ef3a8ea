"""Rodeo for Python: sizing of event-building networks (rodeo.network), figures. Run with PYTHONPATH=build/python."""
