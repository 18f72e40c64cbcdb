"""Specs, checked and run; their arrays and rows."""
from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
import warnings
from typing import Any, Mapping

import numpy as np

from peal._library import Diagnostic, Error, SpecWarning, ffi, lib, text_of
from peal._memory import TYPES, DeviceMemory, HostMemory, Memory, memory_of
from peal._session import Session

INTEGER, REAL, BOOLEAN = range(3)  # of peal_value_kind
PIECE_S = 0.2  # how long a process that is alone stays in the library at most, once it knows how long a step takes


def _plain(value: Any) -> Any:
    """NumPy's scalars and arrays in a spec, for JSON."""
    if isinstance(value, (np.generic, np.ndarray)):
        return value.tolist()
    raise TypeError(f"a spec has no place for {value!r}")


class _Graph:
    """A spec that has been read."""

    def __init__(self, spec: Any, session: Session, params: Mapping[str, Any] | None) -> None:
        self.outside = False
        keep = [ffi.new("char[]", f"{name}={_text(value)}".encode()) for name, value in (params or {}).items()]
        names = ffi.new("const char *[]", keep)
        desc = ffi.new("peal_spec_desc *", {"size_bytes": ffi.sizeof("peal_spec_desc"), "set": names, "set_count": len(keep)})
        if isinstance(spec, Mapping):
            keep.append(ffi.new("char[]", json.dumps(self._with_kernels(dict(spec)), indent=1, default=_plain).encode()))
            desc.text = keep[-1]
        else:
            keep.append(ffi.new("char[]", os.fsencode(spec)))
            desc.path = keep[-1]
        out = ffi.new("peal_graph **")
        session.require(lib.peal_graph_read_spec(session.handle, desc, out), "peal_graph_read_spec")
        self.handle = out[0]

    def _with_kernels(self, spec: dict[str, Any]) -> dict[str, Any]:
        """Kernels that are C text go into a file of their own."""
        kernels = spec.get("kernels")
        if isinstance(kernels, str) and "PEAL_KERNEL(" in kernels:
            spec["kernels"] = _keep_kernels(kernels)
            self.outside = True
        return spec

    def close(self) -> None:
        if self.handle:
            lib.peal_graph_destroy(self.handle)
        self.handle = ffi.NULL


def _keep_kernels(text: str) -> str:
    """A file with C text, beside the cache of compiled kernels; its name, which all processes give it, is the text's digest."""
    cache = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    folder = os.path.join(cache, "peal", "python")
    os.makedirs(folder, mode=0o700, exist_ok=True)
    name = os.path.join(folder, hashlib.sha256(text.encode()).hexdigest()[:32] + ".c")
    handle, part = tempfile.mkstemp(dir=folder)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        file.write(text)
    os.replace(part, name)
    return name


def _text(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    return str(value)


def check(spec: Any, ranks: int = 1, params: Mapping[str, Any] | None = None) -> list[Diagnostic]:
    """Checks a spec over all ranks, without running it.

    Parameters
    ----------
    spec : dict or path
        A spec as in docs/spec-reference.md.
    ranks : int
        How many ranks it is checked for.
    params : dict, optional
        Values of params in place of the spec's.

    Returns
    -------
    list of Diagnostic
        Errors and warnings; empty if all is well.
    """
    session = Session.shared()
    session.diagnostics()
    try:
        graph = _Graph(spec, session, params)
    except Error as error:
        if error.status != "spec":
            raise
        return error.diagnostics
    status = lib.peal_graph_check(graph.handle, session.handle, ranks)
    graph.close()
    found = session.diagnostics()
    if status and not found:
        session.require(status, "peal_graph_check")
    return found


class Plan:
    """A spec that was checked, scheduled and bound to memory: `compile` makes it.

    `plan["u"]` is a copy of a field (shape (nz, ny, nx), without halo), `plan["u"] = array` sets it; `plan.local("u", rank)` is a
    rank's own memory without a copy. Use it in a `with`, or call `close`.
    """

    def __init__(self, spec: Any, ranks: int = 0, mode: str | None = None, *, params: Mapping[str, Any] | None = None,
                 threads: int = 0, backend: str | None = None, transport: str | None = None, lowering: str | None = None,
                 verify: bool = False, check_footprints: bool = False, allow_outside: bool = False, lend: Mapping[str, Any] | None = None,
                 session: Session | None = None) -> None:
        self.handle = ffi.NULL
        self.session = session or Session.shared()
        self._rows: list[tuple[int, dict[str, Any]]] = []
        self._finished = self._set_up = False
        self.session.diagnostics()
        self._graph = _Graph(spec, self.session, params)
        self._lent = {name: memory_of(array, repr(name)) for name, array in (lend or {}).items()}
        for name, memory in self._lent.items():
            if lib.peal_graph_lend(self._graph.handle, name.encode(), ffi.cast("void *", memory.address)) < 0:
                self._graph.close()
                raise KeyError(f"the spec has no field {name!r}")
        self._row = ffi.callback("void(void *, int64_t, int, const char *const *, const peal_value *)", self._take_row)
        keep = {name: ffi.new("char[]", value.encode()) for name, value in
                (("mode", mode), ("backend", backend), ("transport", transport), ("lowering", lowering)) if value is not None}
        options = ffi.new("peal_plan_options *", {
            "size_bytes": ffi.sizeof("peal_plan_options"), "ranks": ranks, "threads": threads, "verify": verify,
            "check_footprints": check_footprints, "allow_outside": allow_outside or self._graph.outside, "row": self._row, **keep})
        out = ffi.new("peal_plan **")
        status = lib.peal_graph_compile(self._graph.handle, self.session.handle, options, out)
        if status:
            self._graph.close()
            self.session.require(status, "peal_graph_compile")
        self.handle = out[0]
        self.session.plans.append(self)
        self.diagnostics = self.session.diagnostics()
        try:
            for name, memory in self._lent.items():
                self._check_lent(name, memory)
        except ValueError:
            self.close()
            raise
        for warning in self.diagnostics:
            warnings.warn(str(warning), SpecWarning, stacklevel=3)

    def _check_lent(self, name: str, memory: Memory) -> None:
        """Lent memory has the shape of what the rank stores, densely."""
        at = self._where(name, self.ranks[0])
        lo, hi = self._box(at.stored, at.part.axis_count)
        want = tuple(b - a for a, b in zip(reversed(lo), reversed(hi)))
        dense = tuple(int(s) for s in np.cumprod([memory.kind.itemsize, *memory.shape[:0:-1]])[::-1])
        if memory.kind != TYPES[at.type] or memory.shape != want or memory.strides != dense:
            raise ValueError(f"{name!r} is {TYPES[at.type]} of shape {want}, halo included, and dense; what is lent is {memory.kind} of shape "
                             f"{memory.shape}{'' if memory.strides == dense else ', not dense'}")

    # ---- running ----

    def _take_row(self, _user: Any, step: int, count: int, names: Any, values: Any) -> None:
        row = {}
        for i in range(count):
            value = values[i]
            row[text_of(names[i]) or ""] = (value.u.integer if value.kind == INTEGER else value.u.real if value.kind == REAL else
                                            bool(value.u.boolean) if value.kind == BOOLEAN else text_of(value.u.text))
        self._rows.append((step, row))

    def _advance(self, steps: int) -> None:
        self._require(lib.peal_plan_start(self.handle, steps, ffi.NULL), "peal_plan_start")
        self._require(lib.peal_plan_wait(self.handle), "peal_plan_wait")
        self._set_up = True
        found = self.session.diagnostics()  # of check_footprints
        if any(d.is_error for d in found):
            raise Error("wrong result", found, "peal_plan_wait")
        self.diagnostics += found

    def _require(self, status: int, call: str) -> None:
        self.session.require(status, call)

    def run(self, steps: int | None = None, progress: bool = False) -> Plan:
        """Runs `setup`, the first time, and steps.

        Parameters
        ----------
        steps : int, optional
            How many; None: what is left of the spec's `repeat`, then `finish`.
        progress : bool
            Shows on standard error how far it is.

        A process that is alone runs in pieces of about 0.2 seconds, so that Ctrl-C is heard between them.

        Returns
        -------
        Plan
            Itself.
        """
        wanted = self.steps_left if steps is None else steps
        if wanted < 0:
            raise ValueError(f"{wanted} steps")
        done, piece = 0, 1 if self.session.processes == 1 else wanted
        if not self._set_up:
            self._advance(0)
        while done < wanted and not self.stopped:
            now = min(piece, wanted - done)
            begin = time.perf_counter()
            self._advance(now)
            took = time.perf_counter() - begin
            done += now
            if took < PIECE_S / 2:
                piece *= 2
            elif took > PIECE_S and piece > 1:
                piece = max(1, int(piece * PIECE_S / took))
            if progress:
                print(f"\rpeal: {done} of {wanted} steps", end="", file=sys.stderr, flush=True)
        if progress:
            print(file=sys.stderr)
        if steps is None:
            self.finish()
        return self

    def finish(self) -> None:
        """Runs the spec's `finish` section, once. Collective."""
        if not self._finished:
            self._require(lib.peal_plan_finish(self.handle), "peal_plan_finish")
        self._finished = True

    def verify(self) -> None:
        """Raises unless everything is equal to serial, bit for bit; of plans compiled with verify=True. Collective."""
        self._require(lib.peal_plan_verify(self.handle), "peal_plan_verify")

    def digest(self, name: str | None = None) -> int:
        """A number that is equal for equal contents of an array (None: of all) on as many ranks, in any mode. Collective."""
        out = ffi.new("uint64_t *")
        text = ffi.new("char[]", name.encode()) if name is not None else ffi.NULL
        self._require(lib.peal_plan_digest(self.handle, text, out), "peal_plan_digest")
        return out[0]

    # ---- arrays ----

    @property
    def names(self) -> list[str]:
        """Fields and buffers."""
        return [text_of(lib.peal_plan_array_name(self.handle, i)) or "" for i in range(lib.peal_plan_array_count(self.handle))]

    @property
    def ranks(self) -> range:
        """Ranks of this process."""
        first, end = ffi.new("int *"), ffi.new("int *")
        lib.peal_plan_ranks(self.handle, first, end)
        return range(first[0], end[0])

    @property
    def rank_count(self) -> int:
        """Ranks in all."""
        return lib.peal_plan_rank_count(self.handle)

    def _where(self, name: str, rank: int) -> Any:
        if not self.handle:
            raise ValueError("the plan is closed")
        if name not in self.names:
            raise KeyError(f"the spec has no {name!r}; it has {', '.join(self.names)}")
        out = ffi.new("peal_plan_array *")
        self._require(lib.peal_plan_view(self.handle, rank, name.encode(), out), "peal_plan_view")
        return out

    def _parts(self, name: str) -> list[tuple[int, Any]]:
        if not self.handle:
            raise ValueError("the plan is closed")
        found = [(rank, self._where(name, rank)) for rank in self.ranks]
        if found and not found[0][1].is_buffer and len(found) < self.rank_count:
            raise ValueError(f"ranks of {name!r} live in other processes, too: local() and part() are of this one's")
        return found

    @staticmethod
    def _box(box: Any, axes: int) -> tuple[list[int], list[int]]:
        return [box.lo[k] for k in range(axes)], [box.hi[k] for k in range(axes)]

    def part(self, name: str, rank: int | None = None) -> tuple[slice, ...]:
        """Which points of a field a rank has, as slices of `plan[name]`."""
        at = self._where(name, self.ranks[0] if rank is None else rank)
        lo, hi = self._box(at.part, at.part.axis_count)
        return tuple(slice(a, b) for a, b in zip(reversed(lo), reversed(hi)))

    def _shape(self, parts: list[tuple[int, Any]]) -> tuple[int, ...]:
        ends = [self._box(at.part, at.part.axis_count)[1] for _, at in parts]
        return tuple(reversed([max(end) for end in zip(*ends)]))

    def __getitem__(self, name: str) -> np.ndarray:
        parts = self._parts(name)
        if parts[0][1].is_buffer:
            return self._read(name, *parts[0])
        out = np.zeros(self._shape(parts), TYPES[parts[0][1].type])
        for rank, at in parts:
            out[self.part(name, rank)] = self._read(name, rank, at)
        return out

    def _read(self, name: str, rank: int, at: Any) -> np.ndarray:
        lo, hi = self._box(at.part, at.part.axis_count)
        out = np.empty([b - a for a, b in zip(reversed(lo), reversed(hi))], TYPES[at.type])
        self._require(lib.peal_plan_read(self.handle, rank, name.encode(), ffi.from_buffer(out), out.nbytes), "peal_plan_read")
        return out

    def __setitem__(self, name: str, value: Any) -> None:
        if not self._set_up:
            self._advance(0)
        parts = self._parts(name)
        kind, is_buffer = TYPES[parts[0][1].type], parts[0][1].is_buffer
        shape = None if is_buffer else self._shape(parts)
        given = np.asarray(value)
        for rank, at in parts:
            want = shape or (at.part.hi[0] - at.part.lo[0],)
            if given.ndim and given.shape != want:
                raise ValueError(f"{name!r} has shape {want}{' (nz, ny, nx)' if shape else ''}, what it is set to {given.shape}")
            whole = np.broadcast_to(given, want)
            own = whole if is_buffer else whole[self.part(name, rank)]
            if not np.can_cast(own.dtype, kind, "same_kind"):
                raise TypeError(f"{name!r} is {kind}, not {own.dtype}")
            memory = np.ascontiguousarray(own, kind)
            self._require(lib.peal_plan_write(self.handle, rank, name.encode(), ffi.from_buffer(memory), memory.nbytes),
                          "peal_plan_write")

    def local(self, name: str, rank: int | None = None, halo: bool = False) -> Any:
        """A rank's own memory, without a copy: good until the next run (a swap gives a name other memory).

        Parameters
        ----------
        name : str
            A field or a buffer.
        rank : int, optional
            One of this process; None: its first.
        halo : bool
            With the halo around it.

        Returns
        -------
        numpy.ndarray
            Shape (nz, ny, nx). On a GPU an object with `__cuda_array_interface__` and DLPack, for `cupy.asarray`,
            `torch.as_tensor` and any `from_dlpack`.
        """
        at = self._where(name, self.ranks[0] if rank is None else rank)
        axes, kind = at.part.axis_count, TYPES[at.type]
        lo, hi = self._box(at.stored if halo else at.part, axes)
        address = int(ffi.cast("intptr_t", at.view.base)) + kind.itemsize * sum(lo[k] * at.view.stride[k] for k in range(axes))
        interface = {"shape": tuple(hi[k] - lo[k] for k in reversed(range(axes))), "typestr": kind.str,
                     "strides": tuple(at.view.stride[k] * kind.itemsize for k in reversed(range(axes))),
                     "data": (address, False), "version": 3}
        if self.backend != "host" and self.mode != "serial":
            return DeviceMemory(self, interface)
        return np.asarray(HostMemory(self, interface))

    # ---- what it has done ----

    @property
    def rows(self) -> np.ndarray:
        """What `print` has made so far: a structured array with `step` and the columns; NaN where a row has none."""
        columns: dict[str, list[Any]] = {}
        for _, row in self._rows:
            for name, value in row.items():
                columns.setdefault(name, []).append(value)
        kinds = []
        for name, values in columns.items():
            whole = len(values) == len(self._rows)
            if any(isinstance(value, str) for value in values):
                kinds.append((name, object))
            else:
                kinds.append((name, "i8" if whole and all(isinstance(value, int) for value in values) else "f8"))
        out = np.empty(len(self._rows), [("step", "i8"), *kinds])
        for i, (step, row) in enumerate(self._rows):
            out[i] = (step, *(row.get(name, np.nan if kind == "f8" else None) for name, kind in kinds))
        return out

    @property
    def statistics(self) -> dict[str, Any]:
        """seconds, steps_done, stopped (by `until`), memory_bytes, cpu_seconds."""
        out = ffi.new("peal_plan_statistics *")
        lib.peal_plan_statistics_get(self.handle, out)
        return {name: getattr(out, name) for name in ("seconds", "steps_done", "stopped", "memory_bytes", "cpu_seconds")}

    @property
    def stopped(self) -> bool:
        """Whether `until` has ended the run."""
        return bool(self.statistics["stopped"])

    @property
    def steps_left(self) -> int:
        """Steps that `run()` would do now."""
        return lib.peal_plan_steps_left(self.handle)

    @property
    def mode(self) -> str:
        """serial, sync, stream, graph or fused."""
        return text_of(lib.peal_mode_name(lib.peal_plan_mode(self.handle))) or ""

    @property
    def backend(self) -> str:
        """host or cuda."""
        return text_of(lib.peal_plan_backend(self.handle)) or ""

    @property
    def dims(self) -> tuple[int, ...]:
        """Ranks along x, y, z."""
        out = ffi.new("int[3]")
        lib.peal_plan_dims(self.handle, out)
        return tuple(out)

    def describe(self) -> str:
        """One line: backend, mode (and why not a faster one), ranks, transports."""
        out = ffi.new("char[1000]")
        lib.peal_plan_describe(self.handle, out, 1000)
        return text_of(out) or ""

    def close(self) -> None:
        """Frees it; arrays from `local` must not be touched any more."""
        if self.handle:
            lib.peal_plan_destroy(self.handle)
            self.session.plans.remove(self)
            self._graph.close()
        self.handle = ffi.NULL

    def __enter__(self) -> Plan:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __repr__(self) -> str:
        return f"<peal.Plan {self.describe()}>" if self.handle else "<peal.Plan, closed>"


def compile(spec: Any, ranks: int = 0, mode: str | None = None, **options: Any) -> Plan:  # noqa: A001
    """Checks a spec, schedules it for the ranks and prepares everything that a run needs. Collective.

    Parameters
    ----------
    spec : dict or path
        A spec as in docs/spec-reference.md. In a dict, `kernels` may be C text.
    ranks : int
        How many; 0: one a process.
    mode : str, optional
        serial, sync, stream, graph, fused; None: what is predicted to be the fastest.
    **options
        params (dict), threads, backend ("host", "cuda"), transport, lowering, verify, check_footprints, allow_outside, session;
        lend: a dict of arrays in which fields live, halo included, where every process has one rank: NumPy's, or what offers
        `__cuda_array_interface__` (CuPy, Torch on a GPU) or DLPack (Torch on the host). A swap moves a field's name to other memory.

    Returns
    -------
    Plan

    Raises
    ------
    Error
        With diagnostics: file, line, what is wrong and what to do.
    """
    return Plan(spec, ranks, mode, **options)


def run(spec: Any, ranks: int = 0, mode: str | None = None, *, steps: int | None = None, progress: bool = False,
        **options: Any) -> Plan:
    """Compiles a spec and runs it: `compile`, then `Plan.run`. Returns the plan, which is the caller's to close."""
    plan = compile(spec, ranks, mode, **options)
    try:
        return plan.run(steps, progress)
    except BaseException:
        plan.close()
        raise
