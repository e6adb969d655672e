"""Devices of torch, by the names that users give."""

from typing import Any

from carina.store.errors import CarinaError


def select_device(torch: Any, device: str | None, *, default: str = "auto") -> Any:  # noqa: ANN401 - torch is optional
    """The device of torch that a name means.

    Args:
        torch: The module.
        device: "cpu", "cuda", "cuda:1" or "mps"; None for the default.
        default: Name of a device, or "auto" for a GPU where there is one and else the CPU.

    Raises:
        CarinaError: The name is unknown, or this machine has no such device.
    """
    if device is None:
        if default == "auto":
            return torch.device("cuda" if torch.cuda.is_available() else "cpu")
        return torch.device(default)
    try:
        where = torch.device(device)
    except RuntimeError:
        raise CarinaError(f"device {device!r}: unknown; expected cpu, cuda, cuda:1 or mps") from None
    available = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}
    if not available.get(where.type, False):
        raise CarinaError(f"device {device!r}: not on this machine, or torch was built without it")
    if where.type == "cuda" and (where.index or 0) >= (number := torch.cuda.device_count()):
        raise CarinaError(
            f"device {device!r}: not on this machine; it has {number} (cuda:0 to cuda:{number - 1})"
        )
    return where
