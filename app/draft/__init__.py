"""The draft of New run as a value, its problems, and an estimate of its memory and time."""
