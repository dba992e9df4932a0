"""Adapters: small matrices beside the frozen ones of a language model, which training learns."""

from .examples import examples as examples
from .examples import next_token_loss as next_token_loss
from .files import load_adapter as load_adapter
from .lora import LanguageAdapter as LanguageAdapter
from .lora import lora as lora
from .reading import with_states as with_states
