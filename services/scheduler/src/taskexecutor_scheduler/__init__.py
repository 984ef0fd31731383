"""Time: cron ticks, delayed promotion, and reclaiming what the dead held."""
