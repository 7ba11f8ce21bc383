"""Widgets: they draw state and emit what a person asks for."""
