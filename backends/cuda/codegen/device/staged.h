/* Staging (mode fused): what a tile reads of a field is copied to shared memory, by loads that are
 * all under way at a time, while the tile before is run. Loads of the kernel's body would come one
 * after the other, since the compiler does not move them across its stores; and they would go
 * through the SM's cache, which the waits of other blocks empty. */
#ifndef PEAL_DEVICE_STAGED_H
#define PEAL_DEVICE_STAGED_H

#include "peal/whole.h"

/* The largest power of two that is at most n, and at most `most`. */
static __device__ constexpr int peal_power_below_(int n, int most)
{
    return n < 2 || most < 2 ? 1 : 2 * peal_power_below_(n / 2, most / 2);
}

/* View `view` of tiles of a box, from `low` points below the tile to `high` above it along each
 * axis. If the box does not stage it, it is at the launch's address. */
template <class type, class box, int view, int low_x, int high_x, int low_y, int high_y, int low_z,
          int high_z>
struct peal_stage_view_ {
    enum : int {
        EACH = 16 / sizeof(type), /* elements of a chunk */
        /* Rows begin at whole chunks of memory. */
        PITCH = (box::extent(0) + high_x - low_x + 2 * EACH - 2) / EACH * EACH,
        ROWS = box::extent(1) + high_y - low_y,
        PLANES = box::extent(2) + high_z - low_z,
        BYTES = PITCH * ROWS * PLANES * (int)sizeof(type)
    };

    /* The address of the tile's first point in the view, and how many bytes of its chunk come
     * before that. */
    static __device__ __forceinline__ unsigned long long first(const peal_launch &launch,
                                                               const peal_tile &tile)
    {
        return launch.view[view] +
               sizeof(type) *
                   (tile.lo[0] + low_x + (tile.lo[1] + low_y) * box::stride(launch, view, 0) +
                    (tile.lo[2] + low_z) * box::stride(launch, view, 1));
    }
    static __device__ __forceinline__ int before(const peal_launch &launch, const peal_tile &tile)
    {
        return (int)((launch.view[view] + sizeof(type) * (tile.lo[0] + low_x)) % 16);
    }

    /* All threads: copies a tile that has the box's extents. Threads first copy the neighbouring
     * chunks of each line from the tile's begin on, in number a power of two; then what is left of
     * the lines. */
    static __device__ __forceinline__ void
    fetch_whole(const peal_launch &launch, const unsigned char *from, int bytes, unsigned char *to)
    {
        enum : int {
            CHUNKS = PITCH / EACH,
            LANES = peal_power_below_(CHUNKS, PEAL_THREADS_),
            LEFT = CHUNKS - LANES,
            IN_FRONT = low_x < 0 ? (EACH - 1 - low_x) / EACH : 0,
            FRONT = IN_FRONT < LEFT ? IN_FRONT : LEFT, /* of what is left */
            LINES = ROWS * PLANES,
            STEP = PEAL_THREADS_ / LANES,
            /* A line has at least so many bytes. */
            LEAST = (box::extent(0) + high_x - low_x) * (int)sizeof(type)
        };
        const unsigned thread = peal_thread_();
        const int chunk = FRONT + thread % LANES, first = thread / LANES;

#pragma unroll
        for (int i = 0; i < LINES; i += STEP)
            if ((i + STEP <= LINES || i + first < LINES) &&
                ((FRONT + LANES) * 16 <= LEAST || chunk * 16 < bytes))
                fetch_chunk(launch, from, i + first, chunk, to);
#pragma unroll
        for (int i = 0; i < LEFT * LINES; i += PEAL_THREADS_) {
            const unsigned at = i + thread, each = LEFT > 0 ? LEFT : 1;
            const int line = at / each, left = at % each,
                      other = left < FRONT ? left : left + LANES;
            if ((i + PEAL_THREADS_ <= LEFT * LINES || line < LINES) && other * 16 < bytes)
                fetch_chunk(launch, from, line, other, to);
        }
    }

    static __device__ __forceinline__ void fetch_chunk(const peal_launch &launch,
                                                       const unsigned char *from, int line,
                                                       int chunk, unsigned char *to)
    {
        const int plane = PLANES == 1 ? 0 : line / ROWS, row = line - plane * ROWS;

        peal_fetch_16_to_(to + (line * (PITCH / EACH) + chunk) * 16,
                          from + chunk * 16 +
                              (long long)sizeof(type) * (row * box::stride(launch, view, 0) +
                                                         plane * box::stride(launch, view, 1)));
    }

    /* All threads: copies the tile. Rows and planes are whole chunks apart. */
    static __device__ __forceinline__ void fetch(const peal_launch &launch, const peal_tile &tile,
                                                 unsigned char *to)
    {
        enum : int { CHUNKS = PITCH / EACH };
        const unsigned char *from =
            (const unsigned char *)(first(launch, tile) - before(launch, tile));
        const int bytes =
            (tile.hi[0] - tile.lo[0] + high_x - low_x) * (int)sizeof(type) + before(launch, tile);
        const int rows = tile.hi[1] - tile.lo[1] + high_y - low_y;
        const int planes = tile.hi[2] - tile.lo[2] + high_z - low_z;

        if (!box::staged)
            return;
        if (tile.hi[0] - tile.lo[0] == box::extent(0) && rows == ROWS && planes == PLANES) {
            fetch_whole(launch, from, bytes, to);
            return;
        }
#pragma unroll 1
        for (int i = peal_thread_(); i < CHUNKS * ROWS * PLANES; i += PEAL_THREADS_) {
            const int line = i / CHUNKS, chunk = i - line * CHUNKS;
            const int plane = PLANES == 1 ? 0 : line / ROWS, row = line - plane * ROWS;
            if (chunk * 16 < bytes && row < rows && plane < planes)
                fetch_chunk(launch, from, line, chunk, to);
        }
    }

    static __device__ __forceinline__ const type *
    pointer(const peal_launch &launch, const peal_tile &tile, const unsigned char *stage)
    {
        return box::staged ? (const type *)stage : peal_moved_<const type>(launch.view[view], tile);
    }

    /* As peal_moved_strides_. */
    static __device__ __forceinline__ peal_strides_ strides(const peal_launch &launch,
                                                            const peal_tile &tile)
    {
        if (!box::staged)
            return peal_moved_strides_<type, PEAL_FETCH_NONE_, box>(launch, view, tile);
        const int mask = peal_has_pairs_(tile) ? ~(PEAL_WHOLE_COLUMNS - 1) : ~0;
        peal_strides_ strides = {};
        strides.peal_y_ = PITCH;
        strides.peal_z_ = PITCH * ROWS;
#pragma unroll
        for (int k = 0; k < 3; k++)
            strides.peal_at_[k] = tile.peal_whole_ ? tile.peal_at_[k] : tile.lo[k];
        const int x =
            strides.peal_at_[0] - tile.lo[0] - low_x + before(launch, tile) / (int)sizeof(type);
        strides.peal_row_ = ((x - tile.peal_odd_) & mask) + tile.peal_odd_ +
                            (strides.peal_at_[1] - tile.lo[1] - low_y) * PITCH;
        strides.peal_plane_ = (strides.peal_at_[2] - tile.lo[2] - low_z) * (PITCH * ROWS);
        return strides;
    }
};

#endif
