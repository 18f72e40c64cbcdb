/* Which element of which array a tile reads without declaring it, and which of the tile's points
 * does so. Each question is a run of the tile, or of a part of it. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

#include <stdlib.h>
#include <string.h>

/* ---- the element ---- */

/* Elements of zone, array, zone, of all views one after the other. */
static int64_t elements_of(const checked_task *t, int view, fill f, int64_t *before)
{
    const guarded *g = &t->owner->shadow[view][f];
    int64_t element = view_element(t, view);
    *before = (g->base - g->open) / element;
    return *before + (g->end - g->base) / element;
}

/* Of view `view` elements below `count` (from the first of its zone) get the pattern of `f`, all
 * others what FILL_REAL has there. */
static void compose_view(const checked_task *t, const peal_call *call, int view, fill f,
                         int64_t count)
{
    const guarded *g = &t->owner->shadow[view][f];
    peal_type type = t->view[view].array->type;
    int64_t before, all = elements_of(t, view, f, &before), element = view_element(t, view);
    unsigned char *first = g->base - before * element;
    const unsigned char *real = view_real(t, view, call);
    count = count < 0 ? 0 : count < all ? count : all;
    fill_outside(first, all * element, type, FILL_REAL);
    if (real)
        memcpy(g->base, real, (size_t)g->bytes);
    fill_outside(first, count * element, type, f);
}

/* The tile's footprint, in a shadow that compose_view has filled with `count`. */
static void compose_inputs(const checked_task *t, const peal_call *call, int view, fill f,
                           int64_t count)
{
    const guarded *g = &t->owner->shadow[view][f];
    int64_t before, element = view_element(t, view);
    elements_of(t, view, f, &before);
    row_visit v = {.to = g->base,
                   .from = view_real(t, view, call),
                   .type = t->view[view].array->type,
                   .fill = f,
                   .end = (count - before) * element};
    if (!v.from)
        return;
    bool writes = t->view[view].mode == PEAL_WRITE_ACCESS;
    view_rows(t, view, &call->tile, writes ? row_old : row_copy, &v);
}

/* Whether the outputs change when the first `count` elements of all have the pattern of `f`. */
static bool matters(const checked_task *t, const peal_call *call, fill f, int64_t count)
{
    for (int i = 0; i < t->view_count; i++) {
        int64_t before, all = elements_of(t, i, f, &before);
        compose_view(t, call, i, f, count);
        compose_inputs(t, call, i, f, count);
        count -= count < all ? count : all;
    }
    return !run_tile(t, call, f) || outputs_differ(t, call, f);
}

void find_read(const checked_task *t, const peal_call *call, fill f, finding *found)
{
    int64_t low = 0, high = 0, before = 0;
    found->kind = FINDING_READ;
    found->view = -1;
    found->fill = f;
    for (int i = 0; i < t->view_count; i++)
        high += elements_of(t, i, f, &before);
    if (!matters(t, call, f, high) || matters(t, call, f, 0)) {
        found->kind = FINDING_UNSTEADY; /* not what is there, but when or where it is decides */
        return;
    }
    while (high - low > 1) {
        int64_t middle = low + (high - low) / 2;
        if (matters(t, call, f, middle))
            high = middle;
        else
            low = middle;
    }
    for (int i = 0; i < t->view_count; i++) {
        int64_t all = elements_of(t, i, f, &before);
        if (low < all) {
            found->view = i;
            found->element = low - before;
            return;
        }
        low -= all;
    }
}

/* ---- the point ---- */

int64_t point_extent(const checked_task *t, int k)
{
    int64_t extent = 1;
    for (int a = 0; a < t->task->access_count; a++) {
        const peal_task_access *access = &t->task->access[a];
        for (int r = 0; r < access->reach_count; r++) {
            const peal_reach_axis *axis = &access->reach[r].axis[k];
            int64_t multiple = extent;
            while (!axis->fixed && axis->den > 0 && multiple % axis->den)
                multiple += extent;
            extent = multiple;
        }
    }
    return extent;
}

/* Only this element of the shadow of `f` is not as FILL_REAL has it. */
static void poison(const checked_task *t, const peal_call *call, const finding *found)
{
    fill f = found->fill;
    for (int i = 0; i < t->view_count; i++) {
        compose_view(t, call, i, f, 0);
        compose_inputs(t, call, i, f, 0);
    }
    int64_t element = view_element(t, found->view);
    unsigned char *at = t->owner->shadow[found->view][f].base + found->element * element;
    peal_type type = t->view[found->view].array->type;
    if (view_declares(t, found->view, &call->tile, found->element))
        fill_old(at, element, type, f);
    else
        fill_outside(at, element, type, f);
}

static bool shows_read(const checked_task *t, const peal_call *call, const finding *found)
{
    if (t->view[found->view].mode != PEAL_WRITE_ACCESS &&
        view_declares(t, found->view, &call->tile, found->element))
        return false;
    put_inputs(t, call, FILL_REAL);
    bool shows = run_tile(t, call, FILL_REAL);
    if (shows) {
        poison(t, call, found);
        shows = !run_tile(t, call, found->fill) || outputs_differ(t, call, found->fill);
    }
    settle(t, call, FILL_REAL);
    return shows;
}

static bool shows_write(const checked_task *t, const peal_call *call, const finding *found)
{
    const guarded *g = &t->owner->shadow[found->view][found->fill];
    peal_type type = t->view[found->view].array->type;
    int64_t element = view_element(t, found->view);
    if (view_declares(t, found->view, &call->tile, found->element))
        return false;
    fill_outside(g->base + found->element * element, element, type, found->fill);
    put_inputs(t, call, found->fill);
    run_tile(t, call, found->fill);
    bool shows = first_broken(g->base + found->element * element, element, type, found->fill) >= 0;
    settle(t, call, found->fill);
    return shows;
}

/* A store of several elements may fault at any of them. */
static bool shows_fault(const checked_task *t, const peal_call *call, finding *found)
{
    enum { AT_ONCE = 64 };
    const peal_footprints *owner = t->owner;
    const guarded *g = &owner->shadow[found->view][FILL_REAL];
    int64_t element = view_element(t, found->view);
    put_inputs(t, call, FILL_REAL);
    run_tile(t, call, FILL_REAL);
    settle(t, call, FILL_REAL);
    if (!owner->faulted || owner->fault_view != found->view)
        return false;
    int64_t offset = (int64_t)(owner->fault_address - (uintptr_t)g->base);
    if (llabs(offset - found->element * element) >= AT_ONCE)
        return false;
    found->element = offset / element - (offset % element < 0);
    return true;
}

static bool shows_quiet(checked_task *t, const peal_call *call, const finding *found)
{
    finding part = {.view = -1};
    t->quiet_bytes = 0;
    return find_quiet_store(t, call, &part) && part.view == found->view &&
           part.element == found->element;
}

static bool shows(checked_task *t, const peal_call *call, finding *found)
{
    switch (found->kind) {
    case FINDING_QUIET:
        return shows_quiet(t, call, found);
    case FINDING_READ:
        return shows_read(t, call, found);
    case FINDING_WRITE:
        return shows_write(t, call, found);
    case FINDING_FAULT:
        return shows_fault(t, call, found);
    default:
        return false;
    }
}

/* Cuts the tile in half along one axis; the half that shows it is left. */
static bool halve(checked_task *t, peal_call *call, int k, finding *found)
{
    int64_t step = point_extent(t, k);
    int lo = call->tile.lo[k], hi = call->tile.hi[k];
    int64_t count = (hi - lo + step - 1) / step;
    int middle = (int)(lo + count / 2 * step);
    call->tile.hi[k] = middle;
    if (shows(t, call, found))
        return true;
    call->tile.lo[k] = middle;
    call->tile.hi[k] = hi;
    return shows(t, call, found);
}

void find_point(checked_task *t, const peal_call *call, finding *found)
{
    peal_call part = *call;
    if (found->view < 0 || found->kind > FINDING_FAULT)
        return;
    if (found->kind == FINDING_WRITE && !shows(t, call, found)) {
        found->has_tile = false; /* an earlier one has */
        return;
    }
    for (int k = PEAL_AXES - 1; k >= 0; k--)
        while (part.tile.hi[k] - part.tile.lo[k] > point_extent(t, k))
            if (!halve(t, &part, k, found))
                return;
    for (int k = 0; k < PEAL_AXES; k++)
        found->point[k] = part.tile.lo[k];
    found->has_point = true;
}
