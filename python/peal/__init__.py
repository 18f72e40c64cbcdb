"""peal from Python: specs as dicts or files, checked, run and looked at as NumPy arrays.

    import numpy as np, peal

    with peal.compile("heat.yaml", ranks=4) as plan:
        plan["a"] = np.random.default_rng(0).random((256, 256))
        plan.run()
        print(plan.rows["norm"], plan["a"].mean())

A field of size [nx, ny, nz] is an array of shape (nz, ny, nx): x is contiguous. One process hosts all ranks as threads; under
mpirun each process hosts its own (`Session`).
"""
from peal._exchange import Exchange
from peal._library import Diagnostic, Error, SpecWarning, version
from peal._plan import Plan, check, compile, run  # noqa: A004: the word for it
from peal._session import Session

__all__ = ["Diagnostic", "Error", "Exchange", "Plan", "Session", "SpecWarning", "check", "compile", "run", "version"]
__version__ = version()
