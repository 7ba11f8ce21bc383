"""The page of the shown run: its header, figures and outcome, as texts and widgets, and its files."""
