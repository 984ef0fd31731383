"""This system as a contestant: the stack of `make run`, and how it is filled."""
