"""The verbs `rodeo control` and `rodeo runs`."""
