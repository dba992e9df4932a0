"""The models that are served, by name: which are language models, and how files are loaded. The room of these is imported for them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from ..errors import InputError
from ..files import places
from ..files.urls import stem_of
from ..model.files import load
from ..model.model import Model
from ..runtime.device import Device

if TYPE_CHECKING:
    from ..language.llm import LanguageModel

OneModel: TypeAlias = "str | Path | Model | LanguageModel"
Models: TypeAlias = "OneModel | Mapping[str, OneModel] | Sequence[OneModel]"


def named_models(models: Models) -> dict[str, OneModel]:
    """The models by name: those of a dict, or called by the names of their files."""
    if isinstance(models, Mapping):
        named = [*models.items()]
    else:
        several = models if isinstance(models, Sequence) and not isinstance(models, str) else [models]
        named = [(_name(m), m) for m in several]
    if not named:
        raise InputError("there is no model to serve: give at least one")
    found: dict[str, OneModel] = {}
    for name, model in named:
        if not name or "/" in name:
            raise InputError(
                f"a model is called {name!r:.80}, expected a name without a slash, as it stands in addresses"
            )
        if name in found:
            raise InputError(f"two models are called {name!r:.80}: give one of them another name, as in {name}2=FILE")
        found[name] = model
    return found


def is_language(model: OneModel) -> bool:
    """Whether it is a language model: of files, GGUF and folders with config.json are."""
    if isinstance(model, (str, Path)):
        return places.is_language(model)
    if isinstance(model, Model):
        return False
    from ..language.llm import LanguageModel  # noqa: PLC0415 (other models need no tokenizers)

    if not isinstance(model, LanguageModel):
        raise InputError(
            f"got {type(model).__name__} as a model, expected a file, a Model or a LanguageModel; see sg.load, Model.of"
        )
    return True


def loaded_models(models: Models, device: str | Device, of_language: Mapping[str, Any]) -> dict[str, Any]:
    """The models by name: Models and LanguageModels. of_language: how language models are loaded, as sg.language.load takes it."""
    named = named_models(models)
    languages = [name for name, model in named.items() if is_language(model)]
    if of_language and not languages:
        what, value = next(iter(of_language.items()))
        raise InputError(f"{what}: got {value} and no language model, expected one")
    return {name: _loaded(model, device, of_language) for name, model in named.items()}


def _name(model: OneModel) -> str:
    if isinstance(model, (str, Path)):
        return stem_of(str(model))
    return model.name if isinstance(model, Model) else Path(model.decoder.name).stem


def _loaded(model: OneModel, device: str | Device, of_language: Mapping[str, Any]) -> Any:
    if not isinstance(model, (str, Path)):
        return model
    if not is_language(model):
        return load(model, device)
    from ..language import llm  # noqa: PLC0415 (other models need no tokenizers)

    return llm.load(model, device, **of_language)
