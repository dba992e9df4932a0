"""What `singe --help` tells: the commands, and what their options take."""

from .parser import REFERENCES as REFERENCES
from .parser import ROUNDED as ROUNDED
from .parser import parser as parser
