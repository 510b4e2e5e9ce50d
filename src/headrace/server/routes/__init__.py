"""One file for each kind of thing; each has a `router`."""
