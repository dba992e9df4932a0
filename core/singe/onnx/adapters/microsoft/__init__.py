"""com.microsoft: the ops that onnxruntime's optimisers and exporters put in place of several of ONNX's.

fused.py: products and convolutions with what follows, activations, norms of sums. attention.py: attention without a cache,
or with one that grows. cached.py: attention that finds its keys in a cache by the lengths of sequences.
quantised.py: products, sums and functions of quantised numbers. channels.py: tensors with their channels last.
experts.py: mixtures of experts.
"""

from . import attention, cached, channels, experts, fused, quantised  # noqa: F401 (each enters its adapters)
