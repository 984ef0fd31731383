"""Clients that create jobs as fast as they are taken."""
