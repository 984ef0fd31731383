"""Delivery: claims executions, renders and sends them, records what happened."""
