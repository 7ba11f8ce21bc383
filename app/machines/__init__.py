"""Other machines: the page that keeps them, and runs there that are followed."""
