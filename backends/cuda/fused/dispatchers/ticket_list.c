/* The list of tickets of a round: all partitions that have work, in the order of the work items,
 * which the dependences allow. A round may be cut into several launches, whose tickets follow each
 * other. */
#include "backends/cuda/fused/dispatchers/ticket_list.h"

/* So many workers for each block, as far as there is work for them: a block that is done early
 * takes the partition of another worker. And most tickets of a list. */
enum { WORKERS_A_BLOCK = 4, MOST_TICKETS = 1 << 20 };

unsigned peal_cuda_ticket_workers(const peal_cuda_fused *fused)
{
    unsigned most = 1, room = MOST_TICKETS / (unsigned)fused->count;
    unsigned workers = WORKERS_A_BLOCK * fused->blocks;

    for (int r = 0; r < fused->count; r++)
        most = fused->item[r].blocks > most ? fused->item[r].blocks : most;
    workers = workers < most ? workers : most;
    workers = workers < room ? workers : room;
    return most > 1 ? workers + 1 : 1; /* one more for work items of one block */
}

typedef struct listing {
    peal_cuda_fused *fused;
    const peal_cuda_ticket_rules *rules;
    const peal_fused_partition *partition; /* by kind and worker */
    peal_cuda_tickets *out;
    unsigned char *seen; /* by worker: it has a ticket */
} listing;

/* ---- launches ---- */

static bool begins_launch(const listing *l, int item)
{
    return item == 0 || (l->rules->begins_launch && l->rules->begins_launch(l->fused, item));
}

static void cut_launches(const listing *l, peal_arena *arena)
{
    peal_cuda_fused *fused = l->fused;

    fused->part_count = 0;
    for (int r = 0; r < fused->count; r++)
        fused->part_count += begins_launch(l, r);
    fused->part = PEAL_ARENA_ARRAY(arena, peal_cuda_ticket_launch, fused->part_count);
    for (int r = 0, p = -1; r < fused->count; r++) {
        if (begins_launch(l, r))
            fused->part[++p].item = r;
        fused->part[p].end = r + 1;
    }
}

/* ---- tickets ---- */

static int place_of(const listing *l, const peal_cuda_work_item *item,
                    const peal_fused_partition *partition)
{
    return l->rules->place_of ? l->rules->place_of(item, partition) : 0;
}

/* A worker without any work has a ticket of the last work item, so that its epoch goes on. */
static void list_item(listing *l, int r)
{
    const peal_cuda_fused *fused = l->fused;
    const peal_cuda_work_item *item = &fused->item[r];
    const peal_fused_partition *partition = &l->partition[(size_t)item->kind * fused->grid];
    bool is_last = r == fused->count - 1;

    for (int place = 0; place < l->rules->places; place++)
        for (unsigned w = 0; w < fused->grid; w++) {
            bool works = partition[w].count > 0 || (is_last && !l->seen[w]);
            if (!works || place_of(l, item, &partition[w]) != place)
                continue;
            l->seen[w] = 1;
            l->out->list[l->out->count++] =
                (peal_fused_ticket){(unsigned short)r, (unsigned short)item->kind,
                                    (unsigned short)w, 0};
        }
}

/* Fills in `next` from the end of the list: the next work item in which each worker has work. */
static void find_next(const peal_cuda_fused *fused, peal_cuda_tickets *out, unsigned short *next)
{
    for (size_t t = out->count; t-- > 0;) /* behind the end, that of the next round */
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

void peal_cuda_ticket_list(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                           const peal_cuda_block_deps *deps, const peal_cuda_ticket_rules *rules,
                           peal_cuda_tickets *out)
{
    peal_arena *arena = rank->plan->arena;
    size_t most = (size_t)fused->grid; /* those without work */
    listing l = {.fused = fused,
                 .rules = rules,
                 .partition = deps->partition,
                 .out = out,
                 .seen = PEAL_ARENA_ARRAY(arena, unsigned char, fused->grid)};

    cut_launches(&l, arena);
    for (int r = 0; r < fused->count; r++)
        for (unsigned w = 0; w < fused->grid; w++)
            most += deps->partition[(size_t)fused->item[r].kind * fused->grid + w].count > 0;
    *out = (peal_cuda_tickets){.list = PEAL_ARENA_ARRAY(arena, peal_fused_ticket,
                                                        most + (size_t)fused->part_count),
                               .first = PEAL_ARENA_ARRAY(arena, unsigned short,
                                                         (size_t)fused->part_count * fused->grid)};
    for (int p = 0; p < fused->part_count; p++) {
        peal_cuda_ticket_launch *part = &fused->part[p];
        part->ticket = out->count;
        out->list[out->count++] =
            (peal_fused_ticket){.item = (unsigned short)part->item, .worker = PEAL_TICKET_BEGIN};
        for (int r = part->item; r < part->end; r++)
            list_item(&l, r);
        part->count = (unsigned)(out->count - part->ticket);
    }
    find_next(fused, out, PEAL_ARENA_ARRAY(arena, unsigned short, fused->grid));
}
