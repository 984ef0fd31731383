"""Sending, one module per endpoint type behind one protocol."""
