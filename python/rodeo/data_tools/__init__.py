"""The Python part of `rodeo data`: converts event files to HDF5 and back, and to ROOT, draws pictures, and runs users' functions that select events."""
