"""Losses: modules that compare what a model gives with what was expected. One file for each kind of target."""
