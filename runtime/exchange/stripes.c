/* How a message is packed: which of its pieces travel, where in the slot, and in which stripes.
 *
 * A stripe is as much as is asked for at once: while its lines are on their way to this core, those
 * of the one before are copied. Pieces of one shape and array are cut together, since they may
 * share lines of the array (the two ends of x). Both ends of a message cut alike: all that counts
 * here is in the pieces, which both see. */
#include "base/box.h"
#include "runtime/exchange/exchange.h"

/* Staged bytes of one stripe of a piece; rows longer than a line are left to the hardware. */
enum { STRIPE_BYTES = 2048, LINE_BYTES = 64 };

/* The piece of the same message whose staged points include those of piece `index`; itself if there
 * is none. An edge or corner beyond a periodic end of one rank is an image of points that the face
 * brings anyway: it is copied from the face. */
int peal_exchange_carrier(const peal_channel *channel, int index)
{
    const peal_piece *piece = channel->piece;
    int carrier = index;
    for (int i = 0; i < channel->piece_count && !piece[index].direct; i++)
        if (!piece[i].direct && piece[i].array == piece[index].array &&
            peal_box_contains(&piece[i].source, &piece[index].source) &&
            (piece[i].bytes > piece[carrier].bytes ||
             (piece[i].bytes == piece[carrier].bytes && i < carrier)))
            carrier = i;
    return carrier;
}

static bool is_packed(const peal_channel *channel, int index)
{
    return !channel->piece[index].direct && peal_exchange_carrier(channel, index) == index;
}

static int64_t extent_of(const peal_piece *piece, int axis)
{
    return piece->source.hi[axis] - piece->source.lo[axis];
}

static int outer_axis(const peal_piece *piece)
{
    int axis = PEAL_AXES - 1;
    while (axis > 0 && extent_of(piece, axis) == 1)
        axis--;
    return axis;
}

static bool is_same_shape(const peal_piece *a, const peal_piece *b)
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (extent_of(a, k) != extent_of(b, k))
            return false;
    return a->array == b->array;
}

/* Planes of a piece that make a stripe. */
static int64_t planes_of_stripe(const peal_piece *piece, int axis)
{
    int64_t extent = extent_of(piece, axis), plane_bytes = piece->bytes / extent;
    int64_t row_bytes = piece->bytes / peal_box_points(&piece->source) * extent_of(piece, 0);
    if (row_bytes > LINE_BYTES)
        return extent;
    return plane_bytes >= STRIPE_BYTES ? 1 : STRIPE_BYTES / plane_bytes;
}

typedef struct cutter {
    const peal_channel *channel;
    peal_exchange_stripe *stripe; /* NULL: only counts */
    int count;
    int64_t bytes; /* placed */
} cutter;

static void emit(cutter *c, int piece, int axis, int64_t lo, int64_t hi, int64_t staging)
{
    int index = c->count++;
    if (!c->stripe)
        return;
    peal_exchange_stripe *s = &c->stripe[index];
    *s = (peal_exchange_stripe){.piece = piece, .staging = staging};
    s->source = c->channel->piece[piece].source;
    s->source.hi[axis] = s->source.lo[axis] + hi;
    s->source.lo[axis] += lo;
}

static void cut_group(cutter *c, int first)
{
    const peal_piece *piece = c->channel->piece;
    int axis = outer_axis(&piece[first]), members = 0;
    int64_t extent = extent_of(&piece[first], axis), step = planes_of_stripe(&piece[first], axis);
    int64_t bytes = (piece[first].bytes + 7) / 8 * 8;
    for (int64_t at = 0; at < extent; at += step) {
        int64_t end = at + step < extent ? at + step : extent;
        members = 0;
        for (int i = first; i < c->channel->piece_count; i++)
            if (is_same_shape(&piece[first], &piece[i]) && is_packed(c->channel, i))
                emit(c, i, axis, at, end, c->bytes + bytes * members++);
    }
    c->bytes += bytes * members;
}

static bool is_first_of_group(const peal_channel *channel, int index)
{
    for (int i = 0; i < index; i++)
        if (is_same_shape(&channel->piece[i], &channel->piece[index]) && is_packed(channel, i))
            return false;
    return is_packed(channel, index);
}

int peal_exchange_cut(const peal_channel *channel, peal_exchange_stripe *stripe, int64_t *bytes)
{
    cutter c = {.channel = channel, .stripe = stripe};
    for (int i = 0; i < channel->piece_count; i++)
        if (is_first_of_group(channel, i))
            cut_group(&c, i);
    *bytes = c.bytes;
    return c.count;
}
