"""What the window knows, as values with sentences: the form, what can be done, how a run stands. No Qt."""
