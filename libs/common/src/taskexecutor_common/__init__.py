"""What the Task Executor services share."""
