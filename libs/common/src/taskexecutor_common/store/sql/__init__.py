"""Statement files: one per table family, every statement named."""
