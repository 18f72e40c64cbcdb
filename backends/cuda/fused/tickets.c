/* Tickets: the list of partitions that blocks of the kernel of mode fused take as they come
 * (device/tickets.h), in the order of the work items, which the dependences allow; and the launches
 * that partition it out.
 */
#include "backends/cuda/fused/fused.h"

/* Workers for each block of the kernel, as far as there is work for them: a block that is done with
 * its partition early takes another one. And most tickets of a list. */
enum { WORKERS_A_BLOCK = 4, MOST_TICKETS = 1 << 20 };

unsigned peal_cuda_fused_workers(const peal_cuda_fused *fused)
{
    unsigned most = 1, room = MOST_TICKETS / (unsigned)fused->count;
    unsigned workers = WORKERS_A_BLOCK * fused->blocks;

    for (int r = 0; r < fused->count; r++)
        most = fused->item[r].blocks > most ? fused->item[r].blocks : most;
    workers = workers < most ? workers : most;
    workers = workers < room ? workers : room;
    return most > 1 ? workers + 1 : 1; /* one for what is one block's work */
}

/* ---- launches ---- */

static bool begins_launch(const peal_cuda_plan *plan, const peal_cuda_fused *fused, int item)
{
    return item == 0 || (plan->options.order == PEAL_CUDA_DISPATCH_PAPER &&
                         fused->item[item].step != fused->item[item - 1].step);
}

static void cut_launches(const peal_cuda_plan *plan, peal_cuda_fused *fused)
{
    fused->part_count = 0;
    for (int r = 0; r < fused->count; r++)
        fused->part_count += begins_launch(plan, fused, r);
    fused->part = PEAL_ARENA_ARRAY(plan->arena, peal_cuda_ticket_launch, fused->part_count);
    for (int r = 0, p = -1; r < fused->count; r++) {
        if (begins_launch(plan, fused, r))
            fused->part[++p].item = r;
        fused->part[p].end = r + 1;
    }
}

/* ---- tickets ---- */

static bool sends(const peal_launch *launch, const peal_fused_partition *partition)
{
    unsigned end = partition->first + partition->count * partition->stride;

    for (int b = 0; b < launch->box_count; b++)
        if (launch->box[b].sends &&
            partition->first < launch->box[b].first + launch->box[b].blocks &&
            end > launch->box[b].first)
            return true;
    return false;
}

/* Where a partition stands among those of its work item: the lower, the earlier. In a launch for
 * each step those that wait for messages come last, and what is sent goes out early. */
enum { PLACES = 4 };

static int place_of(const peal_cuda_fused *fused, const peal_cuda_work_item *item,
                    const peal_fused_partition *partition)
{
    if (!fused->receives)
        return 0;
    return (partition->waits && !item->receives ? 2 : 0) + !sends(&item->launch, partition);
}

typedef struct listing {
    const peal_cuda_fused *fused;
    const peal_fused_partition *partition; /* by kind and worker */
    peal_cuda_tickets *out;
    unsigned char *seen; /* by worker: it has a ticket */
} listing;

/* A worker without any work has a ticket of the last work item, so that its epoch goes on. */
static void list_record(listing *l, int r)
{
    const peal_cuda_fused *fused = l->fused;
    const peal_cuda_work_item *item = &fused->item[r];
    const peal_fused_partition *partition = &l->partition[(size_t)item->kind * fused->grid];
    bool is_last = r == fused->count - 1;

    for (int place = 0; place < PLACES; place++)
        for (unsigned w = 0; w < fused->grid; w++) {
            bool works = partition[w].count > 0 || (is_last && !l->seen[w]);
            if (!works || place_of(fused, item, &partition[w]) != place)
                continue;
            l->seen[w] = 1;
            l->out->list[l->out->count++] =
                (peal_fused_ticket){(unsigned short)r, (unsigned short)item->kind,
                                    (unsigned short)w, 0};
        }
}

/* From the list's end: which work item each worker has work in next. */
static void find_next(peal_cuda_fused *fused, peal_cuda_tickets *out, unsigned short *next)
{
    for (size_t t = out->count; t-- > 0;) /* as in front of the next round */
        if (out->list[t].worker != PEAL_TICKET_BEGIN)
            next[out->list[t].worker] = (unsigned short)(fused->count + out->list[t].item);
    for (int p = fused->part_count; p-- > 0;) {
        const peal_cuda_ticket_launch *part = &fused->part[p];
        for (size_t t = part->ticket + part->count; t-- > part->ticket + 1;) {
            peal_fused_ticket *ticket = &out->list[t];
            ticket->next = next[ticket->worker];
            next[ticket->worker] = ticket->item;
        }
        for (unsigned w = 0; w < fused->grid; w++)
            out->first[(size_t)p * fused->grid + w] = next[w];
    }
}

void peal_cuda_fused_tickets(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                             const peal_cuda_block_deps *order, peal_cuda_tickets *out)
{
    const peal_cuda_plan *plan = rank->plan;
    peal_arena *arena = plan->arena;
    size_t most = (size_t)fused->grid; /* those without work */

    cut_launches(plan, fused);
    for (int r = 0; r < fused->count; r++)
        for (unsigned w = 0; w < fused->grid; w++)
            most += order->partition[(size_t)fused->item[r].kind * fused->grid + w].count > 0;
    *out = (peal_cuda_tickets){.list = PEAL_ARENA_ARRAY(arena, peal_fused_ticket,
                                                        most + (size_t)fused->part_count),
                               .first = PEAL_ARENA_ARRAY(arena, unsigned short,
                                                         (size_t)fused->part_count * fused->grid)};
    listing l = {.fused = fused,
                 .partition = order->partition,
                 .out = out,
                 .seen = PEAL_ARENA_ARRAY(arena, unsigned char, fused->grid)};
    for (int p = 0; p < fused->part_count; p++) {
        peal_cuda_ticket_launch *part = &fused->part[p];
        part->ticket = out->count;
        out->list[out->count++] =
            (peal_fused_ticket){.item = (unsigned short)part->item, .worker = PEAL_TICKET_BEGIN};
        for (int r = part->item; r < part->end; r++)
            list_record(&l, r);
        part->count = (unsigned)(out->count - part->ticket);
    }
    find_next(fused, out, PEAL_ARENA_ARRAY(arena, unsigned short, fused->grid));
}
