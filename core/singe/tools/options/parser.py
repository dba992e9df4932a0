"""The commands and their options: what `singe --help` tells."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping
from typing import Any, Final, NoReturn

from ... import __version__
from ...hints import spelt_like, suggest
from ...runtime.devices import CHOSEN
from ...runtime.registry import ELSEWHERE, backend_names
from ..completion import SHELLS
from .serving import add_host, add_serve
from .shared import (
    add_activations,
    add_conversations,
    add_fail_on_host,
    add_labels,
    add_language,
    add_media,
    add_model,
    add_pictures,
    add_repeated,
    add_shapes,
    add_specialise,
    add_texts,
)
from .values import name_or_number, names, pair, positive, tolerance

DTYPES: Final = ("float32", "float16", "int8")
FITS: Final = ("cover", "contain", "corner", "stretch")
ORDERS: Final = ("rgb", "bgr")
KINDS: Final = (
    "classify, detect, faces, pose, segment, cutout, depth, embed-image, embed, search, rerank, classify-text, zero-shot, tag, zero-shot-tag, "
    "fill-mask, voices, denoise, notes, wake-word, sounds, speaker, speakers"
)
CHAINS: Final = "landmarks, ocr"
SAYING: Final = "transcribe, speak, translate"
WEIGHTS: Final = ("inside", "separate")
ROUNDED: Final = ("q4_0", "q4_1", "q4_k", "q8_0", "int4")
REFERENCES: Final = ("numpy", "onnxruntime")
_OF_INPUTS: Final = (
    "an .npy file, a picture or a sound for an input; a model of one input needs no NAME=; an .npz file without "
    "NAME= gives all inputs that it has arrays for"
)


class _Parser(argparse.ArgumentParser):
    """argparse with errors in one line."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        """The error for a name that there is not says which is spelt alike, and what to write in place of PyTorch's devices."""
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as e:
            hint = suggest("backend", str(value).partition(":")[0]) if action.dest == "device" else ""
            hint = hint or spelt_like(str(value), map(str, action.choices or ()))
            raise argparse.ArgumentError(action, f"{e.message}{hint}") from None

    def parse_known_args(  # pyright: ignore[reportIncompatibleMethodOverride]
        self, args: Any = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """An option that there is not is an error of the command to which it is given."""
        found, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return found, unknown


def parser(examples: bool) -> argparse.ArgumentParser:
    """All commands with their options. examples: `train` has its examples, too, which must be imported for that."""
    root = _Parser(
        prog="singe",
        description="A neural-network runtime: ONNX and TensorFlow Lite models on NumPy, WebAssembly and WebGPU.",
        allow_abbrev=False,
    )
    root.add_argument("--version", action="version", version=f"singe {__version__}")
    commands = root.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=_Parser)
    for name, (text, add_options) in COMMANDS.items():
        command = commands.add_parser(name, help=text, description=text, allow_abbrev=False)
        command.add_argument("--verbose", action="store_true", help="show the traceback of an error")
        add_options(command)
        if name == "train" and examples:
            from ..training import add_examples  # noqa: PLC0415

            add_examples(command, _devices())
    return root


class _Names(tuple[str, ...]):
    """Names of devices as the choices of an option, each of which one of its devices may follow: "webgpu:1"."""

    __slots__ = ()

    def __contains__(self, name: object) -> bool:
        return super().__contains__(str(name).partition(":")[0])


def _devices() -> _Names:
    return _Names((*CHOSEN, *backend_names(), ELSEWHERE))


# --- the commands -----------------------------------------------------------------------------------------------------


def _run(command: argparse.ArgumentParser) -> None:
    add_model(
        command,
        "an ONNX or TensorFlow Lite model, a record that singe.save wrote, a program that `singe compile` wrote, or zoo:NAME",
    )
    add_repeated(command, "--input", "NAME=FILE", pair, _OF_INPUTS)
    add_repeated(command, "--output", "NAME=FILE", pair, "write an output to an .npy file")
    command.add_argument("--device", choices=_devices(), help="the device to run on (default: auto)")
    add_fail_on_host(command)
    command.add_argument(
        "--repeat", metavar="N", type=positive, default=0, help="run N more times and report the times"
    )
    command.add_argument("--top", metavar="K", type=positive, help="show the K most probable classes")
    add_labels(command)
    add_media(command)
    add_texts(command)


def _task(command: argparse.ArgumentParser) -> None:
    command.add_argument("kind", metavar="KIND", help=f"{KINDS}, {CHAINS}, {SAYING}")
    command.add_argument("files", metavar="FILE", nargs="+", help="pictures or sounds, or their addresses, or texts")
    command.add_argument(
        "--model",
        metavar="MODEL",
        help="an ONNX or TensorFlow Lite model, a folder of Hugging Face, the bundle or the record of a task, or zoo:NAME (default: "
        "that of the zoo)",
    )
    command.add_argument(
        "-o",
        "--out",
        metavar="FILE",
        help="write the answer to a file, whose end says how: .png, .jpg or .webp, drawn; .json; a sound .wav, notes .mid, what is "
        "said or read .txt, what is said .srt or .vtt, a vector, a mask and a depth .npy; of several, into a folder",
    )
    command.add_argument("--json", action="store_true", help="print the answers as JSON")
    command.add_argument("--device", choices=_devices(), help="the device to run on (default: auto)")
    command.add_argument("--threshold", metavar="0.5", type=tolerance, help="the least score of what is found")
    command.add_argument("--top", metavar="K", type=positive, help="the most that is found")
    add_labels(command)
    add_pictures(command)
    _beside(command)
    _speech(command)
    _decoding(command)


def _speech(command: argparse.ArgumentParser) -> None:
    """Settings of transcribe, speak and translate; None if not given."""
    add = command.add_argument_group("speech").add_argument
    add("--language", metavar="CODE", help="what is spoken, such as de (default: found)")
    add("--translate", action="store_true", default=None, help="write what is said in English")
    add(
        "--beams",
        metavar="N",
        type=positive,
        help="texts that are followed side by side (default: 1; of translate as the model says)",
    )
    add("--words", action="store_true", default=None, help="with --json or -o FILE.json: when each word is said")
    add("--speed", metavar="X", type=tolerance, help="of speak: 2 is twice as fast (default: 1)")
    add("--speaker", metavar="NAME", type=name_or_number, help="of speak: a name or a number, of a voice of several")


def _beside(command: argparse.ArgumentParser) -> None:
    """What tasks of texts look at beside a text; None if not given."""
    group = command.add_argument_group("texts")
    add = group.add_argument
    add("--documents", metavar="FILE", help="texts, one a line: rerank puts them in order, search looks through them")
    add("--document", metavar="TEXT", action="append", default=[], help="such a text; may be given several times")
    add("--label", metavar="TEXT", action="append", default=[],
        help="of zero-shot and zero-shot-tag: a label that may be right; may be given several times, or as --labels FILE")  # fmt: skip
    add("--hypothesis", metavar="TEXT", help='what is said of a label (default: "This example is {}.")')
    add("--several", action="store_true", default=None, help="several labels may be right, each by itself")
    add("--prompt", metavar="NAME", help="of embed and search: which of the model's prompts stands before a text")
    add("--src-lang", metavar="CODE", help="of translate: the language of the text, of a model that knows several")
    add("--tgt-lang", metavar="CODE", help="of translate: the language of the answer, such as de")
    add("--dimensions", metavar="N", type=positive, help="of embed: how many numbers to keep (default: all)")


def _decoding(command: argparse.ArgumentParser) -> None:
    """Options of a model that is a task; None if not given."""
    group = command.add_argument_group("tasks")
    group.add_argument("--head", metavar="NAME", help="how outputs are decoded (default: found by their shapes)")
    group.add_argument("--fit", choices=FITS, help="how pictures meet the model's size (default: as the head expects)")
    group.add_argument("--order", choices=ORDERS, help="the order of colours (default: as the head expects)")
    group.add_argument("--beside", metavar="FOLDER", help="of texts: where the tokenizer is, if not beside the model")
    group.add_argument(
        "--before", metavar="N", type=positive, help="of sounds: how many samples of a row are of the row before"
    )


def _inspect(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_shapes(command)
    add_specialise(command)
    command.add_argument(
        "--device",
        choices=_devices(),
        help="compile for this device only, available or not (default: for those that are here, and for those of pages)",
    )
    add_fail_on_host(command)
    command.add_argument("--kernels", action="store_true", help="list every kernel")
    command.add_argument("--shapes", action="store_true", help="list every layer with its op, dtype and shape")


def _cache(command: argparse.ArgumentParser) -> None:
    command.add_argument("--clear", action="store_true", help="remove all of it")


def _zoo(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "names", metavar="NAME", nargs="*", help="a model to fetch, or to remove (default: list them all)"
    )
    command.add_argument("--clear", action="store_true", help="remove the models' files from the cache")
    command.add_argument(
        "--speed", action="store_true", help="also time those whose files are here, and which take pictures"
    )


def _compile(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_shapes(command)
    add_specialise(command)
    command.add_argument("-o", "--out", metavar="FILE.singe", required=True, help="the file to write")
    command.add_argument(
        "--device",
        choices=_devices(),
        default="auto",
        help="the device to compile for, available or not (default: auto, the best one available)",
    )
    add_fail_on_host(command)
    add_activations(command, "")


def _export(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_shapes(command)
    add_specialise(command)
    add_conversations(command.add_argument, "of a language model: ")
    command.add_argument(
        "-o", "--out", metavar="DIR", required=True,
        help="the folder to write; page.html for one page with all of it; FILE.onnx for an ONNX file; with --freestanding, a file FILE.wasm",
    )  # fmt: skip
    command.add_argument(
        "--targets",
        metavar="wasm,webgpu",
        type=names,
        help="the devices on which pages may run it, available here or not (default: all)",
    )
    command.add_argument(
        "--dtype",
        choices=DTYPES,
        default="float32",
        help="the type in which weights are stored; computation is in float32 unless --activations is given (default: float32)",
    )
    add_activations(
        command,
        "with --dtype int8 or --freestanding, or of a language model, whose default is int16, and whose int8 counts 8 bits where weights "
        "have 4: ",
    )
    command.add_argument(
        "--outputs",
        metavar="NAME,NAME",
        type=names,
        help="the outputs that the page gets, and nothing that only others need (default: all)",
    )
    command.add_argument(
        "--task",
        metavar="KIND",
        help=f"write it as a task, which takes pictures, texts and sounds as they are: {KINDS}, {SAYING} (of a model of the zoo: its own)",
    )
    text = (
        "an .npy file, a picture or a sound on which the error of smaller weights is measured (default: random inputs); a model of one "
        "input needs no NAME= and takes several"
    )
    add_repeated(command, "--input", "NAME=FILE", pair, text)
    text = "the device on which that error is measured (default: numpy, which gives the same error everywhere)"
    command.add_argument("--device", choices=_devices(), help=text)
    command.add_argument(
        "--force",
        action="store_true",
        help="write into a folder that holds other files too, and replace those of the same names",
    )
    made = command.add_argument_group("for code that was written for onnxruntime-web, such as transformers.js")
    made.add_argument(
        "--stub",
        action="store_true",
        help="write the bundle to OUT.singe, and in the place of the model, OUT.onnx, a small file that names it",
    )
    made.add_argument(
        "--hub",
        action="store_true",
        help="MODEL is a folder, as Hugging Face has them: do so for each .onnx file in it, and copy the others to OUT",
    )
    made.add_argument(
        "--url",
        metavar="ADDRESS",
        help="with --stub or --hub: where pages will find the bundle's folder, or OUT; without it, beside the file that they fetched",
    )
    command.add_argument(
        "--freestanding",
        action="store_true",
        help="write one WebAssembly module without imports, for inputs of fixed shapes, instead of a folder for pages",
    )
    command.add_argument(
        "--weights",
        choices=(*ROUNDED, *WEIGHTS),
        help="of a language model, or with --task transcribe or translate: round matrices of floats to this form; of the former, say what it changes; "
        "with --freestanding: whether the weights are in the module (inside, the default) or in a second file, FILE.weights (separate)",
    )
    command.add_argument(
        "--sample",
        metavar="FILE",
        help=f"with --weights {', '.join(ROUNDED)}: a text on which the change is measured (default: one that the model writes)",
    )
    command.add_argument(
        "--opset", metavar="N", type=positive, help="with -o FILE.onnx: the opset, 13 to 28 (default: 17)"
    )
    command.add_argument(
        "--external-data",
        action="store_true",
        help="with -o FILE.onnx: put the weights into a second file, FILE.onnx.data (always done where one file cannot hold them)",
    )
    _learning(command)
    command.add_argument(
        "--snippet",
        action="store_true",
        help="also print the lines with which a page beside the folder loads the model in the fewest trips to the server",
    )
    command.add_argument(
        "--readable",
        action="store_true",
        help="keep the page's scripts as the modules that they were written as, instead of one file of few bytes, and kernels as generated",
    )
    add_labels(command)
    add_media(command)
    _decoding(command)


def _learning(command: argparse.ArgumentParser) -> None:
    """Options of a step of training, which `export` writes with them."""
    made = command.add_argument_group("a model that learns in the page (ONNX, or a language model)")
    made.add_argument(
        "--train",
        metavar="LOSS",
        help="write two bundles: DIR/step, which trains the model by a step of AdamW on a batch, and DIR/read, which runs it with "
        "the weights of then; LOSS is cross-entropy, bce, huber, l1 or mse, of the first output and an input `target`; of a language "
        "model it is lora: an adapter learns, and the bundles share the weights",
    )
    made.add_argument("--batch", metavar="N", type=positive, help="items in a step (default: 16; texts with lora: 1)")
    made.add_argument("--lr", metavar="X", type=float, help="the learning rate (default: 0.001)")
    made.add_argument("--rank", metavar="N", type=positive, help="with lora: the adapter's rank (default: 8)")
    made.add_argument(
        "--length", metavar="N", type=positive, help="with lora: tokens of a text in a step (default: 128)"
    )
    text = (
        "learn only the weights whose names in the file match, as in 'classifier.*', or with lora, adapters of these matrices, as in q_proj; "
        "may be given several times (default: all)"
    )
    made.add_argument("--learn", metavar="PATTERN", action="append", default=[], help=text)


def _diff(command: argparse.ArgumentParser) -> None:
    add_model(command)
    add_shapes(command)
    add_specialise(command)
    add_repeated(command, "--input", "NAME=FILE", pair, f"{_OF_INPUTS} (default: random numbers)")
    command.add_argument(
        "--devices", metavar="wasm,webgpu", type=names, help="the devices to compare (default: all that are available)"
    )
    command.add_argument(
        "--against", choices=REFERENCES, default=REFERENCES[0], help=f"what to compare with (default: {REFERENCES[0]})"
    )
    command.add_argument(
        "--tolerance", metavar="1e-4", type=tolerance, default=1e-4,
        help="the largest error that is allowed, relative to a layer's largest element (default: 1e-4)",
    )  # fmt: skip
    add_media(command)
    add_texts(command)


def _bench(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "model", metavar="MODEL", nargs="?",
        help="an ONNX or TensorFlow Lite model, a record that singe.save wrote, a program that `singe compile` wrote, or zoo:NAME",
    )  # fmt: skip
    command.add_argument(
        "--device", choices=_devices(), help="the device to run on (default: auto; without MODEL, all)"
    )
    add_shapes(command)
    command.add_argument("--batch", metavar="N", type=positive, help="the size of an open first dimension (default: 1)")
    command.add_argument(
        "--repeat", metavar="N", type=positive, help="how many runs to time (default: as many as take two seconds)"
    )
    command.add_argument("--profile", action="store_true", help="show where the time goes, kernel by kernel")
    command.add_argument(
        "--memory", action="store_true", help="show what the device holds after the runs, and its peak"
    )
    command.add_argument(
        "--trace", metavar="FILE.json", help="write a run as a trace for chrome://tracing or ui.perfetto.dev"
    )
    command.add_argument("--most", metavar="N", type=positive, help="show only the N slowest kernels")
    command.add_argument("--json", action="store_true", help="print JSON, with every run's time in seconds")


def _chat(command: argparse.ArgumentParser) -> None:
    add_model(
        command,
        "a GGUF file, a folder of Hugging Face with config.json and safetensors, or zoo:NAME, such as zoo:smollm2",
    )
    command.add_argument("--device", choices=_devices(), help="the device to run on (default: auto)")
    add_language(command.add_argument, "")
    command.add_argument("--system", metavar="TEXT", help="the message with which each conversation begins")
    command.add_argument("--max-tokens", metavar="N", type=positive, help="the most tokens of an answer")
    command.add_argument("--temperature", metavar="X", type=float, help="0: always the likeliest token (default: 0.8)")
    command.add_argument("--top-k", metavar="K", type=int, help="only the K likeliest tokens; 0: all (default: 40)")
    command.add_argument(
        "--top-p", metavar="P", type=float, help="only the likeliest tokens, P together (default: 0.95)"
    )
    command.add_argument(
        "--min-p", metavar="P", type=float, help="no token less likely than P times the likeliest (default: 0.05)"
    )
    command.add_argument(
        "--repeat-penalty", metavar="X", type=float, help="divides the scores of what came (default: 1)"
    )
    command.add_argument("--seed", metavar="N", type=int, help="draw the same again")


def _host(command: argparse.ArgumentParser) -> None:
    add_host(command, _devices())


def _runs(command: argparse.ArgumentParser) -> None:
    text = "the folder in which runs are, or that of a run (default: runs)"
    command.add_argument("folder", metavar="FOLDER", nargs="?", default="runs", help=text)
    text = "the runs of a report, by name or folder: one, or several whose curves are to be compared"
    command.add_argument("--report", metavar="RUN", nargs="+", help=text)
    command.add_argument(
        "-o", "--out", metavar="FILE.html", help="with --report: the file to write (default: report.html)"
    )


def _completion(command: argparse.ArgumentParser) -> None:
    command.add_argument("shell", metavar="SHELL", choices=tuple(SHELLS), help=f"the shell: {' or '.join(SHELLS)}")


def _nothing(command: argparse.ArgumentParser) -> None:
    """No options of its own."""


COMMANDS: Final[Mapping[str, tuple[str, Callable[[argparse.ArgumentParser], None]]]] = {
    "run": ("Run a model on arrays (.npy, .npz), pictures, sounds and texts.", _run),
    "task": ("Answer for pictures, texts and sounds: what they show, say or are like, and more, with a model.", _task),
    "inspect": ("Show a model's inputs, outputs, ops and memory, without running it.", _inspect),
    "compile": ("Compile a model to a program: one file that `singe run` runs without compiling.", _compile),
    "export": (
        "Write a folder of static files with which a web page runs a model, or one WebAssembly module that any engine runs.",
        _export,
    ),
    "diff": ("Compare a model's values on devices, layer by layer: which differs first, and by how much.", _diff),
    "bench": ("Time a model and its kernels; without MODEL, measure the devices of this machine.", _bench),
    "serve": ("Serve a folder to a browser, with the headers that threads in WebAssembly need.", add_serve),
    "host": ("Serve models to clients (KServe v2), or lend a device of this machine to them: sg.Remote.", _host),
    "chat": ("Talk with a language model (GGUF, or a folder of Hugging Face) in the terminal.", _chat),
    "train": ("Train an example, and keep its weights; without NAME, list the examples.", _nothing),
    "devices": ("Show which devices are available, and why others are not.", _nothing),
    "cache": ("List what was compiled and is kept for the next process, or remove it.", _cache),
    "zoo": ("List ready models, which zoo:NAME names in place of a file, or fetch some.", _zoo),
    "runs": ("List and compare training runs, or write a report of some as a page.", _runs),
    "completion": ('Print what makes a shell complete commands: eval "$(singe completion bash)".', _completion),
}
"""Each command ↦ what it does, and what gives it its options; `train` gets them with its examples."""
