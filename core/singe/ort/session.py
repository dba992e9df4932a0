"""InferenceSession: a model of a file on a device of Singe, called as onnxruntime's."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ..awaitables import IN_PAGE
from ..errors import DeviceError, DTypeError, InputError
from ..lazy_names import LateModule
from ..runtime.device import Device
from .binding import IOBinding
from .descriptions import ModelMetadata, NodeArg, node_arg
from .errors import Fail, ValueKindError, translated
from .feeds import check_names, fed
from .model.model_file import ModelFile
from .model.variants import Variants
from .options import DENOTED, RunOptions, SessionOptions
from .settings.providers import CPU, chosen, listed
from .settings.warned import warn_once
from .values import OrtValue

if TYPE_CHECKING:
    from . import run_times
else:
    run_times = LateModule("ort.run_times")

Providers = Sequence["str | tuple[str, Mapping[str, Any]]"]


class InferenceSession:
    """A model, ready to run: `InferenceSession("model.onnx").run(None, {"x": array})`.

    providers: names such as "CPUExecutionProvider", or pairs of a name and options, of which the first that is here is used;
    ("SingeExecutionProvider", {"device": "wasm"}) takes a device of Singe by its name. Without any it is the fastest CPU device.
    """

    def __init__(
        self,
        path_or_bytes: str | bytes | os.PathLike[str],
        sess_options: SessionOptions | None = None,
        providers: Providers | None = None,
        provider_options: Sequence[Mapping[str, Any]] | None = None,
        **kwargs: Any,
    ) -> None:
        if not isinstance(path_or_bytes, (str, bytes, os.PathLike)):
            raise DTypeError(
                f"Unable to load from type '{type(path_or_bytes)}': expected a path or bytes; of a ModelProto, give SerializeToString()"
            )
        if sess_options is not None and not isinstance(sess_options, SessionOptions):
            raise DTypeError(f"sess_options: got {sess_options!r:.80}, expected SessionOptions()")
        self._model_path = None if isinstance(path_or_bytes, bytes) else os.fspath(path_or_bytes)
        self._model_bytes = path_or_bytes if isinstance(path_or_bytes, bytes) else None
        self._sess_options = sess_options or SessionOptions()
        self._enable_fallback = bool(int(kwargs.get("enable_fallback", 1)))
        self._fallback_providers = [CPU]
        if self._sess_options._denoted:
            warn_once(DENOTED)
        if self._sess_options._cancelled:
            raise Fail("loading was cancelled: set_load_cancellation_flag(True) was called on these options")
        with translated(loading=True):
            self._file: Final = ModelFile(self._model_path, self._model_bytes or b"", self._sess_options)
        self._model_meta: Final = self._file.interface.metadata
        self._open(providers, provider_options)
        self._times = (
            run_times.RunTimes(self._sess_options.profile_file_prefix) if self._sess_options.enable_profiling else None
        )
        if self._sess_options.optimized_model_filepath:
            self._file.write(Path(self._sess_options.optimized_model_filepath))

    def _open(self, providers: Providers | None, options: Sequence[Mapping[str, Any]] | None) -> None:
        """Choose the device, and import the model for it."""
        try:
            wanted = listed(providers, options)
        except InputError as e:
            if not self._enable_fallback:
                raise
            warn_once(f"{e}; the CPU is used")
            wanted = {}
        wanted = wanted or dict(self._sess_options._providers)
        with translated(loading=True):
            provider = chosen(wanted)
            name = "model" if self._model_path is None else Path(self._model_path).stem
            if self._sess_options.intra_op_num_threads > 0:
                with suppress(DeviceError):  # it has no threads of its own
                    provider.device.use_threads(min(self._sess_options.intra_op_num_threads, os.cpu_count() or 1))
            self._variants = Variants(self._file, provider.device, name)
            known = self._variants.shapes()
        self._providers = list(dict.fromkeys((provider.name, CPU)))
        self._provider_options = {name: {} for name in self._providers} | {
            provider.name: {k: str(v) for k, v in provider.options.items()}
        }
        variants = self._variants
        self._inputs_meta = [node_arg(v) for v in variants.inputs.values()]
        self._overridable_initializers = [node_arg(v) for v in variants.overridable.values()]
        names = {d for a in self._inputs_meta for d in a.shape if isinstance(d, str)}
        outputs = self._file.interface.outputs
        self._outputs_meta = [node_arg(v, known.get(v.name), names) for v in outputs]
        self._output_names = [v.name for v in outputs]
        self._specs = {**variants.inputs, **variants.overridable}

    # --- what it says of itself ---

    @property
    def device(self) -> Device:
        """The device of Singe that it runs on."""
        return self._variants.device

    def get_inputs(self) -> list[NodeArg]:
        """The inputs that a run must be given."""
        return self._inputs_meta

    def get_outputs(self) -> list[NodeArg]:
        """The outputs."""
        return self._outputs_meta

    def get_overridable_initializers(self) -> list[NodeArg]:
        """The inputs with values in the file, which a run may be given."""
        return self._overridable_initializers

    def get_modelmeta(self) -> ModelMetadata:
        """What the file says of itself."""
        return self._model_meta

    def get_session_options(self) -> SessionOptions:
        """The options that it was made with."""
        return self._sess_options

    def get_providers(self) -> list[str]:
        """The provider that it uses, and the CPU's."""
        return self._providers

    def get_provider_options(self) -> dict[str, dict[str, str]]:
        """The options of each provider."""
        return self._provider_options

    def set_providers(
        self, providers: Providers | None = None, provider_options: Sequence[Mapping[str, Any]] | None = None
    ) -> None:
        """Go on with other providers."""
        self._open(providers, provider_options)

    def disable_fallback(self) -> None:
        """Raise errors of arguments for providers, in place of using the CPU."""
        self._enable_fallback = False

    def enable_fallback(self) -> None:
        """Use the CPU where arguments for providers are wrong."""
        self._enable_fallback = True

    def set_ep_dynamic_options(self, options: Mapping[str, str]) -> None:
        """Nothing: Singe's devices have no options that change while a session is there."""
        if not options:
            raise ValueKindError("No options were provided: give a dict of texts by their names")

    def get_tuning_results(self) -> list[dict[str, Any]]:
        """What providers found by trying: none does."""
        return []

    def set_tuning_results(self, results: Sequence[Mapping[str, Any]], *, error_on_invalid: bool = False) -> None:
        """Nothing: no provider here reads what another one found."""

    def end_profiling(self) -> str:
        """The name of a file with the times of the runs, and of the steps of one more, in Chrome's format; "" without enable_profiling."""
        times, self._times = self._times, None
        return "" if times is None else times.write(self._variants, self._providers[0])

    def get_profiling_start_time_ns(self) -> int:
        """When profiling began; 0 without enable_profiling."""
        return 0 if self._times is None else self._times.began

    @property
    def _sess(self) -> InferenceSession:
        """onnxruntime's inner session, for programs that call it: the same methods."""
        return self

    @property
    def inputs_meta(self) -> list[NodeArg]:
        """`get_inputs`, as onnxruntime's inner session has it."""
        return self._inputs_meta

    @property
    def outputs_meta(self) -> list[NodeArg]:
        """`get_outputs`, as onnxruntime's inner session has it."""
        return self._outputs_meta

    @property
    def model_meta(self) -> ModelMetadata:
        """`get_modelmeta`, as onnxruntime's inner session has it."""
        return self._model_meta

    def __copy__(self) -> InferenceSession:
        """Another session with the same compiled model."""
        made = object.__new__(type(self))
        vars(made).update(vars(self))
        return made

    def __getstate__(self) -> Any:
        raise DTypeError(
            "cannot pickle InferenceSession: what it compiled is on a device; make one of the model's path where it is needed"
        )

    # --- runs ---

    def run(
        self, output_names: Iterable[str] | None, input_feed: Mapping[str, Any], run_options: RunOptions | None = None
    ) -> list[Any]:
        """The outputs of these names (None: all of them) as arrays, for inputs by name."""
        wanted = self._wanted(output_names)
        found = self._run(input_feed, wanted, run_options)
        return [found[name] for name in wanted]

    def _wanted(self, output_names: Iterable[str] | None) -> list[str]:
        if isinstance(output_names, str):
            raise DTypeError(
                f"run: got the name {output_names!r:.60}, expected a list of names: [{output_names!r:.60}]"
            )
        return list(output_names or self._output_names)

    def _run(
        self, feed: Mapping[str, Any], wanted: Sequence[str], run_options: RunOptions | None, kept: Collection[str] = ()
    ) -> dict[str, Any]:
        """kept: outputs that stay on the device, if they are tensors."""
        if run_options is not None and not isinstance(run_options, RunOptions):
            raise DTypeError(f"run: got {run_options!r:.80}, expected RunOptions() or None")
        check_names(feed, [a.name for a in self._inputs_meta], self._specs, self._output_names, wanted)
        if run_options is not None and run_options.terminate:
            raise Fail("Exiting due to terminate flag being set to true: run_options.terminate is set")
        with translated():
            given = {k: fed(v, self._specs[k], self.device) for k, v in feed.items() if k in self._specs}
            if self._times is not None:
                return self._times.of(given, lambda: self._variants.run(given, kept))
            return self._variants.run(given, kept)

    def run_async(
        self,
        output_names: Iterable[str] | None,
        input_feed: Mapping[str, Any],
        callback: Callable[[list[Any], Any, str], object],
        user_data: Any,
        run_options: RunOptions | None = None,
    ) -> None:
        """A run in another thread, which then calls `callback(outputs, user_data, error)`; error is "" after a run that went well. In a
        page, which has no threads, it runs at once."""
        wanted = self._wanted(output_names)
        check_names(input_feed, [a.name for a in self._inputs_meta], self._specs, self._output_names, wanted)

        def work() -> None:
            try:
                found, error = self.run(wanted, input_feed, run_options), ""
            except Exception as e:  # the caller hears of it
                found, error = [], str(e) or type(e).__name__
            callback(found, user_data, error)

        if IN_PAGE:
            work()
        else:
            threading.Thread(target=work, name="singe-ort", daemon=True).start()

    def run_with_ort_values(
        self,
        output_names: Iterable[str] | None,
        input_dict_ort_values: Mapping[str, OrtValue],
        run_options: RunOptions | None = None,
    ) -> list[OrtValue]:
        """`run` with OrtValues in and out."""
        for name, value in input_dict_ort_values.items():
            if not isinstance(value, OrtValue):
                raise DTypeError(
                    f"run_with_ort_values: input {name!r}: got {value!r:.60}, expected an OrtValue; run takes arrays"
                )
        return [OrtValue._of(value) for value in self.run(output_names, input_dict_ort_values, run_options)]

    def io_binding(self) -> IOBinding:
        """A new binding of inputs and outputs to memory."""
        return IOBinding(self)

    def run_with_iobinding(self, iobinding: IOBinding, run_options: RunOptions | None = None) -> None:
        """Run with the inputs of a binding, which then has the outputs."""
        iobinding._run(run_options)

    def __repr__(self) -> str:
        return f"<InferenceSession of {self._model_path or 'bytes'!r} on {self.device.name}>"
