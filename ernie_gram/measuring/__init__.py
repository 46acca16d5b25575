"""Speeds of this machine for a prediction: of matrix products, of training steps of a shorter model, of exchanges."""
