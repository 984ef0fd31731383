"""Migration files: NNNN_name.sql, one idempotent statement per step."""
