/* Deep rounds (mode fused): a block runs several steps of a chain, in which each step reads a field
 * around each point and writes another, on its own tile, and asks nobody in between (fused/deep.c).
 * It keeps two *windows* in shared memory, of the tile and as many points around it as those steps
 * read. What a step needs beside the tile is computed here once more, so each step's part is
 * narrower than the one before; the last one's is the tile, which goes to global memory. Two of
 * these rounds read and write the same fields as two steps do, since a round has an odd number of
 * them.
 *
 * A step runs the user's kernel with coordinates of the domain. Where it is periodic, a window goes
 * beyond its end; points there have the coordinates of those that they are images of. So every
 * point is computed as in a plain step, to the bit.
 *
 * The box of such a launch says, beside shaped.h's: `axes` of the field; `rows`, how many points a
 * thread has at a time; rounds of at most `deep` steps, as the launch says; the views `read` and
 * `written`; `chunks`, whether all lines of the first begin as far behind a multiple of 16 bytes;
 * low(axis) and high(axis), how far a step reads; wraps(axis), the points of the domain where a
 * window may go beyond its end, else 0. */
#ifndef PEAL_DEVICE_DEEP_H
#define PEAL_DEVICE_DEEP_H

#include "peal/staged.h"

/* Points of a window along an axis, at most. */
template <class box> static __device__ constexpr int peal_deep_most_(int axis)
{
    const int reach = box::high(axis) - box::low(axis);
    const int grown = box::extent(axis) + box::deep * reach, whole = box::length(axis, 0) + reach;

    return box::wraps(axis) == 0 && whole < grown ? whole : grown;
}

/* The smallest exponent of two that is enough for n; at most `most`. */
static __device__ constexpr int peal_deep_exponent_(int n, int most)
{
    int bits = 0;

    while (bits < most && 1 << bits < n)
        bits++;
    return bits;
}

/* [lo, hi) of all axes. */
struct peal_deep_range_ {
    int lo[3], hi[3];
};

template <class type, class box> struct peal_deep_ {
    enum : int {
        EACH = 16 / sizeof(type), /* elements of a chunk; lines of a window begin at whole ones */
        PITCH = (peal_deep_most_<box>(0) + 2 * EACH - 2) / EACH * EACH,
        LINES = peal_deep_most_<box>(1),
        CHUNKS = PITCH / EACH,
        /* A thread has `rows` neighbouring points along the last axis at a time, which are APART in
         * a window. */
        APART = box::axes == 2 ? (int)PITCH : PITCH * LINES,
        POINTS = APART * peal_deep_most_<box>(box::axes - 1),
        /* Threads along x, and what is left of them along y. */
        ACROSS = peal_deep_exponent_(peal_deep_most_<box>(0) - box::high(0) + box::low(0),
                                     box::axes == 2 ? 7 : 6),
        DOWN = PEAL_THREADS_ >> ACROSS
    };

    /* Two windows: the even steps' results are in the first one, as what a round begins with. */
    static __device__ __forceinline__ type *window(int step)
    {
        static_assert(POINTS * sizeof(type) == box::window_bytes, "as the host has laid them out");
        return (type *)box::stage(step % 2);
    }

    /* How many steps the round has. */
    static __device__ __forceinline__ int steps(const peal_launch &launch)
    {
        return launch.box[box::index].steps;
    }

    /* The task's box along an axis. */
    static __device__ __forceinline__ int first_of(const peal_launch &launch, int axis)
    {
        return launch.box[box::index].lo[axis];
    }
    static __device__ __forceinline__ int end_of(const peal_launch &launch, int axis)
    {
        return launch.box[box::index].lo[axis] + box::length(axis, 0);
    }

    /* The tile, and what so many further steps read around it. */
    static __device__ __forceinline__ peal_deep_range_ around(const peal_launch &launch,
                                                              const peal_tile &tile, int further)
    {
        peal_deep_range_ range;

#pragma unroll
        for (int k = 0; k < 3; k++) {
            range.lo[k] = tile.lo[k] + further * box::low(k);
            range.hi[k] = tile.hi[k] + further * box::high(k);
            if (box::wraps(k) != 0)
                continue;
            const int first = first_of(launch, k) + box::low(k),
                      end = end_of(launch, k) + box::high(k);
            range.lo[k] = range.lo[k] > first ? range.lo[k] : first;
            range.hi[k] = range.hi[k] < end ? range.hi[k] : end;
        }
        return range;
    }

    /* What is in the task's box of a range. */
    static __device__ __forceinline__ peal_deep_range_ within(const peal_launch &launch,
                                                              const peal_deep_range_ &range)
    {
        peal_deep_range_ part = range;

#pragma unroll
        for (int k = 0; k < 3; k++) {
            if (box::wraps(k) != 0)
                continue;
            part.lo[k] = part.lo[k] > first_of(launch, k) ? part.lo[k] : first_of(launch, k);
            part.hi[k] = part.hi[k] < end_of(launch, k) ? part.hi[k] : end_of(launch, k);
        }
        return part;
    }

    static __device__ __forceinline__ int canonical(int axis, int at)
    {
        if (box::wraps(axis) == 0)
            return at;
        return at < 0 ? at + box::wraps(axis) : at < box::wraps(axis) ? at : at - box::wraps(axis);
    }

    /* By how many elements the lines of a window begin behind a chunk's begin, as they do in
     * memory. */
    static __device__ __forceinline__ int before(const peal_launch &launch,
                                                 const peal_deep_range_ &window)
    {
        if (!box::chunks)
            return 0;
        return (int)((launch.view[box::read] + sizeof(type) * window.lo[0]) % 16 / sizeof(type));
    }

    /* Where a point is in a window. */
    static __device__ __forceinline__ int place(const peal_launch &launch,
                                                const peal_deep_range_ &window, int x, int y, int z)
    {
        return before(launch, window) + x - window.lo[0] + (y - window.lo[1]) * PITCH +
               (z - window.lo[2]) * (PITCH * LINES);
    }

    /* The address of point 0 of a line of the window. */
    static __device__ __forceinline__ unsigned long long
    line_of(const peal_launch &launch, int view, const peal_deep_range_ &window, int y, int z)
    {
        return launch.view[view] +
               sizeof(type) * (canonical(1, window.lo[1] + y) * box::stride(launch, view, 0) +
                               canonical(2, window.lo[2] + z) * box::stride(launch, view, 1));
    }

    /* All threads: begin to fill the window of a round's begin. */
    static __device__ __forceinline__ void fetch(const peal_launch &launch,
                                                 const peal_deep_range_ &window)
    {
        enum : int {
            ITEMS = box::chunks ? (int)CHUNKS : (int)PITCH,
            LANES = peal_power_below_(ITEMS, PEAL_THREADS_)
        };
        const int rows = window.hi[1] - window.lo[1], lines = rows * (window.hi[2] - window.lo[2]);
        const int width = window.hi[0] - window.lo[0], begin = before(launch, window);

#pragma unroll 1
        for (int line = peal_thread_() / LANES; line < lines; line += PEAL_THREADS_ / LANES) {
            const int z = box::axes == 2 ? 0 : line / rows, y = line - z * rows;
            type *const to = peal_deep_::window(0) + (z * LINES + y) * PITCH;
            const unsigned long long from = line_of(launch, box::read, window, y, z);
#pragma unroll 1
            for (int i = peal_thread_() % LANES; i < ITEMS; i += LANES)
                if (!box::chunks) {
                    if (i < width)
                        to[i] =
                            *(const type *)(from + sizeof(type) * canonical(0, window.lo[0] + i));
                } else if (i * EACH < begin + width) {
                    peal_fetch_16_to_(to + i * EACH,
                                      (const void *)(from + sizeof(type) *
                                                                (window.lo[0] - begin + i * EACH)));
                }
        }
    }

    /* One point of the other window, from the view that is written. */
    static __device__ __forceinline__ void
    fetch_point(const peal_launch &launch, const peal_deep_range_ &window, int x, int y, int z)
    {
        const type *const line =
            (const type *)line_of(launch, box::written, window, y - window.lo[1], z - window.lo[2]);
        peal_deep_::window(1)[place(launch, window, x, y, z)] = line[canonical(0, x)];
    }

    /* All threads: fill the other window where no step writes: around the task's box. */
    static __device__ __forceinline__ void fetch_rim(const peal_launch &launch,
                                                     const peal_deep_range_ &window)
    {
        enum : int { REACH = box::high(0) - box::low(0), ENDS = REACH > 0 ? REACH : 1 };
        const peal_deep_range_ part = within(launch, window);
        const int rows = window.hi[1] - window.lo[1], lines = rows * (window.hi[2] - window.lo[2]);
        const int front = part.lo[0] - window.lo[0];

        /* The ends of all lines. */
        if (front > 0 || part.hi[0] < window.hi[0])
#pragma unroll 1
            for (int i = peal_thread_(); i < ENDS * lines; i += PEAL_THREADS_) {
                const int line = i / ENDS, end = i - line * ENDS;
                const int z = box::axes == 2 ? 0 : line / rows, y = line - z * rows;
                const int x = end < front ? window.lo[0] + end : part.hi[0] + end - front;
                if (x < window.hi[0])
                    fetch_point(launch, window, x, window.lo[1] + y, window.lo[2] + z);
            }
        /* Whole lines: a warp takes one. */
        if (part.lo[1] > window.lo[1] || part.hi[1] < window.hi[1] || part.lo[2] > window.lo[2] ||
            part.hi[2] < window.hi[2])
#pragma unroll 1
            for (int line = peal_thread_() / 32; line < lines; line += PEAL_THREADS_ / 32) {
                const int up = box::axes == 2 ? 0 : line / rows;
                const int z = window.lo[2] + up, y = window.lo[1] + line - up * rows;
                const bool has =
                    y >= part.lo[1] && y < part.hi[1] && z >= part.lo[2] && z < part.hi[2];
                for (int x = part.lo[0] + peal_thread_() % 32; !has && x < part.hi[0]; x += 32)
                    fetch_point(launch, window, x, y, z);
            }
    }

    /* What step `step`, counted from 1, writes of the tile and around it. */
    static __device__ __forceinline__ peal_deep_range_ part(const peal_launch &launch,
                                                            const peal_tile &tile, int step)
    {
        return within(launch, around(launch, tile, steps(launch) - step));
    }

    /* This thread's first point of a part along x and y, and how far its next ones are. */
    static __device__ __forceinline__ int first_x(const peal_deep_range_ &part)
    {
        return part.lo[0] + peal_thread_() % (1 << ACROSS);
    }
    static __device__ __forceinline__ int first_y(const peal_deep_range_ &part)
    {
        return part.lo[1] + (peal_thread_() >> ACROSS) * (box::axes == 2 ? (int)box::rows : 1);
    }
    static __device__ constexpr int each(int axis)
    {
        return axis == 0   ? 1 << ACROSS
               : axis == 2 ? (int)box::rows
                           : DOWN * (box::axes == 2 ? (int)box::rows : 1);
    }

    /* Whether a part has as many points along the last axis as a thread has at a time. */
    static __device__ __forceinline__ bool is_tall(const peal_deep_range_ &part)
    {
        return part.hi[box::axes - 1] - part.lo[box::axes - 1] >= box::rows;
    }

    /* Then, where a thread's points begin along an axis: the last ones of a part begin as far in
     * front as is needed, and some are computed twice, with the same value. */
    static __device__ __forceinline__ int begin(const peal_deep_range_ &part, int axis, int at)
    {
        const int most = part.hi[axis] - (axis == box::axes - 1 ? (int)box::rows : 1);
        return at < most ? at : most;
    }

    /* The point that is `row` further along the last axis, as a whole tile. */
    static __device__ __forceinline__ peal_tile point(const peal_launch &launch, int x, int y,
                                                      int z, int row)
    {
        const int from[3] = {x, y, z};
        peal_tile tile;

        tile.index = 0;
        tile.count = launch.tile_count;
        tile.peal_whole_ = PEAL_WHOLE_DEEP;
        tile.peal_odd_ = 0;
        tile.lo[3] = launch.box[box::index].lo[3];
        tile.hi[3] = launch.box[box::index].hi[3];
#pragma unroll
        for (int k = 0; k < 3; k++) {
            const int at = from[k] + (k == box::axes - 1 ? row : 0);
            tile.lo[k] = tile.peal_lo_[k] = tile.peal_at_[k] = canonical(k, at);
            tile.hi[k] = tile.peal_hi_[k] = tile.lo[k] + 1;
        }
        return tile;
    }

    /* The strides of the window that it is in, at this place. */
    static __device__ __forceinline__ peal_strides_ strides(const peal_tile &tile, int at)
    {
        peal_strides_ strides = {};

        strides.peal_y_ = PITCH;
        strides.peal_z_ = PITCH * LINES;
        strides.peal_row_ = at;
#pragma unroll
        for (int k = 0; k < 3; k++)
            strides.peal_at_[k] = tile.peal_at_[k];
        return strides;
    }

    /* Those of a thread's own result, which it keeps until it has all of a time: so its loads need
     * not wait for its stores. */
    static __device__ __forceinline__ peal_strides_ own(const peal_tile &tile)
    {
        peal_strides_ strides = {};

#pragma unroll
        for (int k = 0; k < 3; k++)
            strides.peal_at_[k] = tile.peal_at_[k];
        return strides;
    }

    /* All threads, behind a barrier: the tile's points go to memory. */
    static __device__ __forceinline__ void store(const peal_launch &launch, const peal_tile &tile,
                                                 const peal_deep_range_ &window)
    {
        enum : int { LANES = peal_power_below_(box::extent(0), PEAL_THREADS_) };
        const int rows = tile.hi[1] - tile.lo[1], lines = rows * (tile.hi[2] - tile.lo[2]);
        const int width = tile.hi[0] - tile.lo[0];
        const type *const from = peal_deep_::window(1) + /* their number is odd */
                                 place(launch, window, tile.lo[0], tile.lo[1], tile.lo[2]);
        type *const to = (type *)__cvta_global_to_generic(
            launch.view[box::written] +
            sizeof(type) * (tile.lo[0] + tile.lo[1] * box::stride(launch, box::written, 0) +
                            tile.lo[2] * box::stride(launch, box::written, 1)));

#pragma unroll 1
        for (int line = peal_thread_() / LANES; line < lines; line += PEAL_THREADS_ / LANES) {
            const int z = box::axes == 2 ? 0 : line / rows, y = line - z * rows;
            type *const row = to + y * box::stride(launch, box::written, 0) +
                              z * box::stride(launch, box::written, 1);
#pragma unroll 1
            for (int x = peal_thread_() % LANES; x < width; x += LANES)
                row[x] = from[x + y * PITCH + z * (PITCH * LINES)];
        }
    }
};

#endif
