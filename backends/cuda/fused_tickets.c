/* Tickets: the list of shares that blocks of the kernel of mode fused take as they come
 * (device/tickets.h), in the order of the records, which the dependences allow; and the launches
 * that share it out.
 */
#include "backends/cuda/fused.h"

/* Workers for each block of the kernel, as far as there is work for them: a block that is done with
 * its share early takes another one. And most tickets of a list. */
enum { WORKERS_A_BLOCK = 4, MOST_TICKETS = 1 << 20 };

unsigned cuda_fused_workers(const cuda_fused *fused)
{
    unsigned most = 1, room = MOST_TICKETS / (unsigned)fused->count;
    unsigned workers = WORKERS_A_BLOCK * fused->blocks;

    for (int r = 0; r < fused->count; r++)
        most = fused->record[r].blocks > most ? fused->record[r].blocks : most;
    workers = workers < most ? workers : most;
    workers = workers < room ? workers : room;
    return most > 1 ? workers + 1 : 1; /* one for what is one block's work */
}

/* ---- launches ---- */

static bool begins_launch(const cuda_plan *plan, const cuda_fused *fused, int record)
{
    return record == 0 || (plan->lowering.order == CUDA_ORDER_PERIOD &&
                           fused->record[record].step != fused->record[record - 1].step);
}

static void cut_launches(const cuda_plan *plan, cuda_fused *fused)
{
    fused->part_count = 0;
    for (int r = 0; r < fused->count; r++)
        fused->part_count += begins_launch(plan, fused, r);
    fused->part = PEAL_ARENA_ARRAY(plan->arena, cuda_launch_part, fused->part_count);
    for (int r = 0, p = -1; r < fused->count; r++) {
        if (begins_launch(plan, fused, r))
            fused->part[++p].record = r;
        fused->part[p].end = r + 1;
    }
}

/* ---- tickets ---- */

static bool sends(const peal_launch *launch, const peal_fused_share *share)
{
    unsigned end = share->first + share->count * share->stride;

    for (int b = 0; b < launch->box_count; b++)
        if (launch->box[b].sends && share->first < launch->box[b].first + launch->box[b].blocks &&
            end > launch->box[b].first)
            return true;
    return false;
}

/* Where a share stands among those of its record: the lower, the earlier. In a launch for each step
 * those that wait for messages come last, and what is sent goes out early. */
enum { PLACES = 4 };

static int place_of(const cuda_fused *fused, const cuda_record *record,
                    const peal_fused_share *share)
{
    if (!fused->receives)
        return 0;
    return (share->waits && !record->receives ? 2 : 0) + !sends(&record->launch, share);
}

typedef struct listing {
    const cuda_fused *fused;
    const peal_fused_share *share; /* by kind and worker */
    cuda_tickets *out;
    unsigned char *seen; /* by worker: it has a ticket */
} listing;

/* A worker without any work has a ticket of the last record, so that its epoch goes on. */
static void list_record(listing *l, int r)
{
    const cuda_fused *fused = l->fused;
    const cuda_record *record = &fused->record[r];
    const peal_fused_share *share = &l->share[(size_t)record->kind * fused->grid];
    bool is_last = r == fused->count - 1;

    for (int place = 0; place < PLACES; place++)
        for (unsigned w = 0; w < fused->grid; w++) {
            bool works = share[w].count > 0 || (is_last && !l->seen[w]);
            if (!works || place_of(fused, record, &share[w]) != place)
                continue;
            l->seen[w] = 1;
            l->out->list[l->out->count++] =
                (peal_fused_ticket){(unsigned short)r, (unsigned short)record->kind,
                                    (unsigned short)w, 0};
        }
}

/* From the list's end: which record each worker has work in next. */
static void find_next(cuda_fused *fused, cuda_tickets *out, unsigned short *next)
{
    for (size_t t = out->count; t-- > 0;) /* as in front of the next round */
        if (out->list[t].worker != PEAL_TICKET_BEGIN)
            next[out->list[t].worker] = (unsigned short)(fused->count + out->list[t].record);
    for (int p = fused->part_count; p-- > 0;) {
        const cuda_launch_part *part = &fused->part[p];
        for (size_t t = part->ticket + part->count; t-- > part->ticket + 1;) {
            peal_fused_ticket *ticket = &out->list[t];
            ticket->next = next[ticket->worker];
            next[ticket->worker] = ticket->record;
        }
        for (unsigned w = 0; w < fused->grid; w++)
            out->first[(size_t)p * fused->grid + w] = next[w];
    }
}

void cuda_fused_tickets(const cuda_rank *rank, cuda_fused *fused, const cuda_order *order,
                        cuda_tickets *out)
{
    const cuda_plan *plan = rank->plan;
    peal_arena *arena = plan->arena;
    size_t most = (size_t)fused->grid; /* those without work */

    cut_launches(plan, fused);
    for (int r = 0; r < fused->count; r++)
        for (unsigned w = 0; w < fused->grid; w++)
            most += order->share[(size_t)fused->record[r].kind * fused->grid + w].count > 0;
    *out = (cuda_tickets){.list = PEAL_ARENA_ARRAY(arena, peal_fused_ticket,
                                                   most + (size_t)fused->part_count),
                          .first = PEAL_ARENA_ARRAY(arena, unsigned short,
                                                    (size_t)fused->part_count * fused->grid)};
    listing l = {.fused = fused,
                 .share = order->share,
                 .out = out,
                 .seen = PEAL_ARENA_ARRAY(arena, unsigned char, fused->grid)};
    for (int p = 0; p < fused->part_count; p++) {
        cuda_launch_part *part = &fused->part[p];
        part->ticket = out->count;
        out->list[out->count++] = (peal_fused_ticket){.record = (unsigned short)part->record,
                                                      .worker = PEAL_TICKET_BEGIN};
        for (int r = part->record; r < part->end; r++)
            list_record(&l, r);
        part->count = (unsigned)(out->count - part->ticket);
    }
    find_next(fused, out, PEAL_ARENA_ARRAY(arena, unsigned short, fused->grid));
}
