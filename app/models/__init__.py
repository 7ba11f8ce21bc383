"""What the window shows, as plain values and NumPy arrays: testable without a window."""
