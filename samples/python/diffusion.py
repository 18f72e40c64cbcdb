#!/usr/bin/env python3
"""Heat spreads over a plate, by a spec that is a dict and a kernel that is a text: the plate begins and ends as a NumPy array,
and is drawn by matplotlib where that is installed.

    diffusion.py [N [STEPS [PICTURE.png]]]
"""
import sys

import numpy as np

import peal

KERNEL = """
PEAL_KERNEL(relax)(peal_tile t, PEAL_READ(double, a), PEAL_WRITE(double, b), PEAL_REDUCE(double, change))
{
    double sum = 0;
    PEAL_FOR_2D(t, x, y) {
        double v = 0.25 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));
        double d = v - PEAL_AT(a, x, y);
        PEAL_AT(b, x, y) = v;
        sum += d * d;
    }
    PEAL_PARTIAL(change, sum);
}
"""

SPEC = {
    "peal": 1,
    "params": {"n": 256, "steps": 1000, "report": 100},
    "topology": {"dims": ["auto", "auto"], "periodic": True},
    "kernels": KERNEL,
    "fields": {"a": {"size": ["n", "n"], "halo": 1}, "b": {"like": "a"}},
    "buffers": {"change": {}},
    "repeat": "steps",
    "step": [
        {"exchange": "a"},
        {"task": "relax", "box": "a", "read": {"a": {"star": 1}}, "write": "b", "reduce": {"change": "sum"}},
        {"allreduce": {"change": "sum"}, "when": "step % report == 0"},
        {"print": {"change": "sqrt(change)"}, "when": "step % report == 0"},
        {"swap": ["a", "b"]},
    ],
}


def draw(begin, end, rows, name):
    try:
        import matplotlib
        matplotlib.use("Agg")
        from matplotlib import pyplot
    except ImportError:
        print("no matplotlib: nothing is drawn")
        return
    figure, axes = pyplot.subplots(1, 3, figsize=(12, 4), layout="constrained")
    for axis, field, title in ((axes[0], begin, "before"), (axes[1], end, "after")):
        axis.imshow(field, origin="lower", cmap="inferno", vmin=0, vmax=1)
        axis.set_title(title)
    axes[2].semilogy(rows["step"], rows["change"], marker="o")
    axes[2].set_title("change a step")
    axes[2].set_xlabel("step")
    figure.savefig(name, dpi=100)
    print(f"drawn: {name}")


def main():
    n = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    steps = int(sys.argv[2]) if len(sys.argv) > 2 else 1000
    y, x = np.mgrid[0:n, 0:n] / n
    plate = ((x - 0.3) ** 2 + (y - 0.4) ** 2 < 0.04).astype(float) + ((abs(x - 0.7) < 0.1) & (abs(y - 0.6) < 0.2))
    with peal.compile(SPEC, ranks=4, params={"n": n, "steps": steps}) as plan:
        plan["a"] = plate
        plan.run(progress=sys.stderr.isatty())
        after, rows = plan["a"], plan.rows
    for row in rows:
        print(f"step {row['step']:5d}: change {row['change']:.6f}")
    print(f"heat before {plate.sum():.6f}, after {after.sum():.6f}")
    if len(sys.argv) > 3:
        draw(plate, after, rows, sys.argv[3])


if __name__ == "__main__":
    main()
