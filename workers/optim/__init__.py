"""The update rule, the learning rate over time, number formats and random generators."""
