-- Regions and whether they live.

-- name: list_region_status
SELECT s.region, s.alive FROM region_status AS s ORDER BY s.region;
