"""The run database of a system, and the journal that keeps records while the database is gone."""
