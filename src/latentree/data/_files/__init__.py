"""Tables in files: reading by suffix, whole or in pieces, and writing."""
