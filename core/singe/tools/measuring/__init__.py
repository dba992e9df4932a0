"""How fast a model is, where its time goes, and how far its values are from others."""
