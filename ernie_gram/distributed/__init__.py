"""Processes, devices and what they exchange. No other package imports fleet."""
