"""Options that several commands have; those that are not given are None, or empty."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import Any, Final

from ...dtypes import HELD_IN
from .values import fixed, numbers, positive, shape, sides, state

LAYOUTS: Final = ("nchw", "nhwc")
ACTIVATIONS: Final = ("float32", "int16", "int8")
"""Those of a Program's that a command offers."""
OF_CONVERSATIONS: Final = ("context", "cache_dtype", "chat_template")
OF_LANGUAGE: Final = (*OF_CONVERSATIONS, "activations")
"""What sg.language.load takes by the same names."""


def add_model(
    command: argparse.ArgumentParser,
    text: str = "an ONNX or TensorFlow Lite model, a record that singe.save wrote, or zoo:NAME",
) -> None:
    command.add_argument("model", metavar="MODEL", help=text)


def add_repeated(
    command: argparse.ArgumentParser, option: str, shown: str, read: Callable[[str], Any], text: str
) -> None:
    """An option that may be given several times."""
    command.add_argument(option, metavar=shown, action="append", default=[], type=read, help=text)


def add_activations(command: argparse.ArgumentParser, condition: str) -> None:
    command.add_argument(
        "--activations",
        choices=ACTIVATIONS,
        help=f"{condition}the type in which wasm computes products and convolutions with weights: int16, products with packed weights, "
        "at almost no cost in accuracy; int8, all, faster and less accurate (default: float32)",
    )


def add_conversations(add: Callable[..., Any], of: str) -> None:
    """add: of a command, or of a group of its options."""
    add("--context", metavar="N", type=positive, help=f"{of}tokens for which there is room (default: 4096)")
    add(
        "--cache-dtype", choices=HELD_IN,
        help=f"{of}the type in which keys and values are held: int8 takes little more than half of float16's memory, less accurate (default: float16)",
    )  # fmt: skip
    text = f"{of}a chat template in Jinja's language, in place of the model's own, which some GGUF files lack"
    add("--chat-template", metavar="FILE", help=text)


def add_language(add: Callable[..., Any], of: str) -> None:
    """Those of OF_LANGUAGE. add: as above."""
    add_conversations(add, of)
    add(
        "--activations", choices=ACTIVATIONS,
        help=f"{of}the type in which wasm computes products with packed weights: int8 counts 8 bits where weights have 4, faster and less "
        "accurate (default: int16)",
    )  # fmt: skip


def add_fail_on_host(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--fail-on-host", action="store_true", help="refuse a model with an op that would run on the host"
    )


def add_shapes(command: argparse.ArgumentParser) -> None:
    text = (
        "the shape of an input; a name (N) in place of a number keeps a dimension open, N<=64 also limits it; `scalar` means "
        "rank 0"
    )
    add_repeated(command, "--input-shape", "NAME=1x3x224x224", shape, text)
    text = "an input and the output that is its next value: the model keeps it from run to run, starting with zeros"
    add_repeated(command, "--state", "PAST=PRESENT", state, text)
    text = "an input whose memory a run may reuse for an output"
    add_repeated(command, "--donate", "NAME", str, text)


def add_specialise(command: argparse.ArgumentParser) -> None:
    text = "add steps compiled for these open sizes: often faster, with the same weights"
    add_repeated(command, "--specialise", "N=1,L=128", fixed, text)


def add_texts(command: argparse.ArgumentParser) -> None:
    text = "a text for the model's input of strings; given several times, a batch"
    command.add_argument("--text", metavar="TEXT", action="append", default=[], help=text)
    text = (
        "the vocabulary of word pieces, one a line, by which texts become input_ids, attention_mask and token_type_ids"
    )
    command.add_argument("--vocab", metavar="FILE", help=text)


def add_labels(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--labels",
        metavar="FILE",
        help="names of the classes: a JSON list or object, or one per line; or `imagenet` or `coco`; of a task also the name of a single class",
    )


def add_media(command: argparse.ArgumentParser) -> None:
    """Options for pictures and sounds in the inputs; None if not given."""
    add_pictures(command)
    command.add_argument(
        "--rate",
        metavar="16000",
        type=positive,
        help="the samples a second that the model takes (default: the file's)",
    )


def add_pictures(command: argparse.ArgumentParser) -> None:
    """Options for pictures in the inputs; None if not given."""
    pictures = command.add_argument_group("pictures")
    pictures.add_argument(
        "--size",
        metavar="224",
        type=sides,
        help="height and width, as one number or 240x320 (default: from the model's input)",
    )
    pictures.add_argument(
        "--crop",
        metavar="0.875",
        type=float,
        help="the fraction of the shorter side to keep, around the centre (default: 1)",
    )
    pictures.add_argument(
        "--mean",
        metavar="127",
        type=numbers,
        help="subtracted from pixels of 0 to 255; one number, or 127,120,110 (default: 0)",
    )
    pictures.add_argument(
        "--std",
        metavar="128",
        type=numbers,
        help="then divides them (default: 255, or 1 if the input takes integers)",
    )
    pictures.add_argument(
        "--layout", choices=LAYOUTS, help="order of the tensor's axes (default: from the model's input)"
    )
