"""What is known of a system, and what follows from it. Pure: no clock, no I/O."""
