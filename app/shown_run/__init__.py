"""The shown run: its controller, and its series, data progress and log as Qt models."""
