"""Arrays of NumPy, CuPy, Torch and others, by the interfaces that they share."""
from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from peal._dlpack import capsule_of, device_of

TYPES = [np.dtype(name) for name in ("f8", "f4", "i4", "i8", "u1")]  # by peal_type


@dataclasses.dataclass(frozen=True)
class Memory:
    """Where an array lies; shape and strides (in bytes) slowest first."""

    address: int
    kind: np.dtype[Any]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    keep: Any  # what the memory belongs to


def memory_of(array: Any, name: str) -> Memory:
    """An array that may be written: by __cuda_array_interface__, __array_interface__ or, on the host, DLPack."""
    keep = array
    interface = getattr(array, "__cuda_array_interface__", None) or getattr(array, "__array_interface__", None)
    if interface is None and hasattr(array, "__dlpack__"):
        keep = np.from_dlpack(array)
        interface = {**keep.__array_interface__, "data": (keep.__array_interface__["data"][0], False)}  # NumPy's view is read-only
    if interface is None:
        raise TypeError(f"{name} is no array: {array!r:.60}")
    kind, shape = np.dtype(interface["typestr"]), tuple(interface["shape"])
    if kind not in TYPES:
        raise TypeError(f"{name} is of {kind}; fields are of {', '.join(str(t) for t in TYPES)}")
    if interface["data"][1]:
        raise ValueError(f"{name} is read-only")
    strides = tuple(interface.get("strides") or np.cumprod([kind.itemsize, *shape[:0:-1]])[::-1])
    return Memory(interface["data"][0], kind, shape, tuple(int(s) for s in strides), keep)


class HostMemory:
    """A host's memory of a plan; keeps the plan."""

    def __init__(self, plan: Any, interface: dict[str, Any]) -> None:
        self.plan, self.__array_interface__ = plan, interface


class DeviceMemory:
    """A GPU's memory of a plan, for CuPy, Torch and others; keeps the plan."""

    def __init__(self, plan: Any, interface: dict[str, Any]) -> None:
        self.plan, self.__cuda_array_interface__ = plan, interface

    def __dlpack_device__(self) -> tuple[int, int]:
        return device_of(self.__cuda_array_interface__["data"][0])

    def __dlpack__(self, *, copy: bool | None = None, **_: Any) -> Any:
        """Without a copy, on the GPU where it lies. Nothing writes it between runs, so no stream has to wait."""
        if copy:
            raise BufferError("a plan's memory is lent, not copied")
        return capsule_of(self.__cuda_array_interface__, self.plan)
