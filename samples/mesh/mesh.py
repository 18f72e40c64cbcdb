#!/usr/bin/env python3
"""Makes a random planar mesh, cuts it into N parts, writes the files that mesh.yaml reads.

    mesh.py N [FOLDER]     FOLDER: parts-N by default

The mesh is the same for every N: a sheet of triangles with uneven places, holes and shuffled numbers.
"""

import pathlib
import random
import sys

import numpy

COLUMNS, ROWS, SEED = 32, 20, 2


def make_mesh():
    """Places of the nodes, and for each node its neighbours in order."""
    dice = random.Random(SEED)
    numbers = list(range(COLUMNS * ROWS))
    dice.shuffle(numbers)
    places = [None] * len(numbers)
    neighbours = [set() for _ in numbers]

    def node(column, row):
        return numbers[row * COLUMNS + column]

    def join(a, b):
        neighbours[a].add(b)
        neighbours[b].add(a)

    for row in range(ROWS):
        for column in range(COLUMNS):
            here = node(column, row)
            places[here] = (column + dice.uniform(-0.4, 0.4), row + dice.uniform(-0.4, 0.4))
            if column + 1 < COLUMNS and dice.random() < 0.9:
                join(here, node(column + 1, row))
            if row + 1 < ROWS and dice.random() < 0.9:
                join(here, node(column, row + 1))
            if column + 1 < COLUMNS and row + 1 < ROWS:
                if dice.random() < 0.5:
                    join(here, node(column + 1, row + 1))
                else:
                    join(node(column + 1, row), node(column, row + 1))
    return places, [sorted(s) for s in neighbours]


def cut(nodes, places, first_rank, count, owner):
    """Recursive bisection: halves of the ranks get halves of the nodes, across the longer side."""
    if count == 1:
        for node in nodes:
            owner[node] = first_rank
        return
    xs, ys = zip(*(places[node] for node in nodes))
    axis = 0 if max(xs) - min(xs) >= max(ys) - min(ys) else 1
    nodes = sorted(nodes, key=lambda node: (places[node][axis], node))
    half = count // 2
    middle = len(nodes) * half // count
    cut(nodes[:middle], places, first_rank, half, owner)
    cut(nodes[middle:], places, first_rank + half, count - half, owner)


def part_of(rank, owner, neighbours):
    """The files of one rank, by name."""
    mine = [node for node in range(len(owner)) if owner[node] == rank]
    index = {node: i for i, node in enumerate(mine)}
    needed, wanted = {}, {}
    for node in mine:
        for other in neighbours[node]:
            if owner[other] != rank:
                needed.setdefault(owner[other], set()).add(other)
                wanted.setdefault(owner[other], set()).add(node)
    peers = sorted(needed)
    part = {"nodes": mine, "peers": peers}
    part["ghosts"] = [node for peer in peers for node in sorted(needed[peer])]
    part["ghosts_at"] = offsets([len(needed[peer]) for peer in peers])
    part["border"] = [index[node] for peer in peers for node in sorted(wanted[peer])]
    part["border_at"] = offsets([len(wanted[peer]) for peer in peers])
    for k, node in enumerate(part["ghosts"]):
        index[node] = len(mine) + k
    part["first"] = offsets([len(neighbours[node]) for node in mine])
    part["next"] = [index[other] for node in mine for other in neighbours[node]]
    return part


def offsets(lengths):
    total = [0]
    for length in lengths:
        total.append(total[-1] + length)
    return total


def main():
    if len(sys.argv) not in (2, 3) or not sys.argv[1].isdigit() or int(sys.argv[1]) < 1:
        sys.exit(__doc__)
    ranks = int(sys.argv[1])
    folder = pathlib.Path(sys.argv[2] if len(sys.argv) == 3 else f"parts-{ranks}")
    folder.mkdir(exist_ok=True)
    places, neighbours = make_mesh()
    owner = [0] * len(places)
    cut(range(len(places)), places, 0, ranks, owner)
    for rank in range(ranks):
        for name, values in part_of(rank, owner, neighbours).items():
            numpy.save(folder / f"{name}-{rank}.npy", numpy.array(values, dtype="<i4"))


if __name__ == "__main__":
    main()
