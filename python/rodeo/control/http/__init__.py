"""The room for its clients: sockets, roles, control, commands."""
