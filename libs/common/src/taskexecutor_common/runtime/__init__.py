"""What every service does: start, loop, beat, stop."""
