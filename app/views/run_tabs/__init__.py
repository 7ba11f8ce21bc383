"""What stands beside the plots of a run: samples, log, data progress, settings, alerts."""
