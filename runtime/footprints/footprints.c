/* --check-footprints: every tile of every kernel runs on copies of its arrays, several times over,
 * with other contents outside of what it declares each time (check.c).
 *
 * It works through the plan's own backend in serial mode, on schedules whose functions are replaced
 * by `check_call`; or by `watch_call`, which needs no copies. */
#define _GNU_SOURCE
#include "base/kernel_source.h"
#include "runtime/footprints/internal.h"
#include "runtime/memory/available.h"

#include <stdlib.h>
#include <string.h>

static peal_status no_memory(const peal_plan *plan)
{
    return peal_report(plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the shadows of --check-footprints");
}

/* What the largest task needs, view by view. */
typedef struct needs {
    int64_t view[MOST_VIEWS], outputs;
} needs;

static void add_needs(const checked_task *t, needs *n)
{
    int64_t outputs = 0;
    for (int i = 0; i < t->view_count; i++) {
        int64_t bytes = t->view[i].array->layout.bytes;
        n->view[i] = bytes >= n->view[i] ? bytes + 1 : n->view[i]; /* 0: there is none */
        outputs += t->view[i].mode == PEAL_READ_ACCESS ? 0 : bytes;
    }
    n->outputs = outputs > n->outputs ? outputs : n->outputs;
}

static peal_status check_memory(const peal_plan *plan, const needs *n)
{
    char reason[160] = "";
    int64_t need = 2 * n->outputs, have = peal_memory_available("", reason, sizeof(reason));
    for (int i = 0; i < MOST_VIEWS; i++)
        need += (FILLS + 1) * n->view[i];
    if (need <= have)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_NOT_ENOUGH_MEMORY, PEAL_NO_SOURCE,
                       "check a smaller size, or with more ranks: one rank's task is copied at a "
                       "time",
                       "--check-footprints needs %lld bytes of memory for copies of arrays, this "
                       "process can have %lld (%s)",
                       (long long)need, (long long)have, reason);
}

/* Where the kernels of `serial` can touch them, and the host too. */
static peal_status make_shadows(peal_footprints *f, const needs *n)
{
    peal_plan *plan = f->plan;
    const peal_memory_space *space = &plan->binding.space;
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    peal_status status = check_memory(plan, n);
    int views = 0;
    int64_t largest = 0;
    while (views < MOST_VIEWS && n->view[views] > 0) {
        largest = n->view[views] > largest ? n->view[views] : largest;
        views++;
    }
    int64_t width = guarded_width(views * FILLS + 1);
    for (int i = 0; !status && i < views; i++)
        for (int k = 0; !status && k < FILLS; k++)
            status = guarded_create(space, n->view[i], width, diagnostics, &f->shadow[i][k]);
    if (!status && largest > 0 && !space->memory)
        status = guarded_create(space, largest, width, diagnostics, &f->edge);
    f->scratch = malloc((size_t)n->outputs + 1);
    f->whole = malloc((size_t)n->outputs + 1);
    f->stack = malloc(PEAL_CRASH_STACK);
    if (!status && (!f->scratch || !f->whole || !f->stack))
        status = no_memory(plan);
    return status;
}

static const peal_statement *statement_in(const peal_body *body, int id)
{
    const peal_statement *found = NULL;
    for (int i = 0; i < body->count && !found; i++) {
        const peal_statement *s = body->statement[i];
        found = s->id == id                        ? s
                : s->kind == PEAL_STATEMENT_REPEAT ? statement_in(&s->u.loop.body, id)
                                                   : NULL;
    }
    return found;
}

/* Whether peal chooses the tiles, and nothing is counted by them. */
static bool tiles_are_free(const peal_plan *plan, const peal_schedule_task *task)
{
    const peal_body *bodies[] = {&plan->data->setup, &plan->data->step.body, &plan->data->finish};
    const peal_statement *s = NULL;
    for (int i = 0; i < 3 && !s; i++)
        s = statement_in(bodies[i], task->statement);
    bool is_free = s && s->kind == PEAL_STATEMENT_TASK && !s->u.task.tile_given;
    for (int i = 0; i < task->access_count; i++)
        is_free &= task->access[i].per_tile == 0;
    return is_free;
}

static peal_status wrap_rank(peal_footprints *f, int index, needs *n)
{
    peal_plan *plan = f->plan;
    const peal_schedule *schedule = plan->binding.rank[index].schedule;
    size_t count = (size_t)schedule->task_count;
    peal_schedule_task *copy = f->copy[index] = calloc(count + 1, sizeof(*copy));
    checked_task *checked = f->checked[index] = calloc(count + 1, sizeof(*checked));
    if (!copy || !checked)
        return no_memory(plan);
    memcpy(copy, schedule->task, count * sizeof(*copy));
    f->schedule[index] = *schedule;
    f->schedule[index].task = copy;
    for (int i = 0; i < schedule->task_count; i++) {
        const peal_schedule_task *task = &schedule->task[i];
        if (task->kind != PEAL_TASK_KERNEL)
            continue;
        checked_task *t = &checked[i];
        *t = (checked_task){.owner = f,
                            .schedule = schedule,
                            .task = task,
                            .tiles_are_free = tiles_are_free(plan, task),
                            /* with fma compilers choose which loops contract what */
                            .bits_are_given = !plan->data->fma};
        t->full = plan->backend->function(plan->run, index, i, true, &t->user);
        t->bare = plan->backend->function(plan->run, index, i, false, &t->user);
        bool good = true;
        if (!f->statics && !plan->binding.space.memory && peal_kernel_is_needed(task))
            f->statics = statics_create(t->full, &good);
        if (!good || !views_create(t))
            return no_memory(plan);
        add_needs(t, n);
        copy[i].function = f->watches ? watch_call : check_call;
        copy[i].user = &checked[i];
    }
    return PEAL_STATUS_OK;
}

peal_status peal_footprints_create(peal_plan *plan)
{
    size_t ranks = (size_t)plan->binding.count;
    peal_footprints *f = plan->footprints = calloc(1, sizeof(*f));
    if (!f)
        return no_memory(plan);
    f->plan = plan;
    f->watches = !plan->options.check_footprints;
    f->schedule = calloc(ranks + 1, sizeof(*f->schedule));
    f->copy = calloc(ranks + 1, sizeof(*f->copy));
    f->checked = calloc(ranks + 1, sizeof(*f->checked));
    f->reported = calloc((size_t)plan->data->statement_count + 1, sizeof(*f->reported));
    if (!f->schedule || !f->copy || !f->checked || !f->reported)
        return no_memory(plan);
    if (!plan->run)
        return PEAL_STATUS_OK;
    peal_status status = PEAL_STATUS_OK;
    needs most = {.outputs = 0};
    for (int r = 0; !status && r < plan->binding.count; r++)
        status = wrap_rank(f, r, &most);
    if (!status && !f->watches)
        status = make_shadows(f, &most);
    if (status)
        return status;
    for (int r = 0; r < plan->binding.count; r++)
        plan->binding.backend_rank[r].schedule = &f->schedule[r];
    return PEAL_STATUS_OK;
}

peal_status peal_footprints_status(peal_footprints *footprints)
{
    check_rest(footprints);
    return footprints->findings ? PEAL_STATUS_SPEC : PEAL_STATUS_OK;
}

void peal_footprints_destroy(peal_footprints *f)
{
    if (!f)
        return;
    for (int r = 0; r < f->plan->binding.count; r++) {
        for (int i = 0; f->checked && f->checked[r] && i < f->schedule[r].task_count; i++)
            free(f->checked[r][i].view);
        if (f->checked)
            free(f->checked[r]);
        if (f->copy)
            free(f->copy[r]);
    }
    for (int i = 0; i < MOST_VIEWS; i++)
        for (int k = 0; k < FILLS; k++)
            guarded_destroy(&f->shadow[i][k]);
    guarded_destroy(&f->edge);
    statics_destroy(f->statics);
    free(f->scratch);
    free(f->whole);
    free(f->stack);
    free(f->checked);
    free(f->copy);
    free(f->schedule);
    free(f->reported);
    free(f);
}
