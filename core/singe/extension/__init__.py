"""The interface for packages that extend Singe: all names that a code generator or a device needs.

These names change only with the version of Singe and a line in CHANGELOG.md; every other module of `singe` that its
`__init__` does not list is private. An extension provides

  a Target   (entry-point group `singe.targets`): Kernels and Routines in, text or bytes out. It needs no device.
  a Backend  (entry-point group `singe.backends`): holds arrays and runs Programs; its attribute `target` is the Target
             whose Programs it runs, an ArrayTarget if it calls ops with arrays. The entry point names a BackendFactory, which
             has the facts that need no open device, or a class with a BackendFactory's attributes.
  a Device   that wraps another, as Fusion does: a Decorator. It needs no entry point.

The names are in the order in which they are needed: errors, element types, dimensions; expressions and index arithmetic
(`scalar`, `affine`), Kernel and Routine; the parts of a Program; the protocols; helpers for pages.
"""

from ..awaitables import MaybeAwaitable as MaybeAwaitable
from ..awaitables import map_result as map_result
from ..awaitables import resolve_async as resolve_async
from ..compiler.partition import beyond_scripts as beyond_scripts
from ..compiler.target import ArrayTarget as ArrayTarget
from ..compiler.target import Execution as Execution
from ..compiler.target import Packer as Packer
from ..compiler.target import Printed as Printed
from ..compiler.target import Target as Target
from ..dtypes import DTYPES as DTYPES
from ..dtypes import LEAST_NORMAL as LEAST_NORMAL
from ..dtypes import STORED as STORED
from ..dtypes import Coding as Coding
from ..dtypes import DType as DType
from ..dtypes import bfloat16 as bfloat16
from ..dtypes import bool_ as bool_
from ..dtypes import dtype as dtype
from ..dtypes import float16 as float16
from ..dtypes import float32 as float32
from ..dtypes import float64 as float64
from ..dtypes import int8 as int8
from ..dtypes import int16 as int16
from ..dtypes import int32 as int32
from ..dtypes import int64 as int64
from ..dtypes import outward as outward
from ..dtypes import string as string
from ..dtypes import uint8 as uint8
from ..dtypes import uint16 as uint16
from ..dtypes import uint32 as uint32
from ..dtypes import uint64 as uint64
from ..errors import CompileError as CompileError
from ..errors import DeviceError as DeviceError
from ..errors import DeviceLost as DeviceLost
from ..errors import FormatError as FormatError
from ..errors import InputError as InputError
from ..errors import ShapeError as ShapeError
from ..files.kept import entry_key as entry_key
from ..files.kept import keep_entry as keep_entry
from ..files.kept import recall_entry as recall_entry
from ..files.urls import js_errors as js_errors
from ..ir import affine as affine
from ..ir import scalar as scalar
from ..ir.attention import Attention as Attention
from ..ir.attention import attention as attention
from ..ir.contraction import Contraction as Contraction
from ..ir.contraction import contraction as contraction
from ..ir.kernel import Kernel as Kernel
from ..ir.kernel import Port as Port
from ..ir.kernel import Reduce as Reduce
from ..ir.kernel import Routine as Routine
from ..ir.kernel import Scan as Scan
from ..ir.kernel import Stage as Stage
from ..ir.kernel import Store as Store
from ..ir.kernel import collapse as collapse
from ..ir.kernel import identity as identity
from ..ir.scalar import DEAR_WORDS as DEAR_WORDS
from ..ir.scalar import Expr as Expr
from ..ops import Row as Row
from ..ops import Wgsl as Wgsl
from ..ops import find_row as find_row
from ..ops.products.quantised import LARGEST as LARGEST
from ..ops.products.quantised import OFFSET as OFFSET
from ..ops.products.quantised import PART as PART
from ..ops.products.quantised import TOP as TOP
from ..ops.products.quantised import step_of as step_of
from ..program import words as words
from ..program.block import alone as alone
from ..program.container import ALIGN as ALIGN
from ..program.container import align as align
from ..program.elements import aligned as aligned
from ..program.elements import from_stored as from_stored
from ..program.elements import stored_type as stored_type
from ..program.elements import to_stored as to_stored
from ..program.format import header as header
from ..program.plan import Found as Found
from ..program.plan import Plan as Plan
from ..program.program import Buffer as Buffer
from ..program.program import Check as Check
from ..program.program import Code as Code
from ..program.program import Place as Place
from ..program.program import ProgramData as ProgramData
from ..program.program import Variant as Variant
from ..program.program import choose_variant as choose_variant
from ..runtime.backend import Backend as Backend
from ..runtime.backend import Executable as Executable
from ..runtime.backend import HostArray as HostArray
from ..runtime.backend import Span as Span
from ..runtime.backend import Timeline as Timeline
from ..runtime.decorators import Decorator as Decorator
from ..runtime.device import Device as Device
from ..runtime.donated_inputs import check_donated as check_donated
from ..runtime.donated_inputs import writable as writable
from ..runtime.host_steps import run_host_step as run_host_step
from ..runtime.memory.heap import Heap as Heap
from ..runtime.memory.settings import Memory as Memory
from ..runtime.memory.settings import limit_reached as limit_reached
from ..runtime.memory.usage import MemoryKind as MemoryKind
from ..runtime.memory.usage import MemoryLedger as MemoryLedger
from ..runtime.memory.usage import MemoryUse as MemoryUse
from ..runtime.page import device_error as device_error
from ..runtime.page import scripts as scripts
from ..runtime.recent_values import Recent as Recent
from ..runtime.registry import BackendFactory as BackendFactory
from ..shapes import Dim as Dim
from ..shapes import Shape as Shape
from ..shapes import Size as Size
from ..shapes import bytes_text as bytes_text
from ..shapes import ceildiv as ceildiv
from ..shapes import dim_max as dim_max
from ..shapes import dim_min as dim_min
from ..shapes import divides as divides
from ..shapes import evaluate as evaluate
from ..shapes import guessed as guessed
from ..shapes import known as known
from ..shapes import product as product
from ..shapes import show as show
from ..shapes import size as size
from ..shapes import symbols as symbols
from ..time_limits import stopped_by as stopped_by
from ..time_limits import time_limit as time_limit
