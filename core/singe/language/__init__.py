"""Language models: `sg.language.load` opens one."""

from ..tracebacks import shorten_all as _shorten_all
from .adapters import LanguageAdapter as LanguageAdapter
from .adapters import examples as examples
from .adapters import load_adapter as load_adapter
from .adapters import lora as lora
from .adapters import next_token_loss as next_token_loss
from .adapters import with_states as with_states
from .generation import Generation as Generation
from .llm import LanguageModel as LanguageModel
from .llm import load as load
from .session import LanguageSession as LanguageSession
from .tokenizing import Tokenizer as Tokenizer

_shorten_all(globals())
