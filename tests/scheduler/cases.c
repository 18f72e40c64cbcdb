/* Broken specs: each has one mistake that only the scheduler can see. A spec is HEAD (2 lines),
 * what it declares, and its statements.
 *
 * What dsl/ sees first has its cases there: a buffer where a field must stand or one element is
 * wanted, lists of another type (PEAL_E_WRONG_ARRAY_KIND), steps of a direction that are constants
 * (PEAL_E_INVALID_DIRECTION), a rim in a message (PEAL_E_UNKNOWN_KEY), `repeat` and the `when` of
 * loops and swaps that differ by rank (PEAL_E_NAME_OUT_OF_SCOPE, PEAL_E_DECISION_DIFFERS_BY_RANK).
 */
#include "tests/scheduler/cases.h"

#define HEAD "peal: 1\nkernels: k.c\n"
/* line 3 to 5; statements begin at line 7, after `step:` */
#define GRID                                                                                       \
    HEAD "topology: {dims: [auto, 1]}\n"                                                           \
         "fields: {u: {size: [12, 8], halo: 1}, v: {like: u}, w: {size: 12}}\n"                    \
         "buffers: {o: {box: [[5, 9]]}, s: {}, r: {}, b: {count: 6}, c: {count: 6}, "              \
         "i: {type: i64, count: 6}}\n"                                                             \
         "step:\n- "
#define LISTS                                                                                      \
    HEAD                                                                                           \
        "topology: {dims: auto}\n"                                                                 \
        "buffers: {b: {count: 6}, c: {count: 6}, two: {type: i32, values: [0, 1]}, one: {type: "   \
        "i32, values: [0]}, far: {type: i32, values: [0, 7]}, wide: "                              \
        "{type: i32, values: [0, 3, 9]}, down: {type: i32, values: [0, 3, 2]}, none: {type: i32, " \
        "values: [0, 6, 6]}, n: {type: i32}, m: {type: i32, count: 2}}\n"                          \
        "# nothing\nstep:\n- "

/* Conditions that the run decides; what follows begins in line 9. */
#define RUNTIME                                                                                    \
    HEAD "topology: {dims: auto}\n"                                                                \
         "buffers: {b: {count: 4}, c: {count: 4}, x: {type: i64}, y: {type: i64}, z: {}, n: {}}\n" \
         "step:\n- {set: x, value: step % 5}\n- {set: y, value: step % 7}\n"                       \
         "- {set: z, value: 1.5 * step}\n"
#define SEND(when)        "- {send: b, to: (rank + 1) % ranks, when: " when "}\n"
#define RECV(when)        "- {recv: c, from: (rank - 1) % ranks, when: " when "}\n"
#define SEND_TAGGED(when) "- {send: b, to: (rank + 1) % ranks, tag: 7, when: " when "}\n"
#define RECV_TAGGED(when) "- {recv: c, from: (rank - 1) % ranks, tag: 7, when: " when "}\n"
/* Two neighbours wait for each other in iterations that have both conditions. */
#define CROSS(one, other)                                                                          \
    "- {recv: b, from: [1], tag: 1, when: " one "}\n"                                              \
    "- {recv: c, from: [-1], tag: 2, when: " other "}\n"                                           \
    "- {send: b, to: [1], tag: 2, when: " other "}\n"                                              \
    "- {send: c, to: [-1], tag: 1, when: " one "}\n"
#define NESTED(one, other)                                                                         \
    RUNTIME "- repeat: 6\n  as: k\n  step:\n"                                                      \
            "  - {recv: b, from: [1], tag: 1, when: " one "}\n"                                    \
            "  - {recv: c, from: [-1], tag: 2, when: " other "}\n"                                 \
            "  - {send: b, to: [1], tag: 2, when: " other "}\n"                                    \
            "  - {send: c, to: [-1], tag: 1, when: " one "}\n"
/* A halo that is fresh in even steps; tasks with conditions of their own follow in line 7. */
#define FRESH_EVEN                                                                                 \
    HEAD "topology: {dims: auto, periodic: true}\n"                                                \
         "fields: {a: {size: 96, halo: 1}, b: {like: a}}\nrepeat: 6\nstep:\n"                      \
         "- {exchange: a, when: step % 2 == 0}\n"
/* Files: two fields that are cut alike, one that is not, buffers of each rank. Statements begin in
 * line 6, behind `setup:` or `step:`. */
#define FILES                                                                                      \
    HEAD "fields: {u: {size: 12, halo: 1}, v: {size: 12}, far: {size: 12, align: 2}}\n"            \
         "buffers: {b: {type: i64}, c: {type: i64}}\n"
#define FILES_SETUP FILES "setup:\n"
#define SWAPPED(count)                                                                             \
    "topology: {dims: auto}\nbuffers: {a: {count: rank + 3}, b: {count: " count "}}\n"

const graph_case graph_cases[] = {
    /* sizes */
    {HEAD "fields: {u: {size: 0}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 20,
     "an extent of field `u` is 0"},
    {HEAD "fields: {u: {size: [8, 1 - 9]}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 26, "extent"},
    {HEAD "fields: {u: {size: 4294967296}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 20, NULL},
    {HEAD "fields: {u: {size: 8, align: 0}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 30, "align"},
    {HEAD "fields: {u: {size: 8, coarsen: 0}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 32, "coarsen"},
    {HEAD "fields: {u: {size: 8, stagger: -1}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 32, "stagger"},
    {HEAD "fields: {u: {size: 8, halo: [[1, -1]]}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 29,
     "is -1 points wide"},
    {HEAD "fields: {u: {size: 8, halo: 4294967296}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 29,
     "amount"},
    {HEAD "fields: {u: {size: [2147483647, 2147483647, 2147483647]}}\n", 1,
     PEAL_E_SIZE_OUT_OF_RANGE, 3, 10, "overflow"},
    {HEAD "buffers: {b: {count: 2305843009213693952}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 3, 11,
     "overflow"},
    {HEAD "fields: {u: {size: 8}}\nstep:\n- {task: t, box: [[0, 2147483647], [0, 2147483647], [0, "
          "2147483647]], tile: [1, 1, 1], read: {u: whole}}\n",
     1, PEAL_E_SIZE_OUT_OF_RANGE, 5, 18, "number of tiles"},
    {GRID "{task: t, box: {u: {grow: 4294967296}}, write: u}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 7, 29,
     "amount"},
    /* topology */
    {HEAD "topology: {dims: [2, 2]}\nfields: {u: {size: [8, 8]}}\n", 3, PEAL_E_TOPOLOGY_MISMATCH, 3,
     11, NULL},
    {HEAD "topology: {dims: [2, auto]}\nfields: {u: {size: [8, 8]}}\n", 3, PEAL_E_TOPOLOGY_MISMATCH,
     3, 11, NULL},
    {HEAD "topology: {dims: [0, auto]}\nfields: {u: {size: [8, 8]}}\n", 2, PEAL_E_TOPOLOGY_MISMATCH,
     3, 19, NULL},
    {HEAD "topology: {dims: [1, 9]}\nfields: {u: {size: [8, 8]}}\n", 2, PEAL_E_TOPOLOGY_MISMATCH, 3,
     22, NULL},
    {HEAD "topology: {dims: [1, 1]}\nfields: {u: {size: [8, 8]}}\n", 2, PEAL_E_TOPOLOGY_MISMATCH, 3,
     11, NULL},
    /* cuts */
    {HEAD "topology: {cuts: [[0, 3, 9]]}\nfields: {u: {size: 8}}\n", 2, PEAL_E_CUTS_MISMATCH, 3, 26,
     "8 points"},
    {HEAD "topology: {cuts: [[1, 8]]}\nfields: {u: {size: 8}}\n", 1, PEAL_E_CUTS_MISMATCH, 3, 20,
     "not at 0"},
    {HEAD "topology: {cuts: [[0, 5, 5, 8]]}\nfields: {u: {size: 8}}\n", 3, PEAL_E_CUTS_MISMATCH, 3,
     26, "5 after 5"},
    {HEAD "topology: {cuts: [[0, 3, 8]]}\nfields: {u: {size: 8}, v: {size: 8, align: 2}}\n", 2,
     PEAL_E_CUTS_MISMATCH, 3, 23, "`v` only at multiples of 2"},
    {HEAD "topology: {dims: [3], cuts: [[0, 3, 8]]}\nfields: {u: {size: 8}}\n", 3,
     PEAL_E_CUTS_MISMATCH, 3, 31, "make 2 parts, `dims` says 3"},
    {HEAD "topology: {cuts: [[0, 3, 8]]}\nfields: {u: {size: 8}}\n", 3, PEAL_E_TOPOLOGY_MISMATCH, 3,
     11, NULL},
    {HEAD "topology: {cuts: [[0, 1, 8]]}\nfields: {u: {size: 8, halo: 2}}\n", 2,
     PEAL_E_HALO_TOO_WIDE, 4, 29, "rank 0"},
    /* parts */
    {HEAD "topology: {dims: 2}\nfields: {u: {size: 8, align: 2}, c: {like: u, align: 3, coarsen: "
          "2}}\n",
     2, PEAL_E_ALIGN_COARSEN_MISMATCH, 4, 34, NULL},
    {HEAD "topology: {dims: 5}\nfields: {u: {size: 4}}\n", 5, PEAL_E_MORE_RANKS_THAN_POINTS, 4, 10,
     "rank 4"},
    {HEAD "topology: {dims: 3}\nfields: {u: {size: 8, align: 4}}\n", 3,
     PEAL_E_MORE_RANKS_THAN_POINTS, 4, 10, "align 4"},
    {HEAD "topology: {dims: 2}\nfields: {u: {size: 5, halo: 3}}\n", 2, PEAL_E_HALO_TOO_WIDE, 4, 29,
     "2 points"},
    {HEAD "topology: {dims: 1, periodic: true}\nfields: {u: {size: 3, halo: 4}}\n", 1,
     PEAL_E_HALO_TOO_WIDE, 4, 29, NULL},
    {HEAD "topology: {dims: 2}\nfields: {u: {size: 8, halo: 3, align: 2}, c: {like: u, coarsen: "
          "2}}\n",
     2, PEAL_E_HALO_TOO_WIDE, 4, 29, "`c`"},
    {HEAD "buffers: {b: {count: 2 - rank * 3}}\n", 2, PEAL_E_INVALID_BUFFER_EXTENT, 3, 24,
     "rank 1"},
    {HEAD "fields: {u: {size: [8, 8]}}\nbuffers: {b: {box: {u: {rim: 1}}}}\n", 1,
     PEAL_E_INVALID_BUFFER_EXTENT, 4, 21, "4 boxes"},
    /* points */
    {GRID "{task: t, box: {u: [[5, 2], [0, 8]]}, write: u}\n", 1, PEAL_E_NEGATIVE_RANGE, 7, 22,
     NULL},
    {GRID "{task: t, box: [[3, 0]], write: s}\n", 1, PEAL_E_NEGATIVE_RANGE, 7, 18, NULL},
    {GRID "{task: t, box: u, read: {v: [[4, 3], [0, 1]]}, write: u}\n", 1, PEAL_E_NEGATIVE_RANGE, 7,
     31, NULL},
    {GRID "{task: t, box: {u: {border: [ranks + 1, 0]}}, write: u}\n", 1,
     PEAL_E_DIRECTION_OUT_OF_RANGE, 7, 31, NULL},
    {GRID "{send: b, to: [ranks]}\n- {recv: c, from: [-ranks]}\n", 2, PEAL_E_DIRECTION_OUT_OF_RANGE,
     7, 17, NULL},
    {HEAD "topology: {dims: [2, 1]}\nfields: {u: {size: 8}}\n# none\nstep:\n- {task: t, box: {u: "
          "{border: [0, 1]}}, write: u}\n",
     2, PEAL_E_DIRECTION_OUT_OF_RANGE, 7, 31, "no axis y"},
    {GRID "{task: t, box: {u: {grow: 2}}, write: u}\n", 1, PEAL_E_BOX_OUT_OF_BOUNDS, 7, 19,
     "beyond the end"},
    {GRID "{task: t, box: {u: [[-2, 4], [0, 8]]}, write: u}\n", 1, PEAL_E_BOX_OUT_OF_BOUNDS, 7, 19,
     NULL},
    {GRID "{task: t, box: {u: {part: 2}}, write: u}\n", 2, PEAL_E_BOX_OUT_OF_BOUNDS, 7, 19,
     "extends"},
    {GRID "{send: {b: [[2, 7]]}, to: 0, when: rank == 1}\n- {recv: b, from: 1, when: rank == 0}\n",
     2, PEAL_E_BOX_OUT_OF_BOUNDS, 7, 11, "6 elements"},
    {GRID "{task: t, box: {u: {rim: 1, part: interior}}, write: u}\n", 1, PEAL_E_UNSUITABLE_BOX, 7,
     19, "rim"},
    /* tasks */
    {GRID "{task: t, box: u, read: {v: {star: 2}}, write: u}\n", 1, PEAL_E_HALO_TOO_NARROW, 7, 28,
     "touches"},
    {GRID "{task: t, box: u, read: {v: {star: -1}}, write: u}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 7,
     28, "`star` of `v` is -1 and -1 points along axis x"},
    {GRID "{task: t, box: {u: {grow: 1}}, read: {v: {grow: 1}}, write: u}\n", 1,
     PEAL_E_HALO_TOO_NARROW, 7, 41, NULL},
    {GRID "{task: t, box: u, read: {v: [[0, 14], [0, 1]]}, write: u}\n", 1, PEAL_E_HALO_TOO_NARROW,
     7, 28, NULL},
    {GRID "{task: t, box: [[0, 8]], tile: 1, write: {b: {per_tile: 1}}}\n", 1,
     PEAL_E_HALO_TOO_NARROW, 7, 45, "8 tiles"},
    {GRID "{task: t, box: [[0, 8]], tile: 1, write: {b: tile}}\n", 1, PEAL_E_HALO_TOO_NARROW, 7, 45,
     NULL},
    {GRID "{task: t, box: [[0, 3]], tile: 1, write: {b: {per_tile: 0}}}\n", 1,
     PEAL_E_HALO_TOO_NARROW, 7, 45, NULL},
    {GRID "{task: t, read: {u: {star: 1}}, write: s}\n", 1, PEAL_E_FOOTPRINT_WITHOUT_BOX, 7, 20,
     "axis x"},
    {GRID "{task: t, box: {u: {rim: [0, 1]}}, write: w}\n", 1, PEAL_E_TILES_COLLIDE, 7, 45, "`w`"},
    {GRID "{task: t, box: [[0, 2]], tile: 1, write: {o: {per_tile: 1}}}\n", 1,
     PEAL_E_HALO_TOO_NARROW, 7, 45, "coordinates"},
    {GRID "{allreduce: {o: sum}}\n", 1, PEAL_E_REDUCTION_MISMATCH, 7, 16, "plain"},
    {GRID "{send: o, to: all, offsets: 2}\n", 1, PEAL_E_OFFSETS_OUT_OF_BOUNDS, 7, 3, "coordinates"},
    {GRID "{task: t, box: u, tile: [4, 4], write: [u, s]}\n", 1, PEAL_E_TILES_COLLIDE, 7, 46,
     "`s`"},
    {GRID "{task: t, box: u, tile: [4, 4], update: {b: whole}}\n", 1, PEAL_E_TILES_COLLIDE, 7, 44,
     "`b`"},
    {GRID "{task: t, box: u, update: s, independent: true, args: 2.0 * s}\n", 1,
     PEAL_E_ARGUMENT_CHANGED_BY_TILES, 7, 61, "reads `s`"},
    {GRID "{task: t, box: u, tile: [0, 4], write: u}\n", 1, PEAL_E_INVALID_TILE_EXTENT, 7, 28,
     "0 points"},
    /* communication */
    {GRID "{exchange: {u: {star: 2}}}\n", 2, PEAL_E_EXCHANGE_TOO_WIDE, 7, 15, "of 2 points"},
    {GRID "{exchange: {u: {grow: -1}}}\n", 2, PEAL_E_EXCHANGE_TOO_WIDE, 7, 15, "of -1 points"},
    {GRID "{exchange: [u, {v: {grow: [[2, 0], 0]}}]}\n", 2, PEAL_E_EXCHANGE_TOO_WIDE, 7, 19, "`v`"},
    {GRID "{reduce: {s: sum}, to: 2}\n", 2, PEAL_E_REDUCTION_MISMATCH, 7, 26, "no rank 2"},
    {HEAD "buffers: {b: {count: rank + 1}}\nstep:\n- {allreduce: {b: sum}}\n", 2,
     PEAL_E_REDUCTION_MISMATCH, 5, 16, "1 elements on rank 0"},
    {HEAD "fields: {u: {size: [8, 8]}}\nbuffers: {b: {box: u}}\nstep:\n- {allreduce: {b: sum}}\n",
     1, PEAL_E_REDUCTION_MISMATCH, 6, 16, "plain"},
    {LISTS "{send: b, to: two, offsets: one}\n- {recv: c, from: two, offsets: one}\n", 2,
     PEAL_E_INVALID_LIST, 7, 17, NULL},
    {LISTS "{send: b, to: far}\n- {recv: c, from: two, offsets: 3}\n", 2, PEAL_E_NO_SUCH_RANK, 7,
     17, "rank 7"},
    {GRID "{send: b, to: ranks}\n- {recv: c, from: 0}\n", 2, PEAL_E_NO_SUCH_RANK, 7, 17, "rank 2"},
    {GRID "{send: b, to: rank - 1}\n- {recv: c, from: rank - 1}\n", 1, PEAL_E_NO_SUCH_RANK, 7, 17,
     "rank -1"},
    {LISTS "{send: {b: [[0, 3]]}, to: two}\n- {recv: c, from: two}\n", 2,
     PEAL_E_OFFSETS_OUT_OF_BOUNDS, 8, 3, "same elements"},
    {LISTS "{send: b, to: two, offsets: wide}\n- {recv: c, from: two, offsets: 3}\n", 2,
     PEAL_E_OFFSETS_OUT_OF_BOUNDS, 7, 3, NULL},
    {LISTS "{send: b, to: two, offsets: down}\n- {recv: c, from: two, offsets: 3}\n", 2,
     PEAL_E_OFFSETS_OUT_OF_BOUNDS, 7, 3, NULL},
    {LISTS "{send: b, to: all, offsets: 4}\n- {recv: c, from: all, offsets: 3}\n", 2,
     PEAL_E_OFFSETS_OUT_OF_BOUNDS, 7, 3, NULL},
    {GRID "{send: b, to: 0, when: rank == 1}\n", 2, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     "no matching recv"},
    {GRID "{recv: b, from: 0, when: rank == 1}\n", 2, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     "no matching send"},
    {GRID "{send: b, to: [1, 0]}\n- {recv: c, from: [1, 0]}\n", 2, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     NULL},
    {GRID "{send: b, to: 0, when: rank == 1, tag: 1}\n- {recv: c, from: 1, when: rank == 0}\n", 2,
     PEAL_E_UNMATCHED_MESSAGE, 7, 3, "send of `b`"},
    {GRID "{send: b, to: 0, when: rank == 1, tag: 1}\n- {recv: c, from: 1, when: rank == 0}\n", 2,
     PEAL_E_UNMATCHED_MESSAGE, 8, 3, NULL},
    {GRID "{exchange: u, when: rank == 0}\n", 2, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     "rank 1 takes no part"},
    {GRID "{exchange: u, when: rank > 0}\n", 2, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     "rank 0 takes no part"},
    {GRID "{allreduce: {s: sum}, when: rank < 2}\n", 3, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     "rank 2 takes no part"},
    {GRID "{send: b, to: 0, when: rank == 1}\n- {send: b, to: 0, when: rank == 1}\n"
          "- {recv: c, from: 1, when: rank == 0}\n",
     2, PEAL_E_DUPLICATE_TAG, 7, 3, "2 such"},
    {GRID "{send: b, to: 0, when: rank == 1}\n- {recv: c, from: 1, when: rank == 0}\n"
          "- {recv: c, from: 1, when: rank == 0}\n",
     2, PEAL_E_DUPLICATE_TAG, 8, 3, "2 such"},
    {GRID "{send: b, to: 0, when: rank == 1}\n- {recv: {c: [[0, 5]]}, from: 1, when: rank == 0}\n",
     2, PEAL_E_MESSAGE_SIZE_MISMATCH, 7, 3, "6 elements are sent, 5"},
    {GRID "{send: b, to: 0, when: rank == 1}\n- {recv: i, from: 1, when: rank == 0}\n", 2,
     PEAL_E_MESSAGE_TYPE_MISMATCH, 7, 3, "i64"},
    {GRID "{send: b, to: 0, when: rank == 1, count: i}\n- {recv: c, from: 1, when: rank == 0}\n", 2,
     PEAL_E_MESSAGE_COUNT_MISMATCH, 7, 3, "no `count`"},
    {LISTS
     "{send: b, to: two, offsets: 3, count: n}\n- {recv: c, from: two, offsets: 3, count: m}\n",
     2, PEAL_E_MESSAGE_COUNT_MISMATCH, 7, 3, "there are 2 peers"},
    {LISTS "{send: b, to: all, offsets: none, count: m}\n", 2, PEAL_E_MESSAGE_COUNT_MISMATCH, 7, 3,
     "peer 1 has none"},
    {GRID "{task: t, box: {count: 2, max: 0}}\n", 1, PEAL_E_SIZE_OUT_OF_RANGE, 7, 34,
     "at most 0 points"},
    {GRID "{repeat: 2, step: [{send: b, to: 0, when: rank == 1}]}\n- {recv: c, from: 1, when: "
          "rank == 0}\n",
     2, PEAL_E_MESSAGE_LOOP_MISMATCH, 7, 22, NULL},
    {GRID "{send: b, to: 1 - rank, when: step % 2 == 0}\n- {recv: c, from: 1 - rank}\n", 2,
     PEAL_E_MESSAGE_CONDITION_MISMATCH, 7, 3, NULL},
    {GRID "{send: b, to: [1, 0], when: step % 2 == 0}\n- {recv: c, from: [-1, 0], when: step % 2 "
          "== 1}\n",
     2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 7, 3, NULL},
    {GRID "{send: b, to: 1 - rank, when: rank == 0 and step % 2 == 0}\n"
          "- {recv: c, from: 1 - rank, when: rank == 0 and step % 2 == 0}\n",
     2, PEAL_E_UNMATCHED_MESSAGE, 7, 3, "(on rank 0, tag 0) has no matching recv"},
    {GRID "{send: b, to: 1, when: rank == 0 and step % 4 == 0}\n"
          "- {recv: c, from: 0, when: rank == 1 and step % 2 == 0}\n",
     2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 7, 3, "send of `b` to rank 1 (on rank 0, tag 0)"},
    {GRID "{send: b, to: 1 - rank, when: step % 2 == rank}\n"
          "- {recv: c, from: 1 - rank, when: step % 2 == rank}\n",
     2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 7, 3, NULL},
    {GRID "{exchange: u, when: rank == 0 and step % 2 == 0}\n", 2, PEAL_E_UNMATCHED_MESSAGE, 7, 3,
     "rank 1 takes no part"},
    {GRID "{exchange: u, when: step % 2 == rank}\n", 2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 7, 3,
     "on rank 0 needs rank 1, where its `when` holds in other iterations"},
    {GRID "{allreduce: {s: sum}, when: rank == step}\n", 2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 7, 3,
     "needs rank"},
    {GRID "{exchange: u, when: (step + rank) * step * step % 4099 != 2}\n", 2,
     PEAL_E_CONDITIONS_NOT_COMPARABLE, 7, 3, "cannot be decided"},
    {GRID "{recv: c, from: (rank + 1) % ranks}\n- {send: b, to: (rank + ranks - 1) % ranks}\n", 3,
     PEAL_E_DEADLOCK, 7, 3, "rank 0 waits"},
    {GRID "{recv: c, from: 1 - rank, when: rank < 2}\n- {send: b, to: 1 - rank, when: rank < 2}\n",
     3, PEAL_E_DEADLOCK, 7, 3, "rank 1 waits"},
    {GRID "{recv: c, from: rank}\n- {send: b, to: rank}\n", 1, PEAL_E_DEADLOCK, 7, 3, "rank 0"},
    /* what a condition names is written between send and receive */
    {RUNTIME SEND("x < 3") "- {set: x, value: 9}\n" RECV("x < 3"), 2, PEAL_E_CONDITION_CHANGES, 9,
     3, "name `x`, which `set x` (line 10) writes"},
    {RUNTIME SEND("x < 3") "- {set: x, value: x + 1}\n" RECV("x < 3"), 3, PEAL_E_CONDITION_CHANGES,
     9, 3, NULL},
    {RUNTIME SEND("x < 3") "- {swap: [x, y]}\n" RECV("x < 3"), 2, PEAL_E_CONDITION_CHANGES, 9, 3,
     "swap x y"},
    {RUNTIME SEND("x < 3") "- {swap: [x, y], when: step % 2 == 0}\n" RECV("x < 3"), 2,
     PEAL_E_CONDITION_CHANGES, 9, 3, NULL},
    {RUNTIME SEND("x < 3") "- {allreduce: {x: max}}\n" RECV("x < 3"), 2, PEAL_E_CONDITION_CHANGES,
     9, 3, "allreduce x"},
    {RUNTIME SEND("x < 3") "- {task: t, update: x}\n" RECV("x < 3"), 2, PEAL_E_CONDITION_CHANGES, 9,
     3, "`t`"},
    {RUNTIME SEND("x < 3") "- {repeat: 2, step: [{set: x, value: 1}]}\n" RECV("x < 3"), 2,
     PEAL_E_CONDITION_CHANGES, 9, 3, "line 10"},
    {RUNTIME RECV("x < 3") "- {set: x, value: 9}\n" SEND("x < 3"), 2, PEAL_E_CONDITION_CHANGES, 11,
     3, NULL},
    {RUNTIME SEND("x < 3 and step % 2 == 0") "- {set: x, value: 9, when: step % 2 == 0}\n" RECV(
         "x < 3 and step % 2 == 0"),
     2, PEAL_E_CONDITION_CHANGES, 9, 3, NULL},
    {RUNTIME SEND("x < 3") RECV("x < 4"), 2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 9, 3, NULL},
    {RUNTIME SEND("z < 3") RECV("not (z >= 3)"), 2, PEAL_E_MESSAGE_CONDITION_MISMATCH, 9, 3,
     NULL}, /* NaN */
    {RUNTIME SEND("step * step * step % 4099 == 2")
         RECV("(step * (step * step + 1) - step) % 4099 == 2"),
     2, PEAL_E_CONDITIONS_NOT_COMPARABLE, 9, 3, "cannot be decided"},
    /* conditions that meet rarely */
    {RUNTIME CROSS("step % 31 == 3", "step % 33 == 5"), 2, PEAL_E_DEADLOCK, 10, 3, NULL},
    {RUNTIME CROSS("step % 32 == 3", "step % 33 == 5"), 2, PEAL_E_DEADLOCK, 10, 3, NULL},
    {RUNTIME CROSS("step % 97 == 96", "step % 101 == 5"), 3, PEAL_E_DEADLOCK, 10, 3, NULL},
    {RUNTIME CROSS("step % 1000003 == 7", "step % 998244353 == 5"), 2, PEAL_E_DEADLOCK, 10, 3,
     NULL},
    {RUNTIME CROSS("step < 10", "step >= 9"), 2, PEAL_E_DEADLOCK, 10, 3, NULL},
    {RUNTIME CROSS("step / 10 % 2 == 0", "step / 10 % 3 == 1"), 2, PEAL_E_DEADLOCK, 10, 3, NULL},
    {RUNTIME CROSS("x < 3", "x >= 2"), 2, PEAL_E_DEADLOCK, 10, 3, NULL},
    {NESTED("k > step", "k + step == 3"), 2, PEAL_E_DEADLOCK, 13, 5, NULL},
    {RUNTIME CROSS("step * step * step % 4099 == 2", "step % 4099 == 1"), 2,
     PEAL_E_POSSIBLE_DEADLOCK, 10, 3, "cannot be decided"},
    /* who waits above a loop keeps neighbours in its first round, theirs in the second: a circle */
    {RUNTIME "- {recv: c, from: 2, when: rank == 0}\n- repeat: 2\n  step:\n"
             "  - {send: b, to: [1], tag: 1}\n  - {recv: b, from: [-1], tag: 1}\n"
             "- {send: b, to: 0, when: rank == 2}\n",
     3, PEAL_E_DEADLOCK, 13, 5, "rank 2 waits in `recv b`"},
    {HEAD
     "topology: {dims: [2, 2]}\nfields: {u: {size: [8, 8], halo: 1}}\nbuffers: {b: {}, c: {}}\n"
     "step:\n- {recv: c, from: [-1, -1]}\n- {repeat: 2, step: [{exchange: {u: {star: 1}}}]}\n"
     "- {send: b, to: [1, 1]}\n",
     4, PEAL_E_DEADLOCK, 8, 22, "`exchange u`"},
    {RUNTIME "- {recv: c, from: 3, when: rank == 0}\n- repeat: 9\n  step:\n"
             "  - {send: b, to: [1], tag: 1}\n  - {recv: b, from: [-1], tag: 1}\n"
             "- {send: b, to: 0, when: rank == 3}\n",
     4, PEAL_E_DEADLOCK, 13, 5, "rank 3 waits in `recv b`"},
    {LISTS "{send: b, to: {ranks: []}, when: rank == 0}\n", 2, PEAL_E_WRONG_LIST_SHAPE, 7, 25,
     "lists nobody"},
    /* what is cut that some field, box or tile does not suit */
    {HEAD "topology: {dims: [1, 2]}\nfields: {u: {size: [8, 8]}, s: {size: 8}}\nstep:\n"
          "- {exchange: u}\n",
     2, PEAL_E_FIELD_LACKS_CUT_AXIS, 4, 29, "no axis y, which the topology cuts in 2"},
    {HEAD "topology: {dims: [1, 2]}\nfields: {u: {size: [8, 8, 4]}, s: {size: [8, 8]}}\nstep:\n"
          "- {task: t, box: s, tile: [8, 8], write: s}\n",
     2, PEAL_E_TILE_LARGER_THAN_PART, 6, 31, "8 points along axis y, but the 2 ranks there"},
    {HEAD "topology: {dims: [1, 1, 2]}\nfields: {u: {size: [8, 8, 4]}, s: {size: [8, 8]}}\nstep:\n"
          "- {task: t, box: s, read: u, write: s}\n",
     2, PEAL_E_FIELD_LACKS_CUT_AXIS, 4, 32, "axis z"},
    {GRID "{send: b, to: [1, 0], when: rx == 1}\n- {recv: c, from: [-1, 0], when: rx == 2}\n", 2,
     PEAL_E_DIRECTION_OF_NOBODY, 7, 17, "rank 1 has none"},
    {HEAD "buffers: {b: {}}\nstep:\n- {send: b, to: [0, 1], when: rank == 2}\n", 3,
     PEAL_E_INVALID_DIRECTION, 5, 17, "2 steps, but ranks lie along 1 axis"},
    /* rank 0 is through the loops before rank 1 comes to them; who knows how many messages ahead */
    {RUNTIME "- {recv: b, from: 0, tag: 9, when: rank == 1}\n"
             "- repeat: 4\n  as: j\n  step:\n  - repeat: 4\n    as: k\n    step:\n"
             "    - repeat: j * k\n      step:\n      - {send: b, to: 1, when: rank == 0}\n"
             "      - {recv: b, from: 0, when: rank == 1}\n"
             "- {send: b, to: 1, tag: 9, when: rank == 0}\n",
     2, PEAL_E_LEAD_WITHOUT_BOUND, 16, 7, "`repeat: j * k`"},
    /* in a loop, one iteration has the first condition, the next one the other */
    {RUNTIME "- {recv: b, from: [1], tag: 3}\n- repeat: 2\n  as: k\n  step:\n"
             "  - {recv: b, from: [-1], tag: 1, when: k == 0}\n"
             "  - {send: b, to: [1], tag: 1, when: k == 0}\n- {send: b, to: [-1], tag: 3}\n",
     2, PEAL_E_DEADLOCK, 13, 5, NULL},
    /* values that a run would fail at */
    {RUNTIME "- {print: {x: x}, when: step % (x - x) == 0}\n", 2, PEAL_E_DIVISION_BY_ZERO, 9, 30,
     "by zero"},
    {RUNTIME "- {set: x, value: 100 / (rank - 1)}\n", 2, PEAL_E_DIVISION_BY_ZERO, 9, 23, "100 / 0"},
    {HEAD "topology: {dims: auto}\nbuffers: {x: {type: i64}}\nrepeat: 50\n"
          "step:\n- {set: x, value: step * 4611686018427387904}\n",
     1, PEAL_E_INTEGER_OVERFLOW, 7, 24, "in step 2"},
    {HEAD "topology: {dims: auto}\nbuffers: {x: {type: i64}}\nrepeat: 50\n"
          "step:\n- {task: t, update: x, args: 7 / (step - 41)}\n",
     1, PEAL_E_DIVISION_BY_ZERO, 7, 32, "in step 41"},
    {HEAD "topology: {dims: auto}\nbuffers: {x: {type: i64}}\nrepeat: 50\n"
          "step:\n- {repeat: 3 - step, step: [{set: x, value: 1}]}\n",
     1, PEAL_E_VALUE_OUT_OF_RANGE, 7, 14, "in step 4"},
    {HEAD SWAPPED("3") "step:\n- {swap: [a, b]}\n", 2, PEAL_E_UNEQUAL_SWAP, 6, 3, "rank 1"},
    /* a task of one rank among many alike, which reads or changes a halo in odd steps */
    {FRESH_EVEN
     "- {task: t, box: b, read: {a: {star: 1}}, write: b, when: rank == 5 and step % 2 == "
     "1}\n- {task: u, box: a, update: a}\n",
     12, PEAL_E_STALE_HALO, 8, 28, "in step 1"},
    {FRESH_EVEN "- {task: u, box: a, update: a, when: rank == 5 and step % 2 == 1}\n"
                "- {task: t, box: b, read: {a: {star: 1}}, write: b}\n",
     12, PEAL_E_STALE_HALO, 9, 28, "in step 1"},
    {FRESH_EVEN
     "- {task: t, box: b, read: {a: {star: 1}}, write: b, when: (rank + 3) % 12 == step}\n"
     "- {task: u, box: a, update: a}\n",
     12, PEAL_E_STALE_HALO, 8, 28, NULL},
    /* files that ranks meet in */
    {FILES_SETUP "- {save: b, file: b.npy}\n", 2, PEAL_E_FILE_RACE, 6, 3,
     "rank 0 and rank 1 may both save `b`"},
    {FILES_SETUP "- {save: b, file: b.npy, when: rank > 1}\n", 4, PEAL_E_FILE_RACE, 6, 3,
     "rank 2 and rank 3 may"},
    {FILES_SETUP "- {save: b, file: \"b{rank}.npy\", when: rank == 0}\n"
                 "- {load: c, file: ./no//../b0.npy, when: rank == 1}\n",
     2, PEAL_E_FILE_RACE, 7, 3, "on rank 1 may come before or after `save b`"},
    {FILES_SETUP "- {save: b, file: \"b{rank}/../b.npy\"}\n", 2, PEAL_E_FILE_RACE, 6, 3,
     "may both save"},
    {FILES_SETUP "- {save: u, file: \"u{rank}/../u.npy\"}\n", 2, PEAL_E_FILE_RACE, 6, 3,
     "may both save"},
    {FILES_SETUP "- {load: c, file: b.npy}\n- {save: b, file: b.npy, when: rank == 0}\n", 2,
     PEAL_E_FILE_RACE, 6, 3, "on rank 1 may come before"},
    {FILES_SETUP
     "- {save: b, file: b.npy, when: rank == 0}\n- {save: c, file: b.npy, when: rank == 1}\n",
     2, PEAL_E_FILE_RACE, 7, 3, "`save c`"},
    {FILES_SETUP "- {save: b, file: b.npy, when: rank == 0}\nfinish:\n- {save: u, file: b.npy}\n",
     2, PEAL_E_FILE_RACE, 8, 3, "`save u`"},
    {FILES_SETUP "- {save: u, file: u.npy}\n- {load: far, file: u.npy}\n", 2, PEAL_E_FILE_RACE, 7,
     3, "`load far`"},
    {FILES_SETUP "- {save: u, file: u.npy}\n- {load: v, file: \"u{rank}.npy\"}\n"
                 "- {load: v, file: \"u.npy\"}\n- {load: far, file: \"u.npy\"}\n",
     2, PEAL_E_FILE_RACE, 9, 3, "`load far`"},
    {FILES "step:\n- {load: far, file: u.npy}\n- {save: u, file: u.npy}\n", 2, PEAL_E_FILE_RACE, 6,
     3, NULL},
    {FILES "step:\n- {save: u, file: \"u-{step}.npy\"}\n- {load: far, file: u-10.npy}\n", 2,
     PEAL_E_FILE_RACE, 7, 3, NULL},
    {FILES "step:\n- {save: b, file: \"b{step}{rank}.npy\"}\n", 2, PEAL_E_FILE_RACE, 6, 3,
     "both save"},
    {FILES "step:\n- {save: b, file: \"b{rank}-{step}.npy\"}\n- {load: c, file: "
           "\"b{step}-{rank}.npy\"}\n",
     2, PEAL_E_FILE_RACE, 7, 3, NULL},
};
const int graph_case_count = sizeof(graph_cases) / sizeof(graph_cases[0]);

const valid_case valid_cases[] = {
    {"a periodic axis of one rank, the halo as wide as the part",
     HEAD "topology: {dims: 1, periodic: true}\nfields: {u: {size: 3, halo: 3}, v: {like: u}}\n"
          "step:\n- {exchange: u}\n- {task: t, box: u, read: {u: {star: 3}}, write: v}\n",
     1},
    {"a periodic axis of two ranks, left and right apart",
     GRID
     "{send: {u: {border: [1, 0]}}, to: [1, 0]}\n- {send: {u: {border: [-1, 0]}}, to: [-1, 0]}\n"
     "- {recv: {u: {halo: [1, 0]}}, from: [1, 0]}\n"
     "- {recv: {u: {halo: [-1, 0]}}, from: [-1, 0]}\n",
     2},
    {"chains of messages that cross, but never in the same step",
     HEAD "topology: {dims: auto}\nbuffers: {a: {}, b: {}}\nrepeat: 4\nstep:\n"
          "- {recv: b, from: [1], tag: 1, when: step % 2 == 0}\n"
          "- {recv: b, from: [-1], tag: 2, when: (3 * step - 1) % 2 == 0}\n"
          "- {send: a, to: [1], tag: 2, when: (3 * step - 1) % 2 == 0}\n"
          "- {send: a, to: [-1], tag: 1, when: step % 2 == 0}\n",
     3},
    {"ranges of fewer axes than the field has: the others are whole, and cut into tiles",
     HEAD "topology: {dims: [auto, 1, 1]}\nfields: {u: {size: [14, 12, 8]}}\n"

          "step:\n- {task: t, box: {u: [[0, 14]]}, write: u}\n"
          "- {task: r, box: {u: [[0, 2], [1, 12]]}, tile: 1, update: u}\n",
     2},
    {"periodic in both axes, two ranks on one of them",
     HEAD "topology: {dims: [2, 1], periodic: true}\n"
          "fields: {u: {size: [5, 2], halo: 2}, v: {like: u}}\nstep:\n- {exchange: u}\n"
          "- {task: t, box: u, read: {u: {grow: 2}}, write: v}\n",
     2},
    {"the halo as wide as the smallest part of an uneven division",
     HEAD "topology: {dims: 3}\nfields: {u: {size: 7, halo: 2}, v: {like: u}}\nstep:\n"
          "- {exchange: u}\n- {task: t, box: u, read: {u: {star: 2}}, write: v}\n",
     3},
    {"recv above its send in a pipeline",
     GRID "{recv: {u: {halo: [-1, 0]}}, from: [-1, 0]}\n- {task: t, box: u, read: {u: {grow: [[1, "
          "0], 0]}}, write: v}\n- {send: {u: {border: [1, 0]}}, to: [1, 0]}\n",
     4},
    {"conditions on the rank alone that differ",
     GRID "{send: b, to: 1, when: rank == 0}\n- {recv: c, from: 0, when: rank == 1}\n", 3},
    {"a condition on the rank inside one on the step",
     GRID "{repeat: 1, when: step % 2 == 0, step: [{send: b, to: 1, when: rank == 0}, {recv: c, "
          "from: 0, when: rank == 1}]}\n",
     3},
    {"a message to oneself", GRID "{send: b, to: rank}\n- {recv: c, from: rank}\n", 2},
    {"a send nobody is there for", GRID "{send: b, to: [1, 0]}\n- {recv: c, from: [-1, 0]}\n", 1},
    {"align, stagger and coarsen",
     HEAD "topology: {dims: [2, 2]}\nfields: {u: {size: [10, 8], halo: 1, align: 2}, c: {like: u, "
          "coarsen: 2}, e: {like: u, stagger: [1, 0]}}\nstep:\n- {exchange: [u, c, e]}\n"
          "- {task: t, box: c, read: [{u: {star: 1}}, {c: {star: 1}}], write: e}\n",
     4},
    {"more ranks along an axis than it has tiles",
     HEAD "topology: {dims: [1, 4]}\nfields: {u: {size: [4, 4]}}\nstep:\n- {task: t, box: u, "
          "tile: whole, update: u}\n",
     4},
    {"a circle through three ranks that would take two rounds of the loop",
     RUNTIME "- {recv: c, from: 2, when: rank == 0}\n- repeat: 1\n  step:\n"
             "  - {send: b, to: [1], tag: 1}\n  - {recv: b, from: [-1], tag: 1}\n"
             "- {send: b, to: 0, when: rank == 2}\n",
     3},
    {"an empty box, an empty buffer",
     GRID "{task: t, box: {u: [[3, 3], [0, 8]]}, write: u}\n- {task: e, box: [[0, 0]], write: {b: "
          "tile}}\n",
     3},
    {"lists and offsets",
     LISTS "{send: b, to: two, offsets: 3}\n- {recv: c, from: two, offsets: 3}\n", 2},
    {"counts at run time of boxes and of messages",
     LISTS "{task: t, box: {count: n, max: 6}, write: {b: tile}}\n"
           "- {send: b, to: two, offsets: 3, count: m}\n"
           "- {recv: c, from: two, offsets: 3, count: m}\n",
     2},
    {"a row of one rank", LISTS "{allreduce: {b: sum}, along: x}\n", 1},
    {"buffers of counts that mean the same", HEAD SWAPPED("a.count") "step:\n- {swap: [a, b]}\n",
     3},
    {"counts that are equal on so many ranks", HEAD SWAPPED("3") "step:\n- {swap: [a, b]}\n", 1},
    {"one condition, written in several ways",
     RUNTIME SEND("step % 2 == 0") RECV("step%4 == 0 or 2 == (step % 4)") SEND_TAGGED("x < 3")
         RECV_TAGGED("not (x > 2)"),
     2},
    {"what a condition names is written behind both",
     RUNTIME SEND("x < 3") RECV("x < 3") "- {set: x, value: x + 7}\n", 3},
    {"swaps bring the value back",
     RUNTIME SEND("x < 3") "- {swap: [x, y]}\n- {swap: [y, x]}\n" RECV("x < 3"), 2},
    {"a swap takes the value along", RUNTIME SEND("x < 3") "- {swap: [x, y]}\n" RECV("y < 3"), 2},
    {"two swaps under one condition",
     RUNTIME SEND("x < 3") "- {swap: [x, y], when: step % 2 == 0}\n"
                           "- {swap: [x, y], when: step%2 == 0}\n" RECV("x < 3"),
     2},
    {"a copy of the value",
     RUNTIME "- {set: y, value: x}\n" SEND("x < 3") "- {set: x, value: 9}\n" RECV("y < 3"), 2},
    {"a write in other steps",
     RUNTIME SEND("x < 3 and step % 2 == 0") "- {set: x, value: 9, when: step % 2 == 1}\n" RECV(
         "x < 3 and step % 2 == 0"),
     2},
    {"remainders that never meet", RUNTIME CROSS("step % 2000 == 3", "step % 3000 == 4"), 2},
    {"comparisons that never meet", RUNTIME CROSS("step < 10", "step >= 10"), 2},
    {"run-time values that never meet", RUNTIME CROSS("x < 3", "x >= 3"), 2},
    {"counters that never meet", NESTED("(k + step) % 2 == 0", "(k - step) % 2 == 1"), 2},
    {"the loop is too short", NESTED("k + step >= 12", "step < 7"), 2},
    /* conditions that name the rank and counters */
    {"two ranks in every other step",
     GRID "{send: b, to: 1, when: rank == 0 and step % 2 == 0}\n"
          "- {recv: c, from: 0, when: step % 2 == 0 and rank == 1}\n",
     3},
    {"ranks that take turns",
     RUNTIME "- {send: b, to: [1], when: step % ranks == rank}\n"
             "- {recv: c, from: [-1], when: (step + 1) % ranks == rank}\n",
     5},
    {"a peer that is named where the condition never holds",
     GRID "{send: b, to: 1 - rank, when: step % 2 == rank}\n"
          "- {recv: c, from: 1 - rank, when: step % 2 == 1 - rank}\n",
     4},
    {"an exchange and reductions under what is the same on all ranks",
     GRID "{exchange: u, when: rank < ranks and step % 3 == 1}\n"
          "- {allreduce: {s: sum}, when: step % (rank - rank + 2) == 0}\n"
          "- {task: t, box: u, read: {u: {star: 1}}, write: v, when: step % 3 == 1}\n",
     3},
    {"rows of ranks that reduce in other steps",
     HEAD "topology: {dims: [2, 2]}\nbuffers: {s: {}}\n"
          "step:\n- {allreduce: {s: sum}, along: x, when: step % 2 == ry}\n",
     4},
    {"a receive above its send, in another step than that of the next rank",
     HEAD "topology: {dims: auto, periodic: true}\nbuffers: {b: {}, c: {}}\nrepeat: 6\n"
          "step:\n- {recv: c, from: [-1], when: step % 2 == 0 and rx % 2 == 1}\n"
          "- {recv: c, from: [-1], when: step % 2 == 1 and rx % 2 == 0, tag: 1}\n"
          "- {send: b, to: [1], when: step % 2 == 0 and rx % 2 == 0}\n"
          "- {send: b, to: [1], when: step % 2 == 1 and rx % 2 == 1, tag: 1}\n",
     4},
    {"a circle of which each step lacks one rank",
     HEAD "topology: {dims: auto, periodic: true}\nbuffers: {b: {}, c: {}}\n"
          "step:\n- {recv: c, from: [-1], when: step % ranks != rank}\n"
          "- {send: b, to: [1], when: step % ranks != (rank + 1) % ranks}\n",
     4},
    {"a hundred conditions that each exclude the others",
     HEAD "topology: {dims: auto, periodic: true}\nbuffers: {b: {}, c: {}}\n"
          "step:\n- {recv: c, from: [-1], when: (step + 1) % ranks == rank}\n"
          "- {send: b, to: [1], when: step % ranks == rank}\n",
     100},
    {"a condition on both ends, for ever and in no step that there is",
     HEAD "topology: {dims: auto}\nbuffers: {b: {}, c: {}}\nrepeat: 3\n"
          "step:\n- {send: b, to: [1], when: step < 10}\n- {recv: c, from: [-1]}\n",
     3},
    {"the same direction in setup, in the step and in a loop",
     HEAD "topology: {dims: auto}\nbuffers: {a: {}, b: {}}\n"
          "setup:\n- {send: a, to: [1]}\n- {recv: b, from: [-1]}\n"
          "step:\n- {send: a, to: [1]}\n- {recv: b, from: [-1]}\n"
          "- {repeat: 2, step: [{send: a, to: [1]}, {recv: b, from: [-1]}]}\n",
     3},
    {"divisors that are left out",
     HEAD "params: {report: 0}\ntopology: {dims: auto}\nbuffers: {x: {type: i64}}\nrepeat: 50\n"
          "step:\n- {print: {x: x}, when: report != 0 and step % report == 0}\n"
          "- {set: x, value: 100 / (step - 3), when: step != 3}\n"
          "- {set: x, value: step * 4611686018427387904, when: step < 2}\n",
     1},
    {"ranks that compute in turns",
     FRESH_EVEN
     "- {task: t, box: b, read: {a: {star: 1}}, write: b, when: rank % 2 == 0 and step % 2 "
     "!= 1}\n- {task: s, box: b, read: {a: {star: 1}}, write: b, when: rank == 2 * step and "
     "step % 2 == 0}\n- {task: u, box: a, update: a, when: step % 2 == 1}\n",
     12},
    {"what setup loads is there before the steps save",
     FILES_SETUP "- {load: c, file: b.npy}\n- {load: far, file: u.npy}\nstep:\n"
                 "- {save: b, file: b.npy, when: rank == 0}\n- {save: u, file: u.npy}\n",
     3},
    {"a field that is saved and loaded by those that have its points",
     FILES_SETUP
     "- {load: far, file: u.npy}\n- {load: b, file: u.npy}\nstep:\n- {save: u, file: u.npy}\n"
     "- {load: v, file: u.npy}\n- {save: far, file: far.npy}\n- {save: v, file: u.npy}\n"
     "- {load: far, file: \"far.npy\"}\n",
     3},
    {"files of one rank alone",
     FILES_SETUP "- {save: b, file: b.npy, when: not (rank != 1)}\n"
                 "- {load: c, file: b.npy, when: rank > 0 and rank < 2}\n"
                 "- {save: c, file: b.npy, when: rank == 1 and b > 0}\nstep:\n"
                 "- {save: b, file: \"b{rank}.npy\"}\n- {save: b, file: \"b{step}-{rank}.npy\"}\n"
                 "- {load: c, file: \"b{rank}.npy\"}\n",
     3},
    {"names that are never equal",
     FILES_SETUP "- {save: u, file: \"u{{rank}.npy\"}\n- {load: far, file: \"u{rank}.npy\"}\n"
                 "- {load: b, file: u.npy}\nstep:\n- {save: v, file: \"u-{step}.npy\"}\n"
                 "- {load: far, file: \"u-x.npy\"}\n- {load: c, file: \"u-1{step}\"}\n",
     2},
    {"one rank",
     FILES_SETUP "- {save: b, file: b.npy}\n- {save: u, file: b.npy}\n- {load: c, file: b.npy}\n",
     1},
};
const int valid_case_count = sizeof(valid_cases) / sizeof(valid_cases[0]);
