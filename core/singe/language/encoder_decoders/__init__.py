"""Networks with an encoder and a decoder, by their architecture: a text or a sound is read once, and texts about it are said token by token."""
