"""What resuming a run means, found out before anything is changed."""
