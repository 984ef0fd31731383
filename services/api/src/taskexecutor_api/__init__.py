"""The public contract: authenticate, validate, write, read."""
