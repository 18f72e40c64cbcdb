# `peal run --check-footprints` over a table of kernels: each wrong one is told by its number, with task, array and place;
# each right one is not. Kernels of one table are one file, tasks of one table one spec: compiled once.
import os
import re
import unittest

from common import environment, folder_of, kernel_cache, main, peal

HEAD = """peal: 1
params: {n: 12}
kernels: kernels.c
fields:
  a: {size: [n, n], halo: 1}
  b: {like: a}
  f: {like: a, type: f32}
  g: {like: f}
  k: {like: a, type: i32}
  l: {like: k}
  q: {like: a, type: i64}
  r: {like: q}
  u: {like: a, type: u8}
  v: {like: u}
  wide: {size: [n, n], halo: 3}
  line: {size: [n], halo: 1}
  lineb: {like: line}
  vol: {size: [6, 5, 4], halo: 1}
  volb: {like: vol}
  four: {size: [4, 3, 3, 2], halo: 1}
  fourb: {like: four}
  large: {size: [n, 900]}
  deep: {size: [n, n, 4]}
  fine: {size: [16, 16], align: 2}
  coarse: {size: [16, 16], coarsen: 2, align: 2}
buffers:
  c: {count: 100}
  d: {count: 100, type: i32}
  e: {count: 7, type: u8}
  tab: {count: 8}
  p: {count: 64}
  s: {keep: true}
  m: {type: i64}
"""
STEP = """repeat: 2
step:
  - {exchange: [a, k, line, vol, four, wide]}
"""

# name: (task without its name, parameters of the kernel, body, number, what the message says)
WRONG = {
    # stores outside of the array
    "behind_100": ("write: c", "PEAL_WRITE(double, c)", "c[100] = 1;", "E364", r"writes 'c' at \(100\), outside .*\[0, 100\)"),
    "behind_112": ("write: c", "PEAL_WRITE(double, c)", "c[112] = 1;", "E364", r"writes 'c' at \(112\), outside"),
    "behind_150": ("write: c", "PEAL_WRITE(double, c)", "c[150] = 1;", "E364", r"writes 'c' at \(150\), outside"),
    "far_behind": ("write: c", "PEAL_WRITE(double, c)", "c[200000] = 1;", "E364", r"writes 'c' at \(200000\), outside"),
    "before": ("write: c", "PEAL_WRITE(double, c)", "c[-1] = 0;", "E364", r"writes 'c' at \(-1\), outside"),
    "far_before": ("write: c", "PEAL_WRITE(double, c)", "c[-5000] = 0;", "E364", r"writes 'c' at \(-5000\), outside"),
    "behind_u8": ("write: e", "PEAL_WRITE(unsigned char, e)", "e[7] = 3;", "E364", r"writes 'e' at \(7\), outside .*\[0, 7\)"),
    "two_rows": ("box: a, write: b", "PEAL_WRITE(double, b)",
                 "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y + 2) = 1;", "E364",
                 r"writes 'b' at .*: \(x, y \+ 2\) of its point \("),
    # loads outside of the array
    "load_behind": ("read: c, write: p", "PEAL_READ(double, c), PEAL_WRITE(double, p)", "p[0] = c[101];", "E363",
                    r"reads 'c' at \(101\), outside"),
    "load_before": ("read: c, write: p", "PEAL_READ(double, c), PEAL_WRITE(double, p)", "p[0] = c[-2];", "E363",
                    r"reads 'c' at \(-2\), outside"),
    # loads in the array that comparisons hide
    "limiter": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                "PEAL_FOR_2D(t, x, y) { double v = PEAL_AT(a, x + 1, y), w = PEAL_AT(a, x, y); "
                "PEAL_AT(b, x, y) = v > w ? v : w; }", "E363", r"reads 'a' at .*: \(x \+ 1, y\) of its point"),
    "minimum": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                "PEAL_FOR_2D(t, x, y) { double v = PEAL_AT(a, x, y - 1), w = PEAL_AT(a, x, y); "
                "PEAL_AT(b, x, y) = v < w ? v : w; }", "E363", r"reads 'a' at .*: \(x, y - 1\) of its point"),
    "upwind": ("box: a, read: {a: {grow: [[1, 0], 0]}}, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
               "PEAL_FOR_2D(t, x, y) { double v = PEAL_AT(a, x, y); "
               "PEAL_AT(b, x, y) = v > PEAL_AT(a, x + 1, y) ? v - PEAL_AT(a, x - 1, y) : v; }",
               "E363", r"reads 'a' at .*: \(x \+ 1, y\) of its point"),
    "is_zero": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x + 1, y) == 0.0;", "E363",
                r"reads 'a' at .*: \(x \+ 1, y\) of its point"),
    "float_max": ("box: f, read: f, write: g", "PEAL_READ(float, f), PEAL_WRITE(float, g)",
                  "PEAL_FOR_2D(t, x, y) { float v = PEAL_AT(f, x, y + 1); "
                  "PEAL_AT(g, x, y) = v > PEAL_AT(f, x, y) ? v : PEAL_AT(f, x, y); }", "E363",
                  r"reads 'f' at .*: \(x, y \+ 1\) of its point"),
    "integer_max": ("box: k, read: k, write: l", "PEAL_READ(int, k), PEAL_WRITE(int, l)",
                    "PEAL_FOR_2D(t, x, y) { int v = PEAL_AT(k, x - 1, y); "
                    "PEAL_AT(l, x, y) = v > PEAL_AT(k, x, y) ? v : PEAL_AT(k, x, y); }", "E363",
                    r"reads 'k' at .*: \(x - 1, y\) of its point"),
    "long_sign": ("box: q, read: q, write: r", "PEAL_READ(int64_t, q), PEAL_WRITE(int64_t, r)",
                  "PEAL_FOR_2D(t, x, y) PEAL_AT(r, x, y) = PEAL_AT(q, x - 1, y) < -5;", "E363",
                  r"reads 'q' at .*: \(x - 1, y\) of its point"),
    "byte_flag": ("box: u, read: u, write: v", "PEAL_READ(unsigned char, u), PEAL_WRITE(unsigned char, v)",
                  "PEAL_FOR_2D(t, x, y) PEAL_AT(v, x, y) = PEAL_AT(u, x + 1, y + 1) ? 1 : 0;", "E363",
                  r"reads 'u' at .*: \(x \+ 1, y \+ 1\) of its point"),
    # reaches: corners of stars, beyond rows, other axes
    "too_far": ("box: a, read: {a: {star: 1}}, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x + 2, y);", "E363",
                r"reads 'a' at .*: \(x \+ 2, y\) of its point"),
    "too_far_grown": ("box: a, read: {a: {grow: 1}}, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                      "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x + 2, y);", "E363",
                      r"reads 'a' at .*: \(x \+ 2, y\) of its point"),
    "too_far_wide": ("box: wide, read: {wide: {grow: 1}}, write: b", "PEAL_READ(double, w), PEAL_WRITE(double, b)",
                     "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(w, x - 3, y + 2);", "E363",
                     r"reads 'wide' at .*: \(x - 3, y \+ 2\) of its point"),
    "corner": ("box: a, read: {a: {star: 1}}, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
               "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x + 1, y - 1);", "E363",
               r"reads 'a' at .*: \(x \+ 1, y - 1\) of its point"),
    "one_axis": ("box: line, read: line, write: lineb", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                 "PEAL_FOR_1D(t, x) PEAL_AT(b, x) = PEAL_AT(a, x - 1);", "E363",
                 r"reads 'line' at .*: \(x - 1\) of its point"),
    "three_axes": ("box: vol, read: {vol: {star: 1}}, write: volb", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                   "PEAL_FOR_3D(t, x, y, z) PEAL_AT(b, x, y, z) = PEAL_AT(a, x, y - 1, z + 1);", "E363",
                   r"reads 'vol' at .*: \(x, y - 1, z \+ 1\) of its point"),
    "four_axes": ("box: four, read: four, write: fourb", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                  "for (int w = t.lo[3]; w < t.hi[3]; w++) PEAL_FOR_3D(t, x, y, z) "
                  "PEAL_AT(b, x, y, z, w) = PEAL_AT(a, x, y, z, w - 1);", "E363",
                  r"reads 'four' at .*: \(x, y, z, w - 1\) of its point"),
    "at_a_wall": ("box: a, read: a, write: b, args: n", "PEAL_READ(double, a), PEAL_WRITE(double, b), long n",
                  "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x == n - 1 ? x - 1 : x, y);", "E363",
                  r"reads 'a' at \(\d+, \d+\), .*: \(x - 1, y\) of its point \((11|23), "),
    "whole_tile": ("box: a, tile: whole, read: {a: {grow: [0, 1]}}, write: b",
                   "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                   "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x - 1, y);", "E363",
                   r"reads 'a' at \(-1, -?\d+\), .*: \(x - 1, y\) of its point \(0, "),
    "given_tiles": ("box: a, tile: [4, 3], read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                    "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x, y + 1);", "E363",
                    r"reads 'a' at .*tile \[0, 4\) x \[0, 3\).*: \(x, y \+ 1\) of its point"),
    # in footprints of the wrong kind
    "adds": ("box: a, write: b", "PEAL_WRITE(double, b)", "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) += 1;", "E363",
             r"reads 'b' at \((\d+), (\d+)\), .*: \(x, y\) of its point \(\1, \2\)"),
    "stores_max": ("box: a, write: b", "PEAL_WRITE(double, b)",
                   "PEAL_FOR_2D(t, x, y) if (PEAL_AT(b, x, y) < 5) PEAL_AT(b, x, y) = 5;", "E363", r"reads 'b' at"),
    "stores_input": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                     "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; ((double *)&PEAL_AT(a, x, y))[0] = PEAL_AT(b, x, y); }",
                     "E364", r"writes 'a' at \((\d+), (\d+)\), .*: \(x, y\) of its point \(\1, \2\)"),
    "stores_equal": ("read: tab, write: p", "PEAL_READ(double, tab), PEAL_WRITE(double, p)",
                     "p[0] = 1; ((volatile double *)tab)[3] = 0;", "E364", r"writes 'tab' at \(3\), which"),
    "halo": ("box: a, write: b", "PEAL_WRITE(double, b)",
             "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; if (x == 0) PEAL_AT(b, -1, y) = 0; }", "E364",
             r"writes 'b' at \(-1, \d+\), which .*: \(x - 1, y\) of its point \(0, "),
    "updates_next": ("box: a, tile: [6, 4], update: b", "PEAL_UPDATE(double, b)",
                     "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y + 1) += 1;", "E36[34]", r"'b' at .*\(x, y \+ 1\) of its point"),
    "per_tile": ("box: a, tile: [6, 4], write: {p: {per_tile: 2}}", "PEAL_WRITE(double, p)",
                 "p[0] = 1; if (t.index == 1) p[2] = 2;", "E364", r"writes 'p' at \(4\), which .*tile \[\d+, \d+\) x \[\d, \d\)"),
    "range": ("read: {c: [[0, 10]]}, write: p", "PEAL_READ(double, c), PEAL_WRITE(double, p)", "p[0] = c[10];", "E363",
              r"reads 'c' at \(10\), which it doesn't declare"),
    "index": ("read: {d: [[0, 1]], c: whole}, write: p", "PEAL_READ(int, d), PEAL_READ(double, c), PEAL_WRITE(double, p)",
              "p[0] = c[d[5]];", "E363", r"reads 'd' at \(5\), which it doesn't declare"),
    "divisor": ("read: {d: [[0, 1]]}, update: p", "PEAL_READ(int, d), PEAL_UPDATE(double, p)",
                "p[0] = d[9] > 1 ? 100 / (d[9] - 0x55555555) : 0;", "E363", r"reads 'd' at \(9\), which"),
    "counted": ("box: {count: m, max: 60}, tile: whole, write: {p: [[0, 60]]}", "PEAL_WRITE(double, p)",
                "PEAL_FOR_1D(t, x) p[x] = x; p[63] = 0;", "E364", r"writes 'p' at \(63\), which"),
    "counted_behind": ("box: {count: m, max: 60}, tile: whole, write: p", "PEAL_WRITE(double, p)",
                       "PEAL_FOR_1D(t, x) p[x] = x; p[64] = 0;", "E364", r"writes 'p' at \(64\), outside"),
    "coarse_next": ("box: fine, tile: [4, 4], read: fine, write: coarse", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                    "for (int y = t.lo[1] / 2; y < t.hi[1] / 2; y++) for (int x = t.lo[0] / 2; x < t.hi[0] / 2; x++) "
                    "PEAL_AT(b, x, y) = PEAL_AT(a, 2 * x, (2 * y + 3) % 16);", "E363",
                    r"reads 'fine' at \(\d+, \d+\), which it doesn't declare .*: \(x, y \+ [123]\) of its point"),
    "far_ahead": ("box: large, tile: [6, 10], write: large", "PEAL_WRITE(double, b)",
                  "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = y; if (t.lo[1] == 0) PEAL_AT(b, 3, 250) = 7;", "E364",
                  r"writes 'large' at \(3, 250\), which .*tile \[0, 6\) x \[0, 10\), step 0\): \(x \+ \d, y \+ \d+\) of its point"),
    "far_back": ("box: large, tile: [6, 10], write: large", "PEAL_WRITE(double, b)",
                 "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = y; if (t.lo[1] == 240) PEAL_AT(b, 5, 70) = 0;", "E364",
                 r"writes 'large' at \(5, 70\), which .*tile \[0, 6\) x \[240, 250\), step 0\): \(x \+ \d, y - \d+\) of its point"),
    "runaway": ("write: c", "PEAL_WRITE(double, c)", "for (long i = 0; i < 1L << 31; i++) c[i] = i;", "E364",
                r"writes 'c' at \(100\), outside"),
    "index_of_32_bits": ("update: c", "PEAL_UPDATE(double, c)", "c[-2147483647] += 1;", "E364",
                         r"writes 'c' at \(-2147483647\), outside"),
    # stores of what is there already
    "quiet_next": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                   "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = PEAL_AT(a, x, y); "
                   "volatile double *at = &PEAL_AT(b, x + 1, y); *at = *at; }", "E364",
                   r"writes 'b' at .*, which .*: \(x \+ 1, y\) of its point"),
    "quiet_before": ("box: f, update: g", "PEAL_UPDATE(float, g)",
                     "PEAL_FOR_2D(t, x, y) { PEAL_AT(g, x, y) += 1; volatile float *at = &PEAL_AT(g, x - 1, y); *at = *at; }",
                     "E364", r"writes 'g' at .*, which .*: \(x - 1, y\) of its point"),
    "quiet_row": ("box: k, update: l", "PEAL_UPDATE(int, l)",
                  "PEAL_FOR_2D(t, x, y) { PEAL_AT(l, x, y) += 1; volatile int *at = &PEAL_AT(l, x, y - 2); *at = *at; }",
                  "E364", r"writes 'l' at .*, which .*: \(x, y - 2\) of its point"),
    "quiet_rare": ("box: a, tile: [6, 4], write: b", "PEAL_WRITE(double, b)",
                   "PEAL_FOR_2D(t, x, y) { PEAL_AT(b, x, y) = 1; "
                   "if (x == 5) { volatile double *at = &PEAL_AT(b, x + 1, y); *at = *at; } }",
                   "E364", r"writes 'b' at \(6, \d+\), which .*: \(x \+ 1, y\) of its point"),
    "quiet_part": ("write: {c: [[0, 10]]}", "PEAL_WRITE(double, c)",
                   "volatile double *at = &c[10]; c[0] = 1; *at = *at;", "E364", r"writes 'c' at \(10\), which"),
    # what the tile is
    "tile_edge": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                  "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = x == t.lo[0] ? -1 : PEAL_AT(a, x, y);", "E377",
                  r"gives 'b' at \(\d+, \d+\) one value in its tile.*point is a tile of its own \(rank \d, tile \[0, \d\d\)"),
    "tile_number": ("box: a, write: b", "PEAL_WRITE(double, b)", "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = t.index;", "E377",
                    r"gives 'b' at \(\d+, \d+\) one value in its tile"),
    "tile_count": ("box: fine, read: fine, write: coarse", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                   "for (int y = t.lo[1] / 2; y < t.hi[1] / 2; y++) for (int x = t.lo[0] / 2; x < t.hi[0] / 2; x++) "
                   "PEAL_AT(b, x, y) = PEAL_AT(a, 2 * x + 1, 2 * y) + t.count;", "E377", r"gives 'coarse' at"),
    "number_shared": ("box: wide, independent: true, update: {wide: {star: 1}}", "PEAL_UPDATE(double, a)",
                      "PEAL_FOR_2D(t, x, y) PEAL_AT(a, x, y) = t.index;", "E377", "one value .* where the tile has another number"),
    "last_quiet": ("write: c", "PEAL_WRITE(double, c)", "c[0] = 1; volatile double *at = &c[100]; *at = *at;", "E364",
                   r"writes 'c' at \(100\), outside"),
    "first_quiet": ("update: e", "PEAL_UPDATE(unsigned char, e)", "e[0] += 1; volatile unsigned char *at = e - 1; *at = *at;", "E364",
                    r"writes 'e' at \(-1\), outside"),
    "crash_alone": ("box: a, write: b", "PEAL_WRITE(double, b)",
                    "volatile int z = t.hi[0] - t.lo[0] - 1, w = 10 / z; PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = w > 99;", "E215",
                    r"divided by zero \(rank \d, tile \[(\d+), \d+\) x \[\d+, \d+\), step 0\)"),
    # axes that the box has not
    "planes": ("box: a, read: {deep: tile}, write: b", "PEAL_READ(double, d), PEAL_WRITE(double, b)",
               "PEAL_FOR_2D(t, x, y) { double sum = 0; for (int z = 0; z <= 4; z++) sum += PEAL_AT(d, x, y, z); PEAL_AT(b, x, y) = sum; }",
               "E363", r"reads 'deep' at \(\d+, \d+, 4\), outside .*: \(x, y, 4\) of its point"),
    "planes_below": ("box: a, write: {deep: tile}", "PEAL_WRITE(double, d)",
                     "PEAL_FOR_2D(t, x, y) { for (int z = -1; z < 4; z++) PEAL_AT(d, x, y, z) = z; }",
                     "E364", r"writes 'deep' at \(\d+, \d+, -1\), outside .*: \(x, y, -1\) of its point"),
    # reductions
    "no_part": ("box: a, read: a, reduce: {s: sum}", "PEAL_READ(double, a), PEAL_REDUCE(double, s)",
                "if (PEAL_AT(a, t.lo[0], t.lo[1]) > 1e9) PEAL_PARTIAL(s, 1);", "E216", r"doesn't store its part of 's'"),
    "part_behind": ("box: a, read: a, reduce: {s: sum}", "PEAL_READ(double, a), PEAL_REDUCE(double, s)",
                    "PEAL_PARTIAL(s, PEAL_AT(a, t.lo[0], t.lo[1])); if (s) s[1] = 3;", "E364",
                    r"writes its part of 's' at \(1\), outside"),
    "part_added": ("box: a, read: a, reduce: {s: sum}", "PEAL_READ(double, a), PEAL_REDUCE(double, s)",
                   "PEAL_PARTIAL(s, *s + 1);", "E363", r"reads its part of 's'"),
    # what isn't an argument
    "random": ("box: a, write: b", "PEAL_WRITE(double, b)", "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = rand();", "E214",
               r"is not deterministic: .* 'b' at \((\d+), (\d+)\)"),
    "address": ("write: c", "PEAL_WRITE(double, c)", "c[0] = (double)(uintptr_t)c;", "E214", "elsewhere in memory"),
    "static_state": ("box: a, read: a, reduce: {s: sum}", "PEAL_READ(double, a), PEAL_REDUCE(double, s)",
                     "static int calls; calls++; PEAL_PARTIAL(s, calls);", "E214", "changes a static variable"),
    "keeps_first": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                    "static double first; static int have; PEAL_FOR_2D(t, x, y) { if (!have) { have = 1; first = PEAL_AT(a, x, y) + 1; } "
                    "PEAL_AT(b, x, y) = PEAL_AT(a, x, y) - first; }", "E214", "changes a static variable"),
    "keeps_table": ("box: a, tile: [6, 4], write: b", "PEAL_WRITE(double, b)",
                    "static double seen[4] = {1, 2, 3, 4}; PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = seen[0]; seen[0] = 5;", "E214",
                    "changes a static variable"),
    "uninitialised": ("write: c", "PEAL_WRITE(double, c)", "double room[9]; hide(room); c[0] = room[4];", "E214",
                      r"'c' at \(0\)"),
}

# name: (task without its name, parameters of the kernel, body)
RIGHT = {
    "nan_signs": ("box: f, write: f", "PEAL_WRITE(float, f)",
                  "PEAL_FOR_2D(t, x, y) PEAL_AT(f, x, y) = (x + y) % 3 == 0 ? __builtin_nanf(\"\") : (x + y) % 3 == 1 ? -__builtin_nanf(\"1\") : y;"),
    "nan_sums": ("box: f, read: {f: {star: 1, stale: ok}}, write: g", "PEAL_READ(float, f), PEAL_WRITE(float, g)",
                 "PEAL_FOR_2D(t, x, y) PEAL_AT(g, x, y) = 0.25f * (PEAL_AT(f, x - 1, y) + PEAL_AT(f, x + 1, y) + "
                 "PEAL_AT(f, x, y - 1) + PEAL_AT(f, x, y + 1));"),
    "larger": ("box: large, update: large", "PEAL_UPDATE(double, b)", "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) += 1;"),
    "constants": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                  "static const double w[3] = {1, 2, 3}; PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = w[(x + y) % 3] * PEAL_AT(a, x, y);"),
    "colours": ("box: wide, independent: true, update: {wide: {star: 1}}", "PEAL_UPDATE(double, a)",
                "PEAL_FOR_2D(t, x, y) if ((x + y) % 2) PEAL_AT(a, x, y) += 0.25 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + "
                "PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1));"),
    "wall": ("box: {a: {ghost: [-1, 0]}}, read: {a: inside}, write: a", "PEAL_READ(double, a), PEAL_WRITE(double, g)",
             "PEAL_FOR_2D(t, x, y) PEAL_AT(g, x, y) = PEAL_AT(a, -1 - x, y);"),
    "star": ("box: a, read: {a: {star: 1}}, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
             "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x - 1, y) + PEAL_AT(a, x + 1, y) + "
             "PEAL_AT(a, x, y - 1) + PEAL_AT(a, x, y + 1);"),
    "limited": ("box: a, read: {a: {grow: 1}}, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                "PEAL_FOR_2D(t, x, y) { double v = PEAL_AT(a, x + 1, y - 1), w = PEAL_AT(a, x, y); "
                "PEAL_AT(b, x, y) = v > w ? v : w; }"),
    "leaves_out": ("box: a, write: b", "PEAL_WRITE(double, b)",
                   "PEAL_FOR_2D(t, x, y) if ((x + y) % 2) PEAL_AT(b, x, y) = 1;"),
    "writes_nothing": ("box: a, write: b", "PEAL_WRITE(double, b)", "(void)b;"),
    "writes_back": ("box: a, write: b", "PEAL_WRITE(double, b)",
                    "PEAL_FOR_2D(t, x, y) { volatile double *at = &PEAL_AT(b, x, y); *at = *at; }"),
    "in_place": ("box: a, tile: whole, update: {a: {grow: 1}}", "PEAL_UPDATE(double, a)",
                 "PEAL_FOR_2D(t, x, y) PEAL_AT(a, x, y) = 0.5 * (PEAL_AT(a, x - 1, y) + PEAL_AT(a, x, y + 1));"),
    "to_the_end": ("write: c", "PEAL_WRITE(double, c)", "for (int i = 0; i < 100; i++) c[i] = i;"),
    "bytes": ("read: e, write: p", "PEAL_READ(unsigned char, e), PEAL_WRITE(double, p)",
              "p[0] = 0; for (int i = 0; i < 7; i++) p[0] += e[i];"),
    "extremes": ("box: k, read: k, write: l", "PEAL_READ(int, k), PEAL_WRITE(int, l)",
                 "PEAL_FOR_2D(t, x, y) PEAL_AT(l, x, y) = (x + y) % 3 ? 0x7fffffff : 0x55555555;"),
    "zeros": ("box: k, read: k, write: l", "PEAL_READ(int, k), PEAL_WRITE(int, l)", "PEAL_FOR_2D(t, x, y) PEAL_AT(l, x, y) = 0;"),
    "nans": ("box: a, write: b", "PEAL_WRITE(double, b)", "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = __builtin_nan(\"\");"),
    "part": ("box: a, read: a, reduce: {s: max}", "PEAL_READ(double, a), PEAL_REDUCE(double, s)",
             "double most = 0; PEAL_FOR_2D(t, x, y) if (PEAL_AT(a, x, y) > most) most = PEAL_AT(a, x, y); "
             "PEAL_PARTIAL(s, most);"),
    "tiles": ("box: a, tile: [6, 4], write: {p: {per_tile: 2}}", "PEAL_WRITE(double, p)", "p[0] = t.index; p[1] = 1;"),
    "halves": ("box: fine, read: fine, write: coarse", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
               "for (int y = t.lo[1] / 2; y < t.hi[1] / 2; y++) for (int x = t.lo[0] / 2; x < t.hi[0] / 2; x++) "
               "PEAL_AT(b, x, y) = PEAL_AT(a, 2 * x + 1, 2 * y);"),
    "fours": ("box: four, read: {four: {star: 1}}, write: fourb", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
              "for (int w = t.lo[3]; w < t.hi[3]; w++) PEAL_FOR_3D(t, x, y, z) "
              "PEAL_AT(b, x, y, z, w) = PEAL_AT(a, x, y, z, w - 1) + PEAL_AT(a, x + 1, y, z, w);"),
    "some": ("box: {count: m, max: 60}, tile: whole, update: p", "PEAL_UPDATE(double, p)", "PEAL_FOR_1D(t, x) p[x] += x;"),
    "walls": ("box: {a: {rim: 1}}, write: a", "PEAL_WRITE(double, a)", "PEAL_FOR_2D(t, x, y) PEAL_AT(a, x, y) = 1;"),
    "lookup": ("box: k, read: {k: tile, tab: whole}, write: b", "PEAL_READ(int, k), PEAL_READ(double, tab), PEAL_WRITE(double, b)",
               "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = tab[PEAL_AT(k, x, y) & 7];"),
}
KERNELS_HEAD = """#include <stdint.h>
#include <stdlib.h>

__attribute__((noinline)) static void hide(double *room) { __asm__ volatile("" ::"r"(room) : "memory"); }
PEAL_KERNEL(fill_a)(peal_tile t, PEAL_WRITE(double, a)) { PEAL_FOR_2D(t, x, y) PEAL_AT(a, x, y) = x + 12 * y; }
PEAL_KERNEL(fill_k)(peal_tile t, PEAL_WRITE(int, k)) { PEAL_FOR_2D(t, x, y) PEAL_AT(k, x, y) = x * y + 1; }
"""
SETUP = """setup:
  - {task: fill_a, box: a, write: a}
  - {task: fill_k, box: k, write: k}
  - {set: m, value: 50}
"""


def kernels(table):
    return KERNELS_HEAD + "".join(
        f"PEAL_KERNEL({name})(peal_tile t, {parameters})\n{{\n    {body}\n}}\n"
        for name, (_, parameters, body, *_) in table.items())


def spec(table, section="step"):
    tasks = [f"  - {{task: {name}, {task}}}\n" for name, (task, *_) in table.items()]
    if section == "setup":
        return HEAD + SETUP + "".join(tasks) + "step: [{exchange: a}]\n"
    if section == "finish":
        return HEAD + SETUP + "step: [{exchange: a}]\nfinish:\n" + "".join(tasks)
    return HEAD + SETUP + STEP + "".join(tasks)


def pieces(table, most):
    names = list(table)
    return [{n: table[n] for n in names[i:i + most]} for i in range(0, len(names), most)]


class Footprints(unittest.TestCase):
    maxDiff = None

    def check(self, text, table, *words):
        folder = folder_of({"spec.yaml": text, "kernels.c": kernels(table)}, "/tmp")
        env = environment(XDG_CACHE_HOME=kernel_cache("/tmp"))
        return peal("run", os.path.join(folder, "spec.yaml"), "--check-footprints", *words, env=env)

    def find(self, table, section, *words):
        for piece in pieces(table, 16):
            code, out, err = self.check(spec(piece, section), piece, *words)
            self.assertEqual(code, 3, out + err)
            self.assertNotIn("only what its task declares", out)
            told = [line for line in err.splitlines() if "error:" in line]
            for name, (_, _, _, number, what) in piece.items():
                with self.subTest((name, section, words)):
                    mine = [line for line in told if f"task '{name}' " in line]
                    self.assertEqual(len(mine), 1, err)
                    self.assertRegex(mine[0], what)
                    self.assertRegex(mine[0], rf"\[{number}\]$")
                    when = "step 0" if section == "step" else section
                    self.assertRegex(mine[0], rf"\(rank \d, (tile [^(]*, )?{when}\)")
            self.assertEqual(len(told), len(piece), err)

    def test_wrong_kernels(self):
        self.assertGreaterEqual(len(WRONG), 25)
        self.find(WRONG, "step")

    def test_wrong_kernels_of_several_ranks(self):
        self.find(WRONG, "step", "-n", "2", "--processes", "1", "--set", "n=24")

    def test_wrong_kernels_of_several_processes(self):
        few = {name: WRONG[name] for name in ["behind_150", "limiter", "random", "no_part", "stores_equal"]}
        self.find(few, "step", "-n", "2")

    def test_wrong_kernels_in_setup_and_finish(self):
        few = {name: WRONG[name] for name in ["behind_150", "far_before", "is_zero", "too_far_grown", "random",
                                              "no_part", "stores_equal"]}
        self.find(few, "setup")
        self.find(few, "finish")

    def test_fma(self):
        """Bits may differ by the tile then; what a point reads by itself is looked at all the same."""
        table = {"next": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                          "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = PEAL_AT(a, x < 9 ? x + 1 : x, y);", "E363",
                          r"reads 'a' at .*: \(x \+ 1, y\) of its point"),
                 "number": ("box: a, write: b", "PEAL_WRITE(double, b)", "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = t.index;", "E377",
                            "where the tile has another number")}
        for name, (_, _, _, number, what) in table.items():
            code, out, err = self.check(spec(table).replace("kernels:", "fma: true\nkernels:", 1), table)
            self.assertEqual(code, 3, out + err)
            self.assertRegex(err, rf"task '{name}' .*{what}.*\[{number}\]")
        table = {"edge": ("box: a, read: a, write: b", "PEAL_READ(double, a), PEAL_WRITE(double, b)",
                          "PEAL_FOR_2D(t, x, y) PEAL_AT(b, x, y) = x == t.lo[0] ? -1 : PEAL_AT(a, x, y);")}
        for fma, wanted in (("false", 3), ("true", 0)):  # what compilers choose cannot be told from what kernels do
            code, out, err = self.check(spec(table).replace("kernels:", f"fma: {fma}\nkernels:", 1), table)
            self.assertEqual(code, wanted, out + err)

    def test_right_kernels(self):
        self.assertGreaterEqual(len(RIGHT), 12)
        for words in [[], ["-n", "2", "--processes", "1"], ["-n", "4", "--processes", "1", "--set", "n=37"]]:
            with self.subTest(words):
                code, out, err = self.check(spec(RIGHT), RIGHT, *words)
                self.assertEqual(code, 0, err)
                self.assertNotIn("error:", err)
                self.assertIn("Result: every kernel touches only what its task declares.", out)

    def test_points_are_where_the_message_says(self):
        """Coordinates of the array are those of the point and the offset from it."""
        text = spec(WRONG)
        code, _, err = self.check(text, WRONG, "-n", "2", "--processes", "1", "--set", "n=24")
        self.assertEqual(code, 3)
        self.assertEqual(err.count("error:"), len(WRONG), "all are told")
        seen = 0
        for line in err.splitlines():
            match = re.search(r"' at \(([-\d, ]+)\).*: \(([^)]*)\) of its point \(([-\d, ]+)\)", line)
            if match:
                at, offset, point = (part.split(", ") for part in match.groups())
                wanted = [int(word) if word[0] in "-0123456789" else int(point[k]) + int(word[1:].replace(" ", "") or 0)
                          for k, word in enumerate(offset)]
                self.assertEqual([int(x) for x in at], wanted, line)
                seen += 1
        self.assertGreater(seen, 20)


if __name__ == "__main__":
    main()
