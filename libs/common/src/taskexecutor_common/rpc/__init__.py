"""gRPC servers and channels, interceptors, and the translation of errors."""
