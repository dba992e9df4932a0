"""Matrices of weights as other programs quantise them in safetensors: several tensors each, which become one that stays packed.

All methods become (q − zero) · scale with the values that the file has. A matrix whose inputs belong to groups in another order than
theirs (GPTQ's act-order) is held with its inputs sorted, and the order beside it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from ..dtypes import float32
from ..errors import FormatError
from ..late_dataclass import dataclass
from ..ops.products.blocks import BITS, BITS_PER_WORD, packed
from .gguf.blocks import AT_ONCE
from .stored import PackedMatrix, StoredArray

Parts = Mapping[str, StoredArray]
_AWQ_PLACES: Final = np.argsort((0, 2, 4, 6, 1, 3, 5, 7))
"""AWQ's words hold the columns 0, 2, 4, 6, 1, 3, 5, 7 of eight: where each of them is."""
_FLOATS: Final = ("float16", "bfloat16", "float32")
_WORDS: Final = ("int32", "uint32")


@dataclass(frozen=True)
class Scheme:
    """How the matrices of a file are quantised. group: neighbours along the inputs that share a scale, 0 for all of them; facts: what
    else the config says."""

    name: str
    bits: int
    group: int
    facts: Mapping[str, Any]

    @property
    def each(self) -> int:
        """Numbers in a word."""
        return BITS_PER_WORD // self.bits

    def block(self, inputs: int) -> int:
        """The group in whole words."""
        return self.group if 0 < self.group < inputs else -(-inputs // self.each) * self.each


@dataclass(frozen=True)
class Method:
    """A row. needed, more: the ends of the names of a matrix's tensors that must and may be there, of which no other tensor has the
    first; scheme: what the config says of the matrix at a path; matrix: makes one of its tensors."""

    name: str
    needed: tuple[str, ...]
    more: tuple[str, ...]
    scheme: Callable[[Mapping[str, Any], str, str], Scheme]
    matrix: Callable[[Parts, Scheme, str], StoredArray]


def quantised_matrices(
    config: Mapping[str, Any], stored: Mapping[str, StoredArray], name: str
) -> tuple[dict[str, StoredArray], dict[str, StoredArray]]:
    """The matrices of a file whose config.json says how they are quantised, as PATH.weight, and the tensors that are no part of one."""
    method, facts = method_of(config, name)
    marks = [key.removesuffix(f".{method.needed[0]}") for key in stored if key.endswith(f".{method.needed[0]}")]
    matrices: dict[str, StoredArray] = {}
    used: set[str] = set()
    for path in marks:
        parts = {end: stored[f"{path}.{end}"] for end in (*method.needed, *method.more) if f"{path}.{end}" in stored}
        missing = [end for end in method.needed if end not in parts]
        if missing:
            raise FormatError(f"{name}: the tensor {f'{path}.{missing[0]}'!r:.80} is missing beside {method.needed[0]}")
        what = f"{name}: the matrix {path!r:.80}"
        matrices[f"{path}.weight"] = method.matrix(parts, method.scheme(facts, path, what), what)
        used |= {f"{path}.{end}" for end in parts}
    rest = {key: array for key, array in stored.items() if key not in used}
    twice = matrices.keys() & rest.keys()
    if twice:
        raise FormatError(f"{name}: {min(twice)!r:.80} is there both as floats and as {method.name} has it")
    return matrices, rest


def method_of(config: Mapping[str, Any], name: str) -> tuple[Method, Mapping[str, Any]]:
    """The row of a config.json, and what the config says of it; an unknown method is refused by its name."""
    facts = config.get("quantization_config") or config.get("quantization")
    if not isinstance(facts, dict):
        raise FormatError(f"{name}: the quantisation is {facts!r:.80}, expected an object")
    kind = facts.get("quant_method", "mlx" if "quantization" in config else None)
    method = QUANTISATIONS.get(kind) if isinstance(kind, str) else None
    if method is None:
        raise FormatError(
            f"{name}: weights in the quantisation {kind!r:.80}; Singe reads {', '.join(QUANTISATIONS)}, plain safetensors, and GGUF"
        )
    return method, facts


# --- what configs say ------------------------------------------------------------------------------------------------


def _scheme(name: str, facts: Mapping[str, Any], bits: Any, group: Any, what: str) -> Scheme:
    if type(bits) is not int or bits not in BITS:
        raise FormatError(f"{what} has {bits!r:.40} bits in {name}, expected 4 or 8")
    group = 0 if group in (None, -1) else group
    if type(group) is not int or group < 0 or group * bits % BITS_PER_WORD:
        raise FormatError(f"{what} has groups of {group!r:.40}, expected whole words of {BITS_PER_WORD // bits}, or -1")
    return Scheme(name, bits, group, facts)


def _only(facts: Mapping[str, Any], key: str, known: tuple[Any, ...], what: str) -> None:
    if facts.get(key, known[0]) not in known:
        raise FormatError(f"{what} has the {key} {facts[key]!r:.80}; Singe knows {', '.join(map(repr, known))}")


def _gptq_scheme(facts: Mapping[str, Any], path: str, what: str) -> Scheme:
    _only(facts, "checkpoint_format", ("gptq", "gptq_v2"), what)
    _only(facts, "dynamic", (None, {}), what)
    _only(facts, "rotation", (None, ""), what)
    return _scheme("gptq", facts, facts.get("bits"), facts.get("group_size", -1), what)


def _awq_scheme(facts: Mapping[str, Any], path: str, what: str) -> Scheme:
    _only({**facts, "version": str(facts.get("version", "gemm")).lower()}, "version", ("gemm",), what)
    bits, group = facts.get("bits", facts.get("w_bit")), facts.get("group_size", facts.get("q_group_size", -1))
    if bits != 4:
        raise FormatError(f"{what} has {bits!r:.40} bits in awq, expected 4")
    return _scheme("awq", facts, bits, group, what)


def _compressed_scheme(facts: Mapping[str, Any], path: str, what: str) -> Scheme:
    _only(facts, "format", ("pack-quantized",), what)
    _only(facts, "transform_config", (None, {}), what)
    groups = facts.get("config_groups")
    rows = list(groups.values()) if isinstance(groups, dict) else []
    weights = [row.get("weights") if isinstance(row, dict) else None for row in rows]
    if len(rows) != 1 or not isinstance(weights[0], dict):
        raise FormatError(f"{what} has {len(rows)} config_groups, expected one with weights")
    found: dict[str, Any] = weights[0]
    _only(rows[0], "input_activations", (None,), what)
    _only(found, "type", ("int",), what)
    _only(found, "strategy", ("group", "channel"), what)
    group = found.get("group_size") if found.get("strategy") == "group" else -1
    return _scheme("compressed-tensors", found, found.get("num_bits"), group, what)


def _mlx_scheme(facts: Mapping[str, Any], path: str, what: str) -> Scheme:
    own = facts.get(path)
    found = {**facts, **own} if isinstance(own, dict) else facts
    _only(found, "mode", ("affine",), what)
    return _scheme("mlx", found, found.get("bits"), found.get("group_size", 64), what)


# --- matrices --------------------------------------------------------------------------------------------------------


def _gptq(parts: Parts, s: Scheme, what: str) -> StoredArray:
    """qweight (inputs / each, outputs), as Singe has words."""
    words = _array(parts, "qweight", (None, None), _WORDS, what)
    inputs, outputs = words.shape[0] * s.each, words.shape[1]
    groups = _groups(inputs, s)
    scale = _array(parts, "scales", (groups, outputs), _FLOATS, what)
    zeros = _array(parts, "qzeros", (groups, -(-outputs // s.each)), _WORDS, what)
    added = 0 if s.facts.get("checkpoint_format") == "gptq_v2" else 1

    def zero() -> np.ndarray:
        return _numbers(zeros.read(), s.bits)[:, :outputs].astype(np.float32) + np.float32(added)

    if "g_idx" not in parts and s.facts.get("desc_act"):
        raise FormatError(f"{what} has desc_act, and no tensor g_idx")
    return _matrix(
        (outputs, inputs), s, words.read, lambda: _finite(scale, what), zero, _order(parts, "g_idx", inputs, s, what)
    )


def _awq(parts: Parts, s: Scheme, what: str) -> StoredArray:
    """qweight (inputs, outputs / 8)."""
    columns = _array(parts, "qweight", (None, None), _WORDS, what)
    inputs, outputs = columns.shape[0], columns.shape[1] * s.each
    groups = _groups(inputs, s)
    scale = _array(parts, "scales", (groups, outputs), _FLOATS, what)
    zeros = _array(parts, "qzeros", (groups, columns.shape[1]), _WORDS, what)

    def sorted_(words: np.ndarray) -> np.ndarray:
        found = _numbers(words, s.bits)
        return found.reshape(len(found), -1, s.each)[:, :, _AWQ_PLACES].reshape(len(found), -1)

    return _matrix(
        (outputs, inputs), s, lambda: _packed(sorted_(columns.read()), s.bits), lambda: _finite(scale, what),
        lambda: sorted_(zeros.read()).astype(np.float32), None,
    )  # fmt: skip


def _compressed(parts: Parts, s: Scheme, what: str) -> StoredArray:
    """weight_packed (outputs, inputs / each); zeros are packed along the outputs; numbers have 2^(bits - 1) added."""
    shape = _array(parts, "weight_shape", (2,), ("int64", "int32"), what).read()
    outputs, inputs = (int(n) for n in shape)
    words = _array(parts, "weight_packed", (None, None), _WORDS, what)
    if outputs != words.shape[0] or inputs < 1 or -(-inputs // s.each) != words.shape[1]:
        raise FormatError(f"{what} has the weight_shape {(outputs, inputs)} and words of the shape {words.shape}")
    groups = _groups(inputs, s)
    scale = _array(parts, "weight_scale", (outputs, groups), _FLOATS, what)
    zeros = None
    if "weight_zero_point" in parts:
        zeros = _array(parts, "weight_zero_point", (-(-outputs // s.each), groups), _WORDS, what)
    elif not s.facts.get("symmetric", True):
        raise FormatError(f"{what} is not symmetric, and has no tensor weight_zero_point")

    def zero() -> np.ndarray:
        if zeros is None:
            return np.asarray(1 << s.bits - 1, np.float32)
        return _numbers(zeros.read().T, s.bits)[:, :outputs].astype(np.float32)

    return _matrix(
        (outputs, inputs), s, lambda: words.read().T, lambda: _finite(scale, what).T, zero,
        _order(parts, "weight_g_idx", inputs, s, what),
    )  # fmt: skip


def _mlx(parts: Parts, s: Scheme, what: str) -> StoredArray:
    """weight (outputs, inputs / each); scales · q + biases, so that the zero is a quotient, up to a rounding of float32."""
    words = _array(parts, "weight", (None, None), _WORDS, what)
    outputs, inputs = words.shape[0], words.shape[1] * s.each
    groups = _groups(inputs, s)
    scale, bias = (_array(parts, end, (outputs, groups), _FLOATS, what) for end in ("scales", "biases"))

    def lines() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Words, scales and zeros; where the scale is 0, all weights of a group are the bias."""
        w, a, b = words.read().view(np.int32).T, _finite(scale, what).T, _finite(bias, what).T
        none = a == 0
        if none.any():
            q = np.repeat(none, s.block(inputs) // s.each, axis=0)[: len(w)]
            w, a = np.where(q, np.int32(0), w), np.where(none, np.float32(1), a)
        with np.errstate(over="ignore"):
            zero = -b / a
        if not np.isfinite(zero).all():
            raise FormatError(f"{what} has biases beyond the range of its scales")
        return w, a, zero

    def made() -> PackedMatrix:
        w, a, zero = lines()
        return PackedMatrix(np.ascontiguousarray(w), np.ascontiguousarray(a), zero, s.bits, s.block(inputs))

    return StoredArray((outputs, inputs), float32, s.name, lambda: _floats(made(), inputs), made)


def _matrix(
    shape: tuple[int, int], s: Scheme, words: Callable[[], np.ndarray], scale: Callable[[], np.ndarray],
    zero: Callable[[], np.ndarray], groups: np.ndarray | None,
) -> StoredArray:  # fmt: skip
    """groups: of each input, where they are not in order. If sorting brings them in order, the matrix is held sorted; otherwise as
    float32, which is exact too."""
    inputs, block = shape[1], s.block(shape[1])
    order = None if groups is None else np.argsort(groups, kind="stable").astype(np.int32)
    in_order = np.arange(inputs) // block

    def made() -> PackedMatrix:
        w, z = np.ascontiguousarray(words()).view(np.int32), zero()
        if order is not None:
            w = _packed(_numbers(w.T, s.bits)[:, order].T, s.bits)
        if z.size and (z == z.flat[0]).all():
            z = np.asarray(z.flat[0], np.float32)
        return PackedMatrix(w, np.ascontiguousarray(scale()), z, s.bits, block, order)

    def unsorted() -> np.ndarray:
        q = _numbers(np.ascontiguousarray(words()).T, s.bits)[:, :inputs]
        z = np.broadcast_to(zero(), scale().shape)
        return (q - z.T[:, groups]) * scale().T[:, groups]

    if groups is not None and order is not None and not np.array_equal(groups[order], in_order):
        return StoredArray(shape, float32, s.name, unsorted)
    return StoredArray(shape, float32, s.name, lambda: _floats(made(), inputs), made)


def _floats(m: PackedMatrix, inputs: int) -> np.ndarray:
    """The weights (outputs, inputs)."""
    number = np.arange(inputs) // m.block
    zero = m.zero.T[:, number] if m.zero.ndim else m.zero
    values = (_numbers(m.words.T, m.bits)[:, :inputs] - zero) * m.scale.T[:, number]
    if m.order is None:
        return values
    made = np.empty_like(values)
    made[:, m.order] = values
    return made


def _numbers(words: np.ndarray, bits: int) -> np.ndarray:
    """The numbers of the words of each row, the lowest first, as uint8."""
    found = np.ascontiguousarray(words).astype(f"<{words.dtype.kind}4", copy=False).view(np.uint8)
    if bits == 8:
        return found
    return np.stack([found & np.uint8(15), found >> np.uint8(4)], axis=-1).reshape(len(found), -1)


def _packed(numbers: np.ndarray, bits: int) -> np.ndarray:
    """Numbers (inputs, outputs) as words. A few outputs at a time: intermediate arrays are larger."""
    inputs, outputs = numbers.shape
    words = np.empty((-(-inputs * bits // BITS_PER_WORD), outputs), np.int32)
    step = max(1, AT_ONCE // inputs)
    for first in range(0, outputs, step):
        words[:, first : first + step] = packed(numbers[:, first : first + step], bits)
    return words


def _groups(inputs: int, s: Scheme) -> int:
    return -(-inputs // max(s.block(inputs), 1))


def _array(parts: Parts, end: str, shape: tuple[int | None, ...], kinds: tuple[str, ...], what: str) -> StoredArray:
    """A tensor of a matrix, of this shape and one of these dtypes."""
    found = parts[end]
    fits = len(found.shape) == len(shape) and all(n in (None, m) for n, m in zip(shape, found.shape, strict=True))
    if not fits or 0 in found.shape or found.dtype.name not in kinds:
        wanted = ", ".join("any" if n is None else str(n) for n in shape)
        raise FormatError(
            f"{what}: {end} has the shape {found.shape} of {found.dtype}, expected ({wanted}) of {' or '.join(kinds)}"
        )
    return found


def _finite(array: StoredArray, what: str) -> np.ndarray:
    found = np.asarray(array, np.float32)
    if not np.isfinite(found).all():
        raise FormatError(f"{what} has scales or biases that are not finite")
    return found


def _order(parts: Parts, end: str, inputs: int, s: Scheme, what: str) -> np.ndarray | None:
    """The group of each input; None if neighbours share them."""
    if end not in parts:
        return None
    found = _array(parts, end, (inputs,), ("int32", "int64"), what).read()
    if found.min() < 0 or found.max() >= _groups(inputs, s):
        raise FormatError(f"{what}: {end} has numbers beyond its {_groups(inputs, s)} groups")
    return None if np.array_equal(found, np.arange(inputs) // s.block(inputs)) else found


QUANTISATIONS: Final[Mapping[str, Method]] = {
    row.name: row
    for row in (
        Method("gptq", ("qweight", "qzeros", "scales"), ("g_idx",), _gptq_scheme, _gptq),
        Method("awq", ("qweight", "qzeros", "scales"), (), _awq_scheme, _awq),
        Method(
            "compressed-tensors", ("weight_packed", "weight_scale", "weight_shape"),
            ("weight_zero_point", "weight_g_idx"), _compressed_scheme, _compressed,
        ),
        Method("mlx", ("scales", "biases", "weight"), (), _mlx_scheme, _mlx),
    )
}  # fmt: skip
"""By `quant_method` of a config.json; MLX's have none."""
