/* A tile on the shadows: FILL_REAL twice (the same bytes each time?), then under each other fill
 * (the same outputs?), then what lies outside of its footprint (untouched?). Then its points
 * (points.c) and stores that change nothing (quiet.c). The outputs of FILL_REAL go into the real
 * memory: no kernel ever runs on that. */
#define _GNU_SOURCE
#include "base/box.h"
#include "base/kernel_source.h"
#include "runtime/footprints/internal.h"

#include <string.h>

enum { NEAR = 8, OFTEN_BYTES = 65536 };

/* ---- what runs show ---- */

bool note(finding *out, finding_kind kind, const checked_task *t, int view, int64_t offset)
{
    int64_t element = view >= 0 ? view_element(t, view) : 1;
    out->kind = kind;
    out->view = view;
    out->element = offset / element - (offset % element < 0);
    return true;
}

void keep_outputs(const checked_task *t, const peal_call *call, unsigned char *kept)
{
    for (int i = 0; i < t->view_count; i++) {
        peal_box box[PEAL_CALL_VIEWS];
        int count =
            is_output(t, i) && view_real(t, i, call) ? view_boxes(t, i, &call->tile, box) : 0;
        const peal_schedule_array *array = t->view[i].array;
        row_visit v = {.to = kept, .from = t->owner->shadow[i][FILL_REAL].base};
        for (int b = 0; b < count; b++)
            peal_box_rows(array, &box[b], row_copy, &v);
        kept += is_output(t, i) ? array->layout.bytes : 0;
    }
}

static bool find_unsteady(const checked_task *t, const peal_call *call, finding *out)
{
    int64_t used = 0;
    for (int i = 0; i < t->view_count; i++) {
        row_visit v = visit_of(t, i, FILL_REAL);
        v.from = t->owner->scratch + used;
        if (is_output(t, i) && view_real(t, i, call))
            view_rows(t, i, &call->tile, row_equal, &v);
        if (v.found >= 0)
            return note(out, FINDING_UNSTEADY, t, i, v.found);
        used += is_output(t, i) ? t->view[i].array->layout.bytes : 0;
    }
    return false;
}

#define NOWHERE INT64_MIN

/* The first byte in the zones around an array that has not its pattern; NOWHERE: none. */
static int64_t broken_zone(const checked_task *t, int view, fill f)
{
    const guarded *g = &t->owner->shadow[view][f];
    peal_type type = t->view[view].array->type;
    int64_t element = view_element(t, view), low = (g->base - g->open) / element * element;
    int64_t at = first_broken(g->base + g->bytes, g->end - g->base - g->bytes, type, f);
    if (at >= 0)
        return g->bytes + at;
    at = first_broken(g->base - low, low, type, f);
    return at >= 0 ? at - low : NOWHERE;
}

/* In the zones, and (but for FILL_REAL, which has no pattern there) in the array. */
static int64_t broken_offset(const checked_task *t, int view, const peal_box *box, fill f)
{
    int64_t offset = broken_zone(t, view, f);
    row_visit v = visit_of(t, view, f);
    if (offset != NOWHERE || f == FILL_REAL)
        return offset;
    peal_box_rows(t->view[view].array, box, row_broken, &v);
    return v.found >= 0 ? v.found : NOWHERE;
}

/* A crash, or a fault in a guard, of the run that was just made. */
static bool find_fault(const checked_task *t, fill f, finding *out)
{
    peal_footprints *owner = t->owner;
    if (owner->faulted && broken_zone(t, owner->fault_view, f) != NOWHERE) {
        out->fill = f; /* nearer to the array than the guard */
        note(out, FINDING_WRITE, t, owner->fault_view, broken_zone(t, owner->fault_view, f));
    } else if (owner->faulted) {
        const guarded *g = &owner->shadow[owner->fault_view][f];
        note(out, FINDING_FAULT, t, owner->fault_view,
             (int64_t)(owner->fault_address - (uintptr_t)g->base));
        out->write = owner->fault_writes;
    } else {
        note(out, FINDING_CRASH, t, -1, 0);
        memcpy(out->text, owner->trial.text, sizeof(out->text));
    }
    return true;
}

/* Around the tile's footprint; or everywhere, where that is not much more. */
static peal_box look_at(const checked_task *t, int view, const peal_tile *tile, bool all)
{
    const peal_schedule_array *array = t->view[view].array;
    const peal_box *stored = &array->layout.stored;
    peal_box box[PEAL_CALL_VIEWS], near = *stored;
    int count = view_boxes(t, view, tile, box);
    if (all || count == 0 || array->layout.bytes <= OFTEN_BYTES)
        return *stored;
    for (int k = 0; k < PEAL_AXES; k++) {
        near.lo[k] = box[0].lo[k];
        near.hi[k] = box[0].hi[k];
        for (int b = 1; b < count; b++) {
            near.lo[k] = box[b].lo[k] < near.lo[k] ? box[b].lo[k] : near.lo[k];
            near.hi[k] = box[b].hi[k] > near.hi[k] ? box[b].hi[k] : near.hi[k];
        }
        near.lo[k] -= NEAR;
        near.hi[k] += NEAR;
    }
    return peal_box_intersect(&near, stored);
}

static bool find_writes(const checked_task *t, const peal_tile *tile, bool all, finding *out)
{
    for (int i = 0; i < t->view_count; i++) {
        peal_box box = look_at(t, i, tile, all);
        for (int f = 0; f < FILLS; f++) {
            int64_t offset = broken_offset(t, i, &box, (fill)f);
            if (offset == NOWHERE)
                continue;
            out->fill = (fill)f;
            return note(out, FINDING_WRITE, t, i, offset);
        }
    }
    return false;
}

/* What an earlier tile has stored into the footprint of this one. */
static bool find_earlier(const checked_task *t, const peal_call *call, finding *out)
{
    for (int i = 0; i < t->view_count; i++)
        for (int f = FILL_REAL + 1; f < FILLS; f++) {
            row_visit v = visit_of(t, i, (fill)f);
            if (view_real(t, i, call))
                view_rows(t, i, &call->tile, row_broken, &v);
            if (v.found >= 0)
                return note(out, FINDING_WRITE, t, i, v.found);
        }
    return false;
}

/* Where there are no guards: what is only read must be as it was. */
static bool find_changed_inputs(const checked_task *t, const peal_call *call, finding *out)
{
    for (int i = 0; i < t->view_count; i++) {
        row_visit v = visit_of(t, i, FILL_REAL);
        v.from = view_real(t, i, call);
        if (!is_output(t, i) && !t->owner->shadow[i][FILL_REAL].reserved)
            view_rows(t, i, &call->tile, row_equal, &v);
        if (v.found >= 0)
            return note(out, FINDING_WRITE, t, i, v.found);
    }
    return false;
}

/* A part that no run has stored. */
static bool find_unstored(const checked_task *t, const peal_call *call, finding *out)
{
    for (int i = t->task->access_count; i < t->view_count; i++) {
        bool stored = !view_real(t, i, call);
        for (int f = FILL_REAL + 1; f < FILLS && !stored; f++)
            stored = !is_old(t->owner->shadow[i][f].base, t->view[i].array->type, (fill)f);
        if (!stored)
            return note(out, FINDING_UNSTORED, t, i, 0);
    }
    return false;
}

static statics *statics_of(const checked_task *t)
{
    return peal_kernel_is_needed(t->task) ? t->owner->statics : NULL;
}

void begin_statics(const checked_task *t)
{
    if (statics_of(t))
        statics_changed(statics_of(t)); /* by whatever ran before */
}

bool find_static(const checked_task *t, finding *out)
{
    return statics_of(t) && statics_changed(statics_of(t)) && note(out, FINDING_STATIC, t, -1, 0);
}

bool check_tile(const checked_task *t, const peal_call *call, finding *out)
{
    begin_statics(t);
    put_inputs(t, call, FILL_REAL);
    if (!run_tile(t, call, FILL_REAL))
        return find_fault(t, FILL_REAL, out);
    if (find_changed_inputs(t, call, out))
        return true;
    if (find_static(t, out))
        return true;
    keep_outputs(t, call, t->owner->scratch);
    settle(t, call, FILL_REAL);
    put_inputs(t, call, FILL_REAL);
    if (!run_tile(t, call, FILL_REAL))
        return find_fault(t, FILL_REAL, out);
    if (find_unsteady(t, call, out))
        return true;
    for (int f = FILL_REAL + 1; f < FILLS; f++) {
        put_inputs(t, call, (fill)f);
        if (run_tile(t, call, (fill)f) && !outputs_differ(t, call, (fill)f))
            continue;
        find_read(t, call, (fill)f, out);
        return true;
    }
    if (find_unstored(t, call, out))
        return true;
    for (int f = FILL_REAL + 1; f < FILLS; f++)
        settle(t, call, (fill)f);
    t->owner->scanned = call->tile.index + 1 >= call->tile.count;
    return find_writes(t, &call->tile, t->owner->scanned, out);
}

/* ---- a launch ---- */

/* Patterns, where they aren't there yet or anew, and the real contents of all arrays. */
static void fill_shadows(const checked_task *t, const peal_call *call, bool anew)
{
    for (int i = 0; i < t->view_count; i++) {
        const unsigned char *real = view_real(t, i, call);
        peal_type type = t->view[i].array->type;
        int64_t bytes = t->view[i].array->layout.bytes, element = view_element(t, i);
        for (int f = 0; f < FILLS; f++) {
            guarded *g = &t->owner->shadow[i][f];
            guarded_place(g, real, bytes);
            int64_t low = (g->base - g->open) / element * element;
            if (anew || !g->filled || g->type != type)
                fill_outside(g->base - low, g->end - g->base + low, type, (fill)f);
            g->filled = true;
            g->type = type;
        }
        guarded *g = &t->owner->shadow[i][FILL_REAL];
        if (real)
            memcpy(g->base, real, (size_t)bytes);
        guarded_set_writable(g, is_output(t, i));
    }
}

void check_rest(peal_footprints *f)
{
    const checked_task *t = f->current;
    finding found = {.view = -1};
    peal_tile none = {.count = 1};
    f->current = NULL;
    if (t && !f->scanned && !f->reported[t->task->statement] && find_writes(t, &none, true, &found))
        tell(t, &none, &found);
}

static void begin_launch(const checked_task *t, const peal_call *call)
{
    peal_footprints *f = t->owner;
    bool new_launch = f->current != t || call->tile.index <= f->last_tile;
    f->last_tile = call->tile.index;
    if (!new_launch)
        return;
    int before = f->findings;
    check_rest(f);
    f->current = t;
    fill_shadows(t, call, f->findings > before || f->reported[t->task->statement]);
}

static void adopt(const checked_task *t, const peal_call *call)
{
    for (int i = 0; i < t->view_count; i++) {
        row_visit v = {.to = view_real(t, i, call), .from = t->owner->shadow[i][FILL_REAL].base};
        if (v.to && is_output(t, i))
            view_rows(t, i, &call->tile, row_copy, &v);
    }
}

/* The outputs of the tile as it is, whatever was found: later tasks are to be checked too. What it
 * has stored around its arrays is no other task's. */
static bool run_really(const checked_task *t, const peal_call *call)
{
    put_inputs(t, call, FILL_REAL);
    bool ended = run_tile(t, call, FILL_REAL) || t->owner->faulted;
    for (int i = 0; i < t->view_count; i++)
        t->owner->shadow[i][FILL_REAL].filled = false;
    return ended;
}

void end_run(const checked_task *t, peal_status status)
{
    int none = 0;
    atomic_compare_exchange_strong(&t->owner->plan->session->abort_word, &none, (int)status);
}

/* Whether it is about the run of a point by itself, not about the point in its tile. */
static bool is_of_run(const finding *found)
{
    return found->has_point && found->kind >= FINDING_CRASH && found->kind < FINDING_TILE;
}

/* Tells of what it finds. True: the tile has crashed. */
static bool look_for_findings(checked_task *t, const peal_call *call)
{
    finding at_point = {.view = -1, .has_tile = true}, found = {.view = -1, .has_tile = true};
    finding earlier = {.view = -1};
    if (find_earlier(t, call, &earlier)) {
        tell(t, &call->tile, &earlier);
        fill_shadows(t, call, true);
        return false;
    }
    bool point = check_points(t, call, &at_point);
    if (point)
        fill_shadows(t, call, true);
    if (check_tile(t, call, &found) || (!point && find_quiet_store(t, call, &found))) {
        find_point(t, call, &found);
        tell(t, &call->tile, &found);
    } else if (point)
        tell(t, is_of_run(&at_point) ? &at_point.tile : &call->tile, &at_point);
    else
        return false;
    fill_shadows(t, call, true);
    return found.kind == FINDING_CRASH;
}

void check_call(const peal_call *call)
{
    checked_task *t = call->user;
    peal_footprints *owner = t->owner;
    if (atomic_load(&owner->plan->session->abort_word))
        return;
    owner->site = host_here;
    host_leave();
    peal_trials_begin(owner->stack, &owner->stack_before);
    begin_launch(t, call);
    t->calls++;
    bool known = owner->reported[t->task->statement], crashed = false;
    if (!known)
        crashed = look_for_findings(t, call);
    if (!crashed && owner->reported[t->task->statement])
        crashed = !run_really(t, call);
    if (crashed)
        end_run(t, PEAL_STATUS_SPEC);
    else
        adopt(t, call);
    peal_trials_end(&owner->stack_before);
    host_here = owner->site;
}
