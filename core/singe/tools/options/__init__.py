"""What `singe --help` tells: the commands, and what their options take."""

from .parser import CHAINS as CHAINS
from .parser import KINDS as KINDS
from .parser import REFERENCES as REFERENCES
from .parser import ROUNDED as ROUNDED
from .parser import SAYING as SAYING
from .parser import parser as parser
from .shared import OF_CONVERSATIONS as OF_CONVERSATIONS
from .shared import OF_LANGUAGE as OF_LANGUAGE
