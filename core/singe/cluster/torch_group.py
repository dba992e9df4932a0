"""TorchGroup: one member of an all-reduce by torch.distributed, over NCCL or Gloo. Only this file of the room imports torch.

Each call runs in a thread of its own, so that `stop`, from another thread, ends one that waits for a member which is lost. After that,
or after an error, the group is of no more use: those that are left form another.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from datetime import timedelta
from queue import Empty, SimpleQueue
from typing import Any, Final

import torch  # pyright: ignore[reportMissingImports]
import torch.distributed  # pyright: ignore[reportMissingImports]

from .engine import PeerLost

dist: Any = torch.distributed

LIMIT_SECONDS: Final = 1800.0
"""For a call, which may have to wait until a slower member has compiled its step; who loses a member calls `stop` much earlier."""


def refusal(way: str) -> str:
    """Why this process cannot exchange by NCCL or Gloo; "" if it can."""
    if not dist.is_available():
        return f"this PyTorch ({torch.__version__}) lacks torch.distributed"
    if way == "nccl" and not torch.cuda.is_available():
        return f"PyTorch {torch.__version__} sees no GPU"
    there = dist.is_nccl_available() if way == "nccl" else dist.is_gloo_available()
    return "" if there else f"this PyTorch ({torch.__version__}) lacks {way}"


def meeting(host: str, seconds: float) -> tuple[Any, int]:
    """A place where the members of groups meet, which lasts as long as it is kept, and its port."""
    store = dist.TCPStore(host, 0, is_master=True, wait_for_workers=False, timeout=timedelta(seconds=seconds))
    return store, store.port


class TorchGroup:
    """See the module's docstring. way: "nccl" or "gloo"."""

    def __init__(self, way: str) -> None:
        self._device: Final = (
            torch.device("cuda", torch.cuda.current_device()) if way == "nccl" else torch.device("cpu")
        )
        self._answers: Final[SimpleQueue[Any]] = SimpleQueue()
        self._made: Any = None

    def join(self, host: str, port: int, rank: int, size: int, seconds: float) -> None:
        """Become the member of this number; all must come within so many seconds."""
        wait = timedelta(seconds=seconds)

        def joined() -> Any:
            store = dist.TCPStore(host, port, is_master=False, timeout=wait)
            if self._device.type == "cpu":
                return dist.ProcessGroupGloo(store, rank, size, timedelta(seconds=LIMIT_SECONDS))
            os.environ.setdefault("TORCH_NCCL_ASYNC_ERROR_HANDLING", "2")  # a lost member must not end the process
            options = dist.ProcessGroupNCCL.Options()
            options._timeout = timedelta(seconds=LIMIT_SECONDS)
            made = dist.ProcessGroupNCCL(store, rank, size, options)
            self._made = made  # which `stop` ends, if not all come
            self._reduced(made, torch.zeros(1, device=self._device))
            return made

        self._made = self._run(joined, seconds)

    def mean(self, gradients: Any, weight: float, count: int) -> Any:
        """The weighted mean of what all members have, as a tensor of PyTorch: of so many numbers, which are an object with DLPack.
        They are not used if their weight is 0."""
        made = self._made

        def reduced() -> Any:
            with torch.no_grad():
                if weight:
                    own = torch.from_dlpack(gradients).to(self._device) * weight
                else:
                    own = torch.zeros(count, dtype=torch.float32, device=self._device)
                self._reduced(made, own)
            return own

        return self._run(reduced, LIMIT_SECONDS)

    def stop(self) -> None:
        """End the call in progress, or the next one, with PeerLost; from another thread."""
        self._answers.put(PeerLost("the exchange was stopped, as a worker is lost"))

    def _reduced(self, made: Any, own: Any) -> None:
        made.allreduce([own]).wait()
        if self._device.type == "cuda":
            torch.cuda.current_stream(self._device).synchronize()

    def _run(self, work: Callable[[], Any], seconds: float) -> Any:
        """The result of work, done in a thread."""
        answers = self._answers

        def done() -> None:
            try:
                found = work()
            except Exception as e:  # of PyTorch, which says RuntimeError for most
                found = e
            answers.put(found)

        threading.Thread(target=done, name="singe-exchange", daemon=True).start()
        try:
            found = answers.get(timeout=seconds)
        except Empty:
            found = PeerLost(f"the other workers did not come within {seconds:g} s")
        if isinstance(found, Exception):
            if self._device.type == "cuda" and self._made is not None:
                self._made.abort()
            self._made = None
            raise found if isinstance(found, PeerLost) else PeerLost(f"{type(found).__name__}: {found}") from found
        return found
