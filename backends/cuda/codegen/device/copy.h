/* Copies of strided pieces (launch.h), by the warps of a grid's blocks or of one block. */
#ifndef PEAL_DEVICE_COPY_H
#define PEAL_DEVICE_COPY_H

/* Where a copy is: at unit (e, i0, i1, i2) of a piece, whose addresses contain i2. */
struct peal_cursor_ {
    const char *from;
    char *to;
    unsigned e, i0, i1;
};

/* Moves a cursor that is at the piece's begin by `units`. */
static __device__ __forceinline__ void peal_go_(const peal_device_piece *piece, unsigned units,
                                                int bytes, peal_cursor_ *cursor)
{
    unsigned run = piece->run, rest = units / run;
    unsigned i2 = rest / piece->count[0];
    cursor->e = units - rest * run;
    cursor->i0 = rest - i2 * piece->count[0];
    rest = i2;
    i2 = rest / piece->count[1];
    cursor->i1 = rest - i2 * piece->count[1];
    cursor->from += (long long)cursor->e * bytes + cursor->i0 * piece->source_step[0] +
                    cursor->i1 * piece->source_step[1] + i2 * piece->source_step[2];
    cursor->to += (long long)cursor->e * bytes + cursor->i0 * piece->target_step[0] +
                  cursor->i1 * piece->target_step[1] + i2 * piece->target_step[2];
}

/* The cursor has passed the end along axis k - 1: subtracts one round there, adds one along axis k.
 */
static __device__ __forceinline__ void peal_carry_(const peal_device_piece *piece, int k,
                                                   unsigned round, long long bytes,
                                                   peal_cursor_ *cursor)
{
    long long from = k > 0 ? peal_fetch_(&piece->source_step[k - 1]) : bytes;
    long long to = k > 0 ? peal_fetch_(&piece->target_step[k - 1]) : bytes;
    cursor->from += peal_fetch_(&piece->source_step[k]) - round * from;
    cursor->to += peal_fetch_(&piece->target_step[k]) - round * to;
}

/* Adds a step, whose addresses are differences: at most one carry an axis, and no division. */
static __device__ __forceinline__ void peal_advance_(const peal_device_piece *piece, int bytes,
                                                     const peal_cursor_ &step, peal_cursor_ *cursor)
{
    cursor->from += (long long)step.from;
    cursor->to += (long long)step.to;
    cursor->e += step.e;
    cursor->i0 += step.i0;
    cursor->i1 += step.i1;
    if (cursor->e >= piece->run) {
        cursor->e -= piece->run;
        cursor->i0++;
        peal_carry_(piece, 0, piece->run, bytes, cursor);
    }
    if (cursor->i0 >= piece->count[0]) {
        cursor->i0 -= piece->count[0];
        cursor->i1++;
        peal_carry_(piece, 1, piece->count[0], bytes, cursor);
    }
    if (cursor->i1 >= piece->count[1]) {
        cursor->i1 -= piece->count[1];
        peal_carry_(piece, 2, piece->count[1], bytes, cursor);
    }
}

/* Units first, first + 32, ... below end of a piece; at_once loads are under way at a time. */
template <class type, int at_once>
static __device__ __forceinline__ void peal_copy_units_(const unsigned long long *base,
                                                        const peal_device_piece *piece,
                                                        unsigned first, unsigned end)
{
    peal_cursor_ step = {}, cursor;

    if (first >= end)
        return;
    cursor.from = (const char *)base[piece->source] + piece->source_offset;
    cursor.to = (char *)base[piece->target] + piece->target_offset;
    peal_go_(piece, first, sizeof(type), &cursor);
    peal_go_(piece, 32, sizeof(type), &step);
#pragma unroll 1
    while (first < end) {
        type value[at_once];
        char *to[at_once];
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            to[k] = cursor.to;
            if (first + 32 * k < end)
                value[k] = *(const type *)cursor.from;
            peal_advance_(piece, sizeof(type), step, &cursor);
        }
#pragma unroll
        for (int k = 0; k < at_once; k++)
            if (first + 32 * k < end)
                *(type *)to[k] = value[k];
        first += 32 * at_once;
    }
}

template <int at_once>
static __device__ __forceinline__ void peal_copy_piece_(const unsigned long long *base,
                                                        const peal_device_piece *piece,
                                                        unsigned first, unsigned end)
{
    switch (piece->unit) {
    case 16:
        peal_copy_units_<uint4, at_once>(base, piece, first, end);
        break;
    case 8:
        peal_copy_units_<unsigned long long, at_once>(base, piece, first, end);
        break;
    case 4:
        peal_copy_units_<unsigned, at_once>(base, piece, first, end);
        break;
    case 2:
        peal_copy_units_<unsigned short, at_once>(base, piece, first, end);
        break;
    default:
        peal_copy_units_<unsigned char, at_once>(base, piece, first, end);
    }
}

/* If there are few pieces, all are loaded into shared memory at once: read one after the other,
 * their fields would cost an access to the L2 cache each. */
enum { PEAL_STAGED_PIECES_ = 32, PEAL_PIECE_WORDS_ = sizeof(peal_device_piece) / 8 };

__shared__ peal_device_piece peal_staged_[PEAL_STAGED_PIECES_];

/* All threads of the block; a barrier must follow. False: too many, they stay where they are. */
static __device__ __forceinline__ bool peal_stage_pieces_(const peal_launch *launch,
                                                          peal_device_piece *staged)
{
    int all = 0;

    for (int l = 0; l < launch->list_count; l++)
        all += launch->list[l].count;
    if (all > PEAL_STAGED_PIECES_)
        return false;
    for (int i = peal_thread_(); i < all * PEAL_PIECE_WORDS_; i += peal_block_threads_()) {
        int piece = i / PEAL_PIECE_WORDS_, word = i - piece * PEAL_PIECE_WORDS_, l = 0, first = 0;
        while (piece - first >= launch->list[l].count)
            first += launch->list[l++].count;
        const unsigned long long *from = (const unsigned long long *)launch->list[l].piece;
        ((unsigned long long *)staged)[i] = from[(piece - first) * PEAL_PIECE_WORDS_ + word];
    }
    return true;
}

/* The last piece of a table that begins at or before unit `from` of its list. */
static __device__ __forceinline__ const peal_device_piece *
peal_piece_of_(const peal_device_piece *piece, int count, long long from)
{
    int low = 0, high = count - 1;

    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (piece[middle].begin <= from)
            low = middle;
        else
            high = middle - 1;
    }
    return piece + low;
}

#ifdef PEAL_COUNTED
/* How many units of a piece are copied. A count that is out of range is told, and nothing copied:
 * the count itself has been sent, so the receiver tells it, too. */
static __device__ __noinline__ unsigned peal_count_units_(const peal_launch *launch,
                                                          const unsigned long long *base,
                                                          const peal_device_piece *piece)
{
    const char *at = (const char *)base[piece->target_step[PEAL_COUNT_BASE]] +
                     piece->source_step[PEAL_COUNT_OFFSET];
    const long long most = piece->source_step[PEAL_COUNT_MOST];
    long long count = piece->counted == 8 ? *(const long long *)at : *(const int *)at;

    if (count < 0 || count > most) {
        peal_report_failure_(launch, PEAL_FAILED_COUNT, (int)piece->target_step[PEAL_COUNT_OP],
                             (unsigned long long)most, (unsigned long long)count);
        return 0;
    }
    count -= piece->source_step[PEAL_COUNT_BEFORE];
    return count < 0 ? 0 : (unsigned)(count < piece->units ? count : piece->units);
}
#endif

/* Share `warp` of `warps` of all units: contiguous, so that small pieces are copied side by side.
 */
template <int at_once>
static __device__ PEAL_PART_ void peal_copy_share_(const peal_launch *launch,
                                                   const peal_device_piece *staged, unsigned warp,
                                                   unsigned warps, unsigned lane)
{
    unsigned long long units = launch->units + warps - 1;
    unsigned long long share = (units >> 32 ? units / warps : (unsigned)units / warps) + 31;
    share = share / 32 * 32;
    long long from = share * warp, to = from + share;

    to = to < launch->units ? to : launch->units;
    long long first = 0; /* unit of the list */
#pragma unroll 1
    for (int l = 0; l < launch->list_count && from < to; first = launch->list[l++].end) {
        const peal_launch_list &list = launch->list[l];
        const peal_device_piece *table = staged ? staged : (const peal_device_piece *)list.piece;
        long long last = list.end < to ? list.end : to;
        staged = staged ? staged + list.count : staged;
        if (last <= from)
            continue;
#pragma unroll 1
        for (const peal_device_piece *piece = peal_piece_of_(table, list.count, from - first);
             from < last; piece++) {
            long long begin = first + piece->begin, end = begin + piece->units;
            end = end < last ? end : last;
            unsigned units = (unsigned)(end - begin);
#ifdef PEAL_COUNTED
            if (piece->counted) {
                unsigned counted = peal_count_units_(launch, launch->base + list.base, piece);
                units = counted < units ? counted : units;
            }
#endif
            peal_copy_piece_<at_once>(launch->base + list.base, piece,
                                      (unsigned)(from - begin) + lane, units);
            from = end;
        }
    }
}

/* In the last block of a task. All of this is inlined: through a pointer, the launch's fields would
 * be loads from memory, one after the other; by name they are constants. */
static __device__ __forceinline__ void peal_copy_all_(const peal_launch *launch,
                                                      const peal_device_piece *staged)
{
    if (peal_block_threads_() >= 32)
        peal_copy_share_<2>(launch, staged, peal_thread_() / 32, peal_block_threads_() / 32,
                            peal_thread_() % 32);
    else if (peal_thread_() == 0)
        for (unsigned lane = 0; lane < 32; lane++)
            peal_copy_share_<1>(launch, staged, 0, 1, lane);
}

#endif
