/* The critical path: goes back from the item that ended the last step to what enabled each item, as
 * far as there are records. */
#include "backends/sim/internal.h"

#include <stdlib.h>

static bool add(sim_result *out, int64_t *capacity, sim_piece piece)
{
    if (out->piece_count == *capacity) {
        int64_t more = *capacity ? 2 * *capacity : 256;
        sim_piece *list = realloc(out->piece, (size_t)more * sizeof(*list));
        if (!list)
            return false;
        out->piece = list;
        *capacity = more;
    }
    out->piece[out->piece_count++] = piece;
    return true;
}

/* The WRITE of the word that the WAIT `item` of a rank has waited for. */
static bool find_write(const sim_state *s, int rank, int channel, const sim_item *item, int *from,
                       int32_t *write)
{
    const sim_program *p = sim_program_of(s, rank);
    *from = rank + (int)p->channel[channel].offset;
    const sim_program *peer = sim_program_of(s, *from);
    int end = sim_network_peer(s->network, s->desc->number[rank], channel, s->desc->number[*from]);
    const sim_channel *c = &peer->channel[end];
    const peal_op *op = &p->schedule->op[item->op];
    int64_t word = (int64_t)item->message - (op->credit ? c->slots : 0);
    if (word < 1 || word > c->write_count)
        return false;
    *write = peer->write_item[c->first_write + (int)word - 1];
    return true;
}

static const sim_record *record_of(const sim_state *s, int rank, int32_t item)
{
    int32_t first = s->recorded[s->desc->number[rank]];
    return item < first ? NULL : &s->record[s->record_base[rank] + (size_t)(item - first)];
}

void sim_path_follow(const sim_state *s, sim_result *out)
{
    int rank = s->last_rank;
    int32_t number = s->last_item;
    int64_t capacity = 0;
    const sim_record *record;

    out->path_steps = s->recorded_steps;
    while (number >= 0 && (record = record_of(s, rank, number))) {
        const sim_item *item = &sim_program_of(s, rank)->item[number];
        sim_piece piece = {.rank = rank,
                           .op = item->op,
                           .step = item->step,
                           .begin_s = record->begin_s,
                           .end_s = record->end_s};
        if (!add(out, &capacity, piece))
            return;
        if (record->cause >= NO_ITEM) {
            number = record->cause;
            rank = record->cause_rank;
            continue;
        }
        int from;
        int32_t write;
        if (!find_write(s, rank, -2 - record->cause, item, &from, &write))
            return;
        const sim_record *sent = record_of(s, from, write);
        if (!sent)
            return;
        const sim_item *writes = &sim_program_of(s, from)->item[write];
        if (!add(out, &capacity,
                 (sim_piece){.rank = from,
                             .op = writes->op,
                             .link = true,
                             .to = rank,
                             .step = writes->step,
                             .begin_s = sent->end_s,
                             .end_s = record->begin_s}))
            return;
        rank = from;
        number = write;
    }
}
