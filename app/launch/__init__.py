"""Start, stop and resume: controllers, and the dialog that shows what resuming will do."""
