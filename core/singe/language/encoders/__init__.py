"""Encoders of texts by their architecture: vectors of tokens, and what heads say of them."""
