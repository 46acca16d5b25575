"""Processes, devices, and the exchange of data between them. No other package imports fleet."""
