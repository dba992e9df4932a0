"""What options of the command line name: the arrays, pictures, sounds and labels in files, and how they become inputs."""

from __future__ import annotations

from argparse import Namespace
from collections.abc import Container, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final, TypeVar

import numpy as np

from ...dtypes import string
from ...errors import InputError
from ...files import sounds
from ...files.pictures import SUFFIXES
from ...model.arguments import TensorSpec, bind, listed
from ...model.model import Model
from ...tasks.picture import spec as pictures
from ...weights.files import read_weights
from .texts import read_texts

T = TypeVar("T")
ARCHIVE: Final = ".npz"


def once(pairs: Sequence[tuple[str, T]], option: str) -> dict[str, T]:
    """The values of an option by name; a name may occur once."""
    found = dict(pairs)
    if len(found) != len(pairs):
        raise InputError(
            f"{option} is given twice for {next(n for n in found if sum(n == name for name, _ in pairs) > 1)!r}; give it once for each name"
        )
    return found


def read_inputs(args: Namespace, specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The arrays of all inputs, from files and texts; an error names those that are missing, and the options that give them."""
    found = given_inputs(args, specs)
    if missing := [spec for spec in specs if spec.name not in found]:
        option = "--input FILE" if len(specs) == 1 else "--input NAME=FILE for each, or one file .npz with all"
        text = "; --text TEXT for an input of strings" if any(spec.dtype is string for spec in missing) else ""
        raise InputError(
            f"nothing is given for {listed(missing)}: give {option} (an .npy file, a picture or a sound){text}"
        )
    return bind(specs, (), found)


def given_inputs(args: Namespace, specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The arrays of the inputs for which --input or --text is given."""
    files, texts = _of_files(args, specs), read_texts(args.text, args.vocab, specs)
    twice = files.keys() & texts.keys()
    if twice:
        raise InputError(f"--input {min(twice)}: --text gives this input too; give one of the two")
    return files | texts


def _of_files(args: Namespace, specs: Sequence[TensorSpec]) -> dict[str, np.ndarray]:
    """The arrays of the inputs for which there are files."""
    by_name = {p.name: p for p in specs}
    only = specs[0].name if len(specs) == 1 else ""
    found: dict[str, Any] = {}
    every = [pair for n, f in args.input for pair in ([(n, f)] if n else _unnamed(f, by_name, only))]
    for name, path in once(every, "--input").items():
        if name not in by_name:
            problem = "no such input" if name else "expected NAME=FILE"
            raise InputError(f"--input {name or path}: {problem}; the inputs are {', '.join(map(str, specs))}")
        found[name] = _read(path, by_name[name], args)
    return found


def _unnamed(path: str, names: Container[str], only: str) -> list[tuple[str, str]]:
    """The inputs that a file gives if none is named: an archive's all that it has, another file the only one."""
    if Path(path).suffix.lower() != ARCHIVE:
        return [(only, path)]
    given = [name for name in read_weights(path) if name in names]
    return [(name, path) for name in given] or [(only, path)]


def _read(path: str, spec: TensorSpec, args: Namespace) -> np.ndarray:
    """The array in an .npy or .npz file, or the tensor of a picture or a sound."""
    suffix = Path(path).suffix.lower()
    if suffix == ARCHIVE:
        return _member(path, spec.name)
    if suffix in sounds.SUFFIXES:
        return _sound(path, spec, args.rate)
    if suffix in SUFFIXES:
        values = pictures.read_picture(path, _picture_spec(args, spec))
        kind = spec.dtype.numpy
        if spec.dtype.is_int:
            limits = np.iinfo(kind)
            values = np.clip(np.rint(values), limits.min, limits.max)
        return values.astype(kind)
    if suffix != ".npy":
        known = ", ".join(sorted(sounds.SUFFIXES | SUFFIXES))
        raise InputError(f"{path}: expected an .npy file, an .npz file, a sound or a picture ({known})")
    try:
        # Mapped first: a header that claims more data than the file has is refused before memory is allocated.
        return np.array(np.load(path, mmap_mode="r", allow_pickle=False))
    except OSError as e:
        raise InputError(f"{path}: {e.strerror or e}") from e
    except (ValueError, SyntaxError, EOFError, OverflowError) as e:
        raise InputError(f"{path}: not an array that can be read: {e}; expected a file that np.save wrote") from e


def _member(path: str, name: str) -> np.ndarray:
    """The array of this name in an archive, or its only one."""
    found = read_weights(path)
    if name not in found and len(found) != 1:
        raise InputError(f"{path}: no array {name!r}; it has {', '.join(found)}")
    return np.array(found[name if name in found else next(iter(found))])


def _sound(path: str, spec: TensorSpec, rate: int | None) -> np.ndarray:
    """The samples of a sound along the last axis of the input that is not 1 long."""
    if not spec.dtype.is_float or spec.shape == ():
        raise InputError(f"{path}: the input {spec} takes no samples; expected floats of one axis or more")
    axes = [k for k, d in enumerate(spec.shape or ()) if not isinstance(d, int) or d != 1]
    fixed = [d for k, d in enumerate(spec.shape or ()) if k in axes[:-1] and isinstance(d, int)]
    if fixed:
        raise InputError(
            f"{path}: the input {spec} takes more than one row of samples: {fixed[-1]} rows, such as channels or the power in bands; "
            "give these as an .npy file"
        )
    sound = sounds.sound_of(path)
    samples = sound.at(rate or sound.rate).samples.astype(spec.dtype.numpy)
    shape: list[int] = [1] * len(spec.shape or (0,))
    shape[axes[-1] if axes else -1] = -1
    return samples.reshape(shape)


def _picture_spec(args: Namespace, spec: TensorSpec) -> pictures.PictureSpec:
    """The PictureSpec from the options and, where they say nothing, from the input's shape."""
    crop = 1.0 if args.crop is None else args.crop
    std = args.std or ((255.0,) if spec.dtype.is_float else (1.0,))
    return pictures.picture_for(
        spec.shape or (), size=args.size, crop=crop, mean=args.mean or (0.0,), std=std, layout=args.layout
    )


def _specs(model: Model) -> list[TensorSpec]:
    """The inputs of a model's graph, with the shapes that they have there."""
    return [TensorSpec(x.name, x.dtype, x.shape) for x in model.graph().inputs]


def read_samples(args: Namespace, model: Model) -> list[dict[str, np.ndarray]]:
    """The samples of --input: each file is one if the model has one input; otherwise all files together are one."""
    if not args.input:
        return []
    specs = _specs(model)
    given = [[pair] for pair in args.input] if len(specs) == 1 else [args.input]
    return [bind(specs, (), _of_files(Namespace(**{**vars(args), "input": pairs}), specs)) for pairs in given]


def picture_of(args: Namespace, model: Model) -> pictures.PictureSpec | None:
    """The PictureSpec for the first input of four axes, if there are picture options or it is one of coloured pictures."""
    specs = _specs(model)
    found = next((p for p in specs if len(p.shape or ()) == 4), None)
    given = any(getattr(args, option) is not None for option in ("size", "crop", "mean", "std", "layout"))
    if not given and (args.stub or found is None or not pictures.is_coloured(found.shape or ())):
        return None
    if found is None:
        raise InputError(
            f"--size, --crop, --mean, --std and --layout need an input of four axes; there are {', '.join(map(str, specs))}"
        )
    return replace(_picture_spec(args, found), input=found.name)
