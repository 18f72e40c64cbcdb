/* Calls of plain kernels: of whole tiles (loops.h) with constants, and with offsets that are short
 * everywhere.
 *
 * Addresses in whole tiles are told to be those of pairs by bits that they don't have, which the
 * compiler sees; that it is so is what launch.aligned says. */
#ifndef PEAL_DEVICE_WHOLE_H
#define PEAL_DEVICE_WHOLE_H

/* Of views that are not moved: pairs may be anywhere. */
struct peal_unmoved_box_ {
    static __device__ constexpr int extent(int)
    {
        return 0x7fffffff;
    }
    static __device__ __forceinline__ int aligned(const peal_launch &)
    {
        return PEAL_ALIGNED;
    }
};

/* True: the tile is a whole one of so many axes, and its pairs are where `odd` says. */
template <int axes, int odd, class box = peal_any_box_>
static __device__ __forceinline__ bool peal_is_whole_(const peal_launch &launch,
                                                      const peal_tile &tile)
{
    if (box::extent(0) < (axes == 2 ? PEAL_WHOLE_2_X : PEAL_WHOLE_3_X) ||
        box::extent(1) < (axes == 2 ? PEAL_WHOLE_2_Y : PEAL_WHOLE_3_Y) ||
        box::extent(2) < (axes == 2 ? 1 : PEAL_WHOLE_3_Z))
        return false;
    if (box::aligned(launch) != (odd ? PEAL_ALIGNED_ODD : PEAL_ALIGNED))
        return false;
    return tile.hi[0] - tile.lo[0] == (axes == 2 ? PEAL_WHOLE_2_X : PEAL_WHOLE_3_X) &&
           tile.hi[1] - tile.lo[1] == (axes == 2 ? PEAL_WHOLE_2_Y : PEAL_WHOLE_3_Y) &&
           tile.hi[2] - tile.lo[2] == (axes == 2 ? 1 : PEAL_WHOLE_3_Z);
}

/* The same tile with constant extents, and this thread's place in it. */
template <int axes, int odd>
static __device__ __forceinline__ peal_tile peal_whole_of_(const peal_tile &tile)
{
    const int thread = peal_thread_(), rest = thread >> PEAL_WHOLE_ACROSS_3_;
    peal_tile whole = tile;

    whole.peal_whole_ = axes;
    whole.peal_odd_ = odd;
#pragma unroll
    for (int k = 0; k < 3; k++)
        whole.peal_lo_[k] = tile.lo[k];
    if (axes == 2) {
        whole.hi[0] = tile.lo[0] + PEAL_WHOLE_2_X;
        whole.hi[1] = tile.lo[1] + PEAL_WHOLE_2_Y;
        whole.hi[2] = tile.lo[2] + 1;
        whole.peal_at_[0] =
            tile.lo[0] + PEAL_WHOLE_COLUMNS * (thread & ((1 << PEAL_WHOLE_ACROSS_2_) - 1));
        whole.peal_at_[1] = tile.lo[1] + PEAL_WHOLE_ROWS_2_ * (thread >> PEAL_WHOLE_ACROSS_2_);
        whole.peal_at_[2] = tile.lo[2];
    } else {
        whole.hi[0] = tile.lo[0] + PEAL_WHOLE_3_X;
        whole.hi[1] = tile.lo[1] + PEAL_WHOLE_3_Y;
        whole.hi[2] = tile.lo[2] + PEAL_WHOLE_3_Z;
        whole.peal_at_[0] = tile.lo[0] + (thread & ((1 << PEAL_WHOLE_ACROSS_3_) - 1));
        whole.peal_at_[1] = tile.lo[1] + (rest & ((1 << PEAL_WHOLE_DOWN_3_) - 1));
        whole.peal_at_[2] = tile.lo[2] + PEAL_WHOLE_ROWS_3_ * (rest >> PEAL_WHOLE_DOWN_3_);
    }
    return whole;
}

/* How many points beyond the begin of a pair the view points to. */
template <class type>
static __device__ __forceinline__ int peal_beyond_(unsigned long long view, const peal_tile &tile)
{
    return tile.peal_whole_ == 2 ? (int)(view / sizeof(type) % PEAL_WHOLE_COLUMNS) : 0;
}

/* The view, in whole tiles moved to the begin of a pair. */
template <class type>
static __device__ __forceinline__ type *peal_moved_(unsigned long long view, const peal_tile &tile)
{
    const unsigned long long bytes = PEAL_WHOLE_COLUMNS * sizeof(type);
    const unsigned long long at = tile.peal_whole_ == 2 ? view & ~(bytes - 1) : view;

#ifdef PEAL_FUSED /* else stores hold up loads from shared memory (staged.h), which they may meet  \
                   */
    return (type *)__cvta_global_to_generic(at);
#else
    return (type *)at;
#endif
}

/* Of such a view: offsets begin at the thread's first point of a whole tile, or at the first one of
 * any other. fetch: see kernel.h. */
template <class type, bool fetch, class box = peal_any_box_>
static __device__ __forceinline__ peal_strides_ peal_moved_strides_(const peal_launch &launch,
                                                                    int view, const peal_tile &tile)
{
    const long long mask = tile.peal_whole_ == 2 ? ~(PEAL_WHOLE_COLUMNS - 1ll) : ~0ll;
    const int beyond = peal_beyond_<type>(launch.view[view], tile);
    peal_strides_ strides = peal_strides_of_<box>(launch, view);

    strides.peal_begin_ = -beyond;
    strides.peal_fetch_ = fetch;
#pragma unroll
    for (int k = 0; k < 3; k++)
        strides.peal_at_[k] = tile.peal_whole_ ? tile.peal_at_[k] : tile.lo[k];
    strides.peal_row_ =
        ((beyond - tile.peal_odd_ + strides.peal_at_[0] + strides.peal_at_[1] * strides.peal_y_) &
         mask) +
        tile.peal_odd_;
    strides.peal_plane_ = (strides.peal_at_[2] * strides.peal_z_) & mask;
    strides.peal_y_ &= mask;
    strides.peal_z_ &= mask;
    return strides;
}

#endif
