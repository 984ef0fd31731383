"""Typed settings; the only reader of the environment."""
