"""Dialogs: resume, data preview, packages, charts of a script, DeepSpeed settings."""
