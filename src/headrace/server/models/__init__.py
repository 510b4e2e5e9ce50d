"""What goes over the wire, one file for each kind of thing. Nulls are written, never left out."""
