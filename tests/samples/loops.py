"""What hdiff, jacobi_until and bfs compute, by plain loops."""

import math
import struct


def diffused(nx, ny, levels, steps, height, seed, coeff=0.025):
    """hdiff by plain loops: Python's numbers are doubles, too."""
    scale = height / nx / nx / ny / ny
    field = []
    for z in range(levels):
        level = {}
        for y in range(ny):
            for x in range(nx):
                noise = (x * 37 + y * 101 + z * 53 + x * y + seed) % 64
                hill = float(x) * (nx - x) * y * (ny - y) * scale
                level[x, y] = hill + 0.03125 * noise
        for _ in range(steps):
            level = diffused_once(level, nx, ny, coeff)
        field += [level[x, y] for y in range(ny) for x in range(nx)]
    return tuple(field)


def diffused_once(level, nx, ny, coeff):
    def at(values, x, y):
        return values[x % nx, y % ny]

    def flux(x, y, dx, dy):
        flow = at(lap, x + dx, y + dy) - at(lap, x, y)
        slope = at(level, x + dx, y + dy) - at(level, x, y)
        return 0.0 if flow * slope > 0 else flow

    lap = {
        (x, y): -4.0 * at(level, x, y)
        + (at(level, x - 1, y) + at(level, x + 1, y) + at(level, x, y - 1) + at(level, x, y + 1))
        for x, y in level
    }
    flx = {(x, y): flux(x, y, 1, 0) for x, y in level}
    fly = {(x, y): flux(x, y, 0, 1) for x, y in level}
    return {
        (x, y): level[x, y]
        - coeff * (flx[x, y] - at(flx, x - 1, y) + (fly[x, y] - at(fly, x, y - 1)))
        for x, y in level
    }


def single(value):
    return struct.unpack("<f", struct.pack("<f", value))[0]


def relaxed(nx, ny, tol):
    """jacobi_until by plain loops: the mesh, the number of steps, the last norm."""
    wall = [1.0 if 2 * y < ny else -1.0 for y in range(ny)]
    mesh = [[wall[y]] + [0.0] * (nx - 2) + [wall[y]] for y in range(ny)]
    steps, squares = 0, math.inf
    while squares >= tol * tol:
        squares, new = 0.0, [list(row) for row in mesh]
        for y in range(ny):
            up, down = mesh[y - 1], mesh[(y + 1) % ny]
            for x in range(1, nx - 1):
                mean = single(mesh[y][x - 1] + mesh[y][x + 1])
                mean = 0.25 * single(single(mean + up[x]) + down[x])
                squares += single(mean - mesh[y][x]) ** 2
                new[y][x] = mean
        mesh, steps = new, steps + 1
    return tuple(value for row in mesh for value in row), steps, squares**0.5


def searched(n, degree, root):
    """bfs by a plain search: vertices found level by level, how many in all, the sum of levels."""
    level, frontier, found = {root: 0}, [root], []
    while frontier:
        reached = []
        for edge in (u * degree + k + 1 for u in frontier for k in range(degree)):
            draw = edge * 0x9E3779B97F4A7C15 % 2**64
            draw = (draw ^ draw >> 29) * 0xBF58476D1CE4E5B9 % 2**64
            draw ^= draw >> 32
            v = min(draw % 2**32 % n, (draw >> 32) % n)
            if v not in level:
                level[v] = len(found) + 1
                reached.append(v)
        found.append(len(reached))
        frontier = reached
    return found, len(level), sum(level.values())
