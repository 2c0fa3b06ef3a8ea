"""Processes and hosts: starts, ends, exits, logs, control sockets, disks."""
