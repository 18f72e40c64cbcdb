"""The halo exchange of a program that keeps its own loop and its own arrays."""
from __future__ import annotations

from typing import Any, Sequence

import numpy as np

from peal._library import ffi, lib, text_of
from peal._memory import TYPES, memory_of
from peal._session import Session


def _by_side(value: Any, axes: int) -> list[tuple[int, int]]:
    """1, [1, 2] or [[1, 1], [0, 2]]: points below and above, by axis."""
    items = [value] * axes if np.isscalar(value) else list(value)
    if len(items) != axes:
        raise ValueError(f"{len(items)} axes are listed where there are {axes}")
    pairs = [(item, item) if np.isscalar(item) else tuple(item) for item in items]
    return [(int(below), int(above)) for below, above in pairs]


class Exchange:
    """Fills the halos of arrays with what their neighbours own. Collective.

    Parameters
    ----------
    lo, hi : sequence of int
        The points that this process owns, x first: lo <= p < hi in coordinates of the whole grid. Which processes are
        neighbours follows from all boxes, which make up a grid.
    fields : array or list of arrays
        Of shape (nz, ny, nx), halo included, or (nz, ny, nx, components) with `components`; x contiguous. An item may be a pair
        of arrays that take turns. NumPy's, or a GPU's with `__cuda_array_interface__` (CuPy, Torch).
    width : int or sequence
        Points received: a number, one an axis (x first), or (below, above) an axis.
    halo : int or sequence, optional
        Points stored around the own ones; as width unless given.
    periodic : bool or sequence of bool
        By axis, x first.
    star : bool
        No corners and no edges.
    components : bool
        Whether the last axis of each array is values of a point.
    session : Session, optional
        By default the one that `compile` would make.

    Raises
    ------
    Error
        Boxes that overlap or leave a gap, arrays that are too small: with two processes or a point.
    """

    def __init__(self, lo: Sequence[int], hi: Sequence[int], fields: Any, *, width: Any = 1, halo: Any = None,
                 periodic: Any = False, star: bool = False, components: bool = False, backend: str | None = None,
                 transport: str | None = None, session: Session | None = None) -> None:
        self.handle = ffi.NULL
        self.session = session or Session.shared()
        axes = len(lo)
        self._keep: list[Any] = []
        desc = ffi.new("peal_halo_desc *", {"size_bytes": ffi.sizeof("peal_halo_desc"), "axis_count": axes, "star": star})
        for k, on in enumerate([periodic] * min(axes, 3) if np.isscalar(periodic) else periodic):
            desc.periodic[k] = bool(on)
        for k in range(axes):
            desc.lo[k], desc.hi[k] = int(lo[k]), int(hi[k])
        self._halo = _by_side(width if halo is None else halo, axes)
        items: list[Any] = list(fields) if isinstance(fields, (list, tuple)) else [fields]
        if len(items) > lib.PEAL_EXCHANGE_FIELDS:
            raise ValueError(f"{len(items)} fields; an exchange has at most {lib.PEAL_EXCHANGE_FIELDS}")
        for f, item in enumerate(items):
            for k, sides in enumerate(_by_side(width, axes)):
                desc.field[f].width[k] = sides
                desc.field[f].halo[k] = self._halo[k]
            pair = item if isinstance(item, (list, tuple)) else [item]
            for buffer, array in enumerate(pair):
                self._describe(desc, f, buffer, array, components)
        for name, value in (("backend", backend), ("transport", transport)):
            if value is not None:
                self._keep.append(ffi.new("char[]", value.encode()))
                setattr(desc, name, self._keep[-1])
        out = ffi.new("peal_exchange **")
        self.session.diagnostics()
        self.session.require(lib.peal_exchange_create_desc(self.session.handle, desc, out), "peal_exchange_create")
        self.handle = out[0]
        self.session.plans.append(self)

    def _describe(self, desc: Any, f: int, buffer: int, array: Any, components: bool) -> None:
        """One array of a field, whose layout becomes the field's."""
        memory = memory_of(array, f"field {f}")
        kind, shape, strides = memory.kind, list(memory.shape), list(memory.strides)
        values = shape.pop() if components else 1
        if components and strides.pop() != kind.itemsize:
            raise ValueError(f"the components of field {f} do not lie side by side")
        want = tuple(desc.hi[k] - desc.lo[k] + sum(self._halo[k]) for k in reversed(range(desc.axis_count)))
        if tuple(shape) != want:
            raise ValueError(f"field {f} has shape {tuple(shape)}; the box and its halo have {want}")
        point = kind.itemsize * values
        field = desc.field[f]
        layout = (TYPES.index(kind), values, [stride // point for stride in reversed(strides)])
        if any(stride % point for stride in strides) or layout[2][0] != 1:
            raise ValueError(f"the points of field {f} are not contiguous along x")
        if buffer and layout != (field.type, field.components, [field.stride[k] for k in range(desc.axis_count)]):
            raise ValueError(f"the two arrays of field {f} lie differently")
        field.type, field.components = layout[:2]
        for k, stride in enumerate(layout[2]):
            field.stride[k] = stride
        field.data[buffer] = ffi.cast("void *", memory.address)
        self._keep.append(memory.keep)

    def start(self, buffer: int = 0, stream: int = 0) -> None:
        """Sends the border points, of pairs those of array number `buffer`. Until `wait` they may be read, not written.

        stream: on a GPU the stream's address (`cupy.cuda.Stream.ptr`, `torch.cuda.Stream.cuda_stream`).
        """
        self.session.require(lib.peal_exchange_start(self.handle, buffer, ffi.cast("void *", stream)), "peal_exchange_start")

    def wait(self) -> None:
        """Returns once all halo points have arrived; on a GPU the stream waits, not the caller."""
        self.session.require(lib.peal_exchange_wait(self.handle), "peal_exchange_wait")

    def __call__(self, buffer: int = 0, stream: int = 0) -> None:
        """`start`, then `wait`."""
        self.start(buffer, stream)
        self.wait()

    def describe(self) -> str:
        """One line: processes, layout, messages and bytes, transports."""
        out = ffi.new("char[1000]")
        lib.peal_exchange_describe(self.handle, out, 1000)
        return text_of(out) or ""

    def close(self) -> None:
        """Agrees with the others that all exchanges were done. Collective."""
        if self.handle:
            handle, self.handle = self.handle, ffi.NULL
            self.session.plans.remove(self)
            self.session.require(lib.peal_exchange_destroy(handle), "peal_exchange_destroy")

    def __enter__(self) -> Exchange:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
