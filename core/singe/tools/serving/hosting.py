"""The command `host`: serves models, or lends a device, until it is interrupted."""

from __future__ import annotations

from argparse import Namespace
from pathlib import Path
from typing import Any, Final

from ...errors import InputError
from ...files.urls import is_url, stem_of
from ..options import OF_LANGUAGE
from ..progress import doing

OF_DEVICES: Final = ("memory", "clients", "grace", "weights")
"""Options that lend a device."""
OF_MODELS: Final = ("batch", "wait", "queue", "body", "cache", *OF_LANGUAGE, "ray", "replicas")
"""Options that serve models."""


def host(args: Namespace) -> None:
    """Serve the models, or lend the device if there are none."""
    wrong = [name for name in (OF_DEVICES if args.models else OF_MODELS) if getattr(args, name) is not None]
    if wrong and args.models:
        raise InputError(f"--{wrong[0]} is for a device that is lent: it cannot be given with a MODEL")
    if wrong:
        raise InputError(f"--{wrong[0].replace('_', '-')} needs a MODEL")
    common = {"port": args.port, "host": args.host, "token": args.token, "origins": args.origin, "names": args.name}
    (_serve_models if args.models else _lend)(args, common)


def _lend(args: Namespace, common: dict[str, Any]) -> None:
    from ...remote import SessionLimits, serve  # noqa: PLC0415 (models need no websockets)

    limits = SessionLimits(**_given(bytes=args.memory and args.memory << 20, seconds=args.seconds))
    serve(args.device, limits=limits, **common, **_given(sessions=args.clients, grace=args.grace, weights=args.weights))


def _serve_models(args: Namespace, common: dict[str, Any]) -> None:
    from ...host import ModelServer  # noqa: PLC0415 (a device needs no uvicorn)

    body = args.body and args.body << 20
    if args.replicas and not args.ray:
        raise InputError("--replicas needs --ray")
    replicas = tuple(args.replicas or (1, 1)) if args.ray else None
    options = _given(
        replicas=replicas, batch=args.batch, wait=args.wait, queue=args.queue, body=body, seconds=args.seconds,
        cache=args.cache and args.cache << 20, **{name: getattr(args, name) for name in OF_LANGUAGE},
    )  # fmt: skip
    with doing("loading"):
        server = ModelServer(_named(args.models), device=args.device, **common, **options)
    server.run()


def _given(**options: Any) -> dict[str, Any]:
    return {name: value for name, value in options.items() if value is not None}


def _named(models: list[str]) -> dict[str, str]:
    """Files by name: NAME=FILE, or a file that is called by its own name."""
    found: dict[str, str] = {}
    for text in models:
        name, sign, file = text.partition("=")
        if not sign or is_url(text) or Path(text).exists():
            name, file = stem_of(text), text
        if name in found:
            raise InputError(f"two models are called {name!r}: give one of them another name, as in {name}2={file}")
        found[name] = file
    return found
