"""The controller of a system: it looks, decides with `state`, and acts."""
