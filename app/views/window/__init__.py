"""The main window, its actions and the shown run's header."""
