/* The texts of which translation_unit.c makes translation units: peal's own kernels and
 * expressions, then the user's files, then a trampoline for each distinct call of a kernel. What
 * comes before the user's files cannot meet their macros. Each trampoline is in a pseudo file of
 * its own, so that the compiler's words about it can be told from those about the user's lines. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/source.h"

#include "backends/cuda/codegen/call.h"
#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/jit/compile.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_EXPRESSIONS = 4096 };

typedef struct task_printer {
    peal_cuda_source *source;
    const peal_schedule *schedule;
    const peal_scope *scope;
    const peal_schedule_task *task;
    peal_cuda_task_entry *entry;
} task_printer;

static const char *const value_types[] = {[PEAL_INTEGER] = "long long",
                                          [PEAL_REAL] = "double",
                                          [PEAL_BOOLEAN] = "int",
                                          [PEAL_TEXT] = "int"};

FILE *peal_cuda_text_open(char **text, size_t *bytes)
{
    FILE *out = open_memstream(text, bytes);
    if (!out)
        peal_memory_end(BUFSIZ, 0);
    return out;
}

/* The text in the arena; ends the stream. */
const char *peal_cuda_text_close(peal_arena *arena, FILE *out, char **text)
{
    fclose(out);
    const char *copy = peal_arena_copy_text(arena, *text);
    free(*text);
    *text = NULL;
    return copy;
}

static const char *type_of(const task_printer *p, int array)
{
    return peal_type_c_name(p->schedule->array[array].type);
}

/* Expressions. */

/* Number of the function that computes expr; equal texts share one. */
static peal_status add_expression(const task_printer *p, const peal_expr *expr, int *number,
                                  peal_value_kind *kind)
{
    peal_cuda_source *source = p->source;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(&text, &bytes);
    peal_status status = peal_cuda_expression_print(expr, p->scope, p->entry->elements, out, kind,
                                                    source->desc->diagnostics);
    const char *body = peal_cuda_text_close(source->arena, out, &text);

    if (status)
        return status;
    const char *function =
        peal_arena_print(source->arena, "%s|%s", value_types[*kind], body); /* type and body */
    for (*number = 0; *number < source->expression_count; (*number)++)
        if (strcmp(source->expression[*number], function) == 0)
            return PEAL_STATUS_OK;
    if (*number == MOST_EXPRESSIONS || p->entry->elements->overflows)
        return peal_report(source->desc->diagnostics, PEAL_E_STATEMENT_TOO_LARGE, p->task->source,
                           "set buffers to parts of the values in statements before",
                           "the expressions of `%s` read more than %d buffers while running",
                           p->task->name, PEAL_LAUNCH_ELEMENTS);
    source->expression[source->expression_count++] = function;
    return PEAL_STATUS_OK;
}

/* Kernels of the user. */

/* Whether a tile writes what its own arguments or its count read; then there is one tile
 * (PEAL_E_TILES_COLLIDE, PEAL_E_ARGUMENT_CHANGED_BY_TILES). */
static bool changes_arguments(const peal_schedule_task *task)
{
    for (int i = -1; i < task->argument_count; i++)
        for (int k = 0; k < task->access_count; k++) {
            const peal_expr *read = i < 0 ? task->count : task->argument[i];
            if (read && task->access[k].mode != PEAL_READ_ACCESS &&
                peal_expr_reads(read, task->access[k].array))
                return true;
        }
    return false;
}

/* peal_end_: points of the box from there on are not visited. */
static peal_status print_count(const task_printer *p, FILE *out)
{
    const peal_schedule_task *task = p->task;
    long long most = task->tiling_count ? task->tiling[0].box.hi[0] : 0;
    int number = 0;
    peal_value_kind kind;
    peal_status status = add_expression(p, task->count, &number, &kind);

    fprintf(out,
            "    long long peal_end_ = %lld;\n"
            "    if (peal_launch_.evaluate >> %d & 1)\n"
            "        peal_end_ = peal_expression_%d_(&peal_launch_, &peal_bad_);\n"
            "    if (!peal_bad_ && peal_miscounts_(peal_launch_, peal_end_, %lld))\n"
            "        return;\n",
            most, PEAL_LAUNCH_ARGUMENTS, number, most);
    return status;
}

/* Arguments that counters or buffers change: as given, or computed here if the launch says so. */
static peal_status print_evaluation(const task_printer *p, FILE *out)
{
    const peal_schedule_task *task = p->task;
    bool any = task->count != NULL;

    if (any) {
        fprintf(out, "    int peal_bad_ = 0;\n");
        peal_status status = print_count(p, out);
        if (status)
            return status;
    }
    for (int i = 0; i < task->argument_count; i++) {
        unsigned uses = peal_expr_uses(task->argument[i]);
        bool real = task->argument_is_real[i];
        const char *type = real ? "double" : "long", *member = real ? "real" : "integer";
        int number = 0;
        peal_value_kind kind;
        if (!(uses & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT)))
            continue;
        if (uses & PEAL_USES_ELEMENT)
            p->entry->device_arguments |= 1u << i;
        peal_status status = add_expression(p, task->argument[i], &number, &kind);
        if (status)
            return status;
        if (!any)
            fprintf(out, "    int peal_bad_ = 0;\n");
        any = true;
        fprintf(out,
                "    %s peal_argument_%d_ = (%s)peal_launch_.argument[%d].%s;\n"
                "    if (peal_launch_.evaluate >> %d & 1)\n"
                "        peal_argument_%d_ = (%s)peal_expression_%d_(&peal_launch_, &peal_bad_);\n",
                type, i, type, i, member, i, i, type, number);
    }
    if (any)
        fprintf(out, "    if (peal_went_wrong_(peal_launch_, peal_bad_))\n        return;\n");
    if (changes_arguments(task)) /* all threads read them before one of them writes */
        fprintf(out, "    __syncthreads();\n");
    return PEAL_STATUS_OK;
}

/* Everything behind the kernel's name. */
static peal_status print_user_kernel(const task_printer *p, const peal_cuda_entry *entry,
                                     peal_cuda_trampoline kind, const char **out_text)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(&text, &bytes);
    bool folds = peal_cuda_trampoline_has_partials(kind) && p->task->reduction_count > 0;
    bool rides = folds && !peal_cuda_trampoline_is_communication_free(kind);

    fprintf(out, "(PEAL_LAUNCH_ peal_launch_)\n{\n"
                 "    peal_tile peal_tile_;\n"
                 "    const peal_launch_box *const peal_box_ = peal_enter_tile_(peal_launch_, "
                 "&peal_tile_);\n"
                 "    if (!peal_box_)\n        return;\n");
    /* Read early, looked at late: it is on its way while the tile is run. */
    if (!peal_cuda_trampoline_is_communication_free(kind))
        fprintf(out,
                "    const unsigned peal_gone_ = peal_box_->sends ? peal_has_given_up_() : 0;\n");
    if (rides)
        peal_cuda_piggyback_print(p->schedule, p->task, out);
    peal_status status = print_evaluation(p, out);
    peal_cuda_check_print(p->task, entry->signature, out);
    peal_cuda_call_print(p->schedule, p->task, kind, entry->is_linked, out);
    if (rides)
        fprintf(out, "    }\n");
    if (!peal_cuda_trampoline_is_communication_free(kind))
        fprintf(out,
                "    if (peal_box_->sends)\n        peal_send_%s_(peal_launch_, peal_box_, "
                "peal_tile_, peal_gone_);\n",
                peal_cuda_trampoline_is_self_sending(kind) ? "own" : "tile");
    if (folds)
        peal_cuda_folds_print(p->schedule, p->task, out);
    fprintf(out, "}\n");
    *out_text = peal_cuda_text_close(p->source->arena, out, &text);
    return status;
}

/* The same for those blocks of a launch in mode fused that are of the box. */
static peal_status print_shaped_kernel(const task_printer *p, peal_cuda_trampoline kind,
                                       const char **out_text)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(&text, &bytes);

    fprintf(out,
            "(const peal_launch &peal_launch_, const peal_blocks_of_ &peal_all_)\n{\n"
            "    const peal_blocks_of_ peal_blocks_ = peal_shaped_blocks_<peal_box_>(peal_all_);\n"
            "    unsigned peal_turn_ = 0;\n"
            "    if (peal_blocks_.begin >= peal_blocks_.end)\n        return;\n");
    peal_status status = print_evaluation(p, out);
    fprintf(out, "    peal_turns_<peal_box_> peal_turns_now_(peal_launch_, peal_blocks_);\n");
    peal_cuda_stage_print_begin(p->schedule, p->task, out);
    fprintf(out,
            "    for (; peal_turns_now_.number(0) != PEAL_NO_BLOCK_; peal_turns_now_.go_on()) {\n"
            "    const unsigned peal_at_ = peal_turns_now_.number(0);\n"
            "    peal_tile peal_tile_;\n"
            "    peal_shaped_tile_<peal_box_>(peal_launch_, peal_at_, &peal_tile_);\n");
    peal_cuda_stage_print_turn(p->schedule, p->task, out);
    peal_cuda_call_print(p->schedule, p->task, kind, false, out);
    peal_cuda_stage_print_end(p->schedule, p->task, out);
    fprintf(out, "    }\n}\n");
    *out_text = peal_cuda_text_close(p->source->arena, out, &text);
    return status;
}

/* There is device code, and none of the C files has the kernel. */
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

static peal_status describe_user_kernel(const task_printer *p, peal_cuda_entry *entry)
{
    peal_mode mode = p->source->desc->mode;
    bool reduces = p->task->reduction_count > 0, free = p->task->mergeable;
    bool launches = mode != PEAL_MODE_SERIAL && mode != PEAL_MODE_FUSED;
    peal_status status = PEAL_STATUS_OK;

    entry->is_users = true;
    entry->is_linked = is_linked(p->source, p->task->kernel);
    entry->is_light = peal_cuda_task_is_light(p->schedule, p->task);
    entry->signature = peal_kernel_signature(p->source->arena, p->schedule, p->task);
    bool shapes = mode == PEAL_MODE_FUSED && free && !entry->is_linked;
    const struct {
        peal_cuda_trampoline kind;
        bool wanted;
        const char **text;
    } kernel[] = {
        {PEAL_CUDA_TRAMPOLINE_FULL, true, &entry->text},
        {PEAL_CUDA_TRAMPOLINE_NO_REDUCTION, reduces, &entry->bare},
        {PEAL_CUDA_TRAMPOLINE_SELF_SENDING_FULL, launches, &entry->own},
        {PEAL_CUDA_TRAMPOLINE_SELF_SENDING_NO_REDUCTION, launches && reduces, &entry->own_bare},
        {PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_NO_REDUCTION, free, &entry->plain},
        {PEAL_CUDA_TRAMPOLINE_COMMUNICATION_FREE_FULL, free && reduces, &entry->plain_full},
        {PEAL_CUDA_TRAMPOLINE_SHAPED_FULL, shapes, &entry->shaped},
        {PEAL_CUDA_TRAMPOLINE_SHAPED_NO_REDUCTION, shapes && reduces, &entry->shaped_bare}};
    for (size_t i = 0; i < sizeof(kernel) / sizeof(kernel[0]) && !status; i++)
        if (kernel[i].wanted && peal_cuda_trampoline_is_shaped(kernel[i].kind))
            status = print_shaped_kernel(p, kernel[i].kind, kernel[i].text);
        else if (kernel[i].wanted)
            status = print_user_kernel(p, entry, kernel[i].kind, kernel[i].text);
    peal_cuda_task_shape(p->task, p->entry->threads);
    return status;
}

/* Kernels of the built-in tasks. */

/* What is done with `value`. */
static void print_value(int number, const char *statement, FILE *out)
{
    fprintf(out,
            "        {\n            auto value = peal_expression_%d_(&launch, &bad);\n"
            "            if (!bad)\n                %s;\n        }\n",
            number, statement);
}

static peal_status print_item(const task_printer *p, int index, FILE *out)
{
    const peal_expr *expr = p->task->item[index].value;
    peal_value_kind kind = peal_expr_kind_of(expr, p->schedule->graph);
    int number = 0;

    if (kind != PEAL_TEXT) {
        peal_status status = add_expression(p, expr, &number, &kind);
        if (status)
            return status;
        char statement[64];
        snprintf(statement, sizeof(statement), "item[%d].value.%s)value", index,
                 kind == PEAL_REAL ? "real = (double" : "integer = (long long");
        print_value(number, statement, out);
    }
    fprintf(out, "        item[%d].kind = %d;\n", index, (int)kind);
    return PEAL_STATUS_OK;
}

/* What SET does with `value`, of this kind. */
static const char *store_of(const task_printer *p, peal_value_kind kind)
{
    const char *c_type = type_of(p, p->task->array);
    peal_type type = p->schedule->array[p->task->array].type;
    const char *store =
        peal_arena_print(p->source->arena, "*(%s *)launch.view[0] = (%s)%s", c_type, c_type,
                         type == PEAL_F32 ? "(double)value" : "value"); /* as on the host */

    if (type == PEAL_F64 || type == PEAL_F32)
        return store;
    if (kind == PEAL_REAL) /* by way of 64 bits */
        return peal_arena_print(p->source->arena, "*(%s *)launch.view[0] = (%s)(long long)value",
                                c_type, c_type);
    return peal_arena_print(p->source->arena,
                            "if (peal_misfits_<%s>(launch, value))\n"
                            "                bad = 1;\n            else\n                %s",
                            c_type, store);
}

/* SET, DECIDE, PRINT: thread 0 evaluates and stores. */
static peal_status print_evaluator(const task_printer *p, FILE *out)
{
    const peal_schedule_task *task = p->task;
    peal_status status = PEAL_STATUS_OK;
    peal_value_kind kind;
    bool decides = task->kind == PEAL_TASK_DECIDE;
    int number = 0;

    /* Once the verdict is there no thread may look at the word by which the kernel is skipped: it
     * may be the same. */
    fprintf(out,
            "(PEAL_LAUNCH_ launch)\n{\n    int bad = 0;\n"
            "    if (!peal_enter_(launch))\n        return;\n%s"
            "    if (peal_thread_() == 0%s) {\n",
            decides ? "    __syncthreads();\n" : "",
            decides ? " && !peal_is_decided_(launch)" : "");
    if (task->kind == PEAL_TASK_PRINT) {
        fprintf(out, "        peal_device_item *item = (peal_device_item *)launch.view[0];\n");
        for (int i = 0; i < task->item_count && !status; i++)
            status = print_item(p, i, out);
    } else {
        status = add_expression(p, task->value, &number, &kind);
        print_value(number, decides ? "peal_decide_(launch, value)" : store_of(p, kind), out);
    }
    fprintf(out,
            "    }\n    if (peal_went_wrong_(launch, __syncthreads_or(bad)))\n        return;\n"
            "}\n");
    return status;
}

static peal_status describe_builtin(const task_printer *p, peal_cuda_entry *entry)
{
    const peal_schedule_task *task = p->task;
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(&text, &bytes);
    peal_status status = PEAL_STATUS_OK;
    bool folds = task->kind == PEAL_TASK_FOLD || task->kind == PEAL_TASK_COMBINE;

    if (folds)
        fprintf(out,
                "(PEAL_LAUNCH_ launch)\n{\n    peal_%s_<%s, %d>(launch);\n}"
                "\n",
                task->kind == PEAL_TASK_FOLD ? "fold" : "combine", type_of(p, task->array),
                (int)task->combine);
    else
        status = print_evaluator(p, out);
    entry->text = peal_cuda_text_close(p->source->arena, out, &text);
    p->entry->threads[0] = folds ? PEAL_CUDA_TASK_THREADS : 32;
    return status;
}

/* All tasks. */

static bool has_kernel(const peal_schedule_task *task)
{
    if (task->kind == PEAL_TASK_KERNEL)
        return peal_kernel_is_needed(task);
    return task->kind != PEAL_TASK_LOAD && task->kind != PEAL_TASK_SAVE;
}

/* Tasks that reach differently far have the same text, but other stages. */
static bool is_alike(const peal_cuda_entry *a, const peal_cuda_entry *b)
{
    return strcmp(a->text, b->text) == 0 &&
           (!a->shaped || !b->shaped || strcmp(a->shaped, b->shaped) == 0);
}

static peal_status add_task(const task_printer *p)
{
    peal_cuda_source *source = p->source;
    peal_cuda_entry found = {.schedule = p->schedule, .task = p->task};
    peal_status status = p->task->kind == PEAL_TASK_KERNEL ? describe_user_kernel(p, &found)
                                                           : describe_builtin(p, &found);
    int same = 0;

    if (status)
        return status;
    while (same < source->entry_count && !is_alike(&source->entry[same], &found))
        same++;
    p->entry->entry = same;
    if (same == source->entry_count)
        source->entry[source->entry_count++] = found;
    if (!source->entry[same].plain) {
        source->entry[same].plain = found.plain;
        source->entry[same].plain_full = found.plain_full;
    }
    if (!source->entry[same].shaped) {
        source->entry[same].shaped = found.shaped;
        source->entry[same].shaped_bare = found.shaped_bare;
    }
    return PEAL_STATUS_OK;
}

static peal_status add_rank(peal_cuda_source *source, int rank)
{
    const peal_schedule *schedule = source->desc->rank[rank].schedule;
    peal_layout *layout = PEAL_ARENA_ARRAY(source->arena, peal_layout, schedule->array_count + 1);
    peal_status status = PEAL_STATUS_OK;
    peal_scope scope;

    peal_cuda_scope_fill(schedule, layout, &scope);
    source->is_wide |= peal_cuda_offsets_are_wide(schedule);
    for (int i = 0; i < schedule->channel_count; i++)
        for (int k = 0; k < schedule->channel[i].piece_count; k++)
            source->is_counted |= schedule->channel[i].piece[k].counted;
    source->task[rank] =
        PEAL_ARENA_ARRAY(source->arena, peal_cuda_task_entry, schedule->task_count + 1);
    for (int t = 0; t < schedule->task_count; t++) {
        peal_cuda_task_entry *entry = &source->task[rank][t];
        task_printer p = {source, schedule, &scope, &schedule->task[t], entry};
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

/* If any task needs them. */
static peal_status read_files(peal_cuda_source *source)
{
    for (int r = 0; r < source->desc->rank_count; r++) {
        const peal_schedule *schedule = source->desc->rank[r].schedule;
        for (int t = 0; t < schedule->task_count; t++) {
            if (!peal_kernel_is_needed(&schedule->task[t]))
                continue;
            if (source->graph->kernel_count == 0)
                return peal_kernel_report_no_files(source->desc->diagnostics, &schedule->task[t]);
            peal_status status =
                peal_kernel_files_read(source->graph, source->desc->allow_outside, source->arena,
                                       source->desc->diagnostics, &source->files);
            return status ? status
                          : peal_kernel_files_check_included(&source->files, source->arena,
                                                             source->desc->diagnostics);
        }
    }
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_source_create(const peal_backend_desc *desc, peal_arena *arena,
                                    peal_cuda_source **out)
{
    peal_cuda_source *source = PEAL_ARENA_NEW(arena, peal_cuda_source);
    peal_backend_rank *ranks = PEAL_ARENA_ARRAY(arena, peal_backend_rank, desc->rank_count);
    int most = 0;

    /* Schedules outlive this; the caller's descriptor need not. */
    memcpy(ranks, desc->rank, (size_t)desc->rank_count * sizeof(*ranks));
    source->own = *desc;
    source->own.rank = ranks;
    source->arena = arena;
    source->desc = &source->own;
    source->graph = desc->rank[0].schedule->graph;
    for (int r = 0; r < desc->rank_count; r++)
        most += desc->rank[r].schedule->task_count;
    source->entry = PEAL_ARENA_ARRAY(arena, peal_cuda_entry, most + 1);
    source->expression = PEAL_ARENA_ARRAY(arena, const char *, MOST_EXPRESSIONS);
    source->task = PEAL_ARENA_ARRAY(arena, peal_cuda_task_entry *, desc->rank_count);
    peal_status status = read_files(source);
    for (int r = 0; r < desc->rank_count; r++) {
        peal_status problem = add_rank(source, r);
        status = status ? status : problem;
    }
    if (!status)
        peal_cuda_translation_units_print(source);
    *out = source;
    return status;
}
