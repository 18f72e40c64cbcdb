/* What blocks read and write, in boxes of points (block_footprint.h). */
#include "backends/cuda/fused/block_footprint.h"

#include <string.h>

static int64_t floor_of(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static void reach_box(const peal_reach *reach, const int *lo, const int *hi, peal_cuda_region *out)
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

static void everything(peal_cuda_region *out)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        out->lo[k] = INT32_MIN;
        out->hi[k] = INT32_MAX;
    }
}

/* Adds what the blocks of one box touch by one of the work item's touches. */
static void add_region(const peal_cuda_touch *touch, const int *lo, const int *hi, int64_t low,
                       int64_t high, peal_cuda_block_footprint *out)
{
    if (out->count == PEAL_CUDA_REGIONS) {
        out->everywhere = true;
        return;
    }
    peal_cuda_region *r = &out->region[out->count++];
    *r = (peal_cuda_region){.space = touch->space, .write = touch->write, .word = touch->word};
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

/* In the order that members of peal_cuda_block_footprint say. */
static void keep_regions(const peal_cuda_region *region, peal_arena *arena,
                         peal_cuda_block_footprint *out)
{
    int at = 0;

    out->region = PEAL_ARENA_ARRAY(arena, peal_cuda_region, out->count + 1);
    for (int i = 0; i < out->count; i++)
        if (region[i].write && !region[i].word)
            out->region[at++] = region[i];
    out->written = at;
    for (int i = 0; i < out->count; i++)
        if (!region[i].write && !region[i].word)
            out->region[at++] = region[i];
    out->own = at;
    for (int i = 0; i < out->count; i++)
        if (region[i].word)
            out->region[at++] = region[i];
}

void peal_cuda_block_footprint_find(const peal_cuda_work_item *item,
                                    peal_fused_partition *partition, peal_cuda_region *scratch,
                                    peal_arena *arena, peal_cuda_block_footprint *out)
{
    const peal_launch *launch = &item->launch;
    CUdeviceptr *awaited = PEAL_ARENA_ARRAY(arena, CUdeviceptr, launch->wait_count + 1);
    unsigned end = partition->first + partition->count * partition->stride, masks = 0;

    *out = (peal_cuda_block_footprint){.region = scratch,
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
    keep_regions(scratch, arena, out);
}

void peal_cuda_block_footprint_join(const peal_cuda_block_footprint *of, unsigned count,
                                    peal_cuda_region *scratch, peal_arena *arena,
                                    peal_cuda_block_footprint *out)
{
    *out = (peal_cuda_block_footprint){.region = scratch};
    for (unsigned b = 0; b < count; b++) {
        out->everywhere |= of[b].everywhere;
        for (int i = 0; i < of[b].count; i++) {
            const peal_cuda_region *r = &of[b].region[i];
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
    keep_regions(scratch, arena, out);
}

static bool awaits(const peal_cuda_block_footprint *who, CUdeviceptr word)
{
    for (int i = 0; i < who->awaited_count; i++)
        if (who->awaited[i] == word)
            return true;
    return false;
}

static bool overlap(const peal_cuda_region *x, const peal_cuda_region *y)
{
    bool apart = x->space != y->space;

    for (int k = 0; k < PEAL_AXES && !apart; k++)
        apart = x->hi[k] <= y->lo[k] || y->hi[k] <= x->lo[k];
    return !apart;
}

/* Whether b has to wait for messages that a waits for, or a for it. */
static bool meets_messages(const peal_cuda_block_footprint *a, const peal_cuda_block_footprint *b)
{
    for (int i = a->own; i < a->count; i++)
        for (int j = 0; j < b->own; j++)
            if (overlap(&a->region[i], &b->region[j]) && !awaits(b, a->region[i].word))
                return true;
    return false;
}

bool peal_cuda_block_footprints_meet(const peal_cuda_block_footprint *a,
                                     const peal_cuda_block_footprint *b)
{
    if (a->everywhere || b->everywhere)
        return true;
    for (int i = 0; i < a->own; i++)
        for (int j = 0; j < (i < a->written ? b->own : b->written); j++)
            if (overlap(&a->region[i], &b->region[j]))
                return true;
    return meets_messages(a, b) || meets_messages(b, a);
}
