"""AnyTask: what all tasks have, however many models are in them: they are called with what their medium has, and closed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

from ..errors import InputError
from ..runtime.device import Device
from .medium import is_list


class AnyTask:
    """kind: its name. settings: what a call may choose, and the defaults. held: its models, until it is closed.
    streams_texts: whether `stream` takes a text as it is."""

    streams_texts: ClassVar[bool] = False

    def __init__(self, kind: str, settings: Mapping[str, Any], held: object) -> None:
        self.kind = kind
        self.settings = settings
        self._held = held

    @property
    def device(self) -> Device:
        raise NotImplementedError

    def _begin(self, settings: Mapping[str, Any]) -> Callable[[Any], Any]:
        """What answers for one source after the other; it may keep what it saw."""
        raise NotImplementedError

    def _several(self, sources: Sequence[Any], settings: Mapping[str, Any]) -> list[Any]:
        """The answers for several sources, each by itself."""
        return [self._begin(settings)(source) for source in sources]

    def close(self) -> None:
        """Give up the models; later calls are refused."""
        self._held = None

    @property
    def is_closed(self) -> bool:
        return self._held is None

    def _open(self) -> Any:
        """What is held; an InputError where the task is closed."""
        if self._held is None:
            raise InputError(f"{self.kind}: the task is closed; make another with sg.task")
        return self._held

    def __call__(self, source: Any, **settings: Any) -> Any:
        """The answer for a picture: a path, a URL, bytes, an array, a picture of Pillow; for a sound: a path, a URL, bytes, or an array with
        `sampling_rate`; or for a text. For a list of them, a list of answers.

        settings: of `classify`, top; of `detect`, `faces` and `landmarks`, threshold and top; of `ocr`, threshold; of `embed`, prompt and
        dimensions.
        """
        chosen = self._chosen(settings)
        if is_list(source):
            return self._several(source, chosen)
        return self._begin(chosen)(source)

    def stream(self, frames: Iterable[Any], **settings: Any) -> Iterator[Any]:
        """The answers for the frames of a video, or for blocks of a sound, one after the other, as they come. `landmarks` follows what it found."""
        whole = isinstance(frames, (str, bytes, Path, Mapping)) or getattr(frames, "ndim", 2) < 2
        if not isinstance(frames, Iterable) or (whole and not (self.streams_texts and isinstance(frames, str))):
            raise InputError(
                f"{self.kind}: stream: got a {type(frames).__name__}, expected a list or a generator of parts, such as blocks of samples; "
                "what is there as a whole is for a call of the task itself"
            )
        return self._stream(frames, self._chosen(settings))

    def _stream(self, frames: Iterable[Any], settings: Mapping[str, Any]) -> Iterator[Any]:
        return map(self._begin(settings), frames)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def _chosen(self, settings: Mapping[str, Any]) -> Mapping[str, Any]:
        if unknown := settings.keys() - self.settings.keys():
            told = f"expected some of {', '.join(self.settings)}" if self.settings else "it takes none"
            raise InputError(f"{self.kind}: got {', '.join(sorted(unknown))}; {told}")
        return {**self.settings, **settings}
