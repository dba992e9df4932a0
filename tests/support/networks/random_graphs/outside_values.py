"""Random functions that take values from outside, as source text: run eagerly and compiled, with changes between the calls.

`python tests/support/networks/random_graphs/outside_values.py numpy 0 5000` compares 5,000 of them. Each takes its values from variables,
attributes, items, closures, arrays and modules of all kinds below, some draw random numbers, and some have a network in training
or inference mode; between the calls some values become others, and some become what they were. Some write to what outlives
the call: those that compute with it must be refused, and those that do not must not.
"""

from __future__ import annotations

import random
import sys
import types
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import numpy as np

import singe as sg

SETTING: Final = """
import array, collections, contextvars, dataclasses, enum, functools, operator, types, weakref
import numpy as np
import singe as sg
from singe import nn

class Mode(enum.Enum):
    TWICE = 2
    HALF = 0.5

@dataclasses.dataclass
class Config:
    beta: float = 0.5
    gains: list = dataclasses.field(default_factory=list)
    deep: object = None

class Slots:
    __slots__ = ("gain",)
    def __init__(self, gain): self.gain = gain

class Base:
    shift = 0.25
    def scaled(self, x): return x * self.gain + self.shift
    @property
    def doubled(self): return self.gain * 2

class Object(Base):
    def __init__(self): self.gain = 1.5

class Layer(nn.Module):
    def __init__(self, cfg): self.cfg = cfg
    def forward(self, x): return x * self.cfg.beta

class Named(dict):
    __getattr__ = dict.__getitem__

class Scaler:
    def __init__(self, by): self.by = by
    def __call__(self, x): return x * self.by

class Counter:
    late = 0
    def __init__(self): self.n, self.v = 0, None
    def bump(self):
        self.n += 1
        return self.n
    @property
    def twice(self): return self.n * 2
    @twice.setter
    def twice(self, value): self.n = value

class Slotted:
    __slots__ = ("n",)
    def __init__(self): self.n = 0

counter, slotted, holders = Counter(), Slotted(), [types.SimpleNamespace(counter=Counter())]
state, log, seen, memo = {"n": 0}, [], set(), {}
buffer, ring = np.zeros(4, np.float32), collections.deque([0.5, 1.5, 2.5])

number = 1.5
text = "tanh"
flag = True
mode = Mode.HALF
pair = (0.5, 2.0)
weights = np.array([1.0, -2.0, 0.5, 3.0], np.float32)
tensor = sg.tensor([0.5, 1.0, -1.0, 2.0])
cfg = {"beta": 0.5, "inner": {"gamma": 2.0}, "list": [1.0, 2.0], 3: 0.75}
items = [1.0, 0.5, -1.0]
queue = collections.deque([0.5, 1.5])
tensors = [tensor, tensor * 2, 0.5]
two = (tensor, [tensor + 1])
chosen = {1, 2}
config = Config(0.75, [1.0, 2.0], types.SimpleNamespace(alpha=1.25, table={"k": 0.5}))
slots = Slots(0.5)
thing = Object()
settings = types.ModuleType("settings")
settings.rate = 0.5
net = nn.BatchNorm1d(4)
layer = Layer(config)
dropping = nn.Dropout(0.5).train()
activation = sg.tanh
key_name = "beta"
scaled_by = functools.partial(lambda x, by: x * by["beta"], by=cfg)

named = Named(gain=0.5)
chain = collections.ChainMap({}, {"rate": 0.5})
user = collections.UserDict(rate=2.0)
late = {}
counts = collections.defaultdict(lambda: 1.5)
item = operator.itemgetter("beta")
attribute = operator.attrgetter("deep.alpha")
kept = cfg["inner"].get
variable = contextvars.ContextVar("variable", default=0.5)
raw = array.array("f", [1.0, 2.0])
scaler = Scaler(0.5)
reference = weakref.ref(scaler)

def or_else(x, read):
    try: return x * read()
    except (KeyError, AttributeError): return x

def helper(x): return x * number
def with_default(x, of=config): return x * of.beta

def closed():
    captured, array, table = 0.5, np.array([1.0, 2.0, 3.0, 4.0], np.float32), {"a": 1.0}
    def inner(x): return x * captured + array * table["a"]
    def change(what, value):
        nonlocal captured
        if what == "captured": captured = value
        elif what == "array": array[1] = value
        else: table["a"] = value
    return inner, change

inner, change_inner = closed()
"""

EXPRESSIONS: Final = [
    "x * number", "getattr(sg, text)(x)", "x if flag else -x", "x * mode.value", "x * pair[1]", "x * weights", "x + tensor",
    "x * cfg['beta']", "x * cfg['inner']['gamma']", "x * cfg[key_name]", "x * cfg.get('delta', 1.0)", "x * cfg[3]",
    "x * items[0]", "x * sum(items)", "x * len(items)", "sum(x * k for k in items)", "x * queue[1]", "x * len(chosen)",
    "x * (2.0 if 2 in chosen else 0.5)", "x * config.beta", "x * config.gains[-1]", "x * config.deep.alpha",
    "x * config.deep.table['k']", "x * slots.gain", "thing.scaled(x)", "x * thing.doubled", "x + thing.shift", "x * settings.rate",
    "net(sg.stack([x, x * 2]))[0]", "layer(x)", "activation(x)", "helper(x)", "with_default(x)", "inner(x)", "scaled_by(x)",
    "sum(x * v for v in cfg['inner'].values())", "x * getattr(config, key_name)", "x * float(weights.sum())",
    "x * max(cfg['list'])", "(lambda c: x * c.beta)(config)", "x * vars(config)['beta']",
    "x * named.gain", "x * chain['rate']", "x * user['rate']", "x * user.get('rate2', 1.0)", "or_else(x, lambda: late['k'])",
    "or_else(x, lambda: thing.extra)", "x * counts['k']", "x * late.setdefault('d', 2.0)", "x * item(cfg)",
    "x * attribute(config)", "x * kept('gamma')", "x * variable.get()", "x * raw[1]", "scaler(x)", "x * reference().by",
    "x * float('%(gamma)s' % cfg['inner'])", "x * globals()['number']", "x * getattr(thing, 'gain')",
]  # fmt: skip
DRAWS: Final = ["x + sg.randn(4)", "x * sg.rand(4)", "sg.where(sg.rand(4) > 0.5, x, -x)", "dropping(x)"]
KEPT: Final = [
    ("counter.n += 1", "x * counter.n"), ("pass", "x * counter.bump()"), ("state['n'] += 1", "x * state['n']"),
    ("buffer[1] += 1", "x * buffer"), ("np.add.at(buffer, 0, 1)", "x + buffer"), ("ring.rotate(1)", "x * ring[0]"),
    ("seen.add(len(seen))", "x * len(seen)"), ("counter.v = x", "counter.v * 2"), ("log.append(x)", "x"), ("memo['x'] = [x]", "x"),
    ("log.append(0.5)", "x * sum(log)"), ("counter.twice = counter.twice + 1", "x * counter.n"), ("slotted.n += 1", "x * slotted.n"),
    ("Counter.late += 1", "x if counter.late < 3 else -x"), ("counter.late += 1", "x if counter.late < 50 else -x"),
    ("holders[0].counter.n += 1", "x * holders[0].counter.n"), ("setattr(counter, 'n', counter.n + 1)", "x * counter.n"),
    ("state.update(n=state['n'] + 1)", "x * state['n']"), ("first = state.pop('first', True)\n    state['first'] = False", "x if first else -x"),
    ("pass", "x * float(np.random.default_rng().normal())"), ("import random", "x * random.Random().random()"),
    ("import os", "x * os.urandom(1)[0]"), ("import uuid", "x * (uuid.uuid4().int % 1000)"),
]  # fmt: skip
"""(statement, expression) of functions that compute with what they write, or with what is another value each time."""
COUNTED: Final = [
    ("counter.n += 1", "x"), ("log.append(0.5)", "x"), ("memo['k'] = memo.get('k', 2.0)", "x * memo['k']"), ("seen.add(3)", "x"),
    ("if len(log) < 2: log.append(0.5)", "x"), ("if counter.bump() % 10 == 0: str(x)", "x"), ("state['n'] += 1", "x"),
    ("own = Counter(); own.v = x; own.bump()", "own.v * own.n"), ("own = []; own.append(x)", "own[0]"), ("buffer[1] = 2", "x * buffer"),
]  # fmt: skip
"""The same of functions that compute with nothing that becomes another value."""

CHANGES: Final = [
    "number = {v}", "number = int({v} * 2)", "text = {t!r}", "flag = not flag", "mode = Mode.TWICE", "mode = Mode.HALF",
    "pair = (0.5, {v})", "weights[2] = {v}", "weights *= 2", "weights = weights + 1", "tensor = tensor + {v}", "cfg['beta'] = {v}",
    "cfg['inner']['gamma'] = {v}", "cfg = dict(cfg)", "cfg['delta'] = {v}", "cfg.pop('delta', None)", "cfg[3] = {v}",
    "cfg['list'].append({v})", "items[0] = {v}", "items.append({v})", "items.reverse()", "del items[1:]; items += [{v}]",
    "tensors[1] = tensor * {v}", "tensors[1] = {v}", "tensors = list(tensors)", "tensors.reverse()", "two = (tensor * {v}, two[1])",
    "two[1][0] = tensor - {v}", "two = (two[0], [tensor * {v}])",
    "queue.append({v}); queue.popleft()", "chosen.symmetric_difference_update([2])", "config.beta = {v}", "config.gains.append({v})",
    "config.deep.alpha = {v}", "config.deep.table['k'] = {v}", "config.deep = types.SimpleNamespace(alpha={v}, table=dict(k=2.0))",
    "config = Config({v}, [3.0], types.SimpleNamespace(alpha=1.0, table=dict(k={v})))", "slots.gain = {v}", "thing.gain = {v}",
    "thing.shift = {v}", "Base.shift = {v}", "thing = Object()", "settings.rate = {v}", "net = net.train()", "net = net.eval()",
    "dropping = dropping.eval()", "dropping = dropping.train()",
    "layer = Layer(Config({v}))", "activation = sg.sigmoid", "activation = sg.tanh", "def helper(x): return x - number",
    "change_inner('captured', {v})", "change_inner('array', {v})", "change_inner('table', {v})",
    "key_name = 'gamma' if key_name == 'beta' else 'beta'; cfg['gamma'] = config.gamma = {v}", "cfg['inner']['new'] = {v}",
    "Object.scaled = lambda self, x: x - self.gain", "thing.unrelated = {v}", "pass",
    "named['gain'] = {v}", "chain['rate'] = {v}", "chain.maps[1]['rate'] = {v}", "chain.clear()", "user['rate'] = {v}",
    "user['rate2'] = {v}", "late['k'] = {v}", "late.pop('k', None)", "late['d'] = {v}", "thing.extra = {v}", "counts['k'] = {v}",
    "counts.clear()", "variable.set({v})", "raw[1] = {v}", "scaler.by = {v}", "scaler.__dict__ = dict(by={v})",
    "Scaler.__call__ = lambda self, x: x - self.by", "thing.scaled = lambda x: x * {v}",
    "helper.__code__ = (lambda x: x - number).__code__",
]  # fmt: skip
RUNS: Final = 5


class Program:
    """The program of a seed: its text, its module, and what changes before each run."""

    def __init__(self, seed: int) -> None:
        draw = random.Random(seed)
        names = [f"y{k}" for k in range(draw.randint(1, 4))]
        chosen = [draw.choice(DRAWS) if draw.random() < 0.08 else draw.choice(EXPRESSIONS) for _ in names]
        lines = [f"    {name} = {what}" for name, what in zip(names, chosen, strict=True)]
        if draw.random() < 0.5:  # in a function of its own, by names of its own
            lines = ["    c, d, k = config, cfg, items", *lines]
            lines = [x.replace("config.", "c.").replace("cfg[", "d[").replace("items[", "k[") for x in lines]
        self.refused = False
        if draw.random() < 0.25:
            self.refused = draw.random() < 0.5
            statement, value = draw.choice(KEPT if self.refused else COUNTED)
            lines = [f"    {statement}", *lines, f"    last = {value}"]
            names.append("last")
        head = "def function(x):\n"
        if draw.random() < 0.3:
            head = "class Holder:\n  def run(self, x):\n    return function(x)\nholder = Holder()\ndef function(x):\n"
        self.text: Final = SETTING + head + "\n".join(lines) + f"\n    return {' + '.join(names)}\n"
        values = [1.0, 1.5, 2.0, -0.5, 0.25]
        body = " ".join(chosen) + " Object number config" * any(
            "helper" in x or "thing" in x or "layer" in x for x in chosen
        )
        near = [
            c
            for c in CHANGES
            if c.split()[-1 if c.startswith("def") else 0].split("(")[0].split(".")[0].split("[")[0] in body
        ]
        self.changes: Final = [
            [
                draw.choice(near or CHANGES if draw.random() < 0.7 else CHANGES).format(
                    v=draw.choice(values), t=draw.choice(["tanh", "exp", "sin"])
                )
                for _ in range(2)
            ]
            for _ in range(RUNS - 1)
        ]
        self.module: Final = types.ModuleType("outside_values_drawn")
        sys.modules[self.module.__name__] = self.module  # dataclasses look there
        exec(self.text, vars(self.module))

    def compiled(self, device: str) -> Callable[[np.ndarray], Any]:
        return sg.compile(self.module.function, X, device=device)


X: Final = np.array([0.5, -1.0, 2.0, 0.25], np.float32)


def disagreement(seed: int, device: str) -> str | None:
    """What is wrong with the program of a seed on a device; None if nothing is."""
    program = Program(seed)
    program_text = program.text[len(SETTING) :]
    try:
        compiled = program.compiled(device)
    except sg.InputError:
        if program.refused:
            return None
        raise
    if program.refused:
        return f"seed {seed} is not refused:\n{program_text}"
    for run, changes in enumerate([["pass"], *program.changes]):
        for change in changes:
            exec(change, vars(program.module))
        sg.manual_seed(seed + run)
        try:
            expected = program.module.function(sg.tensor(X)).numpy()
        except (LookupError, AttributeError):  # a change took away what the function reads
            return None
        sg.manual_seed(seed + run)
        found = compiled(X)
        if not np.allclose(found, expected, rtol=1e-4, atol=1e-5, equal_nan=True):
            return f"seed {seed}, run {run} after {changes}: {found}, expected {expected}\n{program_text}"
    return None


def main(device: str, first: int, count: int) -> None:
    warnings.simplefilter("ignore")
    wrong = 0
    for seed in range(first, first + count):
        try:
            told = disagreement(seed, device)
        except Exception as e:
            told = f"seed {seed}: {type(e).__name__}: {e}\n{Program(seed).text[len(SETTING) :]}{Program(seed).changes}"
        if told is not None:
            wrong += 1
            print(told, flush=True)
        if (seed + 1) % 500 == 0:
            print(f"{seed + 1 - first} programs, {wrong} wrong", flush=True)
    if wrong:
        sys.exit(f"{wrong} of {count} are wrong; {Path(__file__).name}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
