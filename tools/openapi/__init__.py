"""The OpenAPI 3.1 document of the REST surface, generated from the descriptor and its comments."""
