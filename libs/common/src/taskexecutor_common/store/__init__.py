"""Everything that is SQL: the only importer of psycopg."""
