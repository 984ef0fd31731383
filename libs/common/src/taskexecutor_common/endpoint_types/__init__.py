"""The shape of each endpoint type: its spec, its templates, its rendered request."""
