"""What the bundle of a language model has beside a decoder: its tokenizer and its chat template."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...errors import InputError
from ...language.adapters.files import adapter_pieces, adapter_rows
from ...language.adapters.reading import OF_STEP
from ...language.decoder import ONE_TOKEN
from ...language.session import CHUNK
from .bundle import Spoken

if TYPE_CHECKING:
    from ...language import LanguageModel


def spoken_of(llm: LanguageModel) -> Spoken:
    """What a page needs of a language model beside its decoder."""
    size = len(llm.tokenizer.vocabulary)
    if size > llm.description.vocabulary:
        raise InputError(
            f"the tokenizer has {size} tokens, the model scores {llm.description.vocabulary}: they are of two models"
        )
    template, marks = llm.texts.template_source()
    facts = {
        "fingerprint": llm.fingerprint, "template": template, "marks": list(marks), "ends": sorted(llm.ends), "context": llm.context, "chunk": CHUNK,
        "rewinds": llm.rewinds,
    }  # fmt: skip
    if llm.learned is None:
        return Spoken(llm.texts.tokenizer_values(llm.tokenizer), facts, ONE_TOKEN)
    states = [[OF_STEP + path, axes] for path, axes in adapter_rows(llm.learned)]
    head = next(adapter_pieces(llm.learned))
    return Spoken(llm.texts.tokenizer_values(llm.tokenizer), {**facts, "adapter": {"states": states}}, ONE_TOKEN, head)
