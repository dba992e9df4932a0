"""`describe_bundle`: what was written, as a person reads it: files, sizes, what a page fetches, and what smaller weights change."""

from __future__ import annotations

import gzip
import math
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any, Final

from ...files.places import MANIFEST
from ...program.weight_codecs import STORED_BYTES
from ...report import LEFT, RIGHT, fields, table
from ...runtime.devices import DEFAULT
from ...shapes import bytes_text
from .bundle import Bundle
from .page.scripts import EAGER
from .targets import chosen_targets

LARGE_ERROR: Final = 0.05
"""The error, relative to the largest value of an output, from which a bundle's description warns."""
_ALIKE: Final = {
    "singe*.js": "scripts",
    "singe*.js.map": "source maps",
    "singe*.d.ts": "files of types",
    "weights-*.bin": "files of weights",
}
"""Names of files of which a bundle may have many ↦ what these are; they share a row."""


def describe_bundle(bundle: Bundle) -> str:
    """The files with their sizes, many that are alike in one row, and what a page fetches for each target."""
    packed = {name: len(gzip.compress(data, 6)) for name, data in bundle.files.items()}
    alike: dict[str, list[str]] = {}
    for name in bundle.files:
        alike.setdefault(next((pattern for pattern in _ALIKE if fnmatchcase(name, pattern)), name), []).append(name)

    def row(what: str, names: Iterable[str]) -> tuple[str, str, str]:
        return what, bytes_text(sum(len(bundle.files[n]) for n in names)), bytes_text(sum(packed[n] for n in names))

    rows = [
        row(names[0] if len(names) == 1 else f"{pattern} ({len(names)} {_ALIKE[pattern]})", names)
        for pattern, names in alike.items()
    ]
    listing = table([("file", LEFT), ("bytes", RIGHT), ("gzip", RIGHT)], [*rows, row("together", bundle.files)])

    def size(names: Sequence[str]) -> str:
        raw, small = sum(len(bundle.files[n]) for n in names), sum(packed[n] for n in names)
        return f"{bytes_text(raw)} ({bytes_text(small)} gzip)" if names else "none"

    scripts = [n for n in bundle.files if n.endswith(".js")]
    eager, rare = ([n for n in scripts if (n in EAGER) is at_once] for at_once in (True, False))
    facts = [("scripts", f"{size(eager)}; rare ones {size(rare)}"), ("manifest", size([MANIFEST]))]
    for name, target in bundle.manifest["targets"].items():
        kernels = ", or ".join(f"{size([m['file']])}{label}" for label, m in _choices(target["modules"]))
        weights = size(list(dict.fromkeys(w["file"] for w in target["weights"])))
        program = f"; program {size([file])}" if (file := target["program"].get("file")) else ""
        facts.append((name, f"weights {weights}; kernels {kernels}{program}"))
    others = "".join(f"\n\n{name}/\n\n{describe_bundle(part)}" for name, part in bundle.parts.items())
    return f"{listing}\n\n{fields([*facts, *_stored_facts(bundle)])}{others}"


_KINDS: Final = {"words": "unchanged", "bytes": "unchanged", "integers": "int8"}
"""How an encoding is shown to people, if not by its name."""


def _stored_facts(bundle: Bundle) -> list[tuple[str, str]]:
    """How the weights are stored, if in fewer bytes than in memory."""
    if bundle.deviation is None:
        return []
    facts = []
    for name, target in bundle.manifest["targets"].items():
        counts: dict[str, int] = {}
        for part in (p for w in target["weights"] for p in w.get("parts", ())):
            scales = 4 * math.prod(part["scales"]) if "scales" in part else 0
            count = STORED_BYTES[part["encoding"]] * math.prod(part["shape"]) + scales
            encoding: str = part["encoding"]
            kind = _KINDS.get(encoding, encoding)
            counts[kind] = counts.get(kind, 0) + count
        plain = sum(w["bytes"] for w in target["weights"] if "parts" not in w)
        if plain:
            counts["unchanged"] = counts.get("unchanged", 0) + plain
        whole = sum(w.get("decoded", w["bytes"]) for w in target["weights"])
        told = ", ".join(f"{kind} {bytes_text(n)}" for kind, n in counts.items()) or "none"
        facts.append((f"{name} weights", f"{told}; in memory {bytes_text(whole)}"))
    for kept in bundle.kept:
        facts.append(("float32", f"{kept.name} ({bytes_text(kept.bytes)}) is unchanged: it {kept.why}"))
    deviation = bundle.deviation
    if deviation.why_not:
        hint = "; give inputs on which the model runs, with --input NAME=FILE" if deviation.random else ""
        return [*facts, ("error", f"not measured: {deviation.why_not}{hint}")]
    if bundle.manifest["facts"]["activations"] == "int8":
        integers = {name: target.integers for name, target in chosen_targets(bundle.manifest["targets"]).items()}
        places = ", ".join(name for name, there in integers.items() if there)
        told = f"products and convolutions in int8 on {places} (included in the error)"
        facts.append(
            ("computing", told + "".join(f"; float32 on {name}" for name, there in integers.items() if not there))
        )
    on = f"{deviation.samples} {'random inputs' if deviation.random else 'inputs'}"
    where = "" if deviation.device == DEFAULT else f", measured on {deviation.device}"
    for name, error in deviation.errors.items():
        told = "not finite" if error is None else f"{error:.1e} of the largest value"
        facts.append(("error", f"{name}: {told}, against float32, on {on}{where}"))
    if any(error is None or error > LARGE_ERROR for error in deviation.errors.values()):
        better = "measure on real inputs with --input, or " if deviation.random else ""
        facts.append(("warning", f"an error is above {LARGE_ERROR:.0%}: {better}store weights with --dtype float16"))
    if deviation.same_class is not None:
        facts.append(("top-1", f"kept in {deviation.same_class} of {on}"))
    return facts


def _choices(modules: Mapping[str, Any]) -> list[tuple[str, Mapping[str, Any]]]:
    """The files of code, of which a page fetches one; each with its name if there are several."""
    return [("", modules)] if "file" in modules else [(f" ({name})", m) for name, m in modules.items()]
