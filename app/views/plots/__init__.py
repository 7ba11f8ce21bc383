"""Plots of loss, throughput and devices."""
