/* The pieces of a COPY: normalised strided boxes, copied in the widest unit that their addresses
 * allow. A box with more units than the device or the copy engine can number is cut. */
#include "backends/cuda/lower/copy_pieces.h"

int64_t peal_cuda_offset_of(const peal_layout *layout, const int64_t *point, size_t element_bytes)
{
    int64_t elements = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        elements += (point[k] - layout->stored.lo[k]) * layout->stride[k];
    return elements * (int64_t)element_bytes;
}

/* ---- one piece ---- */

void peal_cuda_box_normalise(const int64_t *extent, const int64_t *source, const int64_t *target,
                             int64_t element, peal_cuda_copied_box *out)
{
    out->run = element;
    out->count = 0;
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t from = source[k] * element, to = target[k] * element;
        int last = out->count - 1;
        if (extent[k] == 1)
            continue;
        if (out->count == 0 && from == out->run && to == out->run)
            out->run *= extent[k];
        else if (last >= 0 && from == out->source[last] * out->extent[last] &&
                 to == out->target[last] * out->extent[last])
            out->extent[last] *= extent[k];
        else {
            out->extent[out->count] = extent[k];
            out->source[out->count] = from;
            out->target[out->count++] = to;
        }
    }
}

static int unit_of(const peal_cuda_copied_box *box)
{
    int64_t all = box->run | box->source_offset | box->target_offset | box->alignment;
    for (int k = 0; k < box->count; k++)
        all |= box->source[k] | box->target[k];
    int64_t unit = all & -all;
    return unit > 16 ? 16 : (int)unit;
}

static int64_t bytes_of(const peal_cuda_copied_box *box)
{
    int64_t bytes = box->run;
    for (int k = 0; k < box->count; k++)
        bytes *= box->extent[k];
    return bytes;
}

/* Cuts a box in two along its outermost axis. A contiguous box is cut at a multiple of 16 bytes, so
 * that its unit stays the same. */
static void halve(peal_cuda_copied_box *box, peal_cuda_copied_box *second)
{
    *second = *box;
    if (box->count == 0) {
        box->run = box->run / 2 / 16 * 16;
        second->run -= box->run;
        second->source_offset += box->run;
        second->target_offset += box->run;
        return;
    }
    int k = box->count - 1;
    box->extent[k] /= 2;
    second->extent[k] -= box->extent[k];
    second->source_offset += box->extent[k] * box->source[k];
    second->target_offset += box->extent[k] * box->target[k];
    if (box->extent[k] == 1)
        box->count--;
    if (second->extent[k] == 1)
        second->count--;
}

int peal_cuda_box_cut_up(const peal_cuda_copied_box *box, int64_t most, peal_device_piece *out)
{
    int unit = unit_of(box);
    int64_t units = bytes_of(box) / unit;

    if (units > most) {
        peal_cuda_copied_box first = *box, second;
        halve(&first, &second);
        int made = peal_cuda_box_cut_up(&first, most, out);
        return made + peal_cuda_box_cut_up(&second, most, out ? out + made : NULL);
    }
    if (!out)
        return 1;
    *out = (peal_device_piece){.source = box->source_base,
                               .target = box->target_base,
                               .unit = unit,
                               .run = (unsigned)(box->run / unit),
                               .count = {1, 1, 1},
                               .source_offset = box->source_offset,
                               .target_offset = box->target_offset,
                               .units = units};
    for (int k = 0; k < box->count; k++) {
        out->count[k] = (unsigned)box->extent[k];
        out->source_step[k] = box->source[k];
        out->target_step[k] = box->target[k];
    }
    return 1;
}

/* ---- the pieces of an op ---- */

static int base_of(peal_cuda_pieces *pieces, peal_cuda_base_kind kind, int array)
{
    for (int i = 0; i < pieces->base_count; i++)
        if (pieces->base[i].kind == kind && pieces->base[i].array == array)
            return i;
    pieces->base[pieces->base_count] = (peal_cuda_base){kind, array};
    return pieces->base_count++;
}

/* What the addresses of the bases are multiples of, at least. */
static int64_t alignment_of(const peal_cuda_rank *rank, const peal_cuda_op *op, peal_cuda_base base)
{
    if (base.kind == PEAL_CUDA_BASE_STAGING)
        return (int64_t)op->staging | (op->channel->slots > 1 ? op->channel->staging_bytes : 16);
    int64_t all = 16;
    const peal_schedule_array *array = rank->schedule->array;
    for (int i = 0; i < rank->schedule->array_count; i++)
        if (i == base.array ||
            (array[i].swap_group >= 0 && array[i].swap_group == array[base.array].swap_group))
            all |= (int64_t)rank->first[i];
    return all;
}

/* A box of a message, or of images of own points; false: it is empty. */
static bool describe_box(peal_cuda_rank *rank, peal_cuda_op *out, const peal_piece *piece,
                         peal_cuda_copied_box *box)
{
    const peal_schedule *schedule = rank->schedule;
    const peal_op *op = out->source;
    bool local = op->copy == PEAL_COPY_LOCAL, sends = op->copy == PEAL_COPY_SEND;
    bool unpacks = op->copy == PEAL_COPY_UNPACK, staged = !local && (unpacks || !piece->direct);
    int mine = unpacks ? piece->target_array : piece->array;
    int64_t bytes = (int64_t)peal_type_bytes(schedule->array[mine].type), points = 1;
    const peal_layout *source = &schedule->array[piece->array].layout;
    const peal_layout *target = &schedule->array[piece->target_array].layout;
    int64_t extent[PEAL_AXES], dense[PEAL_AXES];
    peal_cuda_pieces *pieces = &out->pieces;

    for (int k = 0; k < PEAL_AXES; k++) {
        extent[k] = unpacks ? piece->target_extent[k] : piece->source.hi[k] - piece->source.lo[k];
        dense[k] = points;
        points *= extent[k] > 0 ? extent[k] : 0;
    }
    if (points == 0)
        return false;
    if (sends && piece->direct)
        target = &schedule->peer[out->channel->peer_index].layout[piece->target_array];
    box->source_base = unpacks ? base_of(pieces, PEAL_CUDA_BASE_STAGING, -1)
                               : base_of(pieces, PEAL_CUDA_BASE_OWN, piece->array);
    box->target_base = staged && sends
                           ? base_of(pieces, PEAL_CUDA_BASE_STAGING, -1)
                           : base_of(pieces, sends ? PEAL_CUDA_BASE_PEER : PEAL_CUDA_BASE_OWN,
                                     piece->target_array);
    box->source_offset =
        unpacks ? piece->staging : peal_cuda_offset_of(source, piece->source.lo, (size_t)bytes);
    box->target_offset = staged && sends
                             ? piece->staging
                             : peal_cuda_offset_of(target, piece->target, (size_t)bytes);
    peal_cuda_box_normalise(extent, unpacks ? dense : source->stride,
                            staged && sends ? dense : target->stride, bytes, box);
    box->alignment = alignment_of(rank, out, pieces->base[box->source_base]) |
                     alignment_of(rank, out, pieces->base[box->target_base]);
    return true;
}

/* The number of elements of a counted piece is the source of the box before it. Its unit is made an
 * element, so that exactly so many are copied. */
static void count_box(const peal_cuda_rank *rank, const peal_cuda_op *op, const peal_piece *piece,
                      const peal_cuda_copied_box *count, peal_cuda_copied_box *box)
{
    bool unpacks = op->source->copy == PEAL_COPY_UNPACK;
    const peal_schedule_array *array = rank->schedule->array;

    box->counted =
        (int)peal_type_bytes(array[unpacks ? piece[-1].target_array : piece[-1].array].type);
    box->count_base = count->source_base;
    box->count_offset = count->source_offset;
    box->alignment |=
        (int64_t)peal_type_bytes(array[unpacks ? piece->target_array : piece->array].type);
}

static void count_pieces(const peal_cuda_rank *rank, const peal_cuda_op *op,
                         const peal_cuda_copied_box *box, peal_device_piece *piece, int count)
{
    int64_t before = 0, most = bytes_of(box) / piece->unit;

    for (int i = 0; box->counted && i < count; before += piece[i++].units) {
        piece[i].counted = (unsigned)box->counted;
        piece[i].source_step[PEAL_COUNT_OFFSET] = box->count_offset;
        piece[i].source_step[PEAL_COUNT_BEFORE] = before;
        piece[i].source_step[PEAL_COUNT_MOST] = most;
        piece[i].target_step[PEAL_COUNT_BASE] = box->count_base;
        piece[i].target_step[PEAL_COUNT_OP] = op - rank->op;
    }
}

void peal_cuda_pieces_bind(peal_cuda_rank *rank, peal_cuda_op *out)
{
    const peal_op *op = out->source;
    peal_arena *arena = rank->plan->arena;
    peal_cuda_pieces *pieces = &out->pieces;
    bool local = op->copy == PEAL_COPY_LOCAL;
    const peal_piece *piece = local ? op->piece : out->channel->piece;
    int count = local ? op->piece_count : out->channel->piece_count, boxes = 0, all = 0;
    peal_cuda_copied_box *box = PEAL_ARENA_ARRAY(arena, peal_cuda_copied_box, count + 1);

    if (op->copy == PEAL_COPY_SEND)
        out->target = rank->peer_first[out->channel->peer_index];
    pieces->base = PEAL_ARENA_ARRAY(arena, peal_cuda_base, 2 * count + 1);
    for (int i = 0; i < count; i++)
        if ((op->copy != PEAL_COPY_UNPACK || !piece[i].direct) &&
            describe_box(rank, out, &piece[i], &box[boxes])) {
            if (piece[i].counted)
                count_box(rank, out, &piece[i], &box[boxes - 1], &box[boxes]);
            all += peal_cuda_box_cut_up(&box[boxes++], PEAL_CUDA_PIECE_UNITS, NULL);
        }
    pieces->piece = PEAL_ARENA_ARRAY(arena, peal_device_piece, all + 1);
    for (int i = 0; i < boxes; i++) {
        peal_device_piece *first = &pieces->piece[pieces->count];
        int made = peal_cuda_box_cut_up(&box[i], PEAL_CUDA_PIECE_UNITS, first);
        count_pieces(rank, out, &box[i], first, made);
        pieces->bytes += bytes_of(&box[i]);
        pieces->count += made;
    }
    for (int i = 0; i < pieces->count; i++) {
        pieces->piece[i].begin = pieces->units;
        pieces->units += pieces->piece[i].units;
    }
    if (op->copy != PEAL_COPY_UNPACK)
        peal_cuda_remote_stores_bind(rank, out);
}
