"""The New run sheet: its fields, and what its buttons open: data preview, tuning, charts of a script."""
