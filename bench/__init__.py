"""What `make bench` runs: this system, a raw ceiling and its peers, side by side on one machine."""
