"""Sessions with a server of a device elsewhere that no client would hold: recorded ones, changed at random.

    python tests/support/remote_fuzz.py --sessions 20000 --stateful 2000

A plain session has its frames changed: bytes, lengths, order. A stateful one has its messages changed: ids, shapes, counts, names, numbers
in the headers of Programs, what comes when; it is encoded well, so that it reaches what the messages do. The server may answer, or
refuse with a SingeError, and memory stays flat. Sockets are left out: frames go to the session as they come from one.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from types import FrameType
from typing import Any, Final

import numpy as np

import singe as sg
from singe import nn
from singe.errors import SingeError
from singe.runtime.eager import EagerDevice
from singe.runtime.registry import open_backend
from singe.runtime.remote.client import RemoteBackend
from singe.runtime.remote.protocol import CALLS, Batch, BatchReader, RemoteMessage
from singe.runtime.remote.served_session import ServedSession, SessionLimits

LIMITS: Final = SessionLimits(bytes=32 << 20, ids=2000, programs=64, seconds=20)
PATIENCE: Final = 60
"""Seconds for one session."""
ODD: Final = (
    None, True, -1, 0, 1, 2, 3, 7, 255, 256, 1 << 16, 1 << 31, (1 << 48) - 1, 1 << 64, 0.5, 1e300, "", "x", "float32", "string", [], [0],
    [[]], {}, {"a": 1}, [1, 2, 3], "\x1b[2J", "../x", [1 << 40],
)  # fmt: skip


class DirectLink:
    """A link to a session of this process, without a socket. frames: those that the client has sent."""

    def __init__(self, session: ServedSession, target: str) -> None:
        self.session: Final = session
        self.frames: Final[list[bytes]] = []
        self._reader: Final = BatchReader(CALLS, session.has_room, "client")
        self._target: Final = target
        self._answers: Final[list[bytes]] = []
        self._batches = self._taken = 0

    def send(self, frame: Any) -> None:
        batch = self._reader.feed(frame)
        answer = Batch()
        if batch and batch[0].name == "hello":
            answer.add("ready", "s", "here", self._target, {}, 60, 0)
        else:
            self.frames.append(bytes(frame))
            self._taken += 1
            answers = [] if batch is None else self.session.perform(batch)
            self._batches += batch is not None
            answer.add("ack", self._batches, self._taken)
            for name, values, raw in answers:
                answer.add(name, *values, parts=(raw,))
        self._answers.extend(answer.frames())

    def receive(self, timeout: float | None = None) -> bytes:
        return self._answers.pop(0)

    def close(self, reason: str = "") -> None:
        pass


def recorded(device: str) -> list[list[bytes]]:
    """The frames of some sessions with a device, that of a training among them."""
    found = []
    for work in (_tensors, _model, _training, _strings):
        backend: Any = open_backend(device)
        link = DirectLink(ServedSession(backend, SessionLimits()), sg.device(device).target.name)
        client = RemoteBackend("ws://here", "", open_link=lambda _, link=link: link)
        work(EagerDevice(client))
        client.synchronize()
        found.append(link.frames)
    return found


X: Final = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)


def _tensors(on: sg.Device) -> None:
    x = sg.tensor(X, device=on)
    ((x @ x.T).softmax(-1) + x.sum()).numpy()
    (x > 1).nonzero().numpy()
    sg.tensor(np.arange(5), device=sg.Fusion(on)).flip(0).cumsum(0).numpy()


def _model(on: sg.Device) -> None:
    states = {"count": np.float32(1), "cache": ((4, 4), "float32")}

    def step(x: sg.Tensor, *, count: sg.Tensor, cache: sg.Tensor) -> Any:
        return x @ cache + count, {"count": count + 1, "cache": cache.update_slice(x[:1], 1, 0)}

    session = sg.Model.of(step, {"x": ("N", 4)}, states=states, device=on).session()
    for count in (1, 3):
        session(X[:count])
    session.copy()(X)
    given = sg.Model.of(lambda mean, x: 0.5 * mean + x, {"mean": (3,), "x": (3,)}, donate=["mean"], device=on)
    given(X[0, :3].copy(), X[1, :3])


def _training(on: sg.Device) -> None:
    model = nn.Sequential(nn.Linear(4, 3, rng=0), nn.Dropout(0.5), nn.Linear(3, 2, rng=1))
    step = sg.train.TrainStep(model, sg.optim.AdamW(1e-2), nn.CrossEntropyLoss(), device=on, seed=1)
    for _ in range(2):
        step(X, np.array([0, 1, 0]))


def _strings(on: sg.Device) -> None:
    sg.tensor(np.array(["a", "bc"], object), device=on).reshape(2, 1).numpy()


# --- changes ----------------------------------------------------------------------------------------------------------


def changed_frames(draw: random.Random, frames: Sequence[bytes]) -> Iterator[bytes]:
    """Frames with bytes, lengths and order changed."""
    given = list(frames)
    for _ in range(draw.choice((0, 0, 1, 2))):
        a, b = draw.randrange(len(given)), draw.randrange(len(given))
        match draw.randrange(3):
            case 0:
                given.pop(a)
            case 1:
                given.insert(a, given[b])
            case _:
                given.reverse()
        if not given:
            return
    wrong = {draw.randrange(len(given)) for _ in range(draw.choice((1, 1, 2, 5)))}
    for k, frame in enumerate(given):
        yield _damaged(draw, frame) if k in wrong else frame


def _damaged(draw: random.Random, frame: bytes) -> bytes:
    data = bytearray(frame)
    for _ in range(draw.choice((1, 1, 1, 2, 8, 64))):
        at = draw.randrange(len(data) + 1)
        match draw.randrange(6):
            case 0 if at < len(data):
                data[at] ^= 1 << draw.randrange(8)
            case 1:
                data[at : at + draw.choice((1, 4, 100))] = b""
            case 2:
                data[at:at] = draw.randbytes(draw.choice((1, 4, 100)))
            case 3:
                data[:4] = draw.choice((0, 1, len(data), 1 << 31, 0xFFFFFFFF, 1 << 17)).to_bytes(4, "little")
            case 4 if at < len(data):
                data[at] = draw.choice(b'0123456789[]{},:"-e.\\')
            case _:
                del data[at:]
    return bytes(data)


def changed_messages(draw: random.Random, frames: Sequence[bytes]) -> Iterator[Any]:
    """Frames whose messages are changed, and encoded well."""
    messages = [m for batch in _batches(frames) for m in batch]
    for _ in range(draw.choice((0, 0, 1, 2))):
        a, b = draw.randrange(len(messages)), draw.randrange(len(messages))
        match draw.randrange(3):
            case 0:
                messages.pop(a)
            case 1:
                messages.insert(a, messages[b])
            case _:
                messages[a], messages[b] = messages[b], messages[a]
        if not messages:
            return
    wrong = {draw.randrange(len(messages)) for _ in range(draw.choice((1, 1, 2, 5)))}
    for k, message in enumerate(messages):
        values: list[Any] = list(message.values)
        parts: list[Any] = [bytes(p) for p in message.parts if p is not None]
        if k in wrong:
            values, parts = _changed(draw, message, values, parts)
        batch = Batch()
        plain = json.loads(json.dumps(values, default=str))
        try:
            batch.add(message.name, *plain, parts=parts)
        except SingeError:
            continue
        yield from batch.frames()


def _batches(frames: Sequence[bytes]) -> Iterator[list[RemoteMessage]]:
    reader = BatchReader(CALLS, lambda *_: True, "client")
    for frame in frames:
        batch = reader.feed(frame)
        if batch is not None:
            yield batch


def _changed(
    draw: random.Random, message: RemoteMessage, values: list[Any], parts: list[Any]
) -> tuple[list[Any], list[Any]]:
    if message.name == "program" and draw.random() < 0.8:  # its header, with the right length
        head = json.loads(parts[0])
        for _ in range(draw.choice((1, 1, 2, 4))):
            head = _odd_within(draw, head)
        parts[0] = json.dumps(head).encode()
        values[1] = len(parts[0])
        return values, parts
    if parts and draw.random() < 0.3:
        k = draw.randrange(len(parts))
        parts[k] = draw.randbytes(len(parts[k]))
        return values, parts
    values = _odd_within(draw, json.loads(json.dumps(values, default=str)))
    return (values if isinstance(values, list) else [values]), parts


def _odd_within(draw: random.Random, data: Any) -> Any:
    """The data with something odd in place of one part of it, or near to it."""
    if isinstance(data, dict) and data and draw.random() < 0.95:
        key = draw.choice([*data])
        return {**data, key: _odd_within(draw, data[key])}
    if isinstance(data, list) and data and draw.random() < 0.9:
        k = draw.randrange(len(data))
        match draw.randrange(12):
            case 0:
                return data[:k] + data[k + 1 :]
            case 1:
                return [*data[: k + 1], data[draw.randrange(len(data))], *data[k + 1 :]]
            case _:
                return [*data[:k], _odd_within(draw, data[k]), *data[k + 1 :]]
    if type(data) is int and draw.random() < 0.6:
        return data + draw.choice((-1, 1, 2, -data, 16, 1 << 20))
    return draw.choice(ODD)


# --- what becomes of them ---------------------------------------------------------------------------------------------


@dataclass
class Outcome:
    """How many sessions ended how, and what should not have happened, with the seed."""

    ends: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)


def play(device: str, frames: Iterable[bytes]) -> str:
    """Hold a session; the class of the error that ended it, or ""."""
    backend: Any = open_backend(device)
    session = ServedSession(backend, LIMITS)
    reader = BatchReader(CALLS, session.has_room, "client")
    try:
        for frame in frames:
            batch = reader.feed(frame)
            if batch and any(m.name in ("hello", "leave") for m in batch):
                return "leave"
            if batch is not None:
                for name, values, raw in session.perform(batch):
                    answer = Batch()
                    answer.add(name, *values, parts=(raw,) if raw else ())
                    list(answer.frames())
                if session.bytes > LIMITS.bytes or session.bytes < 0:
                    raise AssertionError(f"the session counts {session.bytes} bytes")
    except SingeError as e:
        str(e)
        return type(e).__name__
    finally:
        session.close()
    return ""


def fuzz(device: str, sessions: int, stateful: int, seed: int = 0) -> Outcome:
    """So many sessions, of which some are stateful."""
    found, kept = Outcome(), recorded(device)
    for k in range(sessions):
        draw = random.Random(f"{device} {seed} {k}")
        change = changed_messages if k < stateful else changed_frames
        try:
            found.ends[play(device, change(draw, draw.choice(kept)))] += 1
        except Exception:
            found.faults.append(f"session {k}: {traceback.format_exc(limit=-6)}")
    return found


def resident() -> int:
    """Bytes of memory that this process has now."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


def _late(signal_number: int, frame: FrameType | None) -> None:
    raise TimeoutError("a session does not end")


def main() -> int:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--device", default="numpy")
    options.add_argument("--sessions", type=int, default=20_000)
    options.add_argument("--stateful", type=int, default=2000)
    options.add_argument("--seed", type=int, default=0)
    args = options.parse_args()
    signal.signal(signal.SIGALRM, _late)
    fuzz(args.device, 300, 150, seed=-1)  # after which caches are full
    before, total, faults = resident(), Counter[str](), 0
    for part in range(10):
        signal.alarm(PATIENCE * 20)
        found = fuzz(args.device, args.sessions // 10, args.stateful // 10, seed=args.seed + part)
        total += found.ends
        faults += len(found.faults)
        for text in found.faults[:5]:
            print(text)
        print(
            f"{part + 1} of 10: {dict(total)}, faults: {faults}, memory: {(resident() - before) / 1e6:+.1f} MB",
            flush=True,
        )
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
