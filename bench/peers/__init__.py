"""Other job systems doing the same deliveries, each in an environment of its own."""
