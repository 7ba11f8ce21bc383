"""Tabs below the plots of a run: samples, log, data progress, config, alerts."""
