/* Stores outside the footprint of what is there already: no contents show them. So the array lies
 * where a page begins right behind a row of the footprint, or with that row, and pages that have
 * nothing of the footprint cannot be stored to. */
#define _GNU_SOURCE
#include "base/checked.h"
#include "runtime/footprints/internal.h"

#include <string.h>

enum { ROWS = 3, QUIET_BYTES = 1 << 27 };

/* Rows of a footprint in memory: the first, one in the middle, the last. */
typedef struct row_list {
    int64_t count, wanted[ROWS];
    struct {
        int64_t offset, bytes;
    } row[ROWS];
} row_list;

static void count_row(void *user, int64_t offset, int64_t bytes)
{
    (void)offset, (void)bytes;
    ((row_list *)user)->count++;
}

static void take_row(void *user, int64_t offset, int64_t bytes)
{
    row_list *list = user;
    for (int i = 0; i < ROWS; i++)
        if (list->wanted[i] == list->count) {
            list->row[i].offset = offset;
            list->row[i].bytes = bytes;
        }
    list->count++;
}

static void allow_row(void *user, int64_t offset, int64_t bytes)
{
    guarded_allow(user, offset, bytes);
}

/* One run in which the array's byte `edge` begins a page. */
static bool store_faults(const checked_task *t, const peal_call *call, int view, int64_t edge,
                         finding *out)
{
    peal_footprints *owner = t->owner;
    guarded *shadow = &owner->shadow[view][FILL_REAL], kept = *shadow;
    guarded_place_edge(&owner->edge, kept.bytes, edge);
    memcpy(owner->edge.base, view_real(t, view, call), (size_t)kept.bytes);
    guarded_protect(&owner->edge);
    view_rows(t, view, &call->tile, allow_row, &owner->edge);
    put_inputs(t, call, FILL_REAL);
    *shadow = owner->edge;
    run_tile(t, call, FILL_REAL);
    int64_t offset = (int64_t)(owner->fault_address - (uintptr_t)shadow->base);
    owner->edge = *shadow;
    *shadow = kept;
    settle(t, call, FILL_REAL);
    return owner->faulted && owner->fault_view == view && owner->fault_writes &&
           !view_declares(t, view, &call->tile, peal_floor_divide(offset, view_element(t, view))) &&
           note(out, FINDING_QUIET, t, view, offset);
}

bool find_quiet_store(checked_task *t, const peal_call *call, finding *out)
{
    bool ran = false;
    for (int i = 0; i < t->task->access_count; i++) {
        row_list list = {.count = 0};
        int64_t bytes = t->view[i].array->layout.bytes;
        if (!is_output(t, i) || !view_real(t, i, call) || !t->owner->edge.reserved)
            continue;
        view_rows(t, i, &call->tile, count_row, &list);
        int rows = list.count < ROWS ? (int)list.count : ROWS;
        for (int r = 0; r < ROWS; r++)
            list.wanted[r] = r < rows ? r * (list.count - 1) / (rows > 1 ? rows - 1 : 1) : -1;
        list.count = 0;
        view_rows(t, i, &call->tile, take_row, &list);
        for (int r = 0; r < rows && t->quiet_bytes < QUIET_BYTES; r++) {
            t->quiet_bytes += 2 * bytes + (1 << 16);
            ran = true;
            if (store_faults(t, call, i, list.row[r].offset, out) ||
                store_faults(t, call, i, list.row[r].offset + list.row[r].bytes, out))
                return true;
        }
    }
    if (ran) { /* the outputs are in the shadow again */
        put_inputs(t, call, FILL_REAL);
        run_tile(t, call, FILL_REAL);
    }
    return false;
}
