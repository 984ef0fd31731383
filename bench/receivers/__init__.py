"""Where deliveries go: receivers that are not the bottleneck."""
