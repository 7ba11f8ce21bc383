"""Page of a run that waits for other machines."""
