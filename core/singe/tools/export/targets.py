"""The targets that a page can run, and which of them, with which activations, an export is for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...compiler.options import ACTIVATIONS
from ...compiler.target import Target, find_target
from ...errors import InputError
from ...runtime.registry import factories


def page_targets() -> dict[str, str]:
    """The backends on which a page can run models, by name ↦ their targets."""
    return {name: factory.target_name for name, factory in sorted(factories().items()) if factory.pages}


def chosen_targets(names: Sequence[str] | None) -> dict[str, Target]:
    """The targets of these backends; None: of all that pages have."""
    known = page_targets()
    chosen = tuple(known if names is None else names)
    unknown = [name for name in chosen if name not in known]
    if unknown or not chosen:
        raise InputError(f"targets: got {', '.join(unknown) or 'none'}, expected some of {', '.join(known)}")
    return {name: find_target(known[name]) for name in chosen}


def check_activations(activations: str, dtype: str, chosen: Mapping[str, Target]) -> None:
    """Refuse what no target of the chosen ones computes with weights of this dtype."""
    if activations not in ACTIVATIONS:
        raise InputError(f"activations: got {activations!r}, expected one of {', '.join(ACTIVATIONS)}")
    if activations == "float32":
        return
    stored = "dtype int8 and " if activations == "int8" else ""
    if (stored and dtype != "int8") or not any(target.integers for target in chosen.values()):
        able = [name for name, target in chosen_targets(None).items() if target.integers]
        raise InputError(
            f"activations {activations}: got dtype {dtype} and the targets {', '.join(chosen)}; expected {stored}"
            f"the target {' or '.join(able)}"
        )
