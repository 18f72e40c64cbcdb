#!/usr/bin/env python3
"""Writes an 8-bit grey .npy file as a PNG file: npy_to_png.py denoised.npy after.png"""

import struct
import sys
import zlib

import numpy


def chunk(kind, data):
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def filtered(grey):
    """Each row after the PNG filter that leaves the smallest differences to the rows before."""
    left, above = numpy.zeros_like(grey), numpy.zeros_like(grey)
    left[:, 1:], above[1:] = grey[:, :-1], grey[:-1]
    mean = ((left.astype(int) + above) // 2).astype(numpy.uint8)
    candidates = numpy.stack([grey, grey - left, grey - above, grey - mean])
    cost = numpy.abs(candidates.view(numpy.int8).astype(int)).sum(axis=2)
    for y, best in enumerate(cost.argmin(axis=0)):
        yield bytes([best]) + candidates[best, y].tobytes()


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    grey = numpy.load(sys.argv[1])
    if grey.ndim != 2 or grey.dtype != numpy.uint8:
        sys.exit(f"{sys.argv[1]}: expected 8-bit grey, not {grey.dtype} of shape {grey.shape}")
    height, width = grey.shape
    with open(sys.argv[2], "wb") as png:
        png.write(b"\x89PNG\r\n\x1a\n")
        png.write(chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)))
        png.write(chunk(b"IDAT", zlib.compress(b"".join(filtered(grey)), 9)))
        png.write(chunk(b"IEND", b""))


if __name__ == "__main__":
    main()
