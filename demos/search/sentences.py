"""Ten thousand sentences of everyday life, made of a few forms and lists of words: something to look through, and nobody else's text."""

from __future__ import annotations

import itertools
import random
from collections.abc import Sequence
from typing import Final

COUNT: Final = 10_000
_WHO: Final = (
    "my sister", "the old baker", "a nurse from the north", "our neighbour", "the choir", "a retired engineer", "the youngest student", "her uncle",
    "the captain", "a tired father", "the librarian", "their football team", "a street musician", "the village doctor", "my colleague", "the gardener",
    "a shy cousin", "the bus driver", "our landlady",
)  # fmt: skip
_WHEN: Final = (
    "before sunrise", "last winter", "on a rainy Sunday", "during the holidays", "after the storm", "every Thursday evening", "in the middle of the night",
    "when the shops had closed", "a week before the wedding", "on the first warm day of spring",
)  # fmt: skip
_DID: Final = (
    "baked three loaves of rye bread", "repaired a bicycle with a flat tyre", "lost the keys to the car", "learned the first verses of a song",
    "planted tomatoes on the balcony", "waited two hours for the train", "wrote a letter to the tax office", "counted the stars through a small telescope",
    "fed the ducks at the pond", "painted the kitchen yellow", "broke an arm while skating", "won a prize for short stories",
    "cooked soup for forty guests", "forgot the password of the bank account", "found a kitten under the stairs", "measured the depth of the lake",
    "sold the apartment at a loss", "ran a marathon in the rain", "translated a poem from Portuguese", "built a bookshelf out of old doors",
    "missed the flight to Lisbon", "caught a cold and stayed in bed", "taught the parrot to say good morning", "collected signatures against the new road",
    "tuned the piano in the town hall", "dreamed of sailing around the world", "discovered a leak in the roof", "bought shares of a solar company",
    "photographed a fox in the snow", "argued about the price of fish", "voted for the first time", "fell asleep in the theatre",
)  # fmt: skip
_WHAT: Final = (
    "the museum", "the harbour", "the bridge over the river", "the school kitchen", "the weather station", "the night bus", "the old cinema",
    "the public library", "the hospital", "the railway station", "the market hall", "the swimming pool", "the lighthouse", "the botanical garden",
)  # fmt: skip
_NEWS: Final = (
    "will be closed for repairs", "has a new roof of copper", "was flooded by the heavy rain", "opens its doors to children for free",
    "needs forty volunteers", "was sold to a foreign bank", "celebrates its hundredth birthday", "has run out of money", "is said to be haunted",
    "will be powered by the wind", "was cleaned by students", "is full of tourists from overseas", "lost its director", "was praised by the mayor",
    "has been painted green", "is looking for a cook", "was shown on television", "reports a record number of visitors", "banned mobile phones",
    "is to be moved to the other bank",
)  # fmt: skip
_THINGS: Final = (
    "a cup of strong coffee", "an umbrella", "a good pair of shoes", "a slice of lemon cake", "a working heater", "a quiet room", "a map of the mountains",
    "fresh basil", "a spare battery", "a long night of sleep", "a patient teacher", "a sharp knife", "warm woollen socks", "a second opinion", "a cheap hotel",
)  # fmt: skip
_FOR: Final = (
    "crossing the desert", "a long meeting", "an exam in chemistry", "a picnic by the sea", "writing a novel", "a visit to the dentist", "a week in the forest",
    "learning to swim", "a difficult conversation", "moving to another city", "a broken heart", "cooking for friends", "an evening of cards",
    "the first day at work", "watching birds", "a walk with the dog", "repairing a radio", "a baby that cries at night",
)  # fmt: skip
_VALUED: Final = (
    "is worth more than gold",
    "costs less than one thinks",
    "makes all the difference",
    "is hard to find",
    "should not be forgotten",
)


def _sentence(words: Sequence[str]) -> str:
    text = " ".join(words)
    return f"{text[0].upper()}{text[1:]}."


def sentences(count: int = COUNT) -> list[str]:
    """The same each time, in no order."""
    forms = (
        ((*who, did, when) for who, did, when in itertools.product([(w,) for w in _WHO], _DID, _WHEN)),
        ((what, news, when) for what, news, when in itertools.product(_WHAT, _NEWS, _WHEN)),
        (("for", use, thing, value) for use, thing, value in itertools.product(_FOR, _THINGS, _VALUED)),
    )
    every = [_sentence(words) for form in forms for words in form]
    random.Random(1).shuffle(every)
    return every[:count]
