"""The texts of conversations: templates of models, in Jinja's language."""

from .chat_template import ChatTemplate as ChatTemplate
from .chat_template import check_messages as check_messages
from .tool_calls import CallForm as CallForm
from .tool_calls import CallReader as CallReader
