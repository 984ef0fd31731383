"""One servicer per resource: the wire and nothing else."""
