"""Files that survive a power cut: atomic replacement, private files, locks."""
