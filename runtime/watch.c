/* --watch: looking for values that are not numbers between starts, where all modes have their
 * arrays in memory. */
#include "base/handle.h"
#include "runtime/bind/array_rows.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/verify.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What a process has seen: the first array of the graph that has such a value, and there the first
 * point of its ranks. */
typedef struct sighting {
    int32_t array; /* of the graph; INT32_MAX: none */
    int32_t rank;
    int32_t stopped; /* `until` has ended the last start */
    int64_t points;  /* of all its ranks */
    int64_t at[PEAL_AXES];
    unsigned char value[8];
} sighting;

typedef struct scan {
    peal_watched what;
    const peal_schedule_array *array;
    const unsigned char *memory;
    int64_t points, first; /* how many; byte of the first, behind the first stored; -1: none */
} scan;

static void scan_row(void *user, int64_t offset, int64_t bytes)
{
    scan *s = user;
    int64_t element = (int64_t)peal_type_bytes(s->array->type);
    while (bytes > 0) {
        int64_t i = peal_watch_find(s->what, s->array->type, s->memory + offset, bytes);
        if (i < 0)
            return;
        if (s->first < 0)
            s->first = offset + i * element;
        s->points++;
        offset += (i + 1) * element;
        bytes -= (i + 1) * element;
    }
}

static peal_status look_at(const peal_plan *plan, int index, int array, sighting *out)
{
    const peal_schedule *schedule = plan->binding.rank[index].schedule;
    const peal_schedule_array *a = &schedule->array[array];
    scan s = {.what = plan->watch.what, .array = a, .first = -1};
    if ((a->type != PEAL_F64 && a->type != PEAL_F32) || !peal_array_is_compared(schedule, array))
        return PEAL_STATUS_OK;
    int storage = plan->backend->storage(peal_plan_runner(plan), index, array);
    unsigned char *copy;
    peal_status status = peal_binding_read(&plan->binding, index, storage, &copy, &s.memory);
    if (status)
        return status;
    peal_box_rows(a, &a->layout.own, scan_row, &s);
    if (s.points > 0 && out->array != array) {
        int64_t element = (int64_t)peal_type_bytes(a->type);
        out->array = array;
        out->rank = schedule->rank;
        peal_layout_point(&a->layout, s.first / element, out->at);
        memcpy(out->value, s.memory + s.first, (size_t)element);
    }
    out->points += s.points;
    free(copy);
    return PEAL_STATUS_OK;
}

/* The first array that has one, over all ranks here. */
static peal_status look_here(const peal_plan *plan, sighting *out)
{
    peal_status status = PEAL_STATUS_OK;
    for (int a = 0; a < plan->data->array_count && !status && !out->points; a++)
        for (int r = 0; r < plan->binding.count && !status; r++)
            status = look_at(plan, r, a, out);
    return status;
}

/* Names of tasks that write an array, or one that swaps may put in its place. */
typedef struct writers {
    const peal_schedule *schedule;
    int array;
    char text[160];
} writers;

static bool is_same_storage(const writers *w, int array)
{
    int group = w->schedule->array[w->array].swap_group;
    return array == w->array || (group >= 0 && w->schedule->array[array].swap_group == group);
}

static void name_writers(writers *w)
{
    size_t used = 0;
    int last = -1;
    for (int i = 0; i < w->schedule->task_count; i++) {
        const peal_schedule_task *task = &w->schedule->task[i];
        bool writes = false;
        for (int a = 0; a < task->access_count; a++)
            writes |= task->access[a].mode != PEAL_READ_ACCESS &&
                      is_same_storage(w, task->access[a].array);
        writes |= (task->kind == PEAL_TASK_SET || task->kind == PEAL_TASK_LOAD ||
                   task->kind == PEAL_TASK_FOLD || task->kind == PEAL_TASK_COMBINE) &&
                  is_same_storage(w, task->array);
        if (!writes || task->statement == last || used >= sizeof(w->text))
            continue;
        last = task->statement;
        used += (size_t)snprintf(w->text + used, sizeof(w->text) - used, "%s'%s'", used ? ", " : "",
                                 task->name ? task->name : "a statement");
    }
}

/* "in step 7"; the last look was after `from` steps, this is after `to`. */
static void print_when(const peal_plan *plan, char *text, size_t bytes)
{
    const peal_watch *watch = &plan->watch;
    int64_t from = watch->looked ? watch->clean : 0, to = plan->steps_done;
    const char *setup = watch->looked ? "" : "setup or ";
    if (from == to)
        snprintf(text, bytes, "in %s", watch->looked ? "`finish`" : "`setup`");
    else if (from + 1 == to)
        snprintf(text, bytes, "in %sstep %" PRId64, setup, from);
    else
        snprintf(text, bytes, "in %ssteps %" PRId64 " to %" PRId64, setup, from, to - 1);
}

/* In process 0. */
static peal_status report(const peal_plan *plan, const sighting *first, int64_t points)
{
    const peal_array *array = &plan->data->arrays[first->array];
    const peal_schedule *schedule = plan->binding.rank[0].schedule;
    writers w = {.schedule = schedule, .array = first->array};
    char where[100] = "", when[80], value[40], more[60] = "";
    int axes = array->kind == PEAL_ARRAY_FIELD ? peal_stored_axes(array) : 1;
    peal_point_text(first->at, axes, where, sizeof(where));
    peal_element_text(array->type, first->value, value, sizeof(value));
    print_when(plan, when, sizeof(when));
    name_writers(&w);
    if (points > 1)
        snprintf(more, sizeof(more), ", and so are %" PRId64 " other points", points - 1);
    return peal_report(plan->session->diagnostics, PEAL_E_NOT_A_NUMBER, array->source,
                       plan->mode == PEAL_MODE_SERIAL
                           ? "look after every step (`--watch nan=1`) to know which one it was"
                           : "`--mode serial` with the same `--watch` names the task and the tile; "
                             "with =1 any mode "
                             "names the step",
                       "`%s` is %s at %s, of rank %d%s: it came %s%s%s", array->name, value, where,
                       first->rank, more, when, w.text[0] ? "; it is written by " : "", w.text);
}

/* What all have seen: the same in all processes. */
static peal_status judge(peal_plan *plan, const sighting *all, int processes)
{
    const sighting *first = NULL;
    int64_t points = 0;
    for (int p = 0; p < processes; p++)
        if (all[p].points && (!first || all[p].array < first->array))
            first = &all[p];
    for (int p = 0; first && p < processes; p++)
        points += all[p].array == first->array ? all[p].points : 0;
    if (!plan->binding.count) /* mode serial: process 0 has all ranks */
        plan->stopped = all[0].stopped;
    plan->watch.looked |= !first;
    if (!first)
        plan->watch.clean = plan->steps_done;
    return first && plan->session->identity.process == 0 ? report(plan, first, points)
                                                         : PEAL_STATUS_OK;
}

static peal_status check_state(const peal_plan *plan)
{
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    if (plan->state == PEAL_PLAN_FAILED)
        return plan->failure;
    if (plan->state == PEAL_PLAN_RUNNING)
        return peal_report(diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "call peal_plan_wait first", "peal_plan_watch: the plan is running");
    if (!plan->watch.what)
        return peal_report(diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "set .watch = \"nan\" in peal_plan_options",
                           "peal_plan_watch: the plan was not compiled for it");
    return PEAL_STATUS_OK;
}

static peal_status watch(peal_plan *plan)
{
    peal_session *session = plan->session;
    int processes = session->identity.processes,
        from = peal_diagnostics_count(session->diagnostics);
    sighting own = {.array = INT32_MAX, .stopped = plan->stopped}, *all = &own;
    peal_status status = check_state(plan);
    if (status)
        return status;
    status = peal_session_agree(session, look_here(plan, &own), from);
    if (status)
        return status;
    if (processes > 1) {
        all = calloc((size_t)processes, sizeof(*all));
        status = all ? peal_control_allgather(session->control, &own, sizeof(own), all)
                     : peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                                   "no memory to watch %d processes", processes);
    }
    status = status ? peal_session_fail(session, status, from) : judge(plan, all, processes);
    if (processes > 1)
        free(all);
    return peal_session_agree(session, status, from);
}

peal_status peal_plan_watch(peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return PEAL_STATUS_USAGE;
    return peal_session_outcome(plan->session, watch(plan));
}
