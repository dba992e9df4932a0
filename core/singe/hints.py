"""What to write in place of names that users of PyTorch and NumPy know and that Singe lacks: one table, from which errors are made."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import signature
from typing import Any, Final, TypeVar

from .errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_TRAINING: Final = (
    "loss, grads = sg.value_and_grad(loss_of)(model, x, y); model, state = optimizer.step(model, grads, state), where state begins as "
    "optimizer.init(model); or let sg.train.TrainStep(model, optimizer, loss) do it all"
)
_NO_GRAD: Final = "nothing: gradients are computed only where sg.grad, sg.value_and_grad or sg.Autodiff ask for them"
_LOADER: Final = "sg.data.Loader(dataset, batch_size, shuffle=True)"
_DATASET: Final = "sg.data.Dataset.of((x, y))"
_FUNCTIONAL: Final = (
    "methods of Tensor, as in x.relu() or sg.relu(x), and layers called at once, as in nn.CrossEntropyLoss()(x, y)"
)
_DEVICE: Final = 'a device by its name: "numpy" or "wasm" for the CPU, "cuda:0" or "webgpu" for a GPU, "auto" for the best that is there'
_STATE: Final = "nothing: an optimiser holds no state; optimizer.init(model) gives it as a dict of tensors, and step gives the next one"
_PARAMETER: Final = (
    "the tensor itself: every Tensor in a module's field is a parameter, unless the class names it among its buffers"
)
_ONE_UPDATE: Final = "nothing: a compiled step updates each parameter and its moments by one kernel"
_JACOBIAN: Final = (
    "a gradient for each element of the value, as in sg.stack([sg.grad(lambda x: f(x)[k])(x)[x] for k in range(n)])"
)
_CUSTOM: Final = (
    "sg.op(name, f, gradient=…), or stop_gradient: "
    "g(x) + (f(x) - g(x)).stop_gradient() has the value of f and the gradient of g"
)
_HESSIAN: Final = "gradients of gradients, as in sg.grad(lambda x: sg.grad(f)(x)[x][k])(x)[x] for its row k"
_SCHEDULES: Final = "a schedule in place of the rate, as in sg.optim.AdamW(sg.optim.StepLR(1e-3, 10))"
_SOLVE: Final = "sg.linalg.solve(a, b)"
_FACTORS: Final = f"{_SOLVE}, inv(a) or det(a), which factor the matrix themselves"
_EIG: Final = "sg.linalg.eigh(x) of symmetric matrices; NumPy's np.linalg.eig(x.numpy()) of others"
_LSTSQ: Final = "sg.linalg.pinv(a) @ b"
_COMPLEX: Final = "sg.from_numpy of NumPy's complex numbers: they are computed on the host"
_EACH: Final = "methods of Tensor, which work on all elements at once; or x = sg.tensor(f(x.numpy()))"
_LOSSES: Final = {
    "binary_cross_entropy": "BCELoss", "binary_cross_entropy_with_logits": "BCEWithLogitsLoss", "cosine_embedding_loss": "CosineEmbeddingLoss",
    "ctc_loss": "CTCLoss", "gaussian_nll_loss": "GaussianNLLLoss", "hinge_embedding_loss": "HingeEmbeddingLoss", "huber_loss": "HuberLoss",
    "kl_div": "KLDivLoss", "l1_loss": "L1Loss", "margin_ranking_loss": "MarginRankingLoss", "mse_loss": "MSELoss",
    "multi_margin_loss": "MultiMarginLoss", "multilabel_margin_loss": "MultiLabelMarginLoss",
    "multilabel_soft_margin_loss": "MultiLabelSoftMarginLoss", "poisson_nll_loss": "PoissonNLLLoss", "smooth_l1_loss": "SmoothL1Loss",
    "soft_margin_loss": "SoftMarginLoss", "triplet_margin_loss": "TripletMarginLoss",
    "triplet_margin_with_distance_loss": "TripletMarginWithDistanceLoss",
}  # fmt: skip
"""Losses of torch.nn.functional ↦ the layers that compute them."""
_LAYERS: Final = {
    "alpha_dropout": "AlphaDropout", "dropout": "Dropout", "embedding_bag": "EmbeddingBag", "feature_alpha_dropout": "FeatureAlphaDropout",
    "fold": "Fold", "fractional_max_pool2d": "FractionalMaxPool2d", "fractional_max_pool3d": "FractionalMaxPool3d",
    "instance_norm": "InstanceNorm2d", "multi_head_attention_forward": "MultiheadAttention", "rrelu": "RReLU",
}  # fmt: skip
_SPACES: Final = {"dropout": "Dropout", "lp_pool": "LPPool", "max_unpool": "MaxUnpool"}
"""Other functions of torch.nn.functional ↦ layers; the second table's have a number of axes behind."""

INSTEAD: Final[Mapping[str, Mapping[str, str]]] = {
    "singe": {
        "DataLoader": _LOADER,
        "FloatTensor": "sg.tensor(data)",
        "Generator": "a key: sg.random.normal(7, (2, 3)); or sg.manual_seed(7) for sg.randn and others",
        "LongTensor": "sg.tensor(data, sg.int64)",
        "Size": "a tuple",
        "amp": 'sg.train.TrainStep(…, precision="bfloat16"), or "float16"',
        "autocast": 'sg.train.TrainStep(…, precision="bfloat16"), or "float16"',
        "autograd": "sg.grad(function) and sg.value_and_grad(function)",
        "backends": _DEVICE,
        "cuda": _DEVICE,
        "custom_gradient": _CUSTOM,
        "custom_jvp": _CUSTOM,
        "custom_vjp": _CUSTOM,
        "distributed": "sg.train.DataParallel, or sg.train.Learner(…, workers=sg.cluster.RayWorkers(4))",
        "enable_grad": _NO_GRAD,
        "finfo": "sg.array_api.finfo",
        "functional": _FUNCTIONAL,
        "get_default_dtype": "sg.float32, which it always is",
        "hessian": _HESSIAN,
        "iinfo": "sg.array_api.iinfo",
        "inference_mode": _NO_GRAD,
        "is_grad_enabled": _NO_GRAD,
        "jacfwd": _JACOBIAN,
        "jacobian": _JACOBIAN,
        "jacrev": _JACOBIAN,
        "istft": "sg.fft.irfft of each frame; nn.Fold adds frames where they overlap",
        "jit": "sg.compile(function, *examples), or sg.Model.of(module, shapes)",
        "lu": _FACTORS,
        "lu_solve": f"{_SOLVE}, which factors the matrix itself",
        "no_grad": _NO_GRAD,
        "script": "sg.compile(function, *examples)",
        "set_default_device": "the variable SINGE_DEVICE of the environment, or the argument device= of what makes tensors and models",
        "set_default_dtype": "the argument dtype= of what makes tensors",
        "set_grad_enabled": _NO_GRAD,
        "trace_module": "sg.Model.of(module, shapes)",
        "utils": f"{_LOADER}, {_DATASET}",
        "vjp": "sg.grad(lambda x: (f(x) * weights).sum())",
        "vmap": "a leading axis: methods broadcast over it",
        "cholesky_solve": "sg.linalg.solve(lower @ lower.mT, b)",
        "complex": _COMPLEX,
        "gumbel_softmax": "(x - (-sg.rand_like(x).log()).log()).softmax(dim)",
        "polar": _COMPLEX,
        "e": "math.e",
        "inf": "math.inf",
        "nan": "math.nan",
        "newaxis": "None, as in x[:, None]",
        "pi": "math.pi",
        "range": "sg.arange(start, end + 1), or sg.linspace",
        "scalar_tensor": "sg.tensor(value)",
        "special": "sg.lgamma, sg.i0 and other functions of the same names",
        "upsample": "x.interpolate(size, scale_factor=…, mode=…)",
        "view_as_complex": _COMPLEX,
        "view_as_real": _COMPLEX,
        **{name: f"nn.{layer}(…)(x, target)" for name, layer in _LOSSES.items()},
        **{name: f"nn.{layer}(…)(x)" for name, layer in _LAYERS.items()},
        **{f"{name}{n}d": f"nn.{layer}{n}d(…)(x)" for name, layer in _SPACES.items() for n in (1, 2, 3)},
        "eig": _EIG,
        "eigh": "sg.linalg.eigh(x)",
        "lstsq": _LSTSQ,
        "solve": _SOLVE,
    },
    "singe.linalg": {
        "cholesky_ex": "sg.linalg.cholesky(x), which is an error where it fails",
        "cond": "sg.linalg.svdvals(x): the first of them divided by the last",
        "eig": _EIG,
        "eigvals": _EIG,
        "inv_ex": "sg.linalg.inv(x), which is an error where it fails",
        "ldl_factor": _FACTORS,
        "lstsq": _LSTSQ,
        "lu": _FACTORS,
        "lu_factor": _FACTORS,
        "lu_solve": f"{_SOLVE}, which factors the matrix itself",
        "solve_triangular": _SOLVE,
        "tensorsolve": f"{_SOLVE} of reshaped tensors",
        "tensorinv": "sg.linalg.inv of a reshaped tensor",
    },
    "singe.nn": {
        "Buffer": "the tensor itself, in a field that the class names: class Norm(nn.Module, buffers=('mean',))",
        "DataParallel": "sg.train.DataParallel(model, optimizer, loss, device=[…])",
        "Parameter": _PARAMETER,
        "ParameterDict": "a dict of tensors in a field of the module",
        "ParameterList": "a list of tensors in a field of the module",
        "functional": _FUNCTIONAL,
        "parallel": "sg.train.DataParallel(model, optimizer, loss, device=[…])",
        "parameter": _PARAMETER,
        "utils": "sg.optim.clip_norm for clip_grad_norm_, nn.weight_norm and nn.spectral_norm for those of this name",
    },
    "singe.optim": {
        "lr_scheduler": _SCHEDULES,
        "zero_grad": "nothing: gradients are values, and no tensor keeps one",
    },
    "singe.data": {
        "DataLoader": _LOADER,
        "TensorDataset": _DATASET,
        "random_split": "of dataset.shuffle(seed), partial(0.0, 0.8) and partial(0.8)",
    },
    "Optimizer": {
        "add_param_group": 'the argument groups=, as in sg.optim.AdamW(1e-3, groups={"head.*": {"lr": 1e-2}})',
        "load_state_dict": _STATE,
        "param_groups": 'the argument groups=, as in sg.optim.AdamW(1e-3, groups={"head.*": {"lr": 1e-2}})',
        "state_dict": _STATE,
        "step": _TRAINING,
        "zero_grad": "nothing: gradients are values, and no tensor keeps one",
    },
    "Module": {
        "add_module": "module = module.replace(name=…)",
        "apply": "module = module.map_parameters(lambda path, t: …)",
        "children": "module.fields().values(), or module.named_modules() for all of them at any depth",
        "cpu": 'module = module.to("cpu")',
        "cuda": 'module = module.to("cuda:0")',
        "double": "module = module.cast(sg.float64)",
        "load_state_dict": "module = module.with_state(state), or sg.load_weights(module, path)",
        "modules": "module.named_modules()",
        "register_buffer": "self.name = tensor in __init__, of a class with buffers=('name',)",
        "register_forward_hook": "module.summary(*examples), which lists what each layer gives; or a module around it",
        "register_parameter": "self.name = tensor in __init__",
        "requires_grad_": "module = module.freeze(pattern) or module.unfreeze(pattern)",
        "zero_grad": "nothing: gradients are values, and no tensor keeps one",
    },
    "Tensor": {
        "apply_": _EACH,
        "bernoulli_": "x = x.bernoulli(p)",
        "conjugate": "x.conj()",
        "copy": "x.clone(), or x itself: a tensor does not change",
        "copy_": "x = y, the other tensor itself: none of them changes",
        "exponential_": "x = -(1 - sg.rand_like(x)).log() / rate",
        "fill_": "x = sg.full_like(x, value)",
        "log_normal_": "x = (sg.randn_like(x) * std + mean).exp()",
        "map_": _EACH,
        "normal_": "x = sg.normal(mean, std, x.shape)",
        "random_": "x = sg.randint_like(x, low, high)",
        "resize_": "x = x.reshape(shape)",
        "set_": "x = y, the other tensor itself: none of them changes",
        "uniform_": "x = sg.rand_like(x) * (high - low) + low",
        "zero_": "x = sg.zeros_like(x)",
        "cuda": 'x.to("cuda:0")',
        "data": "x.detach(), or x itself: a tensor does not change",
        "as_strided": "slices, or x.unfold(dim, size, step)",
        "get_device": "x.device",
        "grad": "grads[x], of grads = loss.backward() on a device sg.Autodiff(…), or of sg.grad(function)",
        "grad_fn": "x.requires_grad, which says whether backward goes through x",
        "is_contiguous": "nothing: elements are always in row-major order",
        "is_cuda": "x.device",
        "is_leaf": "x.requires_grad",
        "is_same_size": "x.shape == y.shape",
        "multinomial": "sg.multinomial(x, n)",
        "new": "x.new_zeros(shape) or x.new_tensor(data)",
        "pin_memory": "nothing: memory is the device's own affair",
        "ptp": "x.max() - x.min()",
        "register_hook": "grads[x], of grads = loss.backward()",
        "requires_grad_": "x = x.require_grad(), on a device sg.Autodiff(…)",
        "retain_grad": "x = x.require_grad(), on a device sg.Autodiff(…)",
        "share_memory_": "nothing: tensors may be shared between threads",
        "std_mean": "sg.std_mean(x, dim)",
        "storage": "x.numpy()",
        "stride": "nothing: elements are always in row-major order",
        "strides": "nothing: elements are always in row-major order",
        "tobytes": "x.numpy().tobytes()",
        "var_mean": "sg.var_mean(x, dim)",
    },
    "argument": {
        "generator": "a key, as in sg.random.normal(7, shape); or sg.manual_seed(7) before",
        "layout": "nothing: elements are always in row-major order",
        "memory_format": "nothing: elements are always in row-major order",
        "non_blocking": "nothing: devices work while Python goes on",
        "out": "the result, as in y = x.exp(): a tensor does not change",
        "pin_memory": "nothing: memory is the device's own affair",
        "requires_grad": "the method require_grad() of the result, on a device sg.Autodiff(…); or sg.grad(function)",
    },
    "gradient argument": {
        "allow_int": "nothing: integers have no gradient, and floats beside them in a list or dict are differentiated by",
        "argnum": "that argument in the first place: sg.grad(lambda y: f(x, y))(y)",
        "argnums": "that argument in the first place: sg.grad(lambda y: f(x, y))(y); for several, a list or dict of them as first one",
        "create_graph": "nothing: sg.grad of a function that uses sg.grad gives second derivatives",
    },
    "optimizer argument": {
        "capturable": _ONE_UPDATE,
        "differentiable": _ONE_UPDATE,
        "foreach": _ONE_UPDATE,
        "fused": _ONE_UPDATE,
        "maximize": "the loss with the other sign, -loss",
    },
    "backward": {
        "": "x = sg.tensor(…, device=sg.Autodiff(sg.Fusion(device)), requires_grad=True); grads = loss.backward(); grads[x]. "
        "For a model: loss, grads = sg.value_and_grad(loss_of)(model, x, y), on every device",
    },
    "backend": {
        "gpu": '"webgpu"',
        "mps": '"webgpu"',
    },
}  # fmt: skip
"""What has no such name (a module, a kind of object) ↦ names of PyTorch or NumPy ↦ what to write in place of each."""


def suggest(of: str, name: str) -> str:
    """The end of an error: "; in its place: …", or nothing if the table has nothing."""
    found = INSTEAD.get(of, {}).get(name)
    return f"; in its place: {found}" if found else ""


def spelt_like(name: str, known: Iterable[str]) -> str:
    """The end of an error: "; did you mean …?", with names that there are, or nothing if none is spelt alike."""
    from difflib import get_close_matches  # noqa: PLC0415 (only an error needs it)

    near = get_close_matches(name, [*known])
    return f"; did you mean {' or '.join(near)}?" if near else ""


def answering(kind: str) -> Callable[[F], F]:
    """Makes a function answer arguments that it lacks and the table of this kind has."""

    def made(function: F) -> F:
        known = signature(function).parameters

        @wraps(function)
        def called(*args: Any, **named: Any) -> Any:
            check_arguments(kind, function.__name__, named.keys() - known)
            return function(*args, **named)

        return called  # pyright: ignore[reportReturnType]

    return made


def check_arguments(kind: str, what: str, unknown: Iterable[str]) -> None:
    """Refuse arguments that are not there, where the table says what to write."""
    for name in unknown:
        if hint := suggest(kind, name):
            raise InputError(f"{what}: there is no argument {name}={hint}")


def no_attribute(module: str, name: str) -> AttributeError:
    """The error of a module's `__getattr__`. Where there is no advice, Python adds the nearest name that the module has."""
    advice = suggest(module, name)
    obj = None if advice else sys.modules.get(module)
    return AttributeError(f"module {module!r} has no attribute {name!r}{advice}", name=name, obj=obj)
