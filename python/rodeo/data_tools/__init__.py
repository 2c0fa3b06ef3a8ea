"""What `rodeo data` does in Python: event files to HDF5 and ROOT and back, pictures of them, and functions that choose events."""
