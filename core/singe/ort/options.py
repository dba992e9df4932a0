"""Options of sessions and of runs. Those that only ask for speed or say what is logged change no answer: they are kept, and
nothing is done. Those that ask for a file or for foreign code are refused, or said not to be honoured."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Final

from ..errors import DTypeError
from .errors import Fail, ValueKindError
from .errors import NotImplemented as Lacking
from .settings.enums import ExecutionMode, ExecutionOrder, GraphOptimizationLevel
from .values import OrtValue


class _Options:
    """Named options with types, which are checked when they are set, as onnxruntime's are."""

    _kinds: ClassVar[Mapping[str, type]]

    def __setattr__(self, name: str, value: Any) -> None:
        kind = self._kinds.get(name)
        if kind is None:
            raise AttributeError(
                f"{type(self).__name__!r} object has no attribute {name!r}; it has {', '.join(self._kinds)}"
            )
        if kind in (int, bool) and hasattr(value, "__index__"):  # NumPy's, and each for the other
            value = kind(value.__index__())
        if not isinstance(value, kind):
            raise DTypeError(f"{type(self).__name__}.{name}: got {value!r:.80}, expected {kind.__name__}")
        super().__setattr__(name, value)

    def _store(self, **values: Any) -> None:
        for name, value in values.items():
            super().__setattr__(name, value)

    def __getstate__(self) -> Any:
        raise DTypeError(f"cannot pickle {type(self).__name__}; make one where it is needed")


class SessionOptions(_Options):
    """Options of an InferenceSession."""

    enable_cpu_mem_arena: bool
    enable_mem_pattern: bool
    enable_mem_reuse: bool
    enable_profiling: bool
    execution_mode: ExecutionMode
    execution_order: ExecutionOrder
    graph_optimization_level: GraphOptimizationLevel
    inter_op_num_threads: int
    intra_op_num_threads: int
    log_severity_level: int
    log_verbosity_level: int
    logid: str
    optimized_model_filepath: str
    profile_file_prefix: str
    use_deterministic_compute: bool
    use_per_session_threads: bool

    _kinds: ClassVar = {
        "enable_cpu_mem_arena": bool, "enable_mem_pattern": bool, "enable_mem_reuse": bool, "enable_profiling": bool,
        "execution_mode": ExecutionMode, "execution_order": ExecutionOrder, "graph_optimization_level": GraphOptimizationLevel,
        "inter_op_num_threads": int, "intra_op_num_threads": int, "log_severity_level": int, "log_verbosity_level": int, "logid": str,
        "optimized_model_filepath": str, "profile_file_prefix": str, "use_deterministic_compute": bool, "use_per_session_threads": bool,
    }  # fmt: skip

    def __init__(self) -> None:
        self._store(
            enable_cpu_mem_arena=True, enable_mem_pattern=True, enable_mem_reuse=True, enable_profiling=False,
            execution_mode=ExecutionMode.ORT_SEQUENTIAL, execution_order=ExecutionOrder.DEFAULT,
            graph_optimization_level=GraphOptimizationLevel.ORT_ENABLE_ALL, inter_op_num_threads=0, intra_op_num_threads=0,
            log_severity_level=-1, log_verbosity_level=0, logid="", optimized_model_filepath="",
            profile_file_prefix="onnxruntime_profile_", use_deterministic_compute=False, use_per_session_threads=True,
        )  # fmt: skip
        self._store(_entries={}, _sizes={}, _denoted={}, _initializers={}, _files={}, _providers=[])

    _entries: dict[str, str]
    _sizes: dict[str, int]
    _denoted: dict[str, int]
    _initializers: dict[str, OrtValue]
    _files: dict[str, bytes]
    _providers: list[tuple[str, dict[str, str]]]

    def add_session_config_entry(self, key: str, value: str) -> None:
        """Keep a setting by its name."""
        _texts("add_session_config_entry", key, value)
        self._entries[key] = value

    def get_session_config_entry(self, key: str) -> str:
        """A setting that was kept."""
        if key not in self._entries:
            raise ValueKindError(f"SessionOptions does not have configuration with key: {key}; {_kept(self._entries)}")
        return self._entries[key]

    def add_free_dimension_override_by_name(self, name: str, size: int) -> None:
        """Give a size that the model names a number."""
        self._sizes[name] = int(size)

    def add_free_dimension_override_by_denotation(self, denotation: str, size: int) -> None:
        """Give the sizes that the model denotes so a number. Singe reads no denotations: a session says that they stay open."""
        self._denoted[denotation] = int(size)

    def add_initializer(self, name: str, value: OrtValue) -> None:
        """Use a value in place of a weight of the file."""
        if not isinstance(value, OrtValue):
            raise DTypeError(
                f"add_initializer: got {value!r:.80}, expected an OrtValue, as of OrtValue.ortvalue_from_numpy"
            )
        self._initializers[name] = value

    def add_external_initializers(self, names: list[str], values: list[OrtValue]) -> None:
        """Use values in place of weights of the file."""
        for name, value in zip(names, values, strict=True):
            self.add_initializer(name, value)

    def add_external_initializers_from_files_in_memory(
        self, names: list[str], buffers: list[bytes], lengths: list[int]
    ) -> None:
        """Bytes for the files of external data that a model in memory names."""
        for name, data, length in zip(names, buffers, lengths, strict=True):
            self._files[name] = bytes(memoryview(data)[:length])

    def add_provider(self, name: str, options: Mapping[str, str]) -> None:
        """A provider for sessions that are made without a list of them."""
        self._providers.append((name, dict(options)))

    def has_providers(self) -> bool:
        """Whether a provider was added."""
        return bool(self._providers)

    def register_custom_ops_library(self, path: str) -> None:
        """Refused: such a library is native code for onnxruntime."""
        if not Path(path).exists():
            raise Fail(f"register_custom_ops_library: {path} is not there")
        raise Lacking(
            f"register_custom_ops_library: {path} holds native code for onnxruntime, which Singe cannot call; write the op with sg.op, "
            "or export the model without it"
        )

    def set_load_cancellation_flag(self, cancelled: bool) -> None:
        """Refuse to load with these options, or allow it again."""
        self._store(_cancelled=bool(cancelled))

    _cancelled: bool = False


class RunOptions(_Options):
    """Options of a run."""

    log_severity_level: int
    log_verbosity_level: int
    logid: str
    only_execute_path_to_fetches: bool
    terminate: bool

    _kinds: ClassVar = {
        "log_severity_level": int, "log_verbosity_level": int, "logid": str, "only_execute_path_to_fetches": bool, "terminate": bool,
    }  # fmt: skip

    def __init__(self) -> None:
        self._store(
            log_severity_level=-1, log_verbosity_level=0, logid="", only_execute_path_to_fetches=False, terminate=False
        )
        self._store(_entries={})

    _entries: dict[str, str]

    def add_run_config_entry(self, key: str, value: str) -> None:
        """Keep a setting by its name."""
        _texts("add_run_config_entry", key, value)
        self._entries[key] = value

    def get_run_config_entry(self, key: str) -> str:
        """A setting that was kept."""
        if key not in self._entries:
            raise ValueKindError(f"RunOptions does not have configuration with key: {key}; {_kept(self._entries)}")
        return self._entries[key]


DENOTED: Final = (
    "add_free_dimension_override_by_denotation: sizes stay open; name them with add_free_dimension_override_by_name"
)


def _texts(what: str, key: object, value: object) -> None:
    if not isinstance(key, str) or not isinstance(value, str):
        raise DTypeError(f"{what}: got {key!r:.60} and {value!r:.60}, expected two strings, such as '{key}' and '1'")


def _kept(entries: Mapping[str, str]) -> str:
    return f"the keys are {', '.join(entries)}" if entries else "none was added"
