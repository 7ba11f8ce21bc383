"""Preferences: *Settings*, About, the documentation, and the notice of a newer version."""
