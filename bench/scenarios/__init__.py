"""One file per question that the benchmark answers."""
