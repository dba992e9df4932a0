"""The command `export`: writes a model as a bundle, a page, stubs, a training step, an ONNX file or a freestanding module."""

from __future__ import annotations

import json
import shlex
from argparse import Namespace
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any, Final
from urllib.parse import quote

from ..errors import InputError
from ..files.places import is_language
from ..runtime.devices import DEFAULT
from ..shapes import bytes_text
from ..tasks.labels import read_labels
from ..tasks.spec import TaskSpec
from ..texts import say
from .export.bundle import Bundle
from .export.bundle import export as export_bundle
from .export.describing import describe_bundle
from .export.freestanding import WEIGHTS, describe_freestanding, export_freestanding
from .export.page.single_page import is_single
from .export.page.snippet import snippet, source_of
from .export.stub import SUFFIX, describe_stubs, export_folder, export_stub
from .export.subject import ONNX_SUFFIX
from .inputs.files import once, picture_of, read_samples
from .opening import single_model
from .options import OF_CONVERSATIONS, OF_LANGUAGE, ROUNDED
from .progress import doing
from .tasking import task_of, task_of_ready

_OF_BUNDLES: Final = (
    "stub", "hub", "url", "snippet", "input", "device", "labels", "size", "crop", "mean", "std", "layout", "rate", "input_shape", "state", "outputs",
    "donate", "specialise",
)  # fmt: skip
"""Options that say what the bundle of a model of numbers has."""


WEIGHED: Final = ("transcribe", "translate")
"""Tasks whose matrices may be rounded when they are exported."""
LORA: Final = "lora"
"""What --train says of a language model."""
_OF_LEARNING: Final = ("batch", "lr", "learn", "rank", "length")


def export(args: Namespace) -> int | None:
    """Write a model's bundle, a freestanding module, or an ONNX file. 1 if a model of a folder has none."""
    learning = [option for option in _OF_LEARNING if getattr(args, option) not in (None, [])]
    if learning and args.train is None:
        raise InputError(f"--{learning[0]} needs --train")
    if args.freestanding:
        if args.weights in ROUNDED:
            raise InputError(
                f"--weights {args.weights} is for language models; with --freestanding it is {' or '.join(WEIGHTS)}"
            )
        _export_freestanding(args)
        return None
    if Path(args.out).suffix == ONNX_SUFFIX and not args.stub:
        _export_onnx(args)
        return None
    if args.opset is not None or args.external_data:
        raise InputError(
            f"--{'opset' if args.opset is not None else 'external-data'} is for an ONNX file: -o FILE.onnx"
        )
    alone = args.stub or args.hub or args.train is not None
    kind = args.task or (None if alone else task_of_ready(args.model))
    if args.weights is not None:
        if args.weights not in ROUNDED:
            raise InputError(f"--weights {args.weights} needs --freestanding")
        if args.train is not None or args.hub or not (kind in WEIGHED or is_language(args.model)):
            raise InputError(
                f"--weights {args.weights} needs a language model, without --train or --hub, or --task {' or '.join(WEIGHED)}"
            )
    if args.sample is not None and args.weights is None:
        raise InputError(f"--sample needs --weights {', '.join(ROUNDED)}")
    if args.train is not None:
        (_export_tuning if args.train == LORA else _export_training)(args)
        return None
    if args.url is not None and not (args.stub or args.hub):
        raise InputError("--url needs --stub or --hub")
    if args.hub:
        return _export_folder(args)
    if kind is None and is_language(args.model):
        _export_language(args)
        return None
    if given := [name for name in OF_CONVERSATIONS if getattr(args, name) is not None]:
        raise InputError(
            f"--{given[0].replace('_', '-')} is for language models: a GGUF file, or a folder of Hugging Face; got {args.model}"
        )
    if kind is not None:
        _export_task(args, kind)
        return None
    if args.device and args.dtype == "float32":
        raise InputError(
            f"--device {args.device}: it measures the error of smaller weights; give --dtype float16 or int8, too"
        )
    model = single_model(args)
    labels = read_labels(args.labels)
    options: dict[str, Any] = {
        "targets": args.targets, "dtype": args.dtype, "activations": args.activations or "float32", "picture": picture_of(args, model),
        "labels": labels, "force": args.force, "samples": read_samples(args, model), "readable": args.readable,
        "device": args.device or DEFAULT, "outputs": args.outputs,
    }  # fmt: skip
    with doing("exporting"):
        if args.stub:
            bundle = export_stub(model, args.out, url=args.url, **options)
        else:
            bundle = export_bundle(model, args.out, **options)
    with doing("compressing, for the sizes with gzip"):
        told = describe_bundle(bundle)
    say(told)
    if (picture := options["picture"]) and args.size is None:
        (height, width), mean, std = picture.size, *(" ".join(map(str, x)) for x in (picture.mean, picture.std))
        say(
            f"\n{picture.input} takes pictures of {height} × {width}, less {mean}, by {std}: change that with --size, --mean, --std."
        )
    if is_single(args.out):
        size = bytes_text(Path(args.out).stat().st_size)
        say(f"\n{args.out} has all of it ({size}): open it in a browser, from the disk too.")
        return None
    shown = f"{args.out}{SUFFIX}" if args.stub else args.out
    say(f"\nTo see it run: singe serve {shlex.quote(shown)}")
    if args.snippet:
        folder = f"./{quote(Path(shown).resolve().name)}/"
        say(f"\nFor a page beside this folder:\n\n{snippet(folder, bundle.manifest, bundle.files)}")
    return None


def _refuse(args: Namespace, what: str, allowed: Collection[str] = ()) -> None:
    """Refuse options of a bundle that an export of another kind does not take."""
    given = [option for option in ("dtype", "activations") if getattr(args, option) not in (None, "float32")]
    given += [option for option in _OF_BUNDLES if getattr(args, option)]
    if refused := [option for option in given if option not in allowed]:
        raise InputError(f"--{refused[0].replace('_', '-')} cannot be given with {what}")


def _export_folder(args: Namespace) -> int:
    """Write stubs and bundles for a folder of models."""
    _refuse(args, "--hub", ("hub", "url", "dtype", "activations"))
    with doing("exporting"):
        stubs = export_folder(
            args.model, args.out, url=args.url, force=args.force, targets=args.targets, dtype=args.dtype,
            activations=args.activations or "float32", readable=args.readable,
        )  # fmt: skip
    say(describe_stubs(stubs))
    return int(bool(stubs.left_out))


def _export_language(args: Namespace) -> None:
    from ..language import load  # noqa: PLC0415 (other exports need no language models)
    from ..language.divergence import divergence  # noqa: PLC0415

    _refuse(args, "a language model", ("activations",))
    options = {name: getattr(args, name) for name in OF_LANGUAGE if getattr(args, name) is not None}
    with doing("loading"):
        llm = load(args.model, DEFAULT, weights=args.weights, **options)
    with doing("exporting"):
        bundle = export_bundle(llm, args.out, args.targets, force=args.force, readable=args.readable)
    if args.weights is not None:
        text = None if args.sample is None else _text_of(args.sample)
        with doing(f"measuring what {args.weights} changes"):
            told = divergence(load(args.model, DEFAULT, **options), llm, text)
        say(f"{args.weights} beside the weights of the file: {told}\n")
    with doing("compressing, for the sizes with gzip"):
        told = describe_bundle(bundle)
    say(told)
    say(f"\nTo talk with it: singe serve {shlex.quote(args.out)}")


def _text_of(path: str) -> str:
    try:
        return Path(path).read_text("utf-8-sig")
    except (OSError, ValueError) as e:
        raise InputError(f"--sample {path}: cannot be read as text in UTF-8: {e}") from None


def _export_task(args: Namespace, kind: str) -> None:
    ready = f"{args.model}, which is exported as its task; give the file that `singe zoo` prints, for the model alone"
    _refuse(
        args,
        "--task" if args.task else ready,
        ("labels", "size", "crop", "mean", "std", "layout", "dtype", "device", "snippet"),
    )
    made = task_of(args, kind, DEFAULT, args.labels)
    with doing("exporting"):
        bundle = export_bundle(
            made, args.out, args.targets, dtype=args.dtype, force=args.force, readable=args.readable,
            device=args.device or DEFAULT,
        )  # fmt: skip
    with doing("compressing, for the sizes with gzip"):
        told = describe_bundle(bundle)
    say(told)
    info = getattr(made, "info", None)
    say(f"\n{made!r}" + (f", decoded as {info.head!r}" if isinstance(info, TaskSpec) else ""))
    say(f"\nTo see it run: singe serve {shlex.quote(args.out)}")
    folder = f"./{quote(Path(args.out).resolve().name)}/"
    lines = (
        snippet(folder, bundle.manifest, bundle.files)
        if args.snippet
        else TASK.format(folder=folder, source=source_of(bundle.manifest))
    )
    say(f"\nIn a page beside the folder:\n\n{lines}")


TASK: Final = """\
import {{ task }} from "{folder}singe-tasks.js";
const ask = await task("{folder}");
console.log(await ask({source}));
"""


def _export_training(args: Namespace) -> None:
    from .export.training import export_training  # noqa: PLC0415 (other commands need no training)

    _refuse(args, "--train", ("input_shape",))
    if given := [name for name in ("rank", "length", *OF_CONVERSATIONS) if getattr(args, name) is not None]:
        raise InputError(f"--{given[0].replace('_', '-')} needs --train {LORA}, and a language model")
    shapes = once(args.input_shape, "--input-shape")
    settings = {name: x for name in ("batch", "lr") if (x := getattr(args, name)) is not None}
    with doing("exporting"):
        bundles = export_training(
            args.model, args.out, args.train, learn=args.learn, input_shapes=shapes,
            targets=args.targets, force=args.force, readable=args.readable, **settings,
        )  # fmt: skip
    _say_bundles(args.out, bundles)
    folder = f"./{quote(Path(args.out).resolve().name)}"
    inputs = ", ".join(json.dumps(x["name"]) + ": …" for x in bundles["step"].manifest["inputs"])
    say(f"\nIn a page beside the folder:\n\n{TRAINING.format(folder=folder, inputs=inputs)}")


TRAINING: Final = """\
import {{ load }} from "{folder}/step/singe.js";
const [step, read] = await Promise.all([load("{folder}/step/"), load("{folder}/read/")]);
const training = step.session(), reading = read.session();
const {{ loss, prediction }} = await training.step({{ {inputs} }});
for (const {{ name }} of reading.states) await reading.write(name, await training.read(name));  // before reading.run(…)
"""


def _export_tuning(args: Namespace) -> None:
    from .export.tuning import export_tuning  # noqa: PLC0415 (other commands need no language models)

    if not is_language(args.model):
        raise InputError(
            f"--train {LORA} is for language models: a GGUF file, or a folder of Hugging Face; got {args.model}"
        )
    _refuse(args, f"--train {LORA}")
    names = ("batch", "lr", "rank", "length", *OF_CONVERSATIONS)
    settings = {name: x for name in names if (x := getattr(args, name)) is not None}
    with doing("exporting"):
        bundles = export_tuning(
            args.model, args.out, learn=args.learn, targets=args.targets, force=args.force, readable=args.readable,
            **settings,
        )  # fmt: skip
    _say_bundles(args.out, bundles)
    say(f"\nIn a page beside the folder:\n\n{TUNING.format(folder=f'./{quote(Path(args.out).resolve().name)}')}")


def _say_bundles(out: str, bundles: Mapping[str, Bundle]) -> None:
    for name, bundle in bundles.items():
        say(f"{out}/{name}  {len(bundle.files)} files, {bytes_text(sum(map(len, bundle.files.values())))}")


TUNING: Final = """\
import {{ load }} from "{folder}/read/singe.js";
const [step, llm] = await Promise.all([load("{folder}/step/"), load("{folder}/read/")]);
const training = step.session();
const {{ loss }} = await training.step({{ tokens, labels, mask }});  // of llm.tokenizer.encode(text)
const states = {{}};
for (const {{ name }} of training.states) if (name.startsWith("model.")) states[name] = await training.read(name);
await llm.adapt(states);
"""


OF_PAGES: Final = (
    "stub", "hub", "url", "train", "rank", "length", "snippet", "readable", "targets", "input", "device", "force",
    "labels", "size", "crop", "mean", "std", "layout", "rate", "outputs",
)  # fmt: skip
"""Options of a page's folder."""


def _export_onnx(args: Namespace) -> None:
    from ..onnx.saving.save import OPSET, save  # noqa: PLC0415 (other commands write no ONNX files)
    from .export.onnx_file import describe_onnx  # noqa: PLC0415

    given = [option for option in ("dtype", "activations") if getattr(args, option) not in (None, "float32")]
    given += [option for option in (*OF_PAGES, "weights", "specialise") if getattr(args, option)]
    if given:
        raise InputError(f"--{given[0]} is for the folder of a page: it cannot be given with -o FILE.onnx")
    model = single_model(args)
    with doing("exporting"):
        made = save(model, args.out, args.opset or OPSET, external=True if args.external_data else None)
    say(describe_onnx(made, model))


def _export_freestanding(args: Namespace) -> None:
    given = ["dtype"] if args.dtype != "float32" else [option for option in OF_PAGES if getattr(args, option)]
    if given:
        raise InputError(f"--{given[0]} is for the folder of a page: it cannot be given with --freestanding")
    model = single_model(args)
    with doing("exporting"):
        activations = args.activations or "float32"
        files = export_freestanding(model, args.out, weights=args.weights or WEIGHTS[0], activations=activations)
    say(describe_freestanding(files, model))
