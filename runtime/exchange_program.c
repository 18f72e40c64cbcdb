/* Flattens the schedules of an exchange into one list of waits, writes and moves with addresses.
 *
 * The walk order of a step is: sends, local copies, waits and unpacking, the application, credits.
 * Credits that follow the application move to the front of the next start, since only then it has
 * read its halo; local copies go behind the sends, so that messages are on their way meanwhile.
 * With several ranks in a process each phase is done for all ranks before the next: no rank of this
 * process then waits for what another of them has still to do. */
#include "base/box.h"
#include "runtime/exchange.h"

#include <stdlib.h>
#include <string.h>

typedef enum phase { RELEASE, SEND, COPY_LOCALLY, RECEIVE, PHASES } phase;

typedef struct builder {
    peal_exchange *exchange;
    peal_exchange_program *program;
    int rank; /* index of the hosted rank */
    const peal_schedule *schedule;
    bool counting; /* first pass: sizes only */
    int actions, moves;
    peal_exchange_action scratch;
} builder;

static peal_exchange_action *add_action(builder *b, peal_exchange_action_kind kind)
{
    int index = b->actions++;
    if (b->counting)
        return &b->scratch;
    b->program->action[index].kind = kind;
    return &b->program->action[index];
}

static unsigned char *segment_of(const builder *b)
{
    return b->exchange->binding.rank[b->rank].segment.base;
}

static unsigned char *peer_segment_of(const builder *b, const peal_channel *channel)
{
    return b->exchange->binding.rank[b->rank].peer_segment[channel->peer_index];
}

static int64_t offset_of(const peal_layout *layout, const int64_t point[PEAL_AXES], size_t element)
{
    int64_t place = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        place += (point[k] - layout->stored.lo[k]) * layout->stride[k];
    return place * (int64_t)element;
}

static void add_word(builder *b, const peal_op *op, phase when)
{
    const peal_channel *channel = &b->schedule->channel[op->channel];
    bool waits = op->kind == PEAL_OP_WAIT;
    /* flags lie with the receiver, credits with the sender: who waits has the word */
    unsigned char *base = waits ? segment_of(b) : peer_segment_of(b, channel);
    int64_t offset = op->credit ? channel->credit_offset : channel->flag_offset;
    peal_exchange_action *action = add_action(b, waits ? PEAL_EXCHANGE_WAIT : PEAL_EXCHANGE_WRITE);
    action->word = (peal_exchange_word){
        .word = (_Atomic uint64_t *)(void *)(base + offset),
        .quantum = channel->quantum,
        .channel = channel,
        .rank = b->schedule->rank,
    };
    if (op->credit && waits)
        action->word.behind = (uint64_t)channel->slots;
    else if (when == RELEASE)
        action->word.behind = 1;
}

/* The piece of the same message whose staged points include those of piece `index`; itself if there
 * is none. An edge or corner beyond a periodic end of one rank is an image of points that the face
 * brings anyway: it is unpacked from the face. Both ends see the same pieces and decide alike. */
static int carrier_of(const peal_piece *piece, int count, int index)
{
    int carrier = index;
    for (int i = 0; i < count && !piece[index].direct; i++)
        if (!piece[i].direct && piece[i].array == piece[index].array &&
            peal_box_contains(&piece[i].source, &piece[index].source) &&
            (piece[i].bytes > piece[carrier].bytes ||
             (piece[i].bytes == piece[carrier].bytes && i < carrier)))
            carrier = i;
    return carrier;
}

/* Strides of the points of a box, dense, x fastest. */
static void pack_strides(const peal_box *box, int64_t stride[PEAL_AXES])
{
    int64_t run = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        stride[k] = run;
        run *= box->hi[k] - box->lo[k];
    }
}

/* One move, with both of its ends in the making. */
typedef struct ends {
    peal_move *move;
    size_t element;
    int64_t to_stride[PEAL_AXES], from_stride[PEAL_AXES];
} ends;

/* From my array. */
static void from_array(const builder *b, const peal_piece *piece, ends *e)
{
    const peal_layout *layout = &b->schedule->array[piece->array].layout;
    e->move->from = peal_binding_array(&b->exchange->binding, b->rank, piece->array) +
                    offset_of(layout, piece->source.lo, e->element);
    memcpy(e->from_stride, layout->stride, sizeof(e->from_stride));
}

/* From my staging, where the points of `carrier` lie. */
static void from_staging(const builder *b, const peal_channel *channel, const peal_piece *piece,
                         const peal_piece *carrier, ends *e)
{
    int64_t place = 0;
    pack_strides(&carrier->source, e->from_stride);
    for (int k = 0; k < PEAL_AXES; k++)
        place += (piece->source.lo[k] - carrier->source.lo[k]) * e->from_stride[k];
    e->move->from =
        segment_of(b) + channel->staging_offset + carrier->staging + place * (int64_t)e->element;
    e->move->from_slot = channel->staging_bytes;
}

static void to_array(const builder *b, const peal_piece *piece, ends *e)
{
    const peal_layout *layout = &b->schedule->array[piece->target_array].layout;
    e->move->to = peal_binding_array(&b->exchange->binding, b->rank, piece->target_array) +
                  offset_of(layout, piece->target, e->element);
    memcpy(e->to_stride, layout->stride, sizeof(e->to_stride));
}

/* To the peer: its staging, or straight into its array. */
static void to_peer(const builder *b, const peal_channel *channel, const peal_piece *piece, ends *e)
{
    unsigned char *segment = peer_segment_of(b, channel);
    if (!piece->direct) {
        e->move->to = segment + channel->staging_offset + piece->staging;
        e->move->to_slot = channel->staging_bytes;
        pack_strides(&piece->source, e->to_stride);
        return;
    }
    const peal_layout *layout = &b->schedule->peer[channel->peer_index].layout[piece->target_array];
    e->move->to = segment + layout->offset + offset_of(layout, piece->target, e->element);
    memcpy(e->to_stride, layout->stride, sizeof(e->to_stride));
}

static void add_piece(builder *b, const peal_op *op, const peal_piece *piece,
                      const peal_piece *carrier)
{
    int index = b->moves++;
    if (b->counting)
        return;
    const peal_channel *channel = op->channel >= 0 ? &b->schedule->channel[op->channel] : NULL;
    ends e = {.move = &b->program->move[index],
              .element = peal_type_bytes(b->schedule->array[piece->array].type)};
    if (op->copy == PEAL_COPY_UNPACK)
        from_staging(b, channel, piece, carrier, &e);
    else
        from_array(b, piece, &e);
    if (op->copy == PEAL_COPY_SEND) {
        to_peer(b, channel, piece, &e);
        b->exchange->bytes += piece->bytes;
    } else {
        to_array(b, piece, &e);
    }
    int64_t extent[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++)
        extent[k] = piece->source.hi[k] - piece->source.lo[k];
    peal_move_prepare(e.move, e.element, extent, e.to_stride, e.from_stride);
}

static void add_pieces(builder *b, const peal_op *op)
{
    const peal_channel *channel = op->channel >= 0 ? &b->schedule->channel[op->channel] : NULL;
    const peal_piece *piece = channel ? channel->piece : op->piece;
    int count = channel ? channel->piece_count : op->piece_count, first = b->moves;
    for (int i = 0; i < count; i++) {
        int carrier = channel ? carrier_of(piece, count, i) : i;
        bool goes = op->copy == PEAL_COPY_UNPACK ? !piece[i].direct : carrier == i;
        if (goes)
            add_piece(b, op, &piece[i], &piece[carrier]);
    }
    if (b->moves == first)
        return;
    if (!b->counting)
        peal_moves_arrange(&b->program->move[first], b->moves - first);
    peal_exchange_action *action = add_action(b, PEAL_EXCHANGE_MOVE);
    action->first = first;
    action->count = b->moves - first;
    action->slots = channel && channel->slots > 0 ? (uint64_t)channel->slots : 1;
    if (!channel || channel->staged_count == 0)
        return;
    action->sends = op->copy == PEAL_COPY_SEND;
    action->staging =
        (action->sends ? peer_segment_of(b, channel) : segment_of(b)) + channel->staging_offset;
    action->staging_bytes = channel->staging_bytes;
}

static bool belongs(const peal_schedule *schedule, const peal_op *op, bool after, phase wanted)
{
    bool receives = op->channel >= 0 && !schedule->channel[op->channel].outgoing;
    switch (op->kind) {
    case PEAL_OP_COPY:
        if (op->copy == PEAL_COPY_LOCAL)
            return wanted == COPY_LOCALLY;
        return wanted == (op->copy == PEAL_COPY_UNPACK ? RECEIVE : SEND);
    case PEAL_OP_WAIT:
    case PEAL_OP_WRITE:
        if (op->kind == PEAL_OP_WRITE && op->credit && after)
            return wanted == RELEASE;
        return wanted == (receives ? RECEIVE : SEND);
    default:
        return false;
    }
}

static peal_status check_op(const builder *b, const peal_op *op)
{
    if (op->kind != PEAL_OP_LOOP && op->kind != PEAL_OP_IF && op->kind != PEAL_OP_SWAP)
        return PEAL_STATUS_OK;
    return peal_report(b->exchange->session->diagnostics, PEAL_E900, PEAL_NO_SOURCE, NULL,
                       "the schedule of an exchange has an op of kind %d", (int)op->kind);
}

/* What one rank does in one phase. */
static peal_status walk_rank(builder *b, phase wanted)
{
    bool after = false;
    b->schedule = b->exchange->binding.rank[b->rank].schedule;
    for (int i = b->schedule->step.first; i < b->schedule->step.end; i++) {
        const peal_op *op = &b->schedule->op[i];
        peal_status status = check_op(b, op);
        if (status)
            return status;
        after |= op->kind == PEAL_OP_LAUNCH;
        if (!belongs(b->schedule, op, after, wanted))
            continue;
        if (op->kind == PEAL_OP_COPY)
            add_pieces(b, op);
        else
            add_word(b, op, wanted);
    }
    return PEAL_STATUS_OK;
}

static peal_status walk(builder *b)
{
    b->actions = b->moves = 0;
    for (phase wanted = RELEASE; wanted < PHASES; wanted++) {
        for (b->rank = 0; b->rank < b->exchange->binding.count; b->rank++) {
            peal_status status = walk_rank(b, wanted);
            if (status)
                return status;
        }
        if (wanted == COPY_LOCALLY)
            b->program->send_count = b->actions;
    }
    b->program->count = b->actions;
    b->program->move_count = b->moves;
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_flatten(peal_exchange *exchange)
{
    peal_exchange_program *program = &exchange->program;
    builder b = {.exchange = exchange, .program = program, .counting = true};
    peal_status status = walk(&b);
    if (status)
        return status;
    program->action = calloc((size_t)program->count + 1, sizeof(*program->action));
    program->move = calloc((size_t)program->move_count + 1, sizeof(*program->move));
    if (!program->action || !program->move)
        return peal_report(exchange->session->diagnostics, PEAL_E367, PEAL_NO_SOURCE, NULL,
                           "no memory for an exchange of %d moves", program->move_count);
    b.counting = false;
    return walk(&b);
}
