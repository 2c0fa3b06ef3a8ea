"""The controller of a system reads all processes, decides with `state`, and acts."""
