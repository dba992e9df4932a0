"""What is exported: a Model, a language model or a task, as the Models of which bundles are written and what belongs to them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from ...compiler.options import OF_PACKED_WEIGHTS
from ...errors import InputError
from ...late_dataclass import dataclass
from ...model.model import Model
from ...tasks.chains.task import ChainTask
from ...tasks.spec import ChainSpec, TaskSpec

if TYPE_CHECKING:
    from ...language import LanguageModel
    from ...tasks import Task
    from ...tasks.calling import AnyTask
    from .bundle import Spoken

ONNX_SUFFIX: Final = ".onnx"
"""How the name of an ONNX file ends."""


@dataclass(frozen=True)
class ExportSubject:
    """model: whose bundle is the folder. activations: what it computes in. spoken: of a language model. Of a task: its facts, the files that
    it needs, what a call may choose, and the models before the last one of a chain by their folders."""

    model: Model
    activations: str
    spoken: Spoken | None = None
    task: TaskSpec | ChainSpec | None = None
    files: Mapping[str, bytes] = field(default_factory=dict[str, bytes])
    settings: Mapping[str, Any] = field(default_factory=dict[str, Any])
    before: Mapping[str, Model] = field(default_factory=dict[str, Model])


def subject_of(
    exported: Model | LanguageModel | AnyTask, folder: Path, dtype: str, activations: str, chosen: Mapping[str, bool]
) -> ExportSubject:
    """chosen: for each argument that a task has already, whether the caller gave it, too."""
    is_file = folder.suffix in (ONNX_SUFFIX, ".html")
    if isinstance(decoder := getattr(exported, "decoder", None), Model):
        from .language import spoken_of  # noqa: PLC0415 (few bundles are of language models)

        if is_file or dtype != "float32":
            raise InputError("export: of a language model a folder can be written, with the weights as they are")
        return ExportSubject(decoder, decoder.options.activations, spoken_of(cast("LanguageModel", exported)))
    task = getattr(exported, "info", None)
    if not isinstance(task, (TaskSpec, ChainSpec)):
        return ExportSubject(_checked(exported), activations)
    if is_file:
        raise InputError(f"export: got {folder}, a task is written to a folder, such as {folder.with_suffix('')}")
    if own := [name for name, is_given in chosen.items() if is_given]:
        raise InputError(
            f"export: got {' and '.join(own)}, which a task has already; give them to sg.task, or leave them out"
        )
    if isinstance(exported, ChainTask):
        *before, (_, model) = exported.models.items()
        files: Mapping[str, bytes] = {}
    else:
        of_one = cast("Task", exported)
        before, model, files = [], _checked(of_one.model), of_one.files
    settings = cast("AnyTask", exported).settings
    return ExportSubject(model, of_task(model, activations), None, task, files, settings, dict(before))


def _checked(model: Any) -> Model:
    if not isinstance(model, Model):
        shapes_of = 'sg.Model.of(function, {"input": ("N", 3, 224, 224)})'
        raise InputError(
            f"export: got a {type(model).__name__}, expected a Model; of a Module or a function: {shapes_of}"
        )
    return model


def of_task(model: Model, activations: str) -> str:
    """What a task's model computes in: where nothing else is asked for, its own choice."""
    own = model.options.activations
    return own if activations == "float32" and own in OF_PACKED_WEIGHTS else activations
