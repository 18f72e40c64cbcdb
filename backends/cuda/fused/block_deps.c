/* Finds how far which other blocks have to be before a block may run its partition of a work item.
 * Two partitions are ordered if they touch the same memory and one of them writes. Work items
 * repeat every round, so all pairs of kinds are looked at, whichever comes first. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <stdlib.h>
#include <string.h>

enum { FREE = 0xffff }; /* a block that may be behind by any number of work items */
enum { REGIONS = 512, TEAM = 32 };

/* A part of what one block touches. */
typedef struct region {
    int space;
    bool write;
    int lo[PEAL_AXES], hi[PEAL_AXES];
    CUdeviceptr word;
} region;

typedef struct footprint {
    region *region;
    int count;
    const CUdeviceptr *awaited; /* words that the partition waits for itself */
    int awaited_count;
    bool works;      /* the partition has blocks */
    bool everywhere; /* it touches too much to tell what */
} footprint;

typedef struct order {
    const peal_cuda_rank *rank;
    peal_cuda_fused *fused;
    peal_fused_partition *partition;
    footprint *block; /* by kind, then block */
    footprint *team;  /* by kind, then by TEAM blocks: what these touch together */
    unsigned teams;
    unsigned short *distance; /* by kind, then by kind: find_distances */
    peal_fused_dependency *after;
    int after_count, after_room;
    peal_fused_add *add;
    int add_count, add_room;
    peal_arena *names, *adds; /* each holds one growing list */
    unsigned *behind;         /* scratch: by block, how many work items it may be behind, or FREE */
} order;

/* ---- footprints ---- */

static int64_t floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static void reach_box(const peal_reach *reach, const int *lo, const int *hi, region *out)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_reach_axis *axis = &reach->axis[k];
        int64_t from = axis->low, to = axis->high;
        if (!axis->fixed) {
            from += floor_of((int64_t)lo[k] * axis->num, axis->den);
            to -= floor_of(-(int64_t)hi[k] * axis->num, axis->den);
        }
        out->lo[k] = (int)from;
        out->hi[k] = (int)to;
    }
}

/* The hull of blocks [first, first + count) of a box, and the range of their tiles' numbers. */
static void hull_of(const peal_launch_box *box, unsigned first, unsigned count, int *lo, int *hi,
                    int64_t *low, int64_t *high)
{
    unsigned from = first, to = first + count - 1;
    bool split = false;
    unsigned at[PEAL_AXES], end[PEAL_AXES];

    for (int k = 0; k < PEAL_AXES; k++) {
        unsigned n = box->count[k] ? box->count[k] : 1;
        at[k] = k < PEAL_AXES - 1 ? from % n : from;
        end[k] = k < PEAL_AXES - 1 ? to % n : to;
        from /= n;
        to /= n;
        /* If the first and the last block differ along a later axis, the hull has all of this one.
         */
        split = from != to;
        if (split && k < PEAL_AXES - 1) {
            at[k] = 0;
            end[k] = n - 1;
        }
    }
    *low = *high = box->tile;
    for (int k = 0; k < PEAL_AXES; k++) {
        int begin = box->lo[k] - (k == 0 ? box->lead : 0);
        lo[k] = begin + (int)at[k] * box->extent[k];
        lo[k] = lo[k] > box->lo[k] ? lo[k] : box->lo[k];
        hi[k] = begin + (int)(end[k] + 1) * box->extent[k];
        hi[k] = hi[k] < box->hi[k] ? hi[k] : box->hi[k];
        *low += (int64_t)at[k] * box->tile_step[k];
        *high += (int64_t)end[k] * box->tile_step[k];
    }
    (*high)++;
}

static void everything(region *out)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        out->lo[k] = INT32_MIN;
        out->hi[k] = INT32_MAX;
    }
}

/* Adds what the blocks of one box touch by one of the work item's touches. */
static void add_region(const peal_cuda_touch *touch, const int *lo, const int *hi, int64_t low,
                       int64_t high, footprint *out)
{
    if (out->count == REGIONS) {
        out->everywhere = true;
        return;
    }
    region *r = &out->region[out->count++];
    *r = (region){.space = touch->space, .write = touch->write, .word = touch->word};
    switch (touch->kind) {
    case PEAL_CUDA_TOUCH_REACH:
        reach_box(touch->reach, lo, hi, r);
        break;
    case PEAL_CUDA_TOUCH_INDEX:
        everything(r);
        r->lo[0] = (int)low;
        r->hi[0] = (int)high;
        break;
    case PEAL_CUDA_TOUCH_BOX:
        memcpy(r->lo, touch->lo, sizeof(r->lo));
        memcpy(r->hi, touch->hi, sizeof(r->hi));
        break;
    default:
        everything(r);
    }
}

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

static void find_footprint(const peal_cuda_work_item *item, peal_fused_partition *partition,
                           region *scratch, peal_arena *arena, footprint *out)
{
    const peal_launch *launch = &item->launch;
    CUdeviceptr *awaited = PEAL_ARENA_ARRAY(arena, CUdeviceptr, launch->wait_count + 1);
    unsigned end = partition->first + partition->count * partition->stride, masks = 0;

    *out = (footprint){.region = scratch,
                       .awaited = awaited,
                       .works = partition->count > 0,
                       .everywhere = partition->count > 0 && partition->stride > 1};
    for (int b = 0; b < launch->box_count && out->works; b++) {
        const peal_launch_box *box = &launch->box[b];
        unsigned first = partition->first > box->first ? partition->first : box->first;
        unsigned last = end < box->first + box->blocks ? end : box->first + box->blocks;
        int lo[PEAL_AXES], hi[PEAL_AXES];
        int64_t low, high;
        if (first >= last)
            continue;
        masks |= box->waits;
        hull_of(box, first - box->first, last - first, lo, hi, &low, &high);
        for (int i = 0; i < item->touch_count; i++)
            if (item->touch[i].boxes >> b & 1)
                add_region(&item->touch[i], lo, hi, low, high, out);
    }
    if (launch->box_count == 0 && out->works) /* counts steps, or begins a loop */
        for (int i = 0; i < item->touch_count; i++)
            add_region(&item->touch[i], NULL, NULL, 0, 0, out);
    partition->waits = masks;
    for (int i = 0; i < launch->wait_count; i++)
        if (masks >> i & 1)
            awaited[out->awaited_count++] = launch->wait[i].word;
    out->region = PEAL_ARENA_ARRAY(arena, region, out->count + 1);
    memcpy(out->region, scratch, (size_t)out->count * sizeof(region));
}

/* What several blocks touch together: a hull for each space. */
static void join_footprints(const footprint *of, unsigned count, region *scratch, peal_arena *arena,
                            footprint *out)
{
    *out = (footprint){.region = scratch};
    for (unsigned b = 0; b < count; b++) {
        out->everywhere |= of[b].everywhere;
        for (int i = 0; i < of[b].count; i++) {
            const region *r = &of[b].region[i];
            int at = 0;
            while (at < out->count && out->region[at].space != r->space)
                at++;
            out->works = true;
            if (at == out->count) {
                out->region[out->count++] = *r;
                continue;
            }
            out->region[at].write |= r->write;
            for (int k = 0; k < PEAL_AXES; k++) {
                out->region[at].lo[k] =
                    r->lo[k] < out->region[at].lo[k] ? r->lo[k] : out->region[at].lo[k];
                out->region[at].hi[k] =
                    r->hi[k] > out->region[at].hi[k] ? r->hi[k] : out->region[at].hi[k];
            }
        }
    }
    for (int i = 0; i < out->count; i++)
        out->region[i].word = 0;
    region *kept = PEAL_ARENA_ARRAY(arena, region, out->count + 1);
    memcpy(kept, scratch, (size_t)out->count * sizeof(region));
    out->region = kept;
}

/* ---- order ---- */

static bool awaits(const footprint *who, CUdeviceptr word)
{
    for (int i = 0; i < who->awaited_count; i++)
        if (who->awaited[i] == word)
            return true;
    return false;
}

/* Whether `a` has to wait for `b`. A partition that waits for a message itself need not wait for
 * another one that did, since messages arrive in order. Two that only wait for messages are not
 * ordered. */
static bool meets(const footprint *a, const footprint *b)
{
    if (a->everywhere || b->everywhere)
        return true;
    for (int i = 0; i < a->count; i++)
        for (int j = 0; j < b->count; j++) {
            const region *x = &a->region[i], *y = &b->region[j];
            bool apart = x->space != y->space || (!x->write && !y->write) || (x->word && y->word);
            for (int k = 0; k < PEAL_AXES && !apart; k++)
                apart = x->hi[k] <= y->lo[k] || y->hi[k] <= x->lo[k];
            if (!apart && !(y->word && awaits(a, y->word)) && !(x->word && awaits(b, x->word)))
                return true;
        }
    return false;
}

/* For each pair of kinds: the least number of work items that lie, within a round, between a work
 * item of the first kind and the latest one of the second kind before it. So far may the second
 * one's block be behind. All blocks begin a round together. Only folds that others do not wait for
 * may be behind: a block that is up to date has also read what a peer may overwrite after the next
 * message. */
static void find_distances(order *o)
{
    const peal_cuda_fused *fused = o->fused;
    int kinds = fused->kinds, latest[PEAL_CUDA_KINDS];

    for (int k = 0; k < kinds; k++) {
        bool serves = fused->item[fused->kind_item[k]].serves >= 0;
        for (int i = 0; i < kinds; i++)
            o->distance[i * kinds + k] = serves ? FREE : 0;
        latest[k] = -1;
    }
    for (int r = 0; r < fused->count; r++) {
        unsigned short *distance = &o->distance[fused->item[r].kind * kinds];
        for (int k = 0; k < kinds; k++)
            if (latest[k] >= 0 && r - latest[k] - 1 < distance[k])
                distance[k] = (unsigned short)(r - latest[k] - 1);
        latest[fused->item[r].kind] = r;
    }
}

static void look_at_kind(order *o, const footprint *a, unsigned me, int kind, unsigned distance)
{
    const footprint *block = &o->block[(size_t)kind * o->fused->grid];

    for (unsigned t = 0; t < o->teams; t++) {
        const footprint *team = &o->team[(size_t)kind * o->teams + t];
        unsigned end = (t + 1) * TEAM < o->fused->grid ? (t + 1) * TEAM : o->fused->grid;
        if (!team->works || !meets(a, team))
            continue;
        for (unsigned b = t * TEAM; b < end; b++)
            if (b != me && o->behind[b] > distance && block[b].works && meets(a, &block[b]))
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
        if (comes_after_all(fused, item, partition)) {
            wait_for_all(o, partition);
            continue;
        }
        for (unsigned i = 0; i < fused->grid; i++)
            o->behind[i] = FREE;
        for (int k = 0; k < fused->kinds; k++)
            if (distance[k] != FREE)
                look_at_kind(o, &o->block[(size_t)kind * fused->grid + b], b, k, distance[k]);
        /* Unless partitions are fixed, another block may have run this worker's last one. */
        o->behind[b] = fused->dispatcher->is_fixed ? FREE : 0;
        keep_before(o, b, partition);
    }
}

static void find_footprints(order *o, peal_arena *arena)
{
    region *scratch = PEAL_ARENA_ARRAY(arena, region, REGIONS + 1);
    region *wide = PEAL_ARENA_ARRAY(arena, region, peal_cuda_footprint_spaces(o->rank) + 1);

    for (int k = 0; k < o->fused->kinds; k++) {
        const peal_cuda_work_item *item = &o->fused->item[o->fused->kind_item[k]];
        footprint *block = &o->block[(size_t)k * o->fused->grid];
        for (unsigned b = 0; b < o->fused->grid; b++) {
            peal_fused_partition *partition = &o->partition[(size_t)k * o->fused->grid + b];
            *partition = peal_cuda_partition(o->fused, item, b);
            note_adds(o, item, partition);
            find_footprint(item, partition, scratch, arena, &block[b]);
        }
        for (unsigned t = 0; t < o->teams; t++) {
            unsigned left = o->fused->grid - t * TEAM;
            join_footprints(&block[t * TEAM], left < TEAM ? left : TEAM, wide, arena,
                            &o->team[(size_t)k * o->teams + t]);
        }
    }
}

bool peal_cuda_block_deps_build(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                peal_cuda_block_deps *out)
{
    peal_arena *kept = rank->plan->arena, *arena = peal_arena_create_within(kept);

    peal_cuda_fused_find_kinds(fused);
    if (fused->kinds > PEAL_CUDA_KINDS) {
        peal_arena_destroy(arena);
        return false;
    }
    size_t grid = fused->grid, partitions = (size_t)fused->kinds * grid;
    order o = {.rank = rank,
               .fused = fused,
               .names = peal_arena_create_within(arena),
               .adds = peal_arena_create_within(arena),
               .teams = (fused->grid + TEAM - 1) / TEAM,
               .partition = PEAL_ARENA_ARRAY(kept, peal_fused_partition, partitions + 1),
               .block = PEAL_ARENA_ARRAY(arena, footprint, partitions + 1),
               .distance = PEAL_ARENA_ARRAY(arena, unsigned short, fused->kinds * fused->kinds + 1),
               .behind = PEAL_ARENA_ARRAY(arena, unsigned, grid + 1)};
    o.team = PEAL_ARENA_ARRAY(arena, footprint, (size_t)fused->kinds * o.teams + 1);
    find_distances(&o);
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
    return true;
}
