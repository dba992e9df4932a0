"""Language models: `sg.language.load` opens one."""

from .generation import Generation as Generation
from .llm import LanguageModel as LanguageModel
from .llm import load as load
from .session import LanguageSession as LanguageSession
from .tokenizing import Tokenizer as Tokenizer
