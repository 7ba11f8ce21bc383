"""Command palette: finds entries by the words of their names."""
