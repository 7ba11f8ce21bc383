"""The shown run: what opens it, and its series, data progress and log as Qt models."""
