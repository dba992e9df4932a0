"""Models as a deployment of Ray Serve: replicas run them, and this process answers clients. The extra `serve` installs Ray Serve.

A replica is a process of the cluster with the models and their queues. Ray Serve sends each request to one of the replicas that have the
least to do, and starts and ends replicas by how many requests wait. A request whose replica is lost is done again by another: a run
changes nothing, so that it may be done twice.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

import numpy as np

from ..cluster.engine import is_lost, serve
from ..cluster.placement import own_device, placed
from ..errors import InputError, SingeError
from ..files.urls import is_url
from ..model.arguments import TensorSpec
from ..model.files import load
from ..model.model import Model
from .batching import Arrays, ServedModel
from .metrics import ModelCounts
from .protocol import Refused

NAME: Final = "singe-host"
ATTEMPTS: Final = 10
"""How often a request is given to a replica before the loss of replicas is taken for its fault."""
ONGOING: Final = 4
"""How many requests of a replica's share are the aim, for each row of a batch; it may have twice as many."""
SCALING: Final = {"look_back_period_s": 15.0, "upscale_delay_s": 5.0, "downscale_delay_s": 120.0}
"""Seconds: over how long requests are averaged, how long there must be too many before a replica is started, and too few before one is
ended. Ray's own are 30, 30 and 600."""


class ModelFacts(NamedTuple):
    """What is asked of a replica about a model."""

    inputs: tuple[TensorSpec, ...]
    outputs: tuple[TensorSpec, ...]
    alone: str


class Replica:
    """What Ray Serve runs: all models, on a device of its own."""

    def __init__(self, models: Mapping[str, str], device: str, options: Mapping[str, Any]) -> None:
        on = own_device(device)
        self._models = {name: ServedModel(name, load(path, on), **options) for name, path in models.items()}

    def facts(self) -> dict[str, ModelFacts]:
        return {name: ModelFacts(m.inputs, m.outputs, m.alone) for name, m in self._models.items()}

    async def infer(self, name: str, arrays: dict[str, np.ndarray]) -> Any:
        """The outputs, or an error for the client: (status, message, headers), or one of ours."""
        try:
            return dict(await self._models[name].infer(arrays))
        except Refused as e:
            return e.status, str(e), e.headers
        except SingeError as e:
            return e


class DeployedModel:
    """A model of a deployment, as the application asks it: with the methods of a ServedModel."""

    def __init__(self, name: str, facts: ModelFacts, handle: Any, limit: int) -> None:
        self.name: Final = name
        self.inputs, self.outputs, self.alone = facts
        self.counts: Final = ModelCounts()
        self.counts.waiting = lambda: self._waiting
        self._handle: Final = handle
        self._limit: Final = limit
        self._waiting = 0
        self._stopped = ""

    async def infer(self, arrays: Arrays) -> Arrays:
        """The outputs of a run by a replica."""
        if self._stopped:
            raise Refused(503, self._stopped)
        if self._waiting >= self._limit:
            raise Refused(503, f"{self._waiting} requests wait for this model, and no more may: try again later")
        self._waiting += 1
        try:
            found = await self._answered(dict(arrays))
        finally:
            self._waiting -= 1
        if isinstance(found, tuple):
            raise Refused(*found)
        if isinstance(found, Exception):
            raise found
        return found

    async def _answered(self, arrays: dict[str, np.ndarray]) -> Any:
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._handle.infer.remote(self.name, arrays)
            except Exception as e:  # Ray's errors of a lost replica; others are the run's
                if not is_lost(e) or attempt == ATTEMPTS:
                    raise
        raise AssertionError("the last attempt returns or raises")

    async def stop(self, reason: str) -> int:
        """Refuse what comes; what runs is answered."""
        self._stopped = reason
        return 0


def deployed(
    models: Mapping[str, Any], device: str, replicas: tuple[int, int], queue: int, options: Mapping[str, Any]
) -> dict[str, DeployedModel]:
    """The models as a deployment, which `end_deployment` ends. replicas: at least, and at most. options: those of a ServedModel."""
    least, most = replicas
    if not 1 <= least <= most:
        raise InputError(f"replicas: got {least} and {most}, expected the least, from 1 on, and the most")
    for name, model in models.items():
        if isinstance(model, Model):
            raise InputError(
                f"{name}: got a compiled Model, which stays in its process; give the path of the model's file"
            )
    paths = {name: str(m) if is_url(str(m)) else str(Path(m).absolute()) for name, m in models.items()}
    aim = ONGOING * options.get("batch", 1)
    package = serve()
    actor = placed(device, {})  # which starts Ray, if it has to be
    package.start(proxy_location="Disabled")
    deployment = package.deployment(Replica).options(
        name=NAME, ray_actor_options=actor, max_ongoing_requests=2 * aim,
        autoscaling_config={"min_replicas": least, "max_replicas": most, "target_ongoing_requests": aim, **SCALING},
    )  # fmt: skip
    handle = package.run(deployment.bind(paths, device, dict(options)), name=NAME, route_prefix=None)
    facts = handle.facts.remote().result()
    return {name: DeployedModel(name, facts[name], handle, queue) for name in models}


def end_deployment() -> None:
    """End the replicas."""
    serve().delete(NAME)
