"""libpeal by cffi, without compiled code; what it reports, as objects."""
from __future__ import annotations

import dataclasses
import glob
import os
from typing import Any

import cffi

FOLDER = os.path.dirname(os.path.abspath(__file__))
ffi = cffi.FFI()


def _open_library() -> Any:
    with open(os.path.join(FOLDER, "declarations.h"), encoding="ascii") as file:
        ffi.cdef(file.read())
    with open(os.path.join(FOLDER, "library.txt"), encoding="utf-8") as file:
        installed = os.path.join(FOLDER, file.read().strip())
    of_wheel = glob.glob(os.path.join(glob.escape(os.path.dirname(FOLDER)), ".peal.mesonpy.libs", "libpeal.so.*"))
    tried = []
    for name in filter(None, (os.environ.get("PEAL_LIBRARY"), *of_wheel, installed, "libpeal.so.0")):
        try:
            return ffi.dlopen(name)
        except OSError as error:
            tried.append(f"{name}: {error}")
    raise ImportError("libpeal.so.0 cannot be opened; say where it is with PEAL_LIBRARY\n" + "\n".join(tried))


lib = _open_library()


def version() -> str:
    """The library's version, as "0.1.0"."""
    return text_of(lib.peal_version()) or ""


def text_of(pointer: Any) -> str | None:
    return ffi.string(pointer).decode("utf-8", "replace") if pointer else None


@dataclasses.dataclass(frozen=True)
class Diagnostic:
    """An error or a warning: `peal explain E131` says more about its code.

    line and column count from 1 (0: unknown). Of a spec that is a dict they count in its JSON, `json.dumps(spec, indent=1)`.
    """

    code: str
    is_error: bool
    file: str | None
    line: int
    column: int
    text: str
    hint: str | None

    def __str__(self) -> str:
        place = "".join(f"{part}:" for part in (self.file, self.line or None, self.column or None) if part is not None)
        kind = "error" if self.is_error else "warning"
        return f"{place}{' ' if place else ''}{kind}: {self.text} [{self.code}]" + (f"\n    {self.hint}" if self.hint else "")


class Error(Exception):
    """A failed call.

    Attributes
    ----------
    status : str
        "spec", "usage", "environment", "deadline passed", ...: as peal_status_name has it.
    diagnostics : list of Diagnostic
        What was reported, errors first; may be empty.
    """

    def __init__(self, status: str, diagnostics: list[Diagnostic], call: str) -> None:
        self.status = status
        self.diagnostics = sorted(diagnostics, key=lambda d: not d.is_error)
        super().__init__("\n".join(str(d) for d in self.diagnostics) or f"{call}: {status}")


class SpecWarning(UserWarning):
    """What peal warns of when it compiles a spec."""
