"""The run database of a system, and its journal while it is gone."""
