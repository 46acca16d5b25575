"""The formats of model folders, each of which is read into a `model.Model` and written from one. No Paddle here."""
