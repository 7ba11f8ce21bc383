"""Watches of an attempt: each looks at its ranks or its machine and reports what it finds."""
