/* Flattens the schedules of an exchange into one list of waits, writes and copies with addresses.
 *
 * The walk order of a step is: sends, local copies, waits and unpacking, the application, credits.
 * Credits that follow the application move to the front of the next start, since only then it has
 * read its halo. Images of a rank's own points are made while messages are on their way; if these
 * are large, at the end, together with the images of points that others have sent, as fewer and
 * longer rows (images.c). */
#include "base/box.h"
#include "runtime/exchange/exchange.h"

#include <stdlib.h>
#include <string.h>

typedef enum phase { RELEASE, SEND, REPEAT_OWN, RECEIVE, REPEAT, FETCH, PHASES } phase;

typedef struct builder {
    peal_exchange *exchange;
    peal_exchange_program *program;
    int buffer;
    const peal_schedule *schedule;
    bool counting; /* first pass: sizes only */
    int actions, copies, images;
    peal_exchange_action scratch_action;
    peal_exchange_stripe *stripe; /* room for those of one message */
    peal_exchange_image *image;   /* room for all */
    int most_stripes, most_images;
    bool small; /* all messages are */
} builder;

static peal_exchange_action *add_action(builder *b, peal_exchange_action_kind kind)
{
    int index = b->actions++;
    peal_exchange_action *action = b->counting ? &b->scratch_action : &b->program->action[index];
    *action = (peal_exchange_action){.kind = kind, .slots = 1};
    return action;
}

static unsigned char *segment_of(const builder *b)
{
    return b->exchange->binding.rank[0].segment.base;
}

static unsigned char *peer_segment_of(const builder *b, const peal_channel *channel)
{
    return b->exchange->binding.rank[0].peer_segment[channel->peer_index];
}

static int64_t offset_of(const peal_layout *layout, const int64_t point[PEAL_AXES], size_t element)
{
    int64_t offset = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        offset += (point[k] - layout->stored.lo[k]) * layout->stride[k];
    return offset * (int64_t)element;
}

static peal_exchange_word word_of(const builder *b, const peal_op *op, phase when)
{
    const peal_channel *channel = &b->schedule->channel[op->channel];
    bool waits = op->kind == PEAL_OP_WAIT;
    /* flags lie with the receiver, credits with the sender: who waits has the word */
    unsigned char *base = waits ? segment_of(b) : peer_segment_of(b, channel);
    int64_t offset = op->credit ? channel->credit_offset : channel->flag_offset;
    peal_exchange_word word = {
        .word = (_Atomic uint64_t *)(void *)(base + offset),
        .quantum = channel->quantum,
        .channel = channel,
        .index = !waits && peal_transport_is_network(channel->transport) ? 0 : -1,
        .number = op->channel,
        .credit = op->credit,
    };
    if (op->credit && waits)
        word.behind = (uint64_t)channel->slots;
    else if (when == RELEASE)
        word.behind = 1;
    return word;
}

static uint64_t slots_of(const peal_channel *channel)
{
    return channel->slots > 0 ? (uint64_t)channel->slots : 1;
}

/* ---- the ends of copies ---- */

/* One copy in the making: an address in an array, or one in a slot of staging memory. */
typedef struct end {
    unsigned char *at;
    int64_t slot, stride[PEAL_AXES];
} end;

static end in_array(const builder *b, int array, const int64_t point[PEAL_AXES])
{
    const peal_schedule_array *a = &b->schedule->array[array];
    unsigned char *second =
        b->buffer && array < b->exchange->field_count ? b->exchange->second[array] : NULL;
    end e = {.at = (second ? second : peal_binding_array(&b->exchange->binding, 0, array)) +
                   offset_of(&a->layout, point, peal_type_bytes(a->type))};
    memcpy(e.stride, a->layout.stride, sizeof(e.stride));
    return e;
}

static end in_array_of_peer(const builder *b, const peal_channel *channel, const peal_piece *piece)
{
    const peal_layout *layout = &b->schedule->peer[channel->peer_index].layout[piece->target_array];
    size_t element = peal_type_bytes(b->schedule->array[piece->array].type);
    end e = {.at = peer_segment_of(b, channel) + layout->offset +
                   offset_of(layout, piece->target, element)};
    memcpy(e.stride, layout->stride, sizeof(e.stride));
    return e;
}

/* Where the points of a stripe lie in staging memory: the piece's points, dense, x fastest. */
static end in_staging(unsigned char *segment, const peal_channel *channel,
                      const peal_exchange_stripe *stripe, size_t element)
{
    const peal_box *whole = &channel->piece[stripe->piece].source;
    int64_t run = 1, offset = 0;
    end e = {.slot = channel->staging_bytes};
    for (int k = 0; k < PEAL_AXES; k++) {
        e.stride[k] = run;
        offset += (stripe->source.lo[k] - whole->lo[k]) * run;
        run *= whole->hi[k] - whole->lo[k];
    }
    e.at = segment + channel->staging_offset + stripe->staging + offset * (int64_t)element;
    return e;
}

static void add_copy(builder *b, const peal_box *box, size_t element, const end *to,
                     const end *from)
{
    int64_t extent[PEAL_AXES];
    peal_addressed_copy *item = &b->program->copy[b->copies++];
    for (int k = 0; k < PEAL_AXES; k++)
        extent[k] = box->hi[k] - box->lo[k];
    peal_copy_prepare(&item->copy, element, extent, from->stride, to->stride);
    item->to = to->at;
    item->to_slot = to->slot;
    item->from = from->at;
    item->from_slot = from->slot;
}

/* ---- messages ---- */

static void pack_stripe(builder *b, const peal_channel *channel, const peal_exchange_stripe *s)
{
    const peal_piece *piece = &channel->piece[s->piece];
    size_t element = peal_type_bytes(b->schedule->array[piece->array].type);
    end from = in_array(b, piece->array, s->source.lo);
    end to = in_staging(peer_segment_of(b, channel), channel, s, element);
    add_copy(b, &s->source, element, &to, &from);
    b->exchange->bytes += peal_box_points(&s->source) * (int64_t)element;
}

static void unpack_stripe(builder *b, const peal_channel *channel, const peal_exchange_stripe *s)
{
    const peal_piece *piece = &channel->piece[s->piece];
    size_t element = peal_type_bytes(b->schedule->array[piece->target_array].type);
    int64_t point[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++)
        point[k] = piece->target[k] + s->source.lo[k] - piece->source.lo[k];
    end to = in_array(b, piece->target_array, point);
    end from = in_staging(segment_of(b), channel, s, element);
    add_copy(b, &s->source, element, &to, &from);
}

static void send_directly(builder *b, const peal_channel *channel)
{
    for (int i = 0; i < channel->piece_count; i++) {
        const peal_piece *piece = &channel->piece[i];
        if (!piece->direct)
            continue;
        if (b->counting) {
            b->copies++;
            continue;
        }
        end from = in_array(b, piece->array, piece->source.lo);
        end to = in_array_of_peer(b, channel, piece);
        add_copy(b, &piece->source, peal_type_bytes(b->schedule->array[piece->array].type), &to,
                 &from);
        b->exchange->bytes += piece->bytes;
    }
}

/* Up to SMALL_BYTES a message costs latency, not bandwidth. Up to FETCH_BYTES asking for the lines
 * of staging memory in advance was seen to help: the hardware does well with longer streams. */
enum { SMALL_BYTES = 8192, FETCH_BYTES = 65536 };

static bool is_small(int64_t bytes)
{
    return bytes <= SMALL_BYTES;
}

static int64_t stripe_bytes(const peal_channel *channel, const peal_exchange_stripe *s)
{
    const peal_piece *piece = &channel->piece[s->piece];
    return piece->bytes / peal_box_points(&piece->source) * peal_box_points(&s->source);
}

static void add_stripes(builder *b, const peal_channel *channel)
{
    int64_t bytes;
    int first = b->copies, count = peal_exchange_cut(channel, b->stripe, &bytes);
    for (int i = 0; i < count; i++) {
        const peal_exchange_stripe *s = &b->stripe[i];
        peal_addressed_copy *item = &b->program->copy[b->copies];
        int64_t fetched = bytes <= FETCH_BYTES ? stripe_bytes(channel, s) : 0;
        if (channel->outgoing) {
            pack_stripe(b, channel, s);
            item->fetch_to = is_small(bytes) ? 0 : fetched;
        } else {
            unpack_stripe(b, channel, s);
            item->fetch_from = fetched;
        }
    }
    b->copies = first + peal_copies_pair(&b->program->copy[first], b->copies - first);
}

static void add_message(builder *b, const peal_channel *channel)
{
    int first = b->copies;
    int64_t bytes;
    if (channel->outgoing)
        send_directly(b, channel);
    if (b->counting)
        b->copies += peal_exchange_cut(channel, NULL, &bytes);
    else
        add_stripes(b, channel);
    peal_exchange_action *action = add_action(b, PEAL_EXCHANGE_COPY);
    action->first = first;
    action->count = b->copies - first;
    action->slots = slots_of(channel);
}

/* Last of all: the lines of the next small message's slot. Their reader has sent what was waited
 * for, so it is done with the message before. */
static void add_fetch(builder *b, const peal_channel *channel)
{
    int64_t bytes;
    peal_exchange_cut(channel, NULL, &bytes);
    if (bytes == 0 || !is_small(bytes))
        return;
    peal_exchange_action *action = add_action(b, PEAL_EXCHANGE_FETCH);
    action->slots = slots_of(channel);
    action->staging = peer_segment_of(b, channel) + channel->staging_offset;
    action->slot_bytes = channel->staging_bytes;
    action->message_bytes = bytes;
}

static void add_word(builder *b, const peal_op *op, phase wanted)
{
    bool waits = op->kind == PEAL_OP_WAIT;
    add_action(b, waits ? PEAL_EXCHANGE_WAIT : PEAL_EXCHANGE_WRITE)->word = word_of(b, op, wanted);
}

/* ---- images ---- */

static void add_image(builder *b, int array, const peal_box *source, const int64_t *target)
{
    int index = b->images++;
    if (b->counting)
        return;
    peal_exchange_image *image = &b->image[index];
    *image = (peal_exchange_image){.array = array};
    for (int k = 0; k < PEAL_AXES; k++) {
        image->shift[k] = target[k] - source->lo[k];
        image->target.lo[k] = target[k];
        image->target.hi[k] = source->hi[k] + image->shift[k];
    }
}

/* Pieces that a message does not bring for themselves: from where their carrier went. */
static void add_carried(builder *b, const peal_channel *channel)
{
    for (int i = 0; i < channel->piece_count; i++) {
        const peal_piece *piece = &channel->piece[i],
                         *carrier = &channel->piece[peal_exchange_carrier(channel, i)];
        peal_box source;
        if (carrier == piece)
            continue;
        for (int k = 0; k < PEAL_AXES; k++) {
            int64_t shift = carrier->target[k] - carrier->source.lo[k];
            source.lo[k] = piece->source.lo[k] + shift;
            source.hi[k] = piece->source.hi[k] + shift;
        }
        add_image(b, piece->target_array, &source, piece->target);
    }
}

static void add_local(builder *b, const peal_op *op)
{
    for (int i = 0; i < op->piece_count; i++)
        add_image(b, op->piece[i].target_array, &op->piece[i].source, op->piece[i].target);
}

/* Ends REPEAT: one list of copies, paired only among those of one array and axis. */
static void copy_images(builder *b)
{
    int first = b->copies, count = b->images;
    b->most_images = count > b->most_images ? count : b->most_images;
    b->images = 0;
    if (b->counting)
        b->copies += count;
    else
        count = peal_exchange_join_images(b->image, count);
    for (int i = 0; !b->counting && i < count;) {
        int from = b->copies, axis = b->image[i].axis, array = b->image[i].array;
        size_t element = peal_type_bytes(b->schedule->array[array].type);
        for (; i < count && b->image[i].axis == axis && b->image[i].array == array; i++) {
            const peal_exchange_image *image = &b->image[i];
            int64_t point[PEAL_AXES];
            for (int k = 0; k < PEAL_AXES; k++)
                point[k] = image->target.lo[k] - image->shift[k];
            end to = in_array(b, array, image->target.lo), source = in_array(b, array, point);
            add_copy(b, &image->target, element, &to, &source);
        }
        b->copies = from + peal_copies_pair(&b->program->copy[from], b->copies - from);
    }
    if (count == 0)
        return;
    peal_exchange_action *action = add_action(b, PEAL_EXCHANGE_COPY);
    action->first = first;
    action->count = b->copies - first;
}

/* ---- the walk ---- */

static bool belongs(const builder *b, const peal_op *op, bool after, phase wanted)
{
    bool receives = op->channel >= 0 && !b->schedule->channel[op->channel].outgoing;
    phase own = b->small ? REPEAT_OWN : REPEAT;
    switch (op->kind) {
    case PEAL_OP_COPY:
        if (op->copy == PEAL_COPY_LOCAL)
            return wanted == own;
        if (op->copy == PEAL_COPY_UNPACK)
            return wanted == RECEIVE || wanted == REPEAT;
        return wanted == SEND || wanted == FETCH;
    case PEAL_OP_WAIT:
    case PEAL_OP_WRITE:
        if (op->kind == PEAL_OP_WRITE && op->credit && after)
            return wanted == RELEASE;
        return wanted == (receives ? RECEIVE : SEND);
    default:
        return false;
    }
}

static void add_op(builder *b, const peal_op *op, phase wanted)
{
    if (op->kind != PEAL_OP_COPY)
        add_word(b, op, wanted);
    else if (op->copy == PEAL_COPY_LOCAL)
        add_local(b, op);
    else if (wanted == REPEAT)
        add_carried(b, &b->schedule->channel[op->channel]);
    else if (wanted == FETCH)
        add_fetch(b, &b->schedule->channel[op->channel]);
    else
        add_message(b, &b->schedule->channel[op->channel]);
}

static peal_status check_op(const builder *b, const peal_op *op)
{
    if (op->kind != PEAL_OP_LOOP && op->kind != PEAL_OP_IF && op->kind != PEAL_OP_SWAP)
        return PEAL_STATUS_OK;
    return peal_report(b->exchange->session->diagnostics, PEAL_E_INTERNAL, PEAL_NO_SOURCE, NULL,
                       "the schedule of an exchange has an op of kind %d", (int)op->kind);
}

static peal_status walk_phase(builder *b, phase wanted)
{
    bool after = false;
    for (int i = b->schedule->step.first; i < b->schedule->step.end; i++) {
        const peal_op *op = &b->schedule->op[i];
        peal_status status = check_op(b, op);
        if (status)
            return status;
        after |= op->kind == PEAL_OP_LAUNCH;
        if (belongs(b, op, after, wanted))
            add_op(b, op, wanted);
    }
    if (wanted == REPEAT_OWN || wanted == REPEAT)
        copy_images(b);
    return PEAL_STATUS_OK;
}

/* Up to the first receive it is sent. */
static peal_status walk_in_order(builder *b)
{
    int received = -1;
    for (int i = b->schedule->step.first; i < b->schedule->step.end; i++) {
        const peal_op *op = &b->schedule->op[i];
        peal_status status = check_op(b, op);
        if (status)
            return status;
        if (op->channel < 0)
            continue;
        if (received < 0 && !b->schedule->channel[op->channel].outgoing)
            received = b->actions;
        add_op(b, op, received < 0 ? SEND : RECEIVE);
    }
    b->program->send_count = received < 0 ? b->actions : received;
    return PEAL_STATUS_OK;
}

static peal_status walk_by_phases(builder *b)
{
    for (phase wanted = RELEASE; wanted < PHASES; wanted++) {
        peal_status status = walk_phase(b, wanted);
        if (status)
            return status;
        if (wanted == REPEAT_OWN)
            b->program->send_count = b->actions;
    }
    return PEAL_STATUS_OK;
}

static peal_status walk(builder *b)
{
    b->actions = b->copies = 0;
    peal_status status = b->exchange->form->in_order ? walk_in_order(b) : walk_by_phases(b);
    b->program->count = b->actions;
    b->program->copy_count = b->copies;
    return status;
}

/* What is known of the messages before the walk. */
static void look_at_messages(builder *b)
{
    b->small = true;
    for (int i = 0; i < b->schedule->channel_count; i++) {
        int64_t bytes;
        int stripes = peal_exchange_cut(&b->schedule->channel[i], NULL, &bytes);
        b->most_stripes = stripes > b->most_stripes ? stripes : b->most_stripes;
        b->small = b->small && is_small(bytes);
    }
}

static bool allocate(builder *b)
{
    peal_exchange_program *program = b->program;
    program->action = calloc((size_t)program->count + 1, sizeof(*program->action));
    program->copy = calloc((size_t)program->copy_count + 1, sizeof(*program->copy));
    b->stripe = calloc((size_t)b->most_stripes + 1, sizeof(*b->stripe));
    b->image = calloc((size_t)b->most_images + 1, sizeof(*b->image));
    return program->action && program->copy && b->stripe && b->image;
}

static peal_status flatten(peal_exchange *exchange, int buffer)
{
    builder b = {.exchange = exchange,
                 .program = &exchange->program[buffer],
                 .buffer = buffer,
                 .schedule = exchange->binding.rank[0].schedule,
                 .counting = true};
    look_at_messages(&b);
    peal_status status = walk(&b);
    if (!status && !allocate(&b))
        status = peal_report(exchange->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE,
                             NULL, "no memory for an exchange of %d copies", b.program->copy_count);
    b.counting = false;
    if (!status)
        status = walk(&b);
    free(b.stripe);
    free(b.image);
    return status;
}

peal_status peal_exchange_flatten(peal_exchange *exchange)
{
    peal_status status = PEAL_STATUS_OK;
    for (int buffer = 0; !status && buffer < exchange->buffers; buffer++) {
        exchange->bytes = 0; /* both send as many */
        status = flatten(exchange, buffer);
    }
    return status;
}
