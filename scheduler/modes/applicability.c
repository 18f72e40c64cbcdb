/* Whether a graph can run in a mode, with what bound, and if not why: the rules of the table of
 * `peal explain`. Peers and addresses are known before every run. What depends on the machine at
 * hand (memory that devices and transports reach, blocks that fit at a time, queues) is looked at
 * when a run starts. */
#include "base/step_pattern.h"
#include "base/thread_room.h"
#include "scheduler/scheduler.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* What is asked: a mode, where. */
typedef struct mode_question {
    const peal_graph_data *graph;
    const peal_machine *machine;
    peal_mode mode;
    bool accelerated;
    bool repeats; /* iterations are recorded once, and repeated as they are */
    peal_reason *reason;
    int count;
    int sized; /* statements whose size only the run knows */
} mode_question;

/* A rule adds at most one reason that refuses and one that binds: NULL, it has. */
static peal_reason *add_reason(mode_question *q, peal_code code, bool refuses,
                               const peal_statement *s, const char *change, const char *format, ...)
    __attribute__((format(printf, 6, 7)));

static peal_reason *add_reason(mode_question *q, peal_code code, bool refuses,
                               const peal_statement *s, const char *change, const char *format, ...)
{
    va_list list;
    size_t used = 0;

    for (int i = 0; i < q->count; i++)
        if (q->reason[i].code == code && q->reason[i].refuses == refuses)
            return NULL;
    if (q->count == PEAL_REASONS)
        return NULL;
    peal_reason *out = &q->reason[q->count++];
    *out = (peal_reason){.code = code, .refuses = refuses, .change = change};
    if (s) {
        out->source = s->source;
        used = (size_t)snprintf(out->text, sizeof(out->text),
                                s->source.line > 0 ? "`%.60s` in line %d " : "`%.60s` ", s->name,
                                s->source.line);
    }
    va_start(list, format);
    vsnprintf(out->text + used, sizeof(out->text) - used, format, list);
    va_end(list);
    return out;
}

static bool is_decided_late(const peal_expr *expr)
{
    return expr && peal_expr_uses(expr) & PEAL_USES_ELEMENT;
}

/* A loop that may end after any iteration, and swaps once in each. */
static bool ends_amid_swaps(const peal_loop *loop)
{
    int swaps = 0;
    bool always = !loop->every ||
                  (loop->every->kind == PEAL_EXPR_CONSTANT &&
                   loop->every->value.kind == PEAL_INTEGER && loop->every->value.u.integer == 1);

    for (int i = 0; i < loop->body.count; i++)
        swaps += loop->body.statement[i]->kind == PEAL_STATEMENT_SWAP;
    return loop->until && always && swaps % 2 != 0;
}

static bool acts_late(const peal_graph_data *graph, const peal_expr *lag)
{
    const peal_value *value = lag && lag->kind == PEAL_EXPR_CONSTANT ? &lag->value
                              : lag && lag->kind == PEAL_EXPR_PARAM
                                  ? &graph->params[lag->index].value
                                  : NULL;
    return lag && !(value && value->kind == PEAL_INTEGER && value->u.integer == 0);
}

/* ---- PEAL_E_ITERATIONS_NOT_FIXED: iterations ---- */

/* The host looks at a verdict before it goes on. */
static void ask_of_draining(mode_question *q, const peal_loop *loop)
{
    if (q->mode != PEAL_MODE_STREAM || !q->accelerated)
        return;
    peal_reason *found =
        add_reason(q, PEAL_E_ITERATIONS_NOT_FIXED, false, NULL, "`lag: 1` would not",
                   "waits for the GPU at each look at the `until` of line %d",
                   loop->until->source.line);
    if (found) {
        found->source = loop->until->source;
        found->drains = true;
    }
}

static bool has_no_period(const peal_expr *length)
{
    return peal_step_kind_of(length) > PEAL_STEP_PERIODIC;
}

static void ask_of_loop(mode_question *q, const peal_statement *s)
{
    const peal_loop *loop = &s->u.loop;
    bool late = acts_late(q->graph, loop->lag);

    /* A loop's length must come round; thresholds of conditions need not. */
    if (q->repeats && (has_no_period(loop->repeat) || has_no_period(loop->every)))
        add_reason(q, PEAL_E_ITERATIONS_NOT_FIXED, true, s, "let it depend on params alone",
                   "is repeated a number of times that depends on the step");
    else if (q->repeats && ends_amid_swaps(loop))
        add_reason(q, PEAL_E_ITERATIONS_NOT_FIXED, true, s, "give it `every: 2`",
                   "may end where its `swap` has not come round");
    else if (q->repeats && loop->until)
        add_reason(q, PEAL_E_ITERATIONS_NOT_FIXED, false, s, "keep `repeat` near what is needed",
                   "is recorded for all of its `repeat`: what is behind `until` is launched, and "
                   "does nothing");
    else if (loop->until && !late)
        ask_of_draining(q, loop);
}

/* In the last steps of a graph that ends amid them nothing is done. */
static void ask_of_outermost(mode_question *q)
{
    const peal_loop *loop = &q->graph->step;

    if (!loop->until)
        return;
    if (q->mode == PEAL_MODE_GRAPH && q->accelerated)
        add_reason(
            q, PEAL_E_ITERATIONS_NOT_FIXED, false, NULL, NULL,
            "`until` in line %d ends amid the steps of a graph: the others are launched, and "
            "do nothing",
            loop->until->source.line)
            ->source = loop->until->source; /* it is the first */
    else if (!acts_late(q->graph, loop->lag))
        ask_of_draining(q, loop);
}

/* ---- PEAL_E_CONDITION_NOT_PERIODIC: conditions ---- */

/* skipped: a condition of the run may skip it. */
static void ask_of_condition(mode_question *q, const peal_statement *s, bool skipped)
{
    if (q->repeats && peal_step_kind_of(s->when) == PEAL_STEP_IRREGULAR)
        add_reason(q, PEAL_E_CONDITION_NOT_PERIODIC, true, s,
                   "compare `step` or `step % n` with a number",
                   "has a `when` whose value in later steps is not known when steps are recorded");
    else if (q->repeats && s->kind == PEAL_STATEMENT_SWAP && skipped)
        add_reason(q, PEAL_E_CONDITION_NOT_PERIODIC, true, s,
                   "let a task copy instead, or use stream",
                   "swaps under a `when` that reads a buffer");
    else if (q->mode == PEAL_MODE_STREAM && q->accelerated && is_decided_late(s->when)) {
        peal_reason *found =
            add_reason(q, PEAL_E_CONDITION_NOT_PERIODIC, false, NULL,
                       "use graph, where the GPU decides",
                       "waits for the GPU at each look at the `when` of line %d", s->source.line);
        if (found)
            found->drains = true;
    }
}

/* ---- PEAL_E_SIZES_NOT_FIXED: sizes ---- */

static void ask_of_size(mode_question *q, const peal_statement *s)
{
    bool box = s->kind == PEAL_STATEMENT_TASK && s->u.task.box.kind == PEAL_POINTS_COUNT;
    bool message = (s->kind == PEAL_STATEMENT_SEND || s->kind == PEAL_STATEMENT_RECV) &&
                   s->u.message.count >= 0;

    if ((!box && !message) || q->mode == PEAL_MODE_SERIAL)
        return;
    if (q->sized++ == 0)
        add_reason(q, PEAL_E_SIZES_NOT_FIXED, false, s, "keep bounds near what is needed",
                   box ? "has tiles for all points of its `max`, however few there are"
                       : "is laid out for all elements of its block, however few are sent");
}

/* ---- PEAL_E_HOST_WORK_IN_LOOP, PEAL_E_APPLICATION_FUNCTION: what the device does not do ---- */

/* What is known of the `when`s of a statement and of those around it. */
typedef struct surroundings {
    bool loops;    /* it is in the loop */
    bool skipped;  /* a condition of the run may skip it */
    bool ended;    /* so may one that ends an inner loop */
    bool foreseen; /* so may one on the step, which is known before it is run */
} surroundings;

/* A step with a file is run singly, so that the host has its turn. */
static void ask_of_host_work(mode_question *q, const peal_statement *s, surroundings in)
{
    if (!q->repeats || (s->kind != PEAL_STATEMENT_LOAD && s->kind != PEAL_STATEMENT_SAVE))
        return;
    if (in.skipped || in.ended)
        add_reason(
            q, PEAL_E_HOST_WORK_IN_LOOP, true, s,
            "let no `when` around it read a buffer, and no inner `until` either, or use stream",
            "reads or writes a file, which only the host can do, but the GPU decides when");
    else if (!in.foreseen)
        add_reason(q, PEAL_E_HOST_WORK_IN_LOOP, true, s,
                   "give it a `when` on the step, move it to setup or finish, or use stream",
                   "reads or writes a file in any step, which only the host can do");
}

static void ask_of_function(mode_question *q, const peal_statement *s, bool loops)
{
    const peal_task_statement *task = &s->u.task;
    bool changes = false;

    if (!q->accelerated || s->kind != PEAL_STATEMENT_TASK ||
        !(task->cuda_function || task->enqueue))
        return;
    for (int i = 0; i < task->argument_count; i++)
        changes |= (peal_expr_uses(task->argument[i]) & PEAL_USES_COUNTER) != 0;
    if (q->mode == PEAL_MODE_FUSED)
        add_reason(q, PEAL_E_APPLICATION_FUNCTION, true, NULL, "use graph, or name a PEAL_KERNEL",
                   "one kernel cannot call the application's CUDA functions and what it enqueues");
    else if (task->box.kind == PEAL_POINTS_COUNT && q->mode != PEAL_MODE_SERIAL)
        add_reason(q, PEAL_E_APPLICATION_FUNCTION, true, s, "name a PEAL_KERNEL",
                   "is a CUDA function of the application, which cannot be told a `count`");
    else if (q->mode == PEAL_MODE_GRAPH && loops && changes)
        add_reason(q, PEAL_E_APPLICATION_FUNCTION, true, NULL, "use stream",
                   "an argument of the application's CUDA function changes");
    else if (q->mode == PEAL_MODE_GRAPH && loops && q->graph->step.until)
        add_reason(q, PEAL_E_APPLICATION_FUNCTION, true, NULL, "use stream",
                   "with `until` the application's CUDA functions cannot be skipped");
}

/* ---- PEAL_E_TOO_MANY_RANKS_FOR_KERNEL: room ---- */

static void ask_of_room(mode_question *q)
{
    const peal_machine *m = q->machine;

    if (!m || q->mode != PEAL_MODE_FUSED || !q->accelerated)
        return;
    int most = (m->ranks + m->processes - 1) / m->processes;
    if (m->shares_device)
        add_reason(q, PEAL_E_TOO_MANY_RANKS_FOR_KERNEL, true, NULL,
                   "use graph, or host all ranks in one process",
                   "processes share a GPU, and a persistent kernel keeps the others' off it");
    else if (most > PEAL_KERNEL_RANKS)
        add_reason(q, PEAL_E_TOO_MANY_RANKS_FOR_KERNEL, true, NULL,
                   "use more processes and GPUs, or graph",
                   "%d ranks of a process share a kernel, which has room for %d", most,
                   PEAL_KERNEL_RANKS);
}

/* ---- all of them ---- */

static void ask_of_body(mode_question *q, const peal_body *body, surroundings around)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        peal_step_kind kind = peal_step_kind_of(s->when);
        surroundings in = around;
        in.skipped |= is_decided_late(s->when);
        in.foreseen |= kind == PEAL_STEP_PERIODIC || kind == PEAL_STEP_THRESHOLD;
        ask_of_function(q, s, in.loops);
        ask_of_size(q, s);
        if (in.loops) {
            ask_of_host_work(q, s, in);
            ask_of_condition(q, s, in.skipped);
        }
        if (s->kind != PEAL_STATEMENT_REPEAT)
            continue;
        in.ended |= s->u.loop.until != NULL;
        if (in.loops)
            ask_of_loop(q, s);
        ask_of_body(q, &s->u.loop.body, in);
    }
}

static void count_others(mode_question *q)
{
    for (int i = 0; i < q->count && q->sized > 1; i++) {
        char *text = q->reason[i].text;
        size_t used = strlen(text);
        if (q->reason[i].code == PEAL_E_SIZES_NOT_FIXED)
            snprintf(text + used, sizeof(q->reason[i].text) - used, "; %d more like it",
                     q->sized - 1);
    }
}

/* By numbers, those that refuse first. */
static void sort_reasons(mode_question *q)
{
    for (int i = 1; i < q->count; i++) {
        peal_reason held = q->reason[i];
        int at = i;
        for (; at > 0; at--) {
            const peal_reason *before = &q->reason[at - 1];
            if (before->refuses != held.refuses ? before->refuses : before->code <= held.code)
                break;
            q->reason[at] = *before;
        }
        q->reason[at] = held;
    }
}

int peal_graph_reasons(const peal_graph_data *graph, const peal_machine *machine, peal_mode mode,
                       bool accelerated, peal_reason out[PEAL_REASONS])
{
    /* What an accelerator has recorded it repeats as it is. */
    bool repeats = mode == PEAL_MODE_GRAPH || (mode == PEAL_MODE_FUSED && accelerated);
    mode_question q = {.graph = graph,
                       .machine = machine,
                       .mode = mode,
                       .accelerated = accelerated,
                       .repeats = repeats,
                       .reason = out};

    ask_of_outermost(&q);
    ask_of_body(&q, &graph->setup, (surroundings){.loops = false});
    ask_of_body(&q, &graph->step.body, (surroundings){.loops = true});
    ask_of_body(&q, &graph->finish, (surroundings){.loops = false});
    ask_of_room(&q);
    count_others(&q);
    sort_reasons(&q);
    return q.count;
}

const char *peal_graph_refuses(const peal_graph_data *graph, peal_mode mode, bool accelerated)
{
    enum { TEXT_BYTES = 280 };
    peal_reason reason[PEAL_REASONS];
    int count = peal_graph_reasons(graph, NULL, mode, accelerated, reason);

    if (count == 0 || !reason[0].refuses)
        return NULL;
    char *text = peal_thread_room(PEAL_ROOM_REFUSAL, TEXT_BYTES);
    if (!text)
        return "a reason for which there is no memory";
    snprintf(text, TEXT_BYTES, "%s [%s]", reason[0].text, peal_code_number(reason[0].code));
    return text;
}
