/* What calls of the user's kernel pass: constants for whole tiles (loops.h), and pointers and
 * strides with which offsets are small.
 *
 * In whole tiles the low bits of addresses are masked off, so the compiler sees that two columns
 * are a pair; launch.aligned says that the mask changes nothing. */
#ifndef PEAL_DEVICE_WHOLE_H
#define PEAL_DEVICE_WHOLE_H

/* The box of views that are not moved: it does not matter where pairs begin. */
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

/* Whether the tile is a whole one of the kind whose pairs begin where `odd` says. */
template <int kind, int odd, class box = peal_any_box_>
static __device__ __forceinline__ bool peal_is_whole_(const peal_launch &launch,
                                                      const peal_tile &tile)
{
    if (box::extent(0) < peal_whole_extent_(kind, 0) ||
        box::extent(1) < peal_whole_extent_(kind, 1) ||
        box::extent(2) < peal_whole_extent_(kind, 2))
        return false;
    if (box::aligned(launch) != (odd ? PEAL_ALIGNED_ODD : PEAL_ALIGNED))
        return false;
    return tile.hi[0] - tile.lo[0] == peal_whole_extent_(kind, 0) &&
           tile.hi[1] - tile.lo[1] == peal_whole_extent_(kind, 1) &&
           tile.hi[2] - tile.lo[2] == peal_whole_extent_(kind, 2);
}

/* The same tile with constant extents, and this thread's first point in it. */
template <int kind, int odd>
static __device__ __forceinline__ peal_tile peal_whole_of_(const peal_tile &tile)
{
    const int across = kind == PEAL_WHOLE_2   ? PEAL_WHOLE_ACROSS_2_
                       : kind == PEAL_WHOLE_3 ? PEAL_WHOLE_ACROSS_3_
                                              : PEAL_WHOLE_ACROSS_FLAT_;
    const int down = kind == PEAL_WHOLE_3 ? PEAL_WHOLE_DOWN_3_ : PEAL_WHOLE_DOWN_FLAT_;
    const int thread = peal_thread_(), rest = thread >> across;
    peal_tile whole = tile;

    whole.peal_whole_ = kind;
    whole.peal_odd_ = odd;
#pragma unroll
    for (int k = 0; k < 3; k++) {
        whole.peal_lo_[k] = tile.lo[k];
        whole.hi[k] = tile.lo[k] + peal_whole_extent_(kind, k);
    }
    whole.peal_at_[0] = tile.lo[0] + peal_whole_columns_(kind) * (thread & ((1 << across) - 1));
    if (kind == PEAL_WHOLE_2) {
        whole.peal_at_[1] = tile.lo[1] + PEAL_WHOLE_ROWS_2_ * rest;
        whole.peal_at_[2] = tile.lo[2];
    } else { /* all of a thread's planes: no threads are left along z */
        static_assert(PEAL_WHOLE_ACROSS_3_ + PEAL_WHOLE_DOWN_3_ == 8, "threads");
        static_assert(PEAL_WHOLE_ACROSS_FLAT_ + PEAL_WHOLE_DOWN_FLAT_ == 8, "threads");
        whole.peal_at_[1] = tile.lo[1] + (rest & ((1 << down) - 1));
        whole.peal_at_[2] = tile.lo[2];
    }
    return whole;
}

/* Whether a thread of the tile has pairs of columns. */
static __device__ __forceinline__ bool peal_has_pairs_(const peal_tile &tile)
{
    return tile.peal_whole_ != 0 && peal_whole_columns_(tile.peal_whole_) > 1;
}

/* The strides of a view that is not moved; offsets begin at the tile. */
template <class box = peal_any_box_>
static __device__ __forceinline__ peal_strides_ peal_begun_strides_(const peal_launch &launch,
                                                                    int view, const peal_tile &tile)
{
    peal_strides_ strides = peal_strides_of_<box>(launch, view);

#pragma unroll
    for (int k = 0; k < 3; k++)
        strides.peal_at_[k] = tile.lo[k];
    strides.peal_row_ = tile.lo[0] + tile.lo[1] * strides.peal_y_;
    strides.peal_plane_ = tile.lo[2] * strides.peal_z_;
    return strides;
}

/* By how many points the view points beyond the begin of a pair. */
template <class type>
static __device__ __forceinline__ int peal_beyond_(unsigned long long view, const peal_tile &tile)
{
    return peal_has_pairs_(tile) ? (int)(view / sizeof(type) % PEAL_WHOLE_COLUMNS) : 0;
}

/* The view; in whole tiles with pairs it is moved back to the begin of a pair. */
template <class type>
static __device__ __forceinline__ type *peal_moved_(unsigned long long view, const peal_tile &tile)
{
    const unsigned long long bytes = PEAL_WHOLE_COLUMNS * sizeof(type);
    const unsigned long long at = peal_has_pairs_(tile) ? view & ~(bytes - 1) : view;

#ifdef PEAL_FUSED /* the compiler then knows that stores there change no shared memory (staged.h)  \
                   */
    return (type *)__cvta_global_to_generic(at);
#else
    return (type *)at;
#endif
}

/* Which elements are read by non-coherent loads, where a kernel has a barrier (kernel.h). These are
 * not joined to pairs, nor are the stores between them, and half of a sector by itself is slow on
 * its way to the host's memory, unless tiles begin amid a pair. (serial, 1024^2 on an H200, ms a
 * step: conjugate gradients in doubles 1.4, with all loads so 6.1; 5-point relaxation of floats
 * from x = 1 on, with a norm, 0.25, with no loads so 1.9.) */
enum { PEAL_FETCH_NONE_, PEAL_FETCH_ALL_, PEAL_FETCH_IF_ODD_ };

/* The strides of such a view. Offsets begin at the thread's first point of a whole tile, and at the
 * first point of any other tile. */
template <class type, int fetch, class box = peal_any_box_>
static __device__ __forceinline__ peal_strides_ peal_moved_strides_(const peal_launch &launch,
                                                                    int view, const peal_tile &tile)
{
    const long long mask = peal_has_pairs_(tile) ? ~(PEAL_WHOLE_COLUMNS - 1ll) : ~0ll;
    const int beyond = peal_beyond_<type>(launch.view[view], tile);
    peal_strides_ strides = peal_strides_of_<box>(launch, view);

    strides.peal_begin_ = -beyond;
    strides.peal_fetch_ =
        fetch == PEAL_FETCH_ALL_ || (fetch == PEAL_FETCH_IF_ODD_ && tile.peal_odd_);
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
