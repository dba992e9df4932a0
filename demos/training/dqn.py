"""A pole balanced on a cart, learned by trial and error: deep Q-learning with a replay memory and a target network.

The network tells what each of the two pushes, left and right, is worth in a state. It learns from remembered moves, towards
what an older copy of itself, the target network, says of the state that followed. That copy is a part of the batch of a
TrainStep: a step stays one Program, and to renew the copy is `target = step.model`.

Several carts move at the same time, so that one call of the network serves all. The task counts as solved at a mean of 195
moves over the last 100 games; a game ends when the pole or the cart is too far off, or after 200 moves.

    python demos/training/dqn.py [--device wasm] [--quick]
"""

from __future__ import annotations

import time
from collections import deque

import numpy as np
from command import run

import singe as sg
from singe import nn, optim, train

CARTS = 8
MEMORY, BATCH = 20_000, 128
DISCOUNT = 0.99
RENEW = 200
"""After so many updates the target network is a new copy."""
SOLVED, LONGEST = 195.0, 200


class CartPole:
    """Several carts, each with a pole. States (carts, 4): place, speed, angle and its speed. The laws are those of the classic
    task: Barto, Sutton and Anderson (1983), with steps of 0.02 s."""

    GRAVITY, CART, POLE, HALF, FORCE, TAU = 9.8, 1.0, 0.1, 0.5, 10.0, 0.02

    def __init__(self, carts: int, seed: int) -> None:
        self._rng = np.random.default_rng(seed)
        self.state = self._fresh(carts)
        self.moves = np.zeros(carts, int)

    def _fresh(self, count: int) -> np.ndarray:
        return self._rng.uniform(-0.05, 0.05, (count, 4)).astype(np.float32)

    def step(self, right: np.ndarray) -> tuple[np.ndarray, np.ndarray, list[int]]:
        """Push each cart to the right or to the left. (the states after it, which poles fell, the lengths of the games that
        ended); carts whose game ended begin a new one."""
        _, speed, angle, turn = self.state.T
        force = np.where(right, self.FORCE, -self.FORCE)
        total = self.CART + self.POLE
        sin, cos = np.sin(angle), np.cos(angle)
        push = (force + self.POLE * self.HALF * turn**2 * sin) / total
        bend = (self.GRAVITY * sin - cos * push) / (self.HALF * (4 / 3 - self.POLE * cos**2 / total))
        pull = push - self.POLE * self.HALF * bend * cos / total
        rates = np.stack([speed, pull, turn, bend], 1)
        after = (self.state + self.TAU * rates).astype(np.float32)
        self.moves += 1
        fallen = (np.abs(after[:, 0]) > 2.4) | (np.abs(after[:, 2]) > np.radians(12))
        ended = fallen | (self.moves == LONGEST)
        lengths = self.moves[ended].tolist()
        self.state = after.copy()
        self.state[ended], self.moves[ended] = self._fresh(int(ended.sum())), 0
        return after, fallen, lengths


class Memory:
    """The last moves: state, push, the state after it, whether the pole fell."""

    def __init__(self, size: int, seed: int) -> None:
        self._fields = (
            np.zeros((size, 4), np.float32), np.zeros(size, np.int64), np.zeros((size, 4), np.float32), np.zeros(size, np.float32)
        )  # fmt: skip
        self._rng = np.random.default_rng(seed)
        self.count = 0

    def add(self, *moves: np.ndarray) -> None:
        places = np.arange(self.count, self.count + len(moves[0])) % len(self._fields[0])
        for field, new in zip(self._fields, moves, strict=True):
            field[places] = new
        self.count += len(moves[0])

    def sample(self, count: int) -> tuple[np.ndarray, ...]:
        places = self._rng.integers(0, min(self.count, len(self._fields[0])), count)
        return tuple(field[places] for field in self._fields)


def network() -> nn.Module:
    """States (batch, 4) ↦ what a push to the left and one to the right are worth (batch, 2)."""
    rng = np.random.default_rng(0)
    return nn.Sequential(
        nn.Linear(4, 128, rng=rng), nn.ReLU(), nn.Linear(128, 128, rng=rng), nn.ReLU(), nn.Linear(128, 2, rng=rng)
    )


def loss_of(
    model: nn.Module, state: sg.Tensor, push: sg.Tensor, after: sg.Tensor, fallen: sg.Tensor, target: nn.Module
) -> sg.Tensor:
    """Each move is worth 1, and what the best one after it is worth, unless the pole fell. Which one is best says the model, and
    what it is worth the target (double Q-learning)."""
    worth = model(state).gather(1, push.unsqueeze(1)).squeeze(1)
    best = model(after).argmax(1, keepdim=True)
    later = target(after).gather(1, best).squeeze(1)
    return nn.SmoothL1Loss()(worth, (1 + DISCOUNT * (1 - fallen) * later).detach())


def main(device: str, quick: bool) -> dict[str, float]:
    rng = np.random.default_rng(1)
    carts, memory = CartPole(CARTS, 2), Memory(MEMORY, 3)
    step = train.TrainStep(network(), optim.Adam(5e-4), loss_of, device=device, clip=10.0)
    target = actor = step.model.to("numpy")
    games: deque[int] = deque(maxlen=100)
    count, updates, mean, start = 0, 0, 0.0, time.perf_counter()
    for move in range(200 if quick else 25_000):
        chance = max(0.02, 1 - move / 2500)  # of a push at random
        best = actor(sg.tensor(carts.state)).argmax(1).numpy()
        push = np.where(rng.random(CARTS) < chance, rng.integers(0, 2, CARTS), best)
        before = carts.state
        after, fallen, lengths = carts.step(push)
        memory.add(before, push, after, fallen)
        games.extend(lengths)
        count += len(lengths)
        if memory.count >= 1000:
            step(*memory.sample(BATCH), target)
            updates += 1
            actor = step.model
            if updates % RENEW == 0:
                target = actor
        mean = float(np.mean(games)) if games else 0.0
        if (move + 1) % 1000 == 0:
            print(f"{move + 1:6} moves of {CARTS} carts  {count:5} games  {mean:5.1f} moves a game (mean of the last 100)  "
                  f"{time.perf_counter() - start:.0f} s")  # fmt: skip
        if len(games) == 100 and mean >= SOLVED:
            break
    solved = mean >= SOLVED
    print(f"{'solved' if solved else 'not solved'}: {mean:.1f} moves a game after {count} games, {updates} updates")
    return {"mean": mean, "games": count, "updates": updates, "solved": solved}


if __name__ == "__main__":
    run(main, __doc__)
