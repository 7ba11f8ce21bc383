"""Files of every form, cut into pieces of text."""
