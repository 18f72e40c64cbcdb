/* One run of a tile on the shadows of one fill, and what is to be done before and after. */
#define _GNU_SOURCE
#include "runtime/footprints/internal.h"

#include <string.h>

row_visit visit_of(const checked_task *t, int view, fill f)
{
    return (row_visit){.to = t->owner->shadow[view][f].base,
                       .type = t->view[view].array->type,
                       .fill = f,
                       .end = INT64_MAX,
                       .found = -1};
}

/* What is only read has its real contents from the launch on, where nobody can change them. */
static void renew_input(const checked_task *t, int view, const peal_call *call)
{
    guarded *g = &t->owner->shadow[view][FILL_REAL];
    row_visit v = visit_of(t, view, FILL_REAL);
    v.from = view_real(t, view, call);
    view_rows(t, view, &call->tile, row_equal, &v);
    if (v.found < 0)
        return;
    guarded_set_writable(g, true);
    memcpy(g->base, v.from, (size_t)g->bytes);
    guarded_set_writable(g, false);
}

void put_inputs(const checked_task *t, const peal_call *call, fill f)
{
    for (int i = 0; i < t->view_count; i++) {
        row_visit v = visit_of(t, i, f);
        v.from = view_real(t, i, call);
        bool old = f != FILL_REAL && t->view[i].mode == PEAL_WRITE_ACCESS;
        if (f == FILL_REAL && !is_output(t, i))
            renew_input(t, i, call);
        else if (v.from)
            view_rows(t, i, &call->tile, old ? row_old : row_copy, &v);
    }
}

/* A loop that runs away is stopped before it takes all memory. */
enum { MOST_FAULTS = 4096 };

/* In a handler. */
static bool fault(void *user, uintptr_t address)
{
    peal_footprints *f = user;
    bool write;
    if (f->fault_count++ >= MOST_FAULTS)
        return false;
    for (int i = 0; i < f->running->view_count; i++) {
        if (!guarded_fault(&f->shadow[i][f->running_fill], address, &write))
            continue;
        if (!f->faulted) {
            f->faulted = true;
            f->fault_view = i;
            f->fault_address = address;
        }
        if (write && address == f->fault_address)
            f->fault_writes = true;
        return true;
    }
    return false;
}

bool run_tile(const checked_task *t, const peal_call *call, fill f)
{
    peal_footprints *owner = t->owner;
    peal_call copy = *call;
    bool partials = !t->task->reduction_count || call->partial[0];
    copy.user = t->user;
    for (int i = 0; i < t->view_count; i++) {
        const checked_view *view = &t->view[i];
        unsigned char *real = view_real(t, i, call), *base = owner->shadow[i][f].base;
        guarded_close(&owner->shadow[i][f]);
        if (!view->access)
            copy.partial[view->part_index] = real ? base : NULL;
        else
            copy.view[i].base =
                (void *)((uintptr_t)call->view[i].base - (uintptr_t)real + (uintptr_t)base);
    }
    owner->running = t;
    owner->running_fill = f;
    owner->scanned = false;
    owner->faulted = owner->fault_writes = false;
    owner->fault_count = 0;
    owner->trial.fault = fault;
    owner->trial.user = owner;
    owner->trial.site = &owner->site;
    owner->trial.before = f == FILL_REAL ? fill_stack : NULL;
    bool ended = peal_trial_run(&owner->trial, partials ? t->full : t->bare, &copy);
    return ended && !owner->faulted;
}

bool outputs_differ(const checked_task *t, const peal_call *call, fill f)
{
    for (int i = 0; i < t->view_count; i++) {
        row_visit v = visit_of(t, i, f);
        v.from = t->owner->shadow[i][FILL_REAL].base;
        v.real = view_real(t, i, call);
        if (v.real && is_output(t, i))
            view_rows(t, i, &call->tile, row_compare, &v);
        if (v.found >= 0)
            return true;
    }
    return false;
}

void settle(const checked_task *t, const peal_call *call, fill f)
{
    for (int i = 0; i < t->view_count; i++) {
        row_visit v = visit_of(t, i, f);
        v.from = view_real(t, i, call);
        if (v.from && (f != FILL_REAL || is_output(t, i)))
            view_rows(t, i, &call->tile, f == FILL_REAL ? row_copy : row_outside, &v);
    }
}
