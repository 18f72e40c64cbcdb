/* What a launch does around its tiles: waits, counts its blocks, copies, stores flags.
 *
 * Order of memory. A flag is stored by st.release.sys after all that its message consists of; a
 * waiting lane loads it relaxed until it is there, then passes fence.acq_rel.sys: the pair is this
 * fence and that release. Block barriers carry both to the other threads. */
#ifndef PEAL_DEVICE_RUN_H
#define PEAL_DEVICE_RUN_H

/* Set once a wait was given up: from then on this module stores no flag. The host may set it. */
extern "C" __device__ unsigned peal_given_up;
__device__ unsigned peal_given_up;

enum {
    PEAL_EAGER_POLLS_ = 512,   /* before a wait begins to sleep */
    PEAL_POLLS_A_LOOK_ = 1024, /* between looks at the clock and at the host's abort word */
    PEAL_LONGEST_SLEEP_ = 512  /* ns */
};

static __device__ __forceinline__ unsigned long long peal_load_(unsigned long long word)
{
    unsigned long long value;
    asm volatile("ld.relaxed.sys.global.u64 %0, [%1];" : "=l"(value) : "l"(word) : "memory");
    return value;
}

static __device__ __forceinline__ void peal_store_(unsigned long long word,
                                                   unsigned long long value)
{
    asm volatile("st.release.sys.global.u64 [%0], %1;" ::"l"(word), "l"(value) : "memory");
}

static __device__ __forceinline__ void peal_fence_()
{
    asm volatile("fence.acq_rel.sys;" ::: "memory");
}

static __device__ __forceinline__ unsigned long long peal_clock_()
{
    unsigned long long now;
    asm volatile("mov.u64 %0, %%globaltimer;" : "=l"(now));
    return now;
}

static __device__ __forceinline__ int peal_block_threads_()
{
    return blockDim.x * blockDim.y * blockDim.z;
}

/* One thread of the rank fills the record; `failed` says that it is complete. */
static __device__ __noinline__ void peal_record_(const peal_launch *launch, int kind, int wait,
                                                 unsigned long long expected,
                                                 unsigned long long seen)
{
    peal_device_control *control = (peal_device_control *)launch->control;

    atomicExch(&peal_given_up, 1u);
    if (!control || atomicCAS(&control->claimed, 0u, 1u) != 0)
        return;
    control->kind = kind;
    control->op = wait >= 0 ? launch->wait[wait].op : launch->op;
    control->wait = wait;
    control->step = launch->counter[0] + (launch->step ? *(volatile long long *)launch->step : 0);
    control->expected = expected;
    control->seen = seen;
    __threadfence_system(); /* pairs with the host's acquire load of `failed` */
    *(volatile unsigned *)&control->failed = 1;
}

/* Holds this thread until the word is there. False: given up. */
static __device__ __noinline__ bool peal_wait_one_(const peal_launch *launch, int index)
{
    unsigned long long word = launch->wait[index].word, value = launch->wait[index].value;
    unsigned long long begin = 0;
    unsigned sleep = 16;

    for (unsigned polls = 1;; polls++) {
        unsigned long long seen = peal_load_(word);
        if ((long long)(seen - value) >= 0)
            return true;
        if (polls > PEAL_EAGER_POLLS_) {
            __nanosleep(sleep);
            sleep = sleep < PEAL_LONGEST_SLEEP_ ? sleep * 2 : PEAL_LONGEST_SLEEP_;
        }
        if (polls % PEAL_POLLS_A_LOOK_ != 0)
            continue;
        /* `abort` and `failed`, one load over the bus */
        if ((launch->control && peal_load_(launch->control) != 0) ||
            *(volatile unsigned *)&peal_given_up) {
            atomicExch(&peal_given_up, 1u);
            return false;
        }
        unsigned long long now = peal_clock_();
        begin = begin ? begin : now;
        if (launch->budget && now - begin > launch->budget) {
            peal_record_(launch, 1, index, value, seen);
            return false;
        }
    }
}

/* All threads of the block: waits for the words in the mask, a lane of the first warp for each.
 * False: given up, the block must end without counting itself. */
static __device__ __noinline__ bool peal_wait_(const peal_launch *launch, unsigned mask)
{
    int thread = peal_thread_(), threads = peal_block_threads_();
    int lanes = threads < 32 ? threads : 32;
    int given_up = 0;

    if (thread < lanes) {
        for (int i = thread; i < launch->wait_count; i += lanes)
            if ((mask >> i & 1) && !peal_wait_one_(launch, i))
                given_up = 1;
        /* Pairs with the release store of whoever wrote the words. */
        peal_fence_();
    }
    return __syncthreads_or(given_up) == 0;
}

/* Copies. */

/* A place in a piece: unit e of run (i0, i1, i2). */
struct peal_place_ {
    unsigned e, i[3];
};

static __device__ __forceinline__ unsigned peal_split_(unsigned long long *rest, unsigned by)
{
    unsigned long long value = *rest;
    if (value >> 32) {
        *rest = value / by;
        return (unsigned)(value % by);
    }
    unsigned quotient = (unsigned)value / by;
    *rest = quotient;
    return (unsigned)value - quotient * by;
}

static __device__ __forceinline__ peal_place_ peal_place_of_(const peal_device_piece &piece,
                                                             unsigned long long unit)
{
    peal_place_ place;
    place.e = peal_split_(&unit, piece.run);
    place.i[0] = peal_split_(&unit, piece.count[0]);
    place.i[1] = peal_split_(&unit, piece.count[1]);
    place.i[2] = (unsigned)unit;
    return place;
}

/* Adds a step that was split the same way: at most one carry an axis, no division. */
static __device__ __forceinline__ void peal_advance_(const peal_device_piece &piece,
                                                     peal_place_ *place, const peal_place_ &step)
{
    unsigned carry;
    place->e += step.e;
    carry = place->e >= piece.run;
    place->e -= carry ? piece.run : 0;
    place->i[0] += step.i[0] + carry;
    carry = place->i[0] >= piece.count[0];
    place->i[0] -= carry ? piece.count[0] : 0;
    place->i[1] += step.i[1] + carry;
    carry = place->i[1] >= piece.count[1];
    place->i[1] -= carry ? piece.count[1] : 0;
    place->i[2] += step.i[2] + carry;
}

static __device__ __forceinline__ long long peal_offset_(const peal_place_ &place,
                                                         const long long *step, int unit)
{
    return (long long)place.e * unit + place.i[0] * step[0] + place.i[1] * step[1] +
           place.i[2] * step[2];
}

/* Units first, first + 32, ... below end of a piece: four loads are under way at a time. */
template <class type>
static __device__ __forceinline__ void
peal_copy_units_(const unsigned long long *base, const peal_device_piece &piece,
                 unsigned long long first, unsigned long long end)
{
    enum { AT_ONCE = 4 };
    const char *from = (const char *)base[piece.source] + piece.source_offset;
    char *to = (char *)base[piece.target] + piece.target_offset;
    if (first >= end)
        return;
    peal_place_ place = peal_place_of_(piece, first), step = peal_place_of_(piece, 32);

    while (first < end) {
        type value[AT_ONCE];
        long long target[AT_ONCE];
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++) {
            if (first + 32 * k < end) {
                value[k] =
                    *(const type *)(from + peal_offset_(place, piece.source_step, sizeof(type)));
                target[k] = peal_offset_(place, piece.target_step, sizeof(type));
            }
            peal_advance_(piece, &place, step);
        }
#pragma unroll
        for (int k = 0; k < AT_ONCE; k++)
            if (first + 32 * k < end)
                *(type *)(to + target[k]) = value[k];
        first += 32 * AT_ONCE;
    }
}

static __device__ __forceinline__ void peal_copy_piece_(const unsigned long long *base,
                                                        const peal_device_piece &piece,
                                                        unsigned long long first,
                                                        unsigned long long end)
{
    switch (piece.unit) {
    case 16:
        peal_copy_units_<uint4>(base, piece, first, end);
        break;
    case 8:
        peal_copy_units_<unsigned long long>(base, piece, first, end);
        break;
    case 4:
        peal_copy_units_<unsigned>(base, piece, first, end);
        break;
    case 2:
        peal_copy_units_<unsigned short>(base, piece, first, end);
        break;
    default:
        peal_copy_units_<unsigned char>(base, piece, first, end);
    }
}

/* Units [from, to) of a list. */
static __device__ __forceinline__ void peal_copy_list_(const peal_launch *launch,
                                                       const peal_launch_list &list, long long from,
                                                       long long to, int lane)
{
    const peal_device_piece *piece = (const peal_device_piece *)list.piece;
    const unsigned long long *base = launch->base + list.base;
    int low = 0, high = list.count - 1;

    while (low < high) { /* the last piece that begins at or before `from` */
        int middle = (low + high + 1) / 2;
        if (piece[middle].begin <= from)
            low = middle;
        else
            high = middle - 1;
    }
    for (; from < to; low++) {
        long long begin = piece[low].begin, end = begin + piece[low].units;
        end = end < to ? end : to;
        peal_copy_piece_(base, piece[low], from - begin + lane, end - begin);
        from = end;
    }
}

/* Share `warp` of `warps` of all units: contiguous, so that small pieces are copied side by side.
 */
static __device__ __noinline__ void peal_copy_share_(const peal_launch *launch, unsigned warp,
                                                     unsigned warps, int lane)
{
    long long share = ((launch->units + warps - 1) / warps + 31) / 32 * 32;
    long long from = share * warp, to = from + share;

    to = to < launch->units ? to : launch->units;
    for (int l = 0; l < launch->list_count && from < to; l++) {
        const peal_launch_list &list = launch->list[l];
        long long end = list.begin + list.units;
        if (end <= from)
            continue;
        end = end < to ? end : to;
        peal_copy_list_(launch, list, from - list.begin, end - list.begin, lane);
        from = end;
    }
}

/* Flags. */

/* All threads of one block, after all that the flags promise. */
static __device__ __forceinline__ void peal_write_flags_(const peal_launch *launch)
{
    __syncthreads();
    for (int i = peal_thread_(); i < launch->write_count; i += peal_block_threads_())
        /* Pairs with the fence in peal_wait_ of the receiver. */
        peal_store_(launch->write[i].word, launch->write[i].value);
}

/* All threads of a block: counts it. True in the last of `blocks`, which then sees what the others
 * have stored. */
static __device__ __forceinline__ bool peal_is_last_(const peal_launch *launch, unsigned blocks)
{
    __shared__ unsigned last;

    __syncthreads();
    if (peal_thread_() == 0) {
        last = 1;
        if (blocks > 1) {
            unsigned *arrived = (unsigned *)launch->arrived;
            __threadfence_system(); /* releases this block's stores to the last one's fence below */
            last = atomicAdd(arrived, 1u) == blocks - 1;
            if (last) {
                *arrived = 0;
                __threadfence_system(); /* acquires what the blocks before have stored */
            }
        }
        if (*(volatile unsigned *)&peal_given_up)
            last = 0;
    }
    __syncthreads();
    return last != 0;
}

/* The end of a launch whose blocks send messages. */
static __device__ __noinline__ void peal_send_(const peal_launch *launch)
{
    if (launch->senders == 0 || !peal_is_last_(launch, launch->senders))
        return;
    if (launch->list_count > 0 && peal_block_threads_() >= 32)
        peal_copy_share_(launch, peal_thread_() / 32, peal_block_threads_() / 32,
                         peal_thread_() % 32);
    else if (launch->list_count > 0)
        for (int lane = 0; lane < 32 && peal_thread_() == 0; lane++)
            peal_copy_share_(launch, 0, 1, lane);
    peal_write_flags_(launch);
}

/* The begin of every kernel. */

static __device__ __forceinline__ bool peal_is_stopped_(const peal_launch &launch)
{
    return launch.stop && *(volatile unsigned *)launch.stop != 0;
}

/* Of kernels without tiles. False: the block is to end. */
static __device__ __forceinline__ bool peal_enter_(const peal_launch &launch)
{
    if (peal_is_stopped_(launch))
        return false;
    unsigned mask = launch.box_count > 0 ? launch.box[0].waits : 0;
    return mask == 0 || peal_wait_(&launch, mask);
}

/* Of tasks: waits for what the block's box needs and says which tile is the block's. The box, or 0:
 * the block is to end. */
static __device__ __forceinline__ const peal_launch_box *peal_enter_tile_(const peal_launch &launch,
                                                                          peal_tile *tile)
{
    int index = 0;

    if (peal_is_stopped_(launch))
        return 0;
    while (index + 1 < launch.box_count &&
           blockIdx.x - launch.box[index].first >= launch.box[index].blocks)
        index++;
    const peal_launch_box &box = launch.box[index];
    if (box.waits && !peal_wait_(&launch, box.waits))
        return 0;
    unsigned rest = blockIdx.x - box.first;
    tile->index = box.tile;
    tile->count = launch.tile_count;
#pragma unroll
    for (int k = 0; k < PEAL_AXES; k++) {
        unsigned place = rest;
        if (k < PEAL_AXES - 1) {
            unsigned quotient = rest / box.count[k];
            place = rest - quotient * box.count[k];
            rest = quotient;
        }
        int lo = box.lo[k] + (int)place * box.extent[k];
        int hi = box.hi[k];
        tile->lo[k] = lo;
        tile->hi[k] = hi - lo > box.extent[k] ? lo + box.extent[k] : hi;
        tile->index += place * box.tile_step[k];
    }
    return &box;
}

static __device__ __forceinline__ peal_strides_ peal_strides_of_(const peal_launch &launch,
                                                                 int view)
{
    peal_strides_ strides;
    strides.peal_y_ = launch.stride[view][0];
    strides.peal_z_ = launch.stride[view][1];
    strides.peal_w_ = launch.stride[view][2];
    return strides;
}

/* Where the partial of this tile goes. */
template <class type>
static __device__ __forceinline__ peal_partial_<type>
peal_partial_of_(const peal_launch &launch, int index, int combine, const peal_tile &tile)
{
    peal_partial_<type> partial;
    type *first = (type *)launch.partial[index];
    partial.out = first ? first + tile.index : 0;
    partial.combine = combine;
    return partial;
}

template <class type> static __device__ __forceinline__ peal_partial_<type> peal_no_partial_()
{
    peal_partial_<type> partial;
    partial.out = 0;
    partial.combine = 0;
    return partial;
}

/* An expression had no value: said once, by one thread. True: the block is to end. */
static __device__ __forceinline__ bool peal_went_wrong_(const peal_launch &launch, int bad)
{
    if (bad && peal_thread_() == 0)
        peal_record_(&launch, 2, -1, 0, 0);
    return bad != 0;
}

#endif
