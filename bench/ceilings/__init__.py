"""What the machine can do at best: the same work with nothing durable about it, or nothing but the database."""
