/* Finds how far which other blocks have to be before a block may run its partition of a work item.
 * Two partitions are ordered if they touch the same memory and one of them writes. Work items
 * repeat every round, so all pairs of kinds are looked at, whichever comes first. */
#include "backends/cuda/fused/block_footprint.h"
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <stdlib.h>
#include <string.h>

enum { FREE = 0xffff }; /* a block that may be behind by any number of work items */
enum { TEAM = 32 };

typedef struct order {
    const peal_cuda_rank *rank;
    peal_cuda_fused *fused;
    peal_fused_partition *partition;
    peal_cuda_block_footprint *block; /* by kind, then block */
    peal_cuda_block_footprint *team;  /* by kind, then by TEAM blocks: what these touch together */
    unsigned teams;
    unsigned short *distance; /* by kind, then by kind: find_distances */
    unsigned short *single;   /* by kind, then by service: the same, to that service's latest work
                                 item which others do wait for */
    peal_fused_dependency *after;
    int after_count, after_room;
    peal_fused_add *add;
    int add_count, add_room;
    peal_arena *names, *adds; /* each holds one growing list */
    unsigned *behind;         /* scratch: by block, how many work items it may be behind, or FREE */
} order;

/* ---- additions to flags ---- */

/* How many blocks of a partition lie in [first, last). */
static unsigned count_within(const peal_fused_partition *partition, unsigned first, unsigned last)
{
    unsigned count = 0;

    for (unsigned i = 0; i < partition->count; i++) {
        unsigned block = partition->first + i * partition->stride;
        count += block >= first && block < last;
    }
    return count;
}

static void add_to_flag(order *o, CUdeviceptr word, uint64_t value, peal_fused_partition *partition)
{
    PEAL_ARENA_ROOM(o->adds, o->add, o->add_count, o->add_room);
    o->add[o->add_count++] = (peal_fused_add){word, value};
    partition->add_count++;
}

/* The sum of what the partition's blocks would each add to flags. */
static void note_adds(order *o, const peal_cuda_work_item *item, peal_fused_partition *partition)
{
    const peal_launch *launch = &item->launch;

    partition->adds = (unsigned)o->add_count;
    for (int i = 0; i < launch->write_count && partition->count > 0 && item->alone; i++)
        add_to_flag(o, launch->write[i].word, item->quantum[i], partition);
    for (int i = 0; i < launch->write_count && launch->adds && item->shape >= 0; i++) {
        const peal_launch_write *write = &launch->write[i];
        unsigned count = 0;
        for (int b = 0; b < launch->box_count; b++)
            if (write->boxes >> b & 1)
                count += count_within(partition, launch->box[b].first,
                                      launch->box[b].first + launch->box[b].blocks);
        if (count == 0)
            continue;
        bool has_rest = count_within(partition, write->first, write->first + 1) > 0;
        add_to_flag(o, write->word, write->part * count + (has_rest ? write->rest : 0), partition);
    }
}

/* ---- order ---- */

static bool begins_section(const peal_cuda_fused *fused, int item)
{
    for (int i = 0; i < fused->section_count; i++)
        if (fused->section[i] == item)
            return true;
    return item == fused->plain;
}

/* For each pair of kinds: the least number of work items that lie, within a round, between a work
 * item of the first kind and the latest one of the second kind before it. So far may the second
 * one's block be behind; FREE: none comes before, since all blocks begin a round, and a section of
 * the list, together. But only what others do not wait for (`serves`) may be behind: a block that
 * is up to date has also read what a peer may overwrite after the next message. */
static void find_distances(order *o)
{
    const peal_cuda_fused *fused = o->fused;
    int kinds = fused->kinds, latest[PEAL_FUSED_WIDE_KINDS];

    for (int i = 0; i < kinds * kinds; i++)
        o->distance[i] = FREE;
    for (int k = 0; k < kinds; k++)
        latest[k] = -1;
    for (int r = 0; r < fused->count; r++) {
        unsigned short *distance = &o->distance[fused->item[r].kind * kinds];
        bool begins = begins_section(fused, r);
        for (int k = 0; k < kinds && begins; k++)
            latest[k] = -1;
        for (int k = 0; k < kinds; k++) {
            bool serves = fused->item[fused->kind_item[k]].serves >= 0;
            int between = serves ? r - latest[k] - 1 : 0;
            if (latest[k] >= 0 && between < distance[k])
                distance[k] = (unsigned short)between;
        }
        latest[fused->item[r].kind] = r;
    }
}

/* Services also run work items of one block that others wait for. (Of those that count steps the
 * footprints tell.) */
static void find_singles(order *o, peal_arena *arena)
{
    const peal_cuda_fused *fused = o->fused;
    int services = fused->services, *latest = PEAL_ARENA_ARRAY(arena, int, services + 1);

    for (int s = 0; s < services; s++)
        latest[s] = -1;
    for (int i = 0; i < fused->kinds * services; i++)
        o->single[i] = FREE;
    for (int r = 0; r < fused->count; r++) {
        const peal_cuda_work_item *item = &fused->item[r];
        unsigned short *single = &o->single[item->kind * services];
        bool begins = begins_section(fused, r);
        for (int s = 0; s < services && begins; s++)
            latest[s] = -1;
        for (int s = 0; s < services; s++)
            if (latest[s] >= 0 && r - latest[s] - 1 < single[s])
                single[s] = (unsigned short)(r - latest[s] - 1);
        if (peal_cuda_is_single(item))
            latest[item->service] = r;
    }
}

/* Whether a block of [begin, end) may be farther behind, as far as has been found out. */
static bool any_behind(const order *o, unsigned begin, unsigned end, unsigned distance)
{
    for (unsigned b = begin; b < end; b++)
        if (o->behind[b] > distance)
            return true;
    return false;
}

/* first: of the blocks that are looked at. */
static void look_at_kind(order *o, const peal_cuda_block_footprint *a, unsigned me, int kind,
                         unsigned distance, unsigned first)
{
    const peal_cuda_block_footprint *block = &o->block[(size_t)kind * o->fused->grid];

    for (unsigned t = first / TEAM; t < o->teams; t++) {
        const peal_cuda_block_footprint *team = &o->team[(size_t)kind * o->teams + t];
        unsigned begin = t * TEAM > first ? t * TEAM : first;
        unsigned end = (t + 1) * TEAM < o->fused->grid ? (t + 1) * TEAM : o->fused->grid;
        if (!team->works || !any_behind(o, begin, end, distance) ||
            !peal_cuda_block_footprints_meet(a, team))
            continue;
        for (unsigned b = begin; b < end; b++)
            if (b != me && o->behind[b] > distance && block[b].works &&
                peal_cuda_block_footprints_meet(a, &block[b]))
                o->behind[b] = distance;
    }
}

static void add_name(order *o, unsigned block, unsigned behind)
{
    PEAL_ARENA_ROOM(o->names, o->after, o->after_count, o->after_room);
    o->after[o->after_count++] =
        (peal_fused_dependency){(unsigned short)block, (unsigned short)behind};
}

/* The longest range of blocks that may all be behind by the same number. Where partitions are
 * fixed, the waiting block may be in the range, since nobody waits for itself. */
static void find_range(const order *o, unsigned me, peal_fused_partition *partition)
{
    enum { LEAST = 32 };
    unsigned grid = o->fused->grid;

    for (unsigned first = 0, end; first < grid; first = end) {
        unsigned behind = o->behind[first];
        for (end = first + 1; end < grid && (o->behind[end] == behind ||
                                             (end == me && o->fused->dispatcher->is_fixed));)
            end++;
        if (behind == FREE || end - first < LEAST || end - first <= partition->range_count)
            continue;
        partition->range_first = (unsigned short)first;
        partition->range_count = (unsigned short)(end - first);
        partition->range_behind = (unsigned short)behind;
    }
}

static void wait_for_all(const order *o, peal_fused_partition *partition)
{
    partition->after_count = partition->range_first = partition->range_behind = 0;
    partition->range_count = (unsigned short)o->fused->grid;
}

static void keep_before(order *o, unsigned me, peal_fused_partition *partition)
{
    find_range(o, me, partition);
    partition->after = (unsigned)o->after_count;
    for (unsigned b = 0; b < o->fused->grid; b++)
        if (o->behind[b] != FREE &&
            (b < partition->range_first ||
             b >= (unsigned)partition->range_first + partition->range_count))
            add_name(o, b, o->behind[b]);
    size_t count = (size_t)o->after_count - partition->after;
    partition->after_count = (unsigned short)count;
    if (count <= PEAL_FUSED_DEPENDENCY_LIST)
        return;
    o->after_count = (int)partition->after;
    wait_for_all(o, partition);
}

/* Waits for all workers. Of a service it waits for what the footprints name and for its latest work
 * item that others do wait for. */
static void spare_services(const order *o, int kind)
{
    const peal_cuda_fused *fused = o->fused;
    unsigned workers = fused->grid - (unsigned)fused->services;

    for (unsigned b = 0; b < workers; b++)
        o->behind[b] = 0;
    for (int s = 0; s < fused->services; s++) {
        unsigned *behind = &o->behind[fused->grid - 1 - (unsigned)s];
        unsigned single = o->single[kind * fused->services + s];
        *behind = single < *behind ? single : *behind;
    }
}

static bool comes_after_all(const peal_cuda_fused *fused, const peal_cuda_work_item *item,
                            const peal_fused_partition *partition)
{
    const peal_cuda_dispatcher *dispatcher = fused->dispatcher;

    return item->after_all ||
           (dispatcher->waits_for_all && dispatcher->waits_for_all(item, partition));
}

static void find_before(order *o, int kind)
{
    const peal_cuda_fused *fused = o->fused;
    const peal_cuda_work_item *item = &fused->item[fused->kind_item[kind]];
    const unsigned short *distance = &o->distance[kind * fused->kinds];

    for (unsigned b = 0; b < fused->grid; b++) {
        peal_fused_partition *partition = &o->partition[(size_t)kind * fused->grid + b];
        if (partition->count == 0)
            continue;
        bool all = comes_after_all(fused, item, partition);
        bool spares = item->spares && fused->grid > 1;
        if (all && !spares) {
            wait_for_all(o, partition);
            continue;
        }
        for (unsigned i = 0; i < fused->grid; i++)
            o->behind[i] = FREE;
        unsigned first = all ? fused->grid - (unsigned)fused->services : 0;
        for (int k = 0; k < fused->kinds; k++)
            if (distance[k] != FREE)
                look_at_kind(o, &o->block[(size_t)kind * fused->grid + b], b, k, distance[k],
                             first);
        if (all)
            spare_services(o, kind);
        /* Unless partitions are fixed, another block may have run this worker's last one. */
        o->behind[b] = fused->dispatcher->is_fixed ? FREE : 0;
        keep_before(o, b, partition);
    }
}

static void find_footprints(order *o, peal_arena *arena)
{
    peal_cuda_region *scratch = PEAL_ARENA_ARRAY(arena, peal_cuda_region, PEAL_CUDA_REGIONS + 1);
    peal_cuda_region *wide =
        PEAL_ARENA_ARRAY(arena, peal_cuda_region, peal_cuda_footprint_spaces(o->rank) + 1);

    for (int k = 0; k < o->fused->kinds; k++) {
        const peal_cuda_work_item *item = &o->fused->item[o->fused->kind_item[k]];
        peal_cuda_block_footprint *block = &o->block[(size_t)k * o->fused->grid];
        for (unsigned b = 0; b < o->fused->grid; b++) {
            peal_fused_partition *partition = &o->partition[(size_t)k * o->fused->grid + b];
            *partition = peal_cuda_partition(o->fused, item, b);
            note_adds(o, item, partition);
            peal_cuda_block_footprint_find(item, partition, scratch, arena, &block[b]);
        }
        for (unsigned t = 0; t < o->teams; t++) {
            unsigned left = o->fused->grid - t * TEAM;
            peal_cuda_block_footprint_join(&block[t * TEAM], left < TEAM ? left : TEAM, wide, arena,
                                           &o->team[(size_t)k * o->teams + t]);
        }
    }
}

void peal_cuda_block_deps_build(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                peal_cuda_block_deps *out)
{
    peal_arena *kept = rank->plan->arena, *arena = peal_arena_create_within(kept);

    size_t grid = fused->grid, partitions = (size_t)fused->kinds * grid;
    order o = {.rank = rank,
               .fused = fused,
               .names = peal_arena_create_within(arena),
               .adds = peal_arena_create_within(arena),
               .teams = (fused->grid + TEAM - 1) / TEAM,
               .partition = PEAL_ARENA_ARRAY(kept, peal_fused_partition, partitions + 1),
               .block = PEAL_ARENA_ARRAY(arena, peal_cuda_block_footprint, partitions + 1),
               .distance = PEAL_ARENA_ARRAY(arena, unsigned short, fused->kinds * fused->kinds + 1),
               .single =
                   PEAL_ARENA_ARRAY(arena, unsigned short, fused->kinds * fused->services + 1),
               .behind = PEAL_ARENA_ARRAY(arena, unsigned, grid + 1)};
    o.team = PEAL_ARENA_ARRAY(arena, peal_cuda_block_footprint, (size_t)fused->kinds * o.teams + 1);
    find_distances(&o);
    find_singles(&o, arena);
    find_footprints(&o, arena);
    for (int k = 0; k < fused->kinds; k++)
        find_before(&o, k);
    out->partition = o.partition;
    out->after = PEAL_ARENA_ARRAY(kept, peal_fused_dependency, o.after_count + 1);
    out->after_count = (size_t)o.after_count;
    if (o.after_count)
        memcpy(out->after, o.after, (size_t)o.after_count * sizeof(*o.after));
    out->add = PEAL_ARENA_ARRAY(kept, peal_fused_add, o.add_count + 1);
    out->add_count = (size_t)o.add_count;
    if (o.add_count)
        memcpy(out->add, o.add, (size_t)o.add_count * sizeof(*o.add));
    peal_arena_destroy(arena);
}
