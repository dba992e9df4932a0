"""LanguageModel: a decoder on a device, with the tokenizer and the chat template of its files."""

from __future__ import annotations

import copy
import hashlib
import json
import math
import weakref
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final

import numpy as np

from ..compiler.target import execution_of
from ..dtypes import HELD_IN
from ..errors import InputError
from ..hints import spelt_like
from ..model.kept import KeptFile
from ..model.model import Model
from ..nn import Module
from ..runtime.device import Device
from ..runtime.devices import device as open_device
from ..runtime.recent_values import Recent
from ..weights.rounding import FORMS
from .adapters.lora import LanguageAdapter, adapted, check_matrices, merged
from .constraints.constraint import TextConstraint, TokenBytes
from .decoder import ONE_TOKEN, Decoder
from .description import MAX_CONTEXT, DecoderDescription
from .files import ModelFiles, open_model
from .generation import Generation, GenerationOptions
from .layers import Norm
from .models import DecoderModels
from .sampling import SamplingOptions
from .session import LanguageSession, chunks
from .shifting import Shift, common_beginning
from .side_by_side import SideBySide
from .templating import ChatTemplate, check_messages
from .texts import ModelTexts
from .tokenizing import Tokenizer
from .vectors import TextVectors

DEFAULT_CONTEXT: Final = 4096
COMPUTED_IN: Final = {"auto": "int16", "int16": "int16", "int8": "packed_int8", "float32": "float32"}
"""`activations` ↦ those of the compiler."""
CACHE_DTYPES: Final = {"auto": "float16", "int16": "float16", "int8": "float16", "float32": "float32"}
"""`activations` ↦ the type of keys and values that are held, by default."""
MAX_CONSTRAINTS: Final = 16
"""Schemas and regular expressions whose automata are kept."""
_OF_SAMPLING: Final = frozenset(SamplingOptions.__dataclass_fields__)


def load(
    path: str | Path,
    device: str | Device = "auto",
    *,
    context: int = DEFAULT_CONTEXT,
    activations: str = "auto",
    weights: str | None = None,
    cache_dtype: str | None = None,
    chat_template: str | Path | None = None,
) -> LanguageModel:
    """The language model in a GGUF file (the first one, if it is in several pieces), or in a folder of Hugging Face with config.json and
    safetensors.

        llm = sg.language.load("model.gguf")
        for part in llm.chat([{"role": "user", "content": "Hello"}]):
            print(part, end="", flush=True)

    context: for how many tokens a conversation has room; no more than those for which the model was trained. activations: "float32"
    computes in floats everywhere; with "auto", and "int16", products with packed weights take 16-bit integers where that is faster (on `wasm`,
    twice), which changes probabilities by about 1e-3 of themselves; with "int8", those with 4 bits take integers of which 8 bits count:
    faster once more, and less accurate. weights: rounds matrices that the file has as floats to "q4_0", "q4_1",
    "q4_k", "q8_0" or "int4", the tables of tokens to "q8_0"; packed ones stay as they are. cache_dtype: the type in which the keys and
    values of conversations are held: "float16", which changes probabilities by about 1e-3 of themselves, "float32", in twice the memory,
    or "int8", in 9 sixteenths of it, less accurate. None: "float32" with activations "float32", otherwise "float16". chat_template: a
    file in Jinja's language in place of the model's own template, which some GGUF files lack.
    """
    return LanguageModel(path, device, context, activations, weights, cache_dtype, chat_template)


class LanguageModel:
    """A language model: `sg.language.load` makes one. `chat` and `generate` give texts in parts, `session` keeps a conversation, and
    `logits` gives the scores of all next tokens."""

    def __init__(
        self,
        path: str | Path,
        device: str | Device = "auto",
        context: int = DEFAULT_CONTEXT,
        activations: str = "auto",
        weights: str | None = None,
        cache_dtype: str | None = None,
        chat_template: str | Path | None = None,
    ) -> None:
        if type(context) is not int or not 0 < context <= MAX_CONTEXT:
            raise InputError(f"context: got {context!r:.40}, expected a number of tokens from 1 to {MAX_CONTEXT}")
        if activations not in COMPUTED_IN:
            raise InputError(f"activations: got {activations!r:.40}, expected one of {', '.join(COMPUTED_IN)}")
        if weights is not None and weights not in FORMS:
            raise InputError(f"weights: got {weights!r:.40}, expected one of {', '.join(FORMS)}")
        cache_dtype = CACHE_DTYPES[activations] if cache_dtype is None else cache_dtype
        if cache_dtype not in HELD_IN:
            raise InputError(f"cache_dtype: got {cache_dtype!r:.40}, expected one of {', '.join(HELD_IN)}")
        files = open_model(path, context)
        if weights is not None:
            files.tensors.round(weights)
        self.description: Final[DecoderDescription] = files.description
        self.context: Final = min(context, files.description.context)
        """For how many tokens a conversation has room."""
        self.rewinds: Final = files.description.rewinds
        """Whether a session can go back without computing again."""
        self._tensors: Final = files.tensors
        on, name, computed = open_device(device), Path(files.name).name, COMPUTED_IN[activations]
        kept = KeptFile.of(files.paths, None, on, name, "language", context, computed, weights, cache_dtype)
        self._network: Final = _Held(partial(_filled, files, self.context, cache_dtype, kept))
        models = DecoderModels(self._network, self.context, on, name, computed, kept)
        self.decoder: Final[Model] = _decoder(models)
        """What computes the scores, with the keys and values of the tokens before as states."""
        self.texts: Final = ModelTexts(files, chat_template)
        """What its files say of text."""
        self.side_by_side: Final = SideBySide(models)
        """Adds a token to each of several sessions in one run."""
        self.vectors: Final = TextVectors(models, files.description.width)
        self._idle: LanguageSession | None = None
        """The session of `chat` and `generate`, while none of them uses it."""
        self.learned: LanguageAdapter | None = None
        """The adapter of which the matrices are states of `decoder`: of what `with_states` gives."""
        self.adapters: Final[dict[str, Module]] = {}
        """Adapters by names of the caller's choice, for `adapter` and `merged`: `llm.adapters["mine"] = step.model`."""
        self._base: Final = self
        self._activations: Final = activations
        self._constraints: Final[Recent[TextConstraint]] = Recent(MAX_CONSTRAINTS)
        self._switched: Final[dict[str, tuple[LanguageAdapter, LanguageModel]]] = {}

    def __repr__(self) -> str:
        d = self.description
        return f"<language model {self.decoder.name}: {d.architecture.name}, {len(d.layers)} layers, on {self.decoder.device.name}>"

    @property
    def device(self) -> Device:
        return self.decoder.device

    @property
    def network(self) -> Decoder:
        """The decoder as a module, made of the files when it is first asked for."""
        return self._network()

    @cached_property
    def fingerprint(self) -> str:
        """Differs between models, so that a saved session is read by none but its own."""
        d = self.description
        norm = Norm(self._tensors, d.architecture.last_norm, d.width, d.epsilon, d.architecture.layer_norm)
        return hashlib.sha256(repr(d).encode() + norm.weight.numpy().tobytes()).hexdigest()

    @cached_property
    def tokenizer(self) -> Tokenizer:
        return self.texts.tokenizer()

    @cached_property
    def ends(self) -> frozenset[int]:
        """The tokens with which the model ends a text."""
        return self.texts.ends(self.tokenizer)

    @cached_property
    def chats(self) -> bool:
        """Whether it has a chat template; without one, `generate` goes on with a text."""
        return isinstance(self.texts.template_source()[0], str)

    @cached_property
    def _template(self) -> ChatTemplate:
        return self.texts.template()

    def template(
        self, messages: Sequence[Mapping[str, Any]], tools: Any = None, add_generation_prompt: bool = True, **names: Any
    ) -> str:
        """The text of messages, as the model's own template writes it. names: what else the template knows, as enable_thinking=False."""
        return self._template.render(messages, tools=tools, add_generation_prompt=add_generation_prompt, **names)

    def session(self) -> LanguageSession:
        """A new conversation; all share the weights."""
        return LanguageSession(self, self.decoder.session())

    @cached_property
    def chooses(self) -> bool:
        """Whether runs choose tokens: where it costs more to read the scores."""
        return execution_of(self.device.target).launches and not self.device.describe().get("software")

    @property
    def session_bytes(self) -> int:
        """The memory of a session's keys and values."""
        return sum(math.prod(s.shape or ()) * s.dtype.size for s in self.decoder.states)

    def adapter(self, name: str) -> LanguageModel:
        """The model with one of its `adapters` switched on, which shares the weights; this one stays as it is. It is compiled when it is
        first asked for."""
        found = self._adapter(name)
        before = self._switched.get(name)
        if before is None or before[0] is not found:
            before = self._switched[name] = found, self._base._with(adapted(self._base.network, found.matrices), found)
        return before[1]

    def merged(self, name: str) -> LanguageModel:
        """The model with one of its `adapters` added to its weights, which are floats where they have changed."""
        found = self._adapter(name)
        return self._base._with(merged(self._base.network, found.matrices), found)

    def _adapter(self, name: str) -> LanguageAdapter:
        found = self.adapters.get(name)
        if found is None:
            raise InputError(
                f"there is no adapter {name!r:.80}; there are {', '.join(self.adapters) or 'none'}: llm.adapters[{name!r:.40}] = … keeps one"
            )
        if not isinstance(found, LanguageAdapter):
            raise InputError(f"the adapter {name!r:.80} is {found!r:.80}, expected what sg.language.lora makes")
        check_matrices(f"the adapter {name!r:.80}", self._base.network, found.matrices)
        return found

    def _with(self, network: Decoder, adapter: LanguageAdapter) -> LanguageModel:
        """This model with another decoder, whose keys and values are others."""
        made = copy.copy(self)
        held = hashlib.sha256(self.fingerprint.encode())
        for matrix in adapter.matrices.values():
            held.update(matrix.lora_B.numpy().tobytes())
        on, name, computed = self.device, self.decoder.name, COMPUTED_IN[self._activations]
        models = DecoderModels(lambda: network, self.context, on, name, computed, None, self.decoder)
        vars(made).update(
            _network=lambda: network, decoder=_decoder(models), fingerprint=held.hexdigest(), _idle=None,
            side_by_side=SideBySide(models), vectors=TextVectors(models, self.description.width),
        )  # fmt: skip
        return made

    def compile(self) -> None:
        """Compile it now, not when it is first run."""
        self.decoder.program()

    def logits(self, ids: Sequence[int]) -> np.ndarray:
        """The scores (tokens, vocabulary) of what follows each of these tokens."""
        session = self.session()
        checked = self.checked(ids).tolist()
        return np.concatenate([session.run(part, len(part)) for part in chunks(checked)])

    def embed(self, texts: str | Sequence[str | Sequence[int]], pooling: str = "mean") -> np.ndarray:
        """A vector of length 1 for each text, or for the ids of one: (texts, width), or (width,) for one text. pooling: of what the last
        layer makes of its tokens, the "mean", or the "last".
        """
        several = [texts] if isinstance(texts, str) else texts
        prompts = [self.prompt(text) for text in several]
        for prompt in prompts:
            self.options(prompt, {"max_tokens": 1})
        found = np.stack([self.vectors.of(prompt, pooling) for prompt in prompts]) if prompts else np.empty((0, 0))
        return found[0] if isinstance(texts, str) else found

    def generate(
        self, text: str | Sequence[int], *, max_tokens: int | None = None, temperature: float = 0.8, top_k: int = 40, top_p: float = 0.95,
        min_p: float = 0.05, repeat_penalty: float = 1.0, presence_penalty: float = 0.0, frequency_penalty: float = 0.0,
        stop: str | Sequence[str] = (), seed: int | None = None, logprobs: int | None = None, schema: Any = None,
        regex: str | None = None, shift: bool = False, drafts: int = 0, stream: bool = True,
    ) -> Generation:  # fmt: skip
        """What follows a text, or the ids of one, in parts.

        temperature 0: always the likeliest token. seed: the same text again, on the same device. stop: texts that end it, and are not
        part of it. logprobs: of how many tokens at each place `.logprobs` tells the chances. max_tokens None: until the model ends it
        or the context is full. schema, regex: a JSON schema that the text meets, True for any object; or a regular expression that the
        whole text matches, unless it is cut off. shift: when the context is full, the text goes on after its beginning (of a chat, what
        the template writes before the first message that is not the system's) and the later half of the rest, which is read again; what
        is dropped is forgotten. drafts: how many tokens are guessed by what followed the latest ones before, and checked in one run: the
        same text, sooner where it repeats itself or its prompt. stream=False: the whole text is made before this returns.
        """
        own = locals()
        return self._generation(self.prompt(text), {k: own[k] for k in _OPTIONS})

    def chat(
        self, messages: Sequence[Mapping[str, Any]], *, tools: Any = None, max_tokens: int | None = None, temperature: float = 0.8,
        top_k: int = 40, top_p: float = 0.95, min_p: float = 0.05, repeat_penalty: float = 1.0, presence_penalty: float = 0.0,
        frequency_penalty: float = 0.0, stop: str | Sequence[str] = (), seed: int | None = None, logprobs: int | None = None,
        schema: Any = None, regex: str | None = None, shift: bool = False, drafts: int = 0,
        chat_template_kwargs: Mapping[str, Any] | None = None, stream: bool = True,
    ) -> Generation:  # fmt: skip
        """The answer to messages (`{"role": "user", "content": …}`), in parts; for the options see `generate`. A conversation that goes
        on is computed from where it parts from the one before. tools: descriptions of functions in OpenAI's shape; what the model calls
        is in `.tool_calls` at the end. chat_template_kwargs: other names, such as enable_thinking, for templates that know them.
        """
        own = locals()
        return self._generation(
            self.chat_prompt(messages, tools, chat_template_kwargs), {k: own[k] for k in _OPTIONS}, messages, tools
        )

    def _generation(
        self,
        prompt: Sequence[int],
        options: Mapping[str, Any],
        messages: Sequence[Mapping[str, Any]] = (),
        tools: Any = None,
    ) -> Generation:
        session, self._idle = self._idle or self.session(), None

        def ended() -> None:
            self._idle = session

        return self.generation(session, prompt, options, messages, tools, ended)

    def generation(
        self, session: LanguageSession, prompt: Sequence[int], options: Mapping[str, Any],
        messages: Sequence[Mapping[str, Any]] = (), tools: Any = None, ended: Any = lambda: None,
    ) -> Generation:  # fmt: skip
        """A text in a session; `ended` is called when it has ended. Others call `generate` and `chat`."""
        generation = Generation(session, prompt, self.options(prompt, options, messages, tools), ended)
        if not options.get("stream", True):
            _ = generation.text
        return generation

    def options(
        self,
        prompt: Sequence[int],
        options: Mapping[str, Any],
        messages: Sequence[Mapping[str, Any]] = (),
        tools: Any = None,
    ) -> GenerationOptions:
        """The options of `generate`, checked for what follows a prompt. messages, tools: of which a template made it."""
        unknown = [k for k in options if k not in _OPTIONS]
        if unknown:
            near = spelt_like(unknown[0], _OPTIONS)
            raise InputError(f"there is no option {', '.join(unknown)}; there are {', '.join(_OPTIONS)}{near}")
        stop, shift = options.get("stop", ()), options.get("shift", False)
        if type(shift) is not bool:
            raise InputError(f"shift: got {shift!r:.40}, expected True or False")
        drafts = options.get("drafts", 0)
        if drafts and not self.rewinds:
            raise InputError("drafts: layers of this model keep what came before but not by position; generate without")
        made = GenerationOptions(
            SamplingOptions(**{k: v for k, v in options.items() if k in _OF_SAMPLING}),
            options.get("max_tokens"),
            tuple(stop) if isinstance(stop, Sequence) and not isinstance(stop, str) else (stop,),
            options.get("logprobs"),
            self._constraint(options.get("schema"), options.get("regex")),
            self._template.call_form(tools) if tools else None,
            Shift(self._beginning(prompt, messages, tools), self.context) if shift else None,
            drafts,
        )
        if not shift and len(prompt) + (made.max_tokens or 1) - 1 > self.context:
            asked = f" and {made.max_tokens} more" if made.max_tokens else ""
            raise InputError(
                f"the text has {len(prompt)} tokens{asked}, there is room for {self.context}; shorten it, give shift=True, or load the model "
                "with a larger context="
            )
        return made

    def _constraint(self, schema: Any, regex: str | None) -> TextConstraint | None:
        """What a text must match; the latest ones are kept, with the masks of their states."""
        if schema is None and regex is None:
            return None
        try:
            key = json.dumps([schema, regex], sort_keys=False)
        except (TypeError, ValueError, RecursionError):
            raise InputError(
                "schema: it has what JSON cannot write, or is nested too deeply; expected values of JSON"
            ) from None
        return self._constraints.at(key, lambda: TextConstraint.of(self._token_bytes, schema, regex))

    @cached_property
    def _token_bytes(self) -> TokenBytes:
        return TokenBytes(self.tokenizer)

    def prompt(self, text: str | Sequence[int]) -> Sequence[int]:
        """The ids of a text."""
        ids = self.tokenizer.encode(text) if isinstance(text, str) else self.checked(text).tolist()
        if not ids:
            raise InputError("the text is empty; give one of at least one token")
        return ids

    def chat_prompt(
        self, messages: Sequence[Mapping[str, Any]], tools: Any = None, names: Mapping[str, Any] | None = None
    ) -> Sequence[int]:
        """The ids of messages; the template writes what begins a text. names: what else it knows."""
        check_messages(messages)
        text = self.template(messages, tools, **(names or {}))
        return self.prompt(self.tokenizer.encode(text, add_special=False))

    def _beginning(self, prompt: Sequence[int], messages: Sequence[Mapping[str, Any]], tools: Any) -> int:
        """How many tokens come before what is said: those that a prompt has in common with one whose first message is another."""
        place = next((i for i, m in enumerate(messages) if m.get("role") not in _OF_SYSTEM), None)
        if place is None:
            return common_beginning(prompt, self.tokenizer.before)
        other = {**messages[place], "content": f"?{messages[place].get('content') or ''}"}
        return common_beginning(prompt, self.chat_prompt([*messages[:place], other, *messages[place + 1 :]], tools))

    def checked(self, ids: Sequence[int]) -> np.ndarray:
        """Ids as an array."""
        found = np.asarray(ids)
        if found.ndim != 1 or found.dtype.kind not in "iu" or found.size == 0:
            raise InputError(f"ids: got {ids!r:.80}, expected a list of whole numbers")
        if found.min() < 0 or found.max() >= self.description.vocabulary:
            wrong = found[(found < 0) | (found >= self.description.vocabulary)][0]
            raise InputError(f"ids: got {wrong}, expected numbers from 0 to {self.description.vocabulary - 1}")
        return found.astype(np.int32)


_OPTIONS: Final = (
    "max_tokens",
    *SamplingOptions.__dataclass_fields__,
    "stop",
    "logprobs",
    "schema",
    "regex",
    "shift",
    "drafts",
    "stream",
)
_OF_SYSTEM: Final = frozenset({"system", "developer"})


class _Held:
    """Calling it gives the decoder, which is made anew if nothing holds it any more."""

    def __init__(self, make: Callable[[], Decoder]) -> None:
        self._make: Final = make
        self._made: Callable[[], Decoder | None] = lambda: None

    def __call__(self) -> Decoder:
        found = self._made()
        if found is None:
            found = self._make()
            self._made = weakref.ref(found)
        return found


def _filled(files: ModelFiles, context: int, cache_dtype: str, kept: KeptFile | None) -> Decoder:
    """The decoder with the weights of its files, which are those of which `kept` tells."""
    if kept is not None:
        kept.check()
    return Decoder(files.description, files.tensors, context, cache_dtype)


def _decoder(models: DecoderModels) -> Model:
    """What computes the scores."""
    model = models.of_text("forward")
    if execution_of(model.device.target).launches:
        for sizes in ONE_TOKEN:
            model.specialise(**sizes)
    return model
