-- How long finished work is kept, per namespace; NULL: as the scheduler's setting says.

-- step: namespaces_retention both
ALTER TABLE namespaces ADD COLUMN IF NOT EXISTS retention_sec BIGINT;
