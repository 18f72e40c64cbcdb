"""Sessions: this process's membership in a job."""
from __future__ import annotations

import atexit
import sys
import weakref
from typing import Any

from peal._library import Diagnostic, Error, ffi, lib, text_of


_open: weakref.WeakSet[Session] = weakref.WeakSet()


@atexit.register
def _leave() -> None:
    """Sessions that are still open at the end; after an exception nobody has caught, the other processes are told."""
    for session in list(_open):
        if getattr(sys, "last_value", None) is not None and session.handle and session.processes > 1:
            lib.peal_session_abort(session.handle, lib.PEAL_STATUS_USAGE, f"a Python exception: {sys.last_value!r:.100}".encode())
        session.close()


class Session:
    """This process's membership in a job of one or more processes.

    Parameters
    ----------
    comm : mpi4py communicator, optional
        Whose ranks are the processes. Without it the launcher's PMIx is asked (mpirun, srun, prun), else the process is alone.
    deadline : float, optional
        Longest time without progress, in seconds; 30 by default.

    Most programs need none: `compile` makes one when it needs it, and keeps it for the rest of the process.
    """

    _shared: Session | None = None

    def __init__(self, comm: Any = None, deadline: float = 0.0) -> None:
        self.handle = ffi.NULL
        self.plans: list[Any] = []
        self._keep: list[Any] = []
        desc = ffi.new("peal_session_desc *", {"size_bytes": ffi.sizeof("peal_session_desc"), "deadline_s": deadline})
        if comm is not None:
            desc.bootstrap = self._bootstrap(comm)
        out = ffi.new("peal_session **")
        status = lib.peal_session_create(desc, out)
        if status:
            raise Error(text_of(lib.peal_status_name(status)) or "", [], "peal_session_create")
        self.handle = out[0]
        _open.add(self)

    @classmethod
    def shared(cls) -> Session:
        """The one that `compile` makes, as long as it is good."""
        if cls._shared is None or not cls._shared.handle or lib.peal_session_status(cls._shared.handle):
            cls._shared = Session()
        return cls._shared

    def _bootstrap(self, comm: Any) -> Any:
        @ffi.callback("int(void *, const void *, size_t, void *)")
        def allgather(_user: Any, mine: Any, count: int, everyone: Any) -> int:
            parts = comm.allgather(bytes(ffi.buffer(mine, count)))
            ffi.buffer(everyone, count * len(parts))[:] = b"".join(parts)
            return 0

        @ffi.callback("void(void *, int, const char *)")
        def abort(_user: Any, code: int, message: Any) -> None:
            print(f"peal: {text_of(message)}", file=sys.stderr, flush=True)
            comm.Abort(code)

        callbacks = ffi.new("peal_bootstrap_callbacks *", {
            "size_bytes": ffi.sizeof("peal_bootstrap_callbacks"), "process": comm.Get_rank(), "processes": comm.Get_size(),
            "allgather": allgather, "abort": abort})
        self._keep += [comm, allgather, abort, callbacks]
        return callbacks

    @property
    def process(self) -> int:
        """Number of this process."""
        return lib.peal_session_process(self.handle)

    @property
    def processes(self) -> int:
        """How many there are."""
        return lib.peal_session_processes(self.handle)

    def diagnostics(self) -> list[Diagnostic]:
        """What was reported since the last call."""
        out, found = ffi.new("peal_message *"), []
        for i in range(lib.peal_session_message_count(self.handle)):
            if not lib.peal_session_message(self.handle, i, out):
                found.append(Diagnostic(text_of(out.code) or "", bool(out.is_error), text_of(out.source.file), out.source.line,
                                        out.source.column, text_of(out.text) or "", text_of(out.hint)))
        lib.peal_session_forget_messages(self.handle)
        return found

    def require(self, status: int, call: str) -> None:
        """Raises what a failed call has reported."""
        if status:
            raise Error(text_of(lib.peal_status_name(status)) or "", self.diagnostics(), call)

    def close(self) -> None:
        """Leaves the job: its plans are closed first. Collective."""
        for plan in list(self.plans):
            plan.close()
        if self.handle:
            lib.peal_session_destroy(self.handle)
        self.handle = ffi.NULL

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
