"""Adapters of products, in integers too, and of what is made of them: convolutions, pools, attention, recurrent layers."""

from . import attention, linear_attention, products, quantise, quantised, recurrent, signal, transformer, windows  # noqa: F401 (each enters its adapters)
