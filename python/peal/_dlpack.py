"""DLPack (github.com/dmlc/dlpack, dlpack.h): a capsule that says where a GPU's array lies."""
from __future__ import annotations

import ctypes
from typing import Any

HOST, CUDA = 1, 2  # DLDeviceType
_CODES = {"i": 0, "u": 1, "f": 2}  # DLDataTypeCode
_NAME = b"dltensor"
_ORDINAL = 9  # CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL


class _Managed(ctypes.Structure):
    """DLManagedTensor, its DLTensor first."""


_Deleter = ctypes.CFUNCTYPE(None, ctypes.POINTER(_Managed))
_Managed._fields_ = [
    ("data", ctypes.c_void_p), ("device_type", ctypes.c_int32), ("device", ctypes.c_int32), ("axes", ctypes.c_int32),
    ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16), ("shape", ctypes.POINTER(ctypes.c_int64)),
    ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64), ("manager", ctypes.c_void_p), ("deleter", _Deleter)]
_CapsuleEnd = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
_api = ctypes.pythonapi
_new = _api.PyCapsule_New
_new.restype, _new.argtypes = ctypes.py_object, [ctypes.c_void_p, ctypes.c_char_p, _CapsuleEnd]
_is = _api.PyCapsule_IsValid
_is.restype, _is.argtypes = ctypes.c_int, [ctypes.c_void_p, ctypes.c_char_p]
_pointer = _api.PyCapsule_GetPointer
_pointer.restype, _pointer.argtypes = ctypes.c_void_p, [ctypes.c_void_p, ctypes.c_char_p]
_lent: dict[int, Any] = {}  # by address: what must stay until its taker is done with it


@_Deleter
def _forget(managed: Any) -> None:
    _lent.pop(ctypes.addressof(managed.contents), None)


@_CapsuleEnd
def _end(capsule: Any) -> None:
    if _is(capsule, _NAME):  # nobody took it: a taker gives it another name
        _lent.pop(_pointer(capsule, _NAME), None)


def device_of(address: int) -> tuple[int, int]:
    """`__dlpack_device__` of a GPU's memory."""
    ordinal = ctypes.c_int()
    status = ctypes.CDLL("libcuda.so.1").cuPointerGetAttribute(ctypes.byref(ordinal), _ORDINAL, ctypes.c_uint64(address))
    if status:
        raise BufferError(f"the driver knows no device of {address:#x} (CUresult {status})")
    return CUDA, ordinal.value


def capsule_of(interface: dict[str, Any], owner: Any) -> Any:
    """A capsule for an array described as by `__cuda_array_interface__`; keeps `owner`."""
    address, axes, size = interface["data"][0], len(interface["shape"]), int(interface["typestr"][2:])
    tensor = _Managed(address, *device_of(address), axes, _CODES[interface["typestr"][1]], 8 * size, 1,
                      (ctypes.c_int64 * axes)(*interface["shape"]),
                      (ctypes.c_int64 * axes)(*(stride // size for stride in interface["strides"])), 0, None, _forget)
    _lent[ctypes.addressof(tensor)] = (tensor, owner)
    return _new(ctypes.addressof(tensor), _NAME, _end)
