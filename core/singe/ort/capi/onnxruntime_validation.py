"""onnxruntime.capi.onnxruntime_validation: which package this is."""

from ..settings.stand_in import VERSION


def get_package_name_and_version_info() -> tuple[str, str, str]:
    """The package's name, its version, and that of CUDA: none."""
    return "onnxruntime", VERSION, ""


def check_distro_info() -> None:
    """Whether the system is one that onnxruntime supports: Singe runs on all."""
