"""The main window: its frame, the welcome page, and the shown run in its parts."""
