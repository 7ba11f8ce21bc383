"""Page of other machines."""
