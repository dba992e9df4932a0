"""The texts of conversations: templates of models, in Jinja's language."""

from .chat_template import ChatTemplate as ChatTemplate
