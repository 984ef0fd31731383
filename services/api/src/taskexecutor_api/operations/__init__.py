"""What requests do, one file per operation that changes something."""
