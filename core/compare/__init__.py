"""Several runs beside each other: results, settings."""
