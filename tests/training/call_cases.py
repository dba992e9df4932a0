"""Methods of tensors as PyTorch's users call them: texts that mean the same in PyTorch and in Singe, and their operands."""

from collections.abc import Mapping
from typing import Final

import numpy as np

_RNG: Final = np.random.default_rng(17)
OPERANDS: Final[Mapping[str, np.ndarray]] = {
    "x": _RNG.normal(size=(4, 5)).astype(np.float32),
    "y": _RNG.normal(size=(4, 5)).astype(np.float32),
    "v": _RNG.normal(size=5).astype(np.float32),
    "m": _RNG.normal(size=(5, 3)).astype(np.float32),
    "s": _RNG.normal(size=(3, 3)).astype(np.float32) + 3 * np.eye(3, dtype=np.float32),
    "c": _RNG.normal(size=(2, 3, 4)).astype(np.float32),
    "i": _RNG.integers(-6, 7, (4, 5)),
    "j": _RNG.integers(0, 4, (2, 5)),
    "n": _RNG.integers(0, 6, 9),
    "b": _RNG.random((4, 5)) < 0.5,
}
"""A name in the texts ↦ the array that it stands for."""
CALLS: Final = tuple("""
x.abs()
x.neg()
x.sign()
x.exp()
x.exp2()
x.expm1()
x.abs().log()
x.abs().log2()
x.abs().log10()
x.abs().log1p()
x.abs().sqrt()
x.abs().rsqrt()
x.square()
x.reciprocal()
x.sin()
x.cos()
x.tan()
x.tanh()
x.sinh()
x.cosh()
x.atan()
x.clamp(-1, 1).asin()
x.clamp(min=-1, max=1).acos()
x.asinh()
x.erf()
x.erfc()
x.sigmoid()
x.relu()
x.floor()
x.ceil()
x.round()
x.trunc()
x.frac()
x.clamp(min=0)
x.clip(-0.5, 0.5)
x.nan_to_num(nan=0.0)
x.add(y)
x.add(y, alpha=2)
x.sub(y)
x.mul(y)
x.div(y)
x.div(y, rounding_mode="floor")
x.remainder(y)
x.fmod(y)
x.abs().pow(2.5)
x.pow(2)
2 ** x
x.maximum(y)
x.minimum(y)
x.atan2(y)
x.hypot(y)
x.lerp(y, 0.25)
x.addcmul(y, y, value=0.5)
x.addcdiv(y, y.abs() + 1, value=0.5)
x.eq(y)
x.ne(y)
x.lt(y)
x.ge(0)
x.isfinite()
x.isnan()
b.logical_not()
b.logical_and(x > 0)
b.logical_xor(x > 0)
b & (x > 0)
i.bitwise_and(3)
i.bitwise_not()
i << 2
i.float()
i.to(x.dtype)
x.long()
x.sum()
x.sum(dim=1)
x.sum(dim=(0, 1), keepdim=True)
x.mean(dim=0)
x.mean(-1, keepdim=True)
x.std()
x.std(dim=1)
x.var(dim=0, unbiased=False)
x.prod(dim=1)
x.max()
x.max(dim=1)
x.min(dim=0, keepdim=True)
x.amax(dim=1)
x.amin(dim=(0, 1))
x.argmax()
x.argmax(dim=1)
x.argmin(dim=0, keepdim=True)
x.median(dim=1)
x.norm()
x.norm(dim=1)
x.norm(p=1, dim=0)
x.logsumexp(dim=1)
x.softmax(dim=1)
x.log_softmax(dim=-1)
x.cumsum(dim=0)
x.cumprod(dim=1)
b.any()
b.any(dim=1)
b.all(dim=0)
x.count_nonzero(dim=1)
x.sort(dim=1, descending=True)
x.argsort(dim=1)
x.topk(2, dim=1)
x.kthvalue(2, dim=1)
n.unique()
n.bincount()
x.reshape(2, 10)
x.view(5, 4)
x.view(-1)
x.flatten()
c.flatten(start_dim=1)
c.unflatten(2, (2, 2))
x.unsqueeze(0)
x.unsqueeze(-1).squeeze(-1)
x.t()
x.T
c.transpose(1, 2)
c.permute(2, 0, 1)
c.movedim(0, -1)
v.expand(4, 5)
v.repeat(2, 3)
v.repeat_interleave(2)
x.flip(0)
x.flip(dims=(0, 1))
x.roll(1, dims=0)
x.rot90()
x.tril()
x.triu(diagonal=1)
x.diagonal()
x.narrow(1, 1, 3)
x.chunk(2, dim=0)
x.split(2, dim=1)
x.unbind(dim=0)
c.unfold(2, 2, 1)
x[1:3, ::2]
x[..., -1]
x[:, None, 1]
x[b]
x[j[0] % 4]
x.masked_fill(b, 0.0)
x.masked_select(b)
x.where(b, y)
x.gather(0, j)
x.index_select(1, n[:3] % 5)
x.take(n)
x.index_add(0, n[:2] % 4, y[:2])
x.scatter(0, j, y[:2])
x.scatter_add(0, j, y[:2])
x.nonzero()
b.nonzero()
x @ m
x.matmul(m)
x.mm(m)
c.bmm(c.transpose(1, 2))
x.mv(v)
v.dot(v)
v.outer(v)
s.det()
s.inverse()
s.trace()
x.type_as(i)
x.new_zeros(2, 3)
x.new_full((2,), 7.0)
x.size(0) * x
x.dim() + x
x.numel() + x
x.size() == (4, 5)
x[0, 0]
x.sum().item()
x.detach().clone()
x.contiguous()
x.allclose(x + 1e-9)
x.equal(y)
""".strip().split("\n"))  # fmt: skip
"""The texts; a result is a tensor, or a tuple of tensors, or a plain value."""


def parts(result: object) -> tuple[object, ...]:
    """The tensors of a result."""
    return tuple(result) if isinstance(result, (tuple, list)) else (result,)
