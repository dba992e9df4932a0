"""Pickles, opcode by opcode, in which values hold each other in ways that no program should walk through, in every position
that a file of weights has."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from pytorch_files import DATA, archive, call, plain, script, state, storage, stream, tensor

from singe.weights.pytorch import LEGACY

W = tensor(storage("0", "Float", 4), 0, (2, 2), (2, 1))
W_OLD = tensor(storage("0", "Float", 4, True), 0, (2, 2), (2, 1))


@dataclass(frozen=True)
class Hostile:
    """A file, and how it came to be: for the message of a test that fails."""

    about: str
    data: bytes


# --- values -----------------------------------------------------------------------------------------------------------

PUT, GET = b"q\x01", b"h\x01"
WRAPS: dict[str, Callable[[bytes], bytes]] = {
    "tuple": lambda twice: b"(" + twice + b"t",
    "pair": lambda twice: twice + b"\x86",
    "list": lambda twice: b"](" + twice + b"e",
    "dict": lambda twice: b"}(X\x01\0\0\0a" + twice[:2] + b"X\x01\0\0\0b" + twice[2:] + b"u",
    "OrderedDict": lambda twice: call("collections.OrderedDict") + b"(K\x01" + twice[:2] + b"K\x02" + twice[2:] + b"u",
    "pairs": lambda twice: call("collections.OrderedDict", b"](](K\x01" + twice[:2] + b"e](K\x02" + twice[2:] + b"ee"),
    "Namespace": lambda twice: b"cargparse\nNamespace\n)\x81}(X\x01\0\0\0a" + twice[:2] + b"X\x01\0\0\0b" + twice[2:] + b"ub",
    "module": lambda twice: b"c__torch__.M\nN\n)\x81}(X\x01\0\0\0a" + twice[:2] + b"X\x01\0\0\0b" + twice[2:] + b"ub",
    "restored": lambda twice: call("torch.jit._pickle.restore_type_tag", twice + b"\x86", plain("x")),
}  # fmt: skip
"""The opcodes that push a container of two values, which are two times two bytes."""
PLAIN = ("tuple", "pair", "list", "dict", "OrderedDict", "pairs", "Namespace")
"""Those that files have which are not TorchScript's."""


def doubling(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """A value in which each container holds the one before it twice."""
    kinds = wraps if rng.random() < 0.5 else (rng.choice(wraps),)
    made = rng.choice([b"N", b")", b"]", W, plain("x" * 50)]) + PUT
    for _ in range(rng.choice([24, 31, 40, 60, 300])):
        made += b"0" + WRAPS[rng.choice(kinds)](GET + GET) + PUT
    return made


def cyclic(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """A container that holds itself, by way of others or not."""
    inner = GET
    for _ in range(rng.choice([0, 0, 1, 5, 50])):
        inner += b"q\x02" + b"0" + WRAPS[rng.choice(wraps)](b"h\x02h\x02")
    return rng.choice([b"]" + PUT + inner + b"a", b"}" + PUT + plain("a") + inner + b"s"])


def deep(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """A tuple in a tuple in a tuple …, or lists, or dicts."""
    count = rng.choice([900, 5000, 20_000])
    kind = rng.choice(["tuple", "list", "dict"])
    if kind == "tuple":
        return b")" + b"\x85" * count
    if kind == "list":
        return b"]" + PUT + b"]h\x01aq\x01" * count
    return b"}" + PUT + (b"}" + plain("a") + b"h\x01sq\x01") * count


def shared(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """A long container that is held by each value of another one."""
    count = rng.choice([100, 2000, 3000])
    inner = rng.choice(
        [
            b"](" + b"N" * count + b"e",
            b"}(" + b"".join(b"M" + k.to_bytes(2, "little") + b"N" for k in range(count)) + b"u",
        ]
    )
    kind = rng.choice(["list", "tuple", "dict"])
    outer = (
        b"}(" + b"".join(b"M" + k.to_bytes(2, "little") + GET for k in range(count)) + b"u" if kind == "dict"
        else b"](" + GET * count + b"e" if kind == "list" else b"(" + GET * count + b"t"
    )  # fmt: skip
    return inner + PUT + b"0" + outer


def nested_calls(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """A function that calls a function, whose arguments are such a call …"""
    of_type = b"ctorch._tensor\n_rebuild_from_type_v2\n"
    made = b")" + PUT
    for _ in range(rng.choice([5, 900, 3000])):
        made += b"0" + of_type + b"q\x03" + b"0(h\x03Nh\x01Nt" + PUT
    return of_type + b"q\x030" + made + b"q\x040h\x03h\x04R"


def many_states(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """Objects that all get the same long attributes, or lists that all are made of the same long one."""
    count = rng.choice([500, 3000])
    held = b"}(" + b"".join(b"M" + k.to_bytes(2, "little") + b"N" for k in range(count)) + b"u" + PUT + b"0"
    return held + b"](" + b"cargparse\nNamespace\n)\x81h\x01b" * count + b"e"


def same_hash(rng: random.Random, wraps: tuple[str, ...]) -> bytes:
    """A dict of numbers that all have one hash."""
    numbers = (((1 << 61) - 1) * k for k in range(1, rng.choice([10, 3000])))
    return b"}(" + b"".join(b"\x8a\x0c" + n.to_bytes(12, "little") + b"N" for n in numbers) + b"u"


VALUES = (doubling, doubling, doubling, cyclic, deep, shared, nested_calls, many_states, same_hash)

# --- positions --------------------------------------------------------------------------------------------------------

Root = Callable[[bytes, bytes], bytes]
"""The opcodes of an object, of those of a hostile value and of a tensor."""
V2 = "torch._utils._rebuild_tensor_v2"
ROOTS: dict[str, Root] = {
    "the object": lambda v, w: v,
    "a value of the state dict": lambda v, w: state({"w": w, "v": v}),
    "a value of a value": lambda v, w: state({"w": w, "v": b"}" + plain("x") + v + b"s"}),
    "a value beside the state dict": lambda v, w: b"}(" + plain("state_dict") + state({"w": w}) + plain("more") + v + b"u",
    "a key": lambda v, w: b"}(" + v + w + b"u",
    "a key in a list of pairs": lambda v, w: call("collections.OrderedDict", b"](](" + v + w + b"ee"),
    "the pairs of an OrderedDict": lambda v, w: call("collections.OrderedDict", v),
    "a pair of an OrderedDict": lambda v, w: call("collections.OrderedDict", b"](" + v + b"e"),
    "what attributes are set to": lambda v, w: state({"w": w}) + v + b"b",
    "what has attributes set": lambda v, w: v + b"}b",
    "attributes of an object": lambda v, w: b"}(" + plain("a") + b"cargparse\nNamespace\n)\x81" + v + b"b" + plain("w") + w + b"u",
    "what gets items": lambda v, w: v + plain("w") + w + b"s",
    "what is appended to": lambda v, w: v + w + b"a",
    "a module of a name": lambda v, w: v + plain("x") + b"\x93",
    "a name": lambda v, w: plain("torch") + v + b"\x93",
    "a function": lambda v, w: v + b")R",
    "arguments": lambda v, w: b"ctorch._utils\n_rebuild_tensor_v2\n" + v + b"R",
    "a class": lambda v, w: v + b")\x81",
    "what a class is made with": lambda v, w: b"cargparse\nNamespace\n" + v + b"\x81",
    "a persistent id": lambda v, w: v + b"Q",
    **{
        f"part {k} of a persistent id": lambda v, w, k=k: state({"w": tensor(_pid(v, k), 0, (2, 2), (2, 1))})
        for k in range(5)
    },
    **{
        f"argument {k} of a tensor": lambda v, w, k=k: state({"w": call(V2, *_instead(v, k))})
        for k in range(7)
    },
    "sizes": lambda v, w: state({"w": call("torch.Size", v)}),
    "a size": lambda v, w: state({"w": call("torch.Size", v + b"\x85")}),
    "a parameter": lambda v, w: state({"w": call("torch._utils._rebuild_parameter", v, b"\x89", b"N")}),
    "a device": lambda v, w: state({"w": w}) + b"}" + plain("d") + call("torch.device", v) + b"sb",
    "a number of NumPy's": lambda v, w: b"}(" + plain("w") + w + plain("n") + call("numpy.core.multiarray.scalar", v, v) + b"u",
    **{
        f"argument {k} of a subclass": lambda v, w, k=k: state({"w": call("torch._tensor._rebuild_from_type_v2", *(
            v if at == k else x for at, x in enumerate((b"ctorch\nSize\n", b"ctorch\nTensor\n", b")\x85", b"}"))))})
        for k in range(4)
    },
}  # fmt: skip


def _pid(value: bytes, at: int) -> bytes:
    parts = [plain("storage"), b"ctorch\nFloatStorage\n", plain("0"), plain("cpu"), plain(4)]
    parts[at] = value
    return b"(" + b"".join(parts) + b"tQ"


def _instead(value: bytes, at: int) -> list[bytes]:
    parts = [
        storage("0", "Float", 4),
        plain(0),
        plain((2, 2)),
        plain((2, 1)),
        b"\x89",
        call("collections.OrderedDict"),
        b"N",
    ]
    parts[at] = value
    return parts


def _stream(parts: list[bytes]) -> bytes:
    """The older layout, of which each pickle is given."""
    return LEGACY + b"".join(b"\x80\x02" + part + b"." for part in parts)


def hostile_pickles(count: int, seed: int) -> Iterator[Hostile]:
    """Files that `read_pytorch` reads or refuses: of every position, all in turn, and every kind of value, in each layout."""
    rng = random.Random(seed)
    for number in range(count):
        make = rng.choice(VALUES)
        where = list(ROOTS)[number % len(ROOTS)]
        layout = ("archive", "stream", "TorchScript", "a pickle of the stream")[number % 4]
        value = make(rng, tuple(WRAPS) if layout == "TorchScript" else PLAIN)
        about = f"{make.__name__} as {where}, {layout}, number {number} of seed {seed}"
        if layout == "archive":
            yield Hostile(about, archive(ROOTS[where](value, W), DATA))
        elif layout == "stream":
            yield Hostile(about, stream(ROOTS[where](value, W_OLD), {"0": (4, DATA["0"])}))
        elif layout == "TorchScript":
            root = script({"a": ROOTS[where](value, W), "w": W})
            yield Hostile(about, archive(root, DATA, {"m/constants.pkl": b""}))
        else:
            parts = [plain(1001), plain({"little_endian": True}), state({"w": W_OLD}), plain(["0"])]
            at = rng.randrange(4)
            kept = parts[at]
            parts[at] = rng.choice(
                [value, value + b"0" + kept, b"](" + value + b"e", b"}" + plain("little_endian") + value + b"s"]
            )
            yield Hostile(about, _stream(parts) + (4).to_bytes(8, "little") + DATA["0"])
