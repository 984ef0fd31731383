"""The Envoy gateway of Task Executor: its configuration, generated from the descriptor."""
