"""State of the window as values with sentences: the form, available actions, run summary and outcome. No Qt."""
