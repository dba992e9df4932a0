"""Models and graphs, which several tests share."""
