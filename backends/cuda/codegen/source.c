/* The kernels of a plan: which distinct ones its tasks need, and which of them runs which task. Two
 * tasks whose texts are equal share a kernel. */
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/own_points.h"
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/codegen/tile_loops.h"
#include "backends/cuda/codegen/translation_unit.h"

#include <string.h>

const char *peal_cuda_variant_suffix(peal_cuda_variant variant)
{
    static const char *const suffix[PEAL_CUDA_VARIANTS] = {
        [PEAL_CUDA_FULL] = "",
        [PEAL_CUDA_NO_REDUCTION] = "_no_reduction",
        [PEAL_CUDA_SELF_SENDING] = "_self_sending",
        [PEAL_CUDA_SELF_SENDING_NO_REDUCTION] = "_self_sending_no_reduction",
        [PEAL_CUDA_COMMUNICATION_FREE] = "_communication_free",
        [PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION] = "_communication_free_no_reduction",
        [PEAL_CUDA_SHAPED] = "",
        [PEAL_CUDA_SHAPED_NO_REDUCTION] = "_no_reduction",
        [PEAL_CUDA_DEEP] = "_deep",
    };
    return suffix[variant];
}

/* ---- one task ---- */

/* Whether there is device code, and none of the C files has the kernel. */
static bool is_linked(const peal_cuda_source *source, const char *kernel)
{
    if (source->files.code_count == 0)
        return false;
    const char *included = peal_kernel_files_included(&source->files, source->arena);
    size_t count = 0;
    for (int i = -1; i < source->files.count; i++) {
        const char *text = i < 0 ? included : source->files.file[i].text;
        const char **names = peal_cuda_kernel_names(text ? text : "", source->arena, &count);
        for (size_t k = 0; k < count; k++)
            if (strcmp(names[k], kernel) == 0)
                return false;
    }
    return true;
}

/* Whether an access is of points around each of the tile's, whose coordinates are the tile's. */
static bool is_around_points(const peal_schedule *schedule, const peal_task_access *access)
{
    const peal_schedule_array *array = &schedule->array[access->array];
    int axes = array->layout.stored.axis_count;

    for (int i = 0; i < access->reach_count; i++)
        for (int k = 0; k < PEAL_AXES; k++) {
            const peal_reach_axis *axis = &access->reach[i].axis[k];
            if (k < axes && (axis->fixed || axis->num != axis->den))
                return false;
        }
    return access->per_tile == 0 && !array->has_components && access->reach_count > 0;
}

/* Of what the task updates and reads beside its tile. */
static unsigned find_own_points(const peal_cuda_task_printer *p)
{
    const peal_schedule *schedule = p->schedule;
    unsigned bits = 0;

    for (int i = 0; i < p->task->access_count && i < PEAL_LAUNCH_VIEWS; i++) {
        const peal_task_access *access = &p->task->access[i];
        if (p->source->tokens && access->mode == PEAL_UPDATE_ACCESS &&
            is_around_points(schedule, access) &&
            peal_cuda_task_axes(p->task) ==
                schedule->array[access->array].layout.stored.axis_count &&
            peal_cuda_kernel_stores_at_own(p->source->tokens, p->task->kernel,
                                           p->task->access_count, i,
                                           schedule->array[access->array].layout.stored.axis_count,
                                           p->source->arena))
            bits |= 1u << i;
    }
    return bits;
}

/* Whether deep rounds may run the task. */
static bool is_for_deep_rounds(const peal_cuda_task_printer *p)
{
    peal_cuda_chain chain;

    return p->source->tokens && peal_cuda_task_chains(p->schedule, p->task, &chain) &&
           peal_cuda_kernel_loops_alone(p->source->tokens, p->task->kernel, p->task->access_count,
                                        chain.written, peal_cuda_task_axes(p->task),
                                        p->source->arena);
}

static peal_status describe_user_kernel(const peal_cuda_task_printer *p, peal_cuda_entry *entry)
{
    peal_mode mode = p->source->desc.mode;
    bool reduces = p->task->reduction_count > 0, free = p->task->mergeable;
    bool launches = mode != PEAL_MODE_SERIAL && mode != PEAL_MODE_FUSED;
    peal_status status = PEAL_STATUS_OK;

    entry->is_users = true;
    entry->is_linked = is_linked(p->source, p->task->kernel);
    entry->is_light = peal_cuda_task_is_light(p->schedule, p->task);
    entry->own_points = entry->is_linked ? 0 : find_own_points(p);
    entry->signature = peal_kernel_signature(p->source->arena, p->schedule, p->task);
    /* In mode graph, for bundles (device/bundle.h). */
    bool shapes = (mode == PEAL_MODE_FUSED || mode == PEAL_MODE_GRAPH) && free && !entry->is_linked;
    const bool wanted[PEAL_CUDA_VARIANTS] = {
        [PEAL_CUDA_FULL] = true,
        [PEAL_CUDA_NO_REDUCTION] = reduces,
        [PEAL_CUDA_SELF_SENDING] = launches,
        [PEAL_CUDA_SELF_SENDING_NO_REDUCTION] = launches && reduces,
        [PEAL_CUDA_COMMUNICATION_FREE] = free,
        [PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION] = free && reduces,
        [PEAL_CUDA_SHAPED] = shapes,
        [PEAL_CUDA_SHAPED_NO_REDUCTION] = shapes && reduces,
        [PEAL_CUDA_DEEP] = mode == PEAL_MODE_FUSED && shapes && is_for_deep_rounds(p),
    };
    for (int v = 0; v < PEAL_CUDA_VARIANTS && !status; v++)
        if (wanted[v])
            status = peal_cuda_trampoline_print(p, entry, (peal_cuda_variant)v, &entry->text[v]);
    peal_cuda_task_shape(p->task, p->entry->threads);
    return status;
}

static peal_status describe_builtin_task(const peal_cuda_task_printer *p, peal_cuda_entry *entry)
{
    bool folds = p->task->kind == PEAL_TASK_FOLD || p->task->kind == PEAL_TASK_COMBINE;

    p->entry->threads[0] = folds ? PEAL_CUDA_TASK_THREADS : 32;
    return peal_cuda_builtin_task_print(p, &entry->text[PEAL_CUDA_FULL]);
}

/* ---- all tasks ---- */

static bool has_kernel(const peal_schedule_task *task)
{
    if (task->kind == PEAL_TASK_KERNEL)
        return peal_kernel_is_needed(task);
    return task->kind != PEAL_TASK_LOAD && task->kind != PEAL_TASK_SAVE;
}

/* Tasks that reach differently far have the same text, but other stages, which only mode fused has.
 */
static bool is_same_kernel(peal_mode mode, const peal_cuda_entry *a, const peal_cuda_entry *b)
{
    const char *const *x = a->text, *const *y = b->text;

    if (strcmp(x[PEAL_CUDA_FULL], y[PEAL_CUDA_FULL]) != 0)
        return false;
    for (int v = PEAL_CUDA_SHAPED; v <= PEAL_CUDA_DEEP && mode == PEAL_MODE_FUSED; v++)
        if (x[v] && y[v] && strcmp(x[v], y[v]) != 0)
            return false;
    return true;
}

/* A variant and the one without reductions that follows it. */
static void take_variants(peal_cuda_entry *entry, const peal_cuda_entry *from, int variant)
{
    if (entry->text[variant])
        return;
    entry->text[variant] = from->text[variant];
    entry->text[variant + 1] = from->text[variant + 1];
}

static peal_status add_task(const peal_cuda_task_printer *p)
{
    peal_cuda_source *source = p->source;
    peal_cuda_entry found = {.schedule = p->schedule, .task = p->task};
    peal_status status = p->task->kind == PEAL_TASK_KERNEL ? describe_user_kernel(p, &found)
                                                           : describe_builtin_task(p, &found);
    int same = 0;

    if (status)
        return status;
    while (same < source->entry_count &&
           !is_same_kernel(source->desc.mode, &source->entry[same], &found))
        same++;
    p->entry->entry = same;
    if (same == source->entry_count)
        source->entry[source->entry_count++] = found;
    /* The first task may lack variants that depend on more than the text. */
    take_variants(&source->entry[same], &found, PEAL_CUDA_COMMUNICATION_FREE);
    take_variants(&source->entry[same], &found, PEAL_CUDA_SHAPED);
    if (!source->entry[same].text[PEAL_CUDA_DEEP])
        source->entry[same].text[PEAL_CUDA_DEEP] = found.text[PEAL_CUDA_DEEP];
    source->entry[same].own_points &= found.own_points;
    source->needs.linked |= found.is_linked;
    return PEAL_STATUS_OK;
}

static peal_status add_rank(peal_cuda_source *source, int rank)
{
    const peal_schedule *schedule = source->desc.rank[rank].schedule;
    peal_layout *layout = PEAL_ARENA_ARRAY(source->arena, peal_layout, schedule->array_count + 1);
    peal_status status = PEAL_STATUS_OK;
    peal_scope scope;

    peal_cuda_scope_fill(schedule, layout, &scope);
    source->needs.wide |= peal_cuda_offsets_are_wide(schedule);
    for (int i = 0; i < schedule->channel_count; i++)
        for (int k = 0; k < schedule->channel[i].piece_count; k++)
            source->needs.counted |= schedule->channel[i].piece[k].counted;
    source->task[rank] =
        PEAL_ARENA_ARRAY(source->arena, peal_cuda_task_entry, schedule->task_count + 1);
    for (int t = 0; t < schedule->task_count; t++) {
        peal_cuda_task_entry *entry = &source->task[rank][t];
        peal_cuda_task_printer p = {source, schedule, &scope, &schedule->task[t], entry};
        entry->entry = -1;
        if (!has_kernel(&schedule->task[t]))
            continue;
        entry->threads[0] = entry->threads[1] = entry->threads[2] = 1;
        entry->elements = PEAL_ARENA_NEW(source->arena, peal_cuda_elements);
        peal_status problem = add_task(&p);
        status = status ? status : problem;
    }
    return status;
}

/* Their tokens, if the texts are plain. */
static void read_tokens(peal_cuda_source *source)
{
    peal_cuda_tokens *tokens = PEAL_ARENA_NEW(source->arena, peal_cuda_tokens);

    if (peal_cuda_tokens_read(&source->files, source->arena, tokens))
        source->tokens = tokens;
}

/* Reads the C files, if any task needs them. */
static peal_status read_files(peal_cuda_source *source)
{
    for (int r = 0; r < source->desc.rank_count; r++) {
        const peal_schedule *schedule = source->desc.rank[r].schedule;
        for (int t = 0; t < schedule->task_count; t++) {
            if (!peal_kernel_is_needed(&schedule->task[t]))
                continue;
            if (source->graph->kernel_count == 0)
                return peal_kernel_report_no_files(source->desc.diagnostics, &schedule->task[t]);
            peal_status status =
                peal_kernel_files_read(source->graph, source->desc.allow_outside, source->arena,
                                       source->desc.diagnostics, &source->files);
            return status ? status
                          : peal_kernel_files_check_included(&source->files, source->arena,
                                                             source->desc.diagnostics);
        }
    }
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_source_create(const peal_backend_desc *desc,
                                    const peal_cuda_fused_text *fused_text, peal_arena *arena,
                                    peal_cuda_source **out)
{
    peal_cuda_source *source = PEAL_ARENA_NEW(arena, peal_cuda_source);
    peal_backend_rank *ranks = PEAL_ARENA_ARRAY(arena, peal_backend_rank, desc->rank_count);
    int most = 0;

    /* Schedules outlive this; the caller's descriptor need not. */
    memcpy(ranks, desc->rank, (size_t)desc->rank_count * sizeof(*ranks));
    source->desc = *desc;
    source->desc.rank = ranks;
    source->arena = arena;
    source->fused_text =
        fused_text ? *fused_text : (peal_cuda_fused_text){.device_header = "dispatch_tiles"};
    source->graph = desc->rank[0].schedule->graph;
    for (int r = 0; r < desc->rank_count; r++)
        most += desc->rank[r].schedule->task_count;
    source->entry = PEAL_ARENA_ARRAY(arena, peal_cuda_entry, most + 1);
    source->expression = PEAL_ARENA_ARRAY(arena, const char *, PEAL_CUDA_EXPRESSIONS);
    source->task = PEAL_ARENA_ARRAY(arena, peal_cuda_task_entry *, desc->rank_count);
    peal_status status = read_files(source);
    if (!status)
        read_tokens(source);
    for (int r = 0; r < desc->rank_count; r++) {
        peal_status problem = add_rank(source, r);
        status = status ? status : problem;
    }
    if (!status)
        peal_cuda_translation_units_print(source);
    *out = source;
    return status;
}
