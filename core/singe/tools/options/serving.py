"""The options of the commands `serve` and `host`."""

from __future__ import annotations

import argparse
from collections.abc import Collection

from .shared import add_language
from .values import count, duration, positive


def add_serve(command: argparse.ArgumentParser) -> None:
    """Those of `singe serve`."""
    command.add_argument("folder", metavar="DIR", nargs="?", default=".", help="the folder (default: the current one)")
    command.add_argument("--port", metavar="N", type=count, default=8000, help="default: 8000; 0 takes any free port")
    command.add_argument(
        "--host",
        metavar="ADDRESS",
        default="127.0.0.1",
        help="the address to listen on (default: 127.0.0.1, for this machine only)",
    )


def add_host(command: argparse.ArgumentParser, devices: Collection[str]) -> None:
    """Those of `singe host`. devices: what its option takes."""
    text = (
        "models to serve by the KServe v2 protocol, and language models by OpenAI's, each called by its file, or NAME=FILE; without any, "
        "the device is lent"
    )
    command.add_argument("models", metavar="MODEL", nargs="*", help=text)
    text = "the device that is lent, or that runs the models (default: auto)"
    command.add_argument("--device", choices=devices, default="auto", help=text)
    command.add_argument("--port", metavar="N", type=count, default=3000, help="default: 3000; 0 takes any free port")
    text = "the address to listen on (default: 127.0.0.1, for this machine only); beyond it, put TLS in front"
    command.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help=text)
    text = "what clients must give (default: that of SINGE_REMOTE_TOKEN, or one that is made and printed)"
    command.add_argument("--token", help=text)
    text = "pages of this origin may connect, too, as in https://example.org"
    command.add_argument("--origin", metavar="ORIGIN", action="append", default=[], help=text)
    text = "what else this server is called, where a name leads to it"
    command.add_argument("--name", metavar="NAME", action="append", default=[], help=text)
    text = "how long a request for a model may take, or one client of a device compute in all (default: no limit)"
    command.add_argument("--seconds", metavar="N", type=positive, help=text)
    models, lent = command.add_argument_group("models"), command.add_argument_group("a device that is lent")
    for group, option, shown, kind, text in (
        (
            models,
            "--batch",
            "8",
            positive,
            "run up to so many rows of several requests together (default: 1, each alone)",
        ),
        (models, "--wait", "2ms", duration, "with --batch: how long a request waits for others (default: 2ms)"),
        (models, "--queue", "N", positive, "how many requests may wait for a model (default: 256); others get 503"),
        (models, "--body", "MIB", positive, "the largest request (default: 64)"),
        (models, "--cache", "MIB", positive, "the most that conversations with a language model take (default: 1024)"),
        (lent, "--memory", "MIB", positive, "the most that one client may hold (default: 4096)"),
        (lent, "--clients", "N", positive, "how many there may be (default: 16)"),
        (
            lent,
            "--grace",
            "SECONDS",
            count,
            "how long a client's data is kept after its connection was lost (default: 60)",
        ),
    ):
        group.add_argument(option, metavar=shown, type=kind, help=text)
    add_language(models.add_argument, "of language models: ")
    text = "run the models in processes of a Ray cluster, each with a GPU where there are some; needs singe[serve]"
    models.add_argument("--ray", action="store_const", const=True, help=text)
    text = "with --ray: how many processes at least and at most, by how many requests wait (default: 1 1)"
    models.add_argument("--replicas", metavar=("MIN", "MAX"), nargs=2, type=positive, help=text)
    text = "a bundle of `singe export`, whose weights pages then neither fetch nor send; may be given several times"
    lent.add_argument("--weights", metavar="FOLDER", action="append", help=text)
