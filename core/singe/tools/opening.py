"""Opens the model that a command line names."""

from __future__ import annotations

from argparse import Namespace
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..compiler.compile import compile_graph
from ..compiler.target import find_target
from ..errors import ImportFailure, InputError, ShapeError, SingeError, UnsupportedOp
from ..files.urls import is_url
from ..model.files import load
from ..model.model import Model
from ..model.program import Program
from ..program.container import PROGRAM, format_of
from ..program.program import ProgramData
from ..runtime.devices import CHOSEN, DEFAULT
from ..runtime.devices import device as open_device
from ..runtime.registry import backend_factory
from .inputs.files import once
from .progress import doing


def single_model(args: Namespace) -> Model:
    """The model, if it compiles to a single Program; otherwise an error that names the option to use."""
    model = model_on_numpy(args)
    if model.needed.inputs:
        raise model.needed.error()
    if model.needed:
        raise _with_hint(model.needed.error(), model.inputs[0].name)
    return model


def model_on_numpy(args: Namespace) -> Model:
    """The model on the device "numpy", which is always available."""
    shapes = once(args.input_shape, "--input-shape")
    with doing("loading"):
        try:
            on = "auto" if is_program(args.model) else DEFAULT  # which says that it is compiled, and cannot be again
            model = load(args.model, on, shapes, states=once(args.state, "--state"), donate=args.donate)
            _ = model.needed
        except UnsupportedOp:
            raise
        except (ShapeError, ImportFailure) as e:
            raise _with_hint(e) from e
    for sizes in args.specialise:
        model.specialise(**sizes)
    return model


def is_program(path: str) -> bool:
    """Whether a file is one of `singe compile`, or would be by its name."""
    found = format_of(path)
    return found == PROGRAM or (found is None and Path(path).suffix == ".singe" and not is_url(path))


def compiled(model: Model, name: str, **changes: Any) -> ProgramData:
    """The model's Program for a device, available or not; changes: options that replace the model's own."""
    found = ("" if name in CHOSEN else backend_factory(name).target_name) or open_device(name).target.name
    with doing(f"compiling for {name}"):
        options = replace(model.options, specialised=model.specialised, **changes)
        return compile_graph(model.graph(), find_target(found), options)


def _with_hint(error: SingeError, name: str = "NAME") -> InputError:
    """An error that numbers for open dimensions may avoid, with the option that gives them to an input."""
    return InputError(
        f"{error}. If dimensions are open, give numbers with --input-shape, as in --input-shape {name}=1x3x224x224"
    )


def model_on_device(args: Namespace) -> Model | Program:
    """The model, or the Program in a file of `singe compile`, on the device of --device."""
    if is_program(args.model):
        return Program.load(args.model, args.device)
    return load(args.model, args.device or "auto", fail_on_host=args.fail_on_host)
