/* Reads the words of --lower, and chooses what they leave open. */
#include "backends/cuda/options.h"

#include "backends/cuda/fused/dispatchers/dispatcher.h"
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/lower/doorbell.h"
#include "backends/cuda/lower/predicate.h"
#include "base/lowering.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && !strncmp(text, word, length);
}

/* One `key=value`. */
static bool apply(const char *text, size_t length, peal_cuda_options *out)
{
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return false;
    size_t key = (size_t)(equals - text), rest = length - key - 1;
    const char *value = equals + 1;
    long number = strtol(value, NULL, 10);

    if (is_word(text, key, "signal") && is_word(value, rest, "fused"))
        out->signal = PEAL_CUDA_SIGNAL_FUSED;
    else if (is_word(text, key, "signal") && is_word(value, rest, "kernel"))
        out->signal = PEAL_CUDA_SIGNAL_KERNEL;
    else if (is_word(text, key, "signal") && is_word(value, rest, "memop"))
        out->signal = PEAL_CUDA_SIGNAL_MEMOP;
    else if (is_word(text, key, "copy") && is_word(value, rest, "kernel"))
        out->copy = PEAL_CUDA_COPY_KERNEL;
    else if (is_word(text, key, "copy") && is_word(value, rest, "engine"))
        out->copy = PEAL_CUDA_COPY_ENGINE;
    else if (is_word(text, key, "until") && is_word(value, rest, "unroll"))
        out->until = PEAL_CUDA_UNTIL_UNROLL;
    else if (is_word(text, key, "until") && is_word(value, rest, "while"))
        out->until = PEAL_CUDA_UNTIL_WHILE;
    else if (is_word(text, key, "network") && is_word(value, rest, "word"))
        out->network = PEAL_CUDA_NETWORK_WORD;
    else if (is_word(text, key, "network") && is_word(value, rest, "doorbell"))
        out->network = PEAL_CUDA_NETWORK_DOORBELL;
    else if (is_word(text, key, "order") && peal_cuda_dispatcher_find(value, rest))
        out->dispatcher = peal_cuda_dispatcher_find(value, rest);
    else if (is_word(text, key, "lanes") && number >= 1 && number <= PEAL_CUDA_LANES)
        out->lanes = (int)number;
    else if (is_word(text, key, "plain") && number >= 0)
        out->plain_points = number;
    else if (is_word(text, key, "blocks") && number >= 1 && number <= 64)
        out->blocks = (int)number;
    else if (is_word(text, key, "bundle") && number >= 0 && number <= PEAL_CUDA_BUNDLED_BLOCKS)
        out->bundle = (int)number;
    else if (is_word(text, key, "deep") && number >= 1 && number <= PEAL_CUDA_DEEPEST)
        out->deep = (int)number;
    else if (is_word(text, key, "steps") && number >= 1 && number <= 1024)
        out->steps = (int)number;
    else if (is_word(text, key, "tile") && number >= 1)
        return true; /* the scheduler has heeded it: peal_lowering_tile */
    else
        return false;
    return true;
}

bool peal_cuda_options_parse(const char *text, peal_cuda_options *out)
{
    if (!out->dispatcher)
        out->dispatcher = peal_cuda_dispatcher_default();
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (!apply(text, length, out))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}

peal_cuda_fused_text peal_cuda_options_fused_text(const char *text)
{
    peal_cuda_options options = {0};

    if (!peal_cuda_options_parse(text, &options)) /* reported when the plan is made */
        options.dispatcher = peal_cuda_dispatcher_default();
    return (peal_cuda_fused_text){.device_header = options.dispatcher->device_header};
}

/* ---- what a plan takes ---- */

enum { LONG_POINTS = 1 << 20 }; /* see has_long_tasks */

/* Whether a task is long enough for messages to run beside it on a lane of their own. Two lanes
 * must be joined once a step, which short tasks do not pay for (bench/EXPERIMENTS.md, Lanes). */
static bool has_long_tasks(const peal_cuda_plan *plan)
{
    const peal_schedule *schedule = plan->desc.rank[0].schedule;

    for (int i = schedule->step.first; i < schedule->step.end && schedule->peer_count > 0; i++) {
        const peal_op *op = &schedule->op[i];
        if (op->kind != PEAL_OP_LAUNCH || !schedule->task[op->task].mergeable)
            continue;
        int64_t points = 0;
        for (int r = 0; r < op->range_count; r++) {
            const peal_tiling *tiling = &schedule->task[op->task].tiling[op->range[r].tiling];
            int64_t here = 1;
            for (int k = 0; k < PEAL_AXES; k++)
                here *= (op->range[r].hi[k] - op->range[r].lo[k]) * tiling->extent[k];
            points += here;
        }
        if (points >= LONG_POINTS)
            return true;
    }
    return false;
}

static peal_status refuse_fused(const peal_cuda_plan *plan, const char *hint, const char *why)
{
    return peal_report(plan->desc.diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, PEAL_CUDA_NOWHERE,
                       hint, "mode fused cannot run this: %s", why);
}

/* Sets the options of mode fused, and refuses what it cannot run. The blocks of the persistent
 * kernel wait for blocks of other ranks. Ranks of this process are in the same kernel; but kernels
 * of two processes on one GPU take turns, and would wait for ever. */
static peal_status choose_fused_options(peal_cuda_plan *plan)
{
    _Static_assert((int)PEAL_KERNEL_RANKS == (int)PEAL_FUSED_RANKS_MOST, "what `explain` says");
    const peal_schedule *schedule = plan->desc.rank[0].schedule;
    bool shares_device = schedule->machine && schedule->machine->shares_device;

    plan->options.lanes = 1;
    plan->options.signal = PEAL_CUDA_SIGNAL_FUSED;
    plan->options.copy = PEAL_CUDA_COPY_KERNEL;
    if (!peal_cuda_fused_compiles(plan->device->major * 10))
        return refuse_fused(plan, "--mode graph runs it",
                            "its kernel needs compute capability 8.0, which this GPU has not");
    if (!plan->device->has_cooperative)
        return refuse_fused(plan, "--mode graph runs it",
                            "this GPU has no cooperative launch, by which all blocks of a kernel "
                            "are resident");
    if (shares_device)
        return refuse_fused(plan,
                            "--mode graph runs it; or give each process a GPU, or host all ranks "
                            "in one process",
                            "processes share a GPU, and the persistent kernel of one would keep "
                            "the others' kernels off it");
    if (plan->rank_count > PEAL_FUSED_RANKS_MOST)
        return refuse_fused(
            plan, "--mode graph runs it; or use more processes and GPUs",
            peal_arena_print(plan->arena,
                             "%d ranks of a process share a GPU, its kernel has room for %d",
                             plan->rank_count, PEAL_FUSED_RANKS_MOST));
    if (plan->rank_count > 1 && plan->options.dispatcher->one_rank)
        return refuse_fused(
            plan, "--lower order=tickets runs it; or give each rank a process and a GPU",
            peal_arena_print(plan->arena,
                             "with order=%s a kernel has one rank, and %d ranks of a process share "
                             "a GPU",
                             plan->options.dispatcher->name, plan->rank_count));
    return PEAL_STATUS_OK;
}

/* Whether partials are folded in every step. Then there is one lane, so that the task's last launch
 * can do the folds. */
static bool folds_always(const peal_cuda_plan *plan)
{
    const peal_schedule *schedule = plan->desc.rank[0].schedule;
    int depth = 0;

    for (int i = schedule->step.first; i < schedule->step.end; i++) {
        const peal_op *op = &schedule->op[i];
        depth += op->kind == PEAL_OP_IF || op->kind == PEAL_OP_LOOP;
        depth -= op->kind == PEAL_OP_END;
        if (depth == 0 && op->kind == PEAL_OP_LAUNCH &&
            schedule->task[op->task].kind == PEAL_TASK_FOLD)
            return true;
    }
    return false;
}

peal_status peal_cuda_options_refuse_doorbells(const peal_cuda_plan *plan, const char *why)
{
    return peal_report(plan->desc.diagnostics, PEAL_E_NO_DOORBELLS, PEAL_CUDA_NOWHERE,
                       "--lower network=word has a thread post the messages",
                       "the stream cannot ring for messages to other hosts: %s", why);
}

/* Whether mode stream rings for messages to other hosts. A memory operation, unlike a kernel, does
 * not see that a wait has been given up: so all waits are such operations, which end when the
 * message is there, or when the host, which has silenced the network, lets them go on. */
static peal_status choose_doorbells(peal_cuda_plan *plan, bool may_ring)
{
    const peal_machine *machine = plan->desc.rank[0].schedule->machine;
    char reason[PEAL_CUDA_REASON_BYTES];

    plan->options.marks = PEAL_CUDA_MARKS;
    if (!may_ring || plan->desc.mode != PEAL_MODE_STREAM ||
        plan->options.network == PEAL_CUDA_NETWORK_WORD)
        return PEAL_STATUS_OK;
    /* Other processes may have neighbours on other hosts, where this one has none. */
    if (!plan->desc.network && machine && peal_machine_hosts(machine) > 1)
        return PEAL_STATUS_OK;
    plan->options.rings = peal_cuda_doorbells_are_there(plan, reason);
    if (!plan->options.rings)
        return plan->options.network == PEAL_CUDA_NETWORK_DOORBELL
                   ? peal_cuda_options_refuse_doorbells(plan, reason)
                   : PEAL_STATUS_OK;
    plan->options.signal = PEAL_CUDA_SIGNAL_MEMOP;
    return PEAL_STATUS_OK;
}

/* Streams of a process share the eight queues of a device, whose places bound how far ahead the
 * walk may be. */
static void choose_marks(peal_cuda_plan *plan)
{
    enum { DEVICE_QUEUES = 8 };
    int sharing = (plan->rank_count * plan->options.lanes + DEVICE_QUEUES - 1) / DEVICE_QUEUES;
    int marks = PEAL_CUDA_RINGING_MARKS / (sharing > 1 ? sharing : 1);
    if (plan->options.rings)
        plan->options.marks = marks > PEAL_CUDA_MARKS ? marks : PEAL_CUDA_MARKS;
}

peal_status peal_cuda_options_choose(peal_cuda_plan *plan, bool may_ring)
{
    const peal_schedule *schedule = plan->desc.rank[0].schedule;
    /* Launches may be merged across ops only if nobody waits between two ops. */
    bool may_merge = !plan->synchronous && !plan->desc.embedded;

    plan->options = (peal_cuda_options){.signal = PEAL_CUDA_SIGNAL_FUSED,
                                        .copy = PEAL_CUDA_COPY_KERNEL,
                                        .launches_early = !plan->desc.hooks.no_early_launch,
                                        .defers = may_merge && !plan->desc.hooks.no_deferral,
                                        .folds_in_task = may_merge && !plan->one_kernel,
                                        .lanes = 0,
                                        .bundle = -1,
                                        .plain_points = -1};
    if (plan->desc.mode == PEAL_MODE_SYNC) {
        plan->options.signal = PEAL_CUDA_SIGNAL_KERNEL;
        plan->options.copy = PEAL_CUDA_COPY_ENGINE;
    }
    peal_status words = peal_lowering_check(plan->desc.lowering, plan->desc.diagnostics);
    if (words)
        return words;
    if (!peal_cuda_options_parse(plan->desc.lowering, &plan->options))
        return peal_report(plan->desc.diagnostics, PEAL_E_UNKNOWN_LOWERING, PEAL_CUDA_NOWHERE,
                           "use words of " PEAL_LOWERING_WORDS, "'%s' is no lowering",
                           plan->desc.lowering);
    /* Thresholds for communication-free kernels. They are low where a rank sends nothing, because
     * such a kernel then replaces the only other one. Flat tiles and light tasks of two axes are as
     * fast in the other kernels up to a larger size (bench/EXPERIMENTS.md, "When a kernel without
     * communication pays"). */
    if (plan->options.plain_points >= 0) {
        plan->options.plain_flat_points = plan->options.plain_points;
        plan->options.plain_light_points = plan->options.plain_points;
    } else {
        plan->options.plain_points = schedule->peer_count > 0 ? 1 << 19 : 1 << 17;
        plan->options.plain_flat_points = schedule->peer_count > 0 ? 1 << 21 : 1 << 17;
        plan->options.plain_light_points = 3 << 20;
    }
    if (plan->options.lanes == 0)
        plan->options.lanes =
            plan->desc.mode != PEAL_MODE_SYNC && has_long_tasks(plan) && !folds_always(plan)
                ? PEAL_CUDA_LANES
                : 1;
    if (plan->desc.embedded)
        plan->options.lanes = 1; /* the application's stream */
    peal_status status = choose_doorbells(plan, may_ring);
    choose_marks(plan);
    if (status)
        return status;
    /* Kernels of two processes take turns on a GPU: a kernel that waits would keep the other
     * process's off it. */
    if (schedule->machine && schedule->machine->shares_device)
        plan->options.signal = PEAL_CUDA_SIGNAL_MEMOP;
    if (plan->options.signal == PEAL_CUDA_SIGNAL_MEMOP && !plan->device->has_memops)
        return peal_report(plan->desc.diagnostics, PEAL_E_NO_MEMORY_OPERATIONS, PEAL_CUDA_NOWHERE,
                           "give each process a GPU of its own, or host all ranks in one process",
                           "%s cannot do 64-bit memory operations on streams, which %s",
                           plan->device->name,
                           schedule->machine && schedule->machine->shares_device
                               ? "processes that share a GPU wait by"
                               : "signal=memop asks for");
    if (plan->one_kernel)
        return choose_fused_options(plan);
    /* Launches that read a predicate must be ordered behind the one that writes it. */
    if (peal_cuda_repeats(plan) &&
        (schedule->outer.until || peal_cuda_predicates_are_needed(schedule)))
        plan->options.lanes = 1;
    /* Waiting blocks of one rank must not keep another rank of this process off the GPU. */
    if (plan->rank_count > 1 && plan->options.signal == PEAL_CUDA_SIGNAL_FUSED)
        plan->options.signal = PEAL_CUDA_SIGNAL_KERNEL;
    return PEAL_STATUS_OK;
}
