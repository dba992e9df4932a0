"""What files beside a model that hears say of it: those of Hugging Face, and that of a wake word."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...errors import FormatError
from ...files.bounded import read_json_object
from ...files.sounds.sound import RATES
from ..labels import labels_of_config
from ..medium import Wishes
from ..places import OWN_FACTS
from .forms import FORMS
from .spec import MAX_FEATURE

if TYPE_CHECKING:
    from ..kinds import TaskKind

CONFIG: Final = "config.json"
FEATURES: Final = "preprocessor_config.json"
READS: Final = (CONFIG, FEATURES, OWN_FACTS, *(name for form in FORMS.values() for name in form.networks))
WAKE_WORDS: Final = "micro features"
"""The form of models beside which OWN_FACTS says what a wake word is."""
FEATURED: Final = "waves"
"""The form of models beside which FEATURES says the rate; kinds that have it have that of spectrogram transformers, too."""
MAX_MEAN_OF: Final = 1000


def wishes_with_files(kind: TaskKind, wishes: Wishes) -> Wishes:
    """Wishes, with what the files say where the caller says nothing."""
    if OWN_FACTS in wishes.files and WAKE_WORDS in kind.forms:
        return _of_wake_word(wishes, wishes.files[OWN_FACTS])
    facts = _features(wishes.files[FEATURES]) if FEATURES in wishes.files and FEATURED in kind.forms else {}
    config = read_json_object(wishes.files[CONFIG]) if CONFIG in wishes.files else {}
    several = "several" if config.get("problem_type") == "multi_label_classification" else ""
    head = next((x.name for x in kind.heads if x.name == several), "")
    return replace(
        wishes,
        labels=wishes.labels or (labels_of_config(config) if kind.labels else ()),
        head=wishes.head or head,
        preparation={**facts, **wishes.preparation},
    )


def _features(path: Path) -> dict[str, Any]:
    """The rate of sounds, or what a spectrogram transformer's features are lessened by, and divided by."""
    facts = read_json_object(path)
    if facts.get("feature_extractor_type") != "ASTFeatureExtractor":
        return {"rate": _whole(facts, "sampling_rate", RATES[0], RATES[-1], path)} if "sampling_rate" in facts else {}
    if facts.get("do_normalize") is False:
        return {"center": 0.0, "spread": 1.0}
    return {
        own: _number(facts, theirs, -MAX_FEATURE, MAX_FEATURE, path) * times
        for own, theirs, times in (("center", "mean", 1), ("spread", "std", 2))
        if theirs in facts
    }


def _of_wake_word(wishes: Wishes, path: Path) -> Wishes:
    """As microWakeWord's files say it."""
    facts = read_json_object(path)
    micro = facts.get("micro")
    word = facts.get("wake_word")
    if not isinstance(micro, dict) or not isinstance(word, str):
        return wishes  # of something else
    threshold = _number(micro, "probability_cutoff", 0, 1, path)
    if threshold == 1:
        raise FormatError(
            f"{path}: probability_cutoff is 1, which no score is over, expected a number from 0 to under 1"
        )
    options = {"threshold": threshold, "mean_of": _whole(micro, "sliding_window_size", 1, MAX_MEAN_OF, path)}
    return replace(wishes, labels=wishes.labels or (word,), options=options)


def _number(facts: Mapping[str, Any], name: str, least: float, most: float, path: Path) -> float:
    value: Any = facts.get(name)
    if type(value) not in (int, float) or not least <= value <= most:
        raise FormatError(f"{path}: {name} is {value!r:.40}, expected a number from {least} to {most}")
    return float(value)


def _whole(facts: Mapping[str, Any], name: str, least: int, most: int, path: Path) -> int:
    number = _number(facts, name, least, most, path)
    if not number.is_integer():
        raise FormatError(f"{path}: {name} is {number}, expected a whole number")
    return int(number)
