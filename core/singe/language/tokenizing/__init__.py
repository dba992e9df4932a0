"""Tokenizers and the text of conversations."""

from .tokenizer import Tokenizer as Tokenizer
from .tokenizer import TokenStream as TokenStream
