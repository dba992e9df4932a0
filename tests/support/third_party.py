"""A package of a third party, as an installer would leave it: a module and its metadata, with backends and targets.

`acme` is a correct package: it runs Programs of its own target, which is WebAssembly by another name. The others show
what can be wrong with one.
"""

from __future__ import annotations

from pathlib import Path

MODULE = """
from dataclasses import replace

from singe.extension import BackendFactory
from singe_wasm.backend import open_backend
from singe_wasm.target import WasmTarget


class AcmeTarget(WasmTarget):
    name = "acme-code"


class AcmeBackend:
    name = "acme"
    target_name = "acme-code"
    opened = 0

    def __init__(self):
        AcmeBackend.opened += 1
        self.inner = open_backend()
        self.target = AcmeTarget()
        self.upload, self.download, self.synchronize = self.inner.upload, self.inner.download, self.inner.synchronize
        self.dispose = self.inner.dispose

    def prepare(self, program):
        assert program.target == self.target.name
        return self.inner.prepare(replace(program, target="wasm"))

    def describe(self):
        return {"made by": "Acme"}


class ManyBackend(AcmeBackend):
    target_name = "acme-code"

    def __init__(self, choice="0"):
        super().__init__()
        self.name = "acme-many" if choice in ("0", "first") else f"acme-many:{choice}"


many = BackendFactory(ManyBackend, target_name="acme-code", choices="a number", list_choices=lambda: ("0", "1"))


def _absent():
    import acme_engine


def _broken():
    raise RuntimeError("the coil is cold")


absent = BackendFactory(_absent, target_name="acme-code")
broken = BackendFactory(_broken, target_name="acme-code", preference=1000)
untargeted = BackendFactory(AcmeBackend, target_name="acme-future")
mistaken = BackendFactory(AcmeBackend, target_name="wasm", preference=1)
silent = AcmeBackend.prepare


class HalfTarget:
    name, max_ports, integers, counted, networks, repeated = "acme-half", 8, False, 0, False, 0


class HalfBackend:
    name, target_name, target = "acme-half", "acme-code", AcmeTarget()

    def upload(self, array):
        return array

    download = synchronize = dispose = upload


class Untyped(AcmeBackend):
    target_name = "acme-half"

    def __init__(self):
        super().__init__()
        self.target = HalfTarget()
"""

ENTRIES = """
[singe.backends]
acme = acme:AcmeBackend
acme-absent = acme:absent
acme-broken = acme:broken
acme-half = acme:HalfBackend
acme-many = acme:many
acme-mistaken = acme:mistaken
acme-nothing = acme:NoSuchName
acme-silent = acme:silent
acme-untargeted = acme:untargeted
acme-untyped = acme:Untyped

[singe.targets]
acme-code = acme:AcmeTarget
acme-half = acme:HalfTarget
acme-rust = acme:NoSuchTarget
"""

METADATA = "Metadata-Version: 2.1\nName: acme-devices\nVersion: 1.0\nProvides-Extra: acme-absent\n"


def install(folder: Path) -> Path:
    """Write the package into a folder, and return the folder, which can be added to sys.path."""
    (folder / "acme.py").write_text(MODULE)
    info = folder / "acme_devices-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(METADATA)
    (info / "entry_points.txt").write_text(ENTRIES)
    return folder
