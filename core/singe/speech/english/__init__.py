"""How English is read aloud: numbers as words, words as sounds."""

from .numbers import SPACE as SPACE
from .pronouncing import TABLES as TABLES
from .pronouncing import English as English
from .pronouncing import read_dictionary as read_dictionary
