"""The New run sheet: its fields and dialogs (data preview, tuning, charts of a script)."""
