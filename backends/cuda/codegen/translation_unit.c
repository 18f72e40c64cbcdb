/* Translation units of a plan's kernels: that of all modes, that of plain kernels, and that of the
 * persistent kernel in mode fused, from the texts that source.c has made. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/call.h"
#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/source.h"
#include "backends/cuda/lower/plan.h"

#include <string.h>

static void print_expressions(const peal_cuda_source *source, FILE *out)
{
    for (int i = 0; i < source->expression_count; i++) {
        const char *cut = strchr(source->expression[i], '|');
        fprintf(out,
                "static __device__ __forceinline__ %.*s peal_expression_%d_(const peal_launch "
                "*launch, int *bad)\n{\n    (void)launch;\n    (void)bad;\n    return %s;\n}\n",
                (int)(cut - source->expression[i]), source->expression[i], i, cut + 1);
    }
}

/* Which entries the loop's tasks have: what is in the kernel costs registers, used or not. */
static bool is_in_loop(const peal_cuda_source *source, int index)
{
    for (int r = 0; r < source->desc->rank_count; r++) {
        const peal_schedule *schedule = source->desc->rank[r].schedule;
        for (int i = schedule->step.first; i < schedule->step.end; i++)
            if (schedule->op[i].kind == PEAL_OP_LAUNCH &&
                source->task[r][schedule->op[i].task].entry == index)
                return true;
    }
    return false;
}

/* Launch bounds. A linked function has all the registers that the guide promises. */
static const char *bounds_of(const peal_cuda_entry *entry, bool own)
{
    if (!entry->is_users && entry->task->kind != PEAL_TASK_FOLD &&
        entry->task->kind != PEAL_TASK_COMBINE)
        return "32";
    if (!entry->is_users || entry->is_linked)
        return "PEAL_THREADS_, PEAL_BLOCKS_";
    if (peal_cuda_task_whole(entry->task) == PEAL_WHOLE_FLAT)
        return "PEAL_THREADS_, PEAL_FLAT_BLOCKS_";
    return own && entry->is_light ? "PEAL_THREADS_, PEAL_LIGHT_BLOCKS_"
                                  : "PEAL_THREADS_, PEAL_BLOCKS_";
}

static void print_kernel(const peal_cuda_entry *entry, bool own, const char *name, const char *text,
                         int index, FILE *out)
{
    if (text)
        fprintf(out, "\n#line 1 \"<task %d>\"\n%s(%s) %s_%d%s", index,
                entry->is_users ? "PEAL_TASK_" : "PEAL_ENTRY_", bounds_of(entry, own), name, index,
                text);
}

static void print_entry(const peal_cuda_entry *entry, int index, FILE *out)
{
    print_kernel(entry, false, "peal_task", entry->text, index, out);
    print_kernel(entry, false, "peal_bare", entry->bare, index, out);
    print_kernel(entry, true, "peal_own", entry->own, index, out);
    print_kernel(entry, true, "peal_own_bare", entry->own_bare, index, out);
}

static void print_shaped_entry(const peal_cuda_entry *entry, int index, FILE *out)
{
    const char *bare = entry->bare ? entry->shaped_bare : NULL;

    if (entry->shaped)
        fprintf(out,
                "\n#line 1 \"<task %d>\"\ntemplate <class peal_box_>\nstatic __device__ "
                "__forceinline__ void peal_tiles_%d%s",
                index, index, entry->shaped);
    if (bare)
        fprintf(out,
                "\n#line 1 \"<task %d>\"\ntemplate <class peal_box_>\nstatic __device__ "
                "__forceinline__ void peal_bare_tiles_%d%s",
                index, index, bare);
}

/* ---- functions of the application's device code (include/peal/block.h) ---- */

/* The same kernel as one in C would be, which calls the function. */
static void print_linked(const peal_cuda_entry *entry, FILE *out)
{
    const peal_schedule_task *task = entry->task;
    const peal_schedule_array *array = entry->schedule->array;

    fprintf(out, "\n#line 1 \"<link %s>\"\nextern \"C\" __device__ void %s(const peal_block *",
            task->kernel, task->kernel);
    for (int i = 0; i < task->access_count; i++)
        fprintf(out, ", %s%s *, peal_block_strides",
                task->access[i].mode == PEAL_READ_ACCESS ? "const " : "",
                peal_type_c_name(array[task->access[i].array].type));
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out, ", %s *", peal_type_c_name(array[task->reduction[i].array].type));
    for (int i = 0; i < task->argument_count; i++)
        fprintf(out, ", %s", task->argument_is_real[i] ? "double" : "long");
    fprintf(out, ");\n%s\n{\n    const peal_block peal_block_ = peal_block_of_(t);\n",
            entry->signature);
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out, "    %s peal_part_%d_ = 0;\n",
                peal_type_c_name(array[task->reduction[i].array].type), i);
    fprintf(out, "    %s(&peal_block_", task->kernel);
    for (int i = 0; i < task->access_count; i++) {
        const char *name = array[task->access[i].array].name;
        fprintf(out, ", %s, peal_block_strides_of_(%s_strides_)", name, name);
    }
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out, ", &peal_part_%d_", i);
    for (int i = 0; i < task->argument_count; i++)
        fprintf(out, ", argument_%d", i + 1);
    fprintf(out, ");\n");
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out, "    PEAL_PARTIAL(%s, peal_part_%d_);\n", array[task->reduction[i].array].name,
                i);
    fprintf(out, "}\n");
}

/* Each function once. */
static void print_all_linked(const peal_cuda_source *source, FILE *out)
{
    bool any = false;

    for (int i = 0; i < source->entry_count; i++) {
        const peal_cuda_entry *entry = &source->entry[i];
        bool seen = !entry->is_linked;
        for (int k = 0; k < i && !seen; k++)
            seen = source->entry[k].is_linked &&
                   strcmp(source->entry[k].task->kernel, entry->task->kernel) == 0;
        if (seen)
            continue;
        if (!any)
            fprintf(out, "\n#line 1 \"<link>\"\n#include <peal/linked.h>\n");
        any = true;
        print_linked(entry, out);
    }
}

static void print_unit(const peal_cuda_source *source, bool fused, FILE *out)
{
    fprintf(out,
            "%s#include <peal/kernel.h>\n#include <peal/launch.h>\n#include <peal/run.h>\n"
            "#include <peal/whole.h>\n#include <peal/expression.h>\n#include <peal/builtin.h>\n"
            "#include <peal/reduce.h>\n%s"
            "static_assert(sizeof(peal_launch) == %zu, \"peal_launch\");\n\n",
            source->is_counted ? "#define PEAL_COUNTED 1\n" : "",
            fused ? "#include <peal/shaped.h>\n#include <peal/staged.h>\n" : "",
            sizeof(peal_launch));
    print_expressions(source, out);
    for (int i = 0; i < source->entry_count; i++)
        if (!source->entry[i].is_users)
            print_entry(&source->entry[i], i, out);
    for (int i = 0; i < source->files.count; i++)
        peal_kernel_file_print(&source->files.file[i], out);
    print_all_linked(source, out);
    for (int i = 0; i < source->entry_count; i++) {
        const peal_cuda_entry *entry = &source->entry[i];
        if (!entry->is_users || (fused && !is_in_loop(source, i)))
            continue;
        print_entry(entry, i, out);
        if (fused)
            print_shaped_entry(entry, i, out);
    }
}

static void print_plain_entry(const char *name, int index, const char *blocks, const char *text,
                              FILE *out)
{
    fprintf(out,
            "\n#line 1 \"<task %d>\"\nextern \"C\" __global__ void "
            "__launch_bounds__(PEAL_THREADS_, %s) %s_%d%s",
            index, blocks, name, index, text);
}

/* The same words with PEAL_PLAIN (device/kernel.h): a unit of its own, since the kernels' text
 * means something else there. */
static void print_plain_unit(peal_cuda_source *source)
{
    char *text = NULL;
    size_t bytes = 0;
    bool any = false;

    for (int i = 0; i < source->entry_count; i++)
        any = any || source->entry[i].plain;
    if (!any)
        return;
    FILE *out = peal_cuda_text_open(&text, &bytes);
    fprintf(out,
            "#define PEAL_PLAIN 1\n%s#include <peal/kernel.h>\n#include <peal/launch.h>\n"
            "#include <peal/run.h>\n#include <peal/whole.h>\n#include <peal/expression.h>\n"
            "#include <peal/reduce.h>\n\n",
            source->is_wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_expressions(source, out);
    for (int i = 0; i < source->files.count; i++)
        peal_kernel_file_print(&source->files.file[i], out);
    print_all_linked(source, out);
    for (int i = 0; i < source->entry_count; i++) {
        const peal_cuda_entry *entry = &source->entry[i];
        const char *blocks = entry->is_light ? "PEAL_LIGHT_BLOCKS_" : "PEAL_BLOCKS_";
        if (entry->plain)
            print_plain_entry("peal_plain", i, "PEAL_BLOCKS_", entry->plain, out);
        if (entry->plain_full)
            print_plain_entry("peal_plain_full", i, blocks, entry->plain_full, out);
    }
    source->plain = peal_cuda_text_close(source->arena, out, &text);
}

/* ---- the unit of mode fused ---- */

/* Words that are not understood are told when the plan is made. */
static peal_cuda_options lowering_of(const peal_cuda_source *source)
{
    peal_cuda_options lowering = {.order = PEAL_CUDA_DISPATCH_TILES}, none = lowering;

    return peal_cuda_options_parse(source->desc->lowering, &lowering) ? lowering : none;
}

/* Of the first rank's process: who only looks at kernels may have all ranks. */
static int ranks_of_kernel(const peal_cuda_source *source)
{
    const peal_backend_rank *rank = source->desc->rank;
    const peal_machine *machine = rank[0].schedule->machine;
    int count = 0;

    if (!machine)
        return source->desc->rank_count;
    for (int r = 0; r < source->desc->rank_count; r++)
        count += peal_machine_process(machine, rank[r].schedule->rank) ==
                 peal_machine_process(machine, rank[0].schedule->rank);
    return count;
}

/* The same words with PEAL_FUSED: kernels are functions, and one kernel calls them. */
static void print_fused_unit(peal_cuda_source *source)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(&text, &bytes);
    peal_cuda_options lowering = lowering_of(source);

    fprintf(out,
            "#define PEAL_FUSED 1\n#define PEAL_FUSED_RANKS %d\n#define PEAL_FUSED_JITTER %d\n%s%s",
            ranks_of_kernel(source), lowering.jitter_ns,
            peal_cuda_dispatcher_has_tickets(lowering.order) ? "#define PEAL_FUSED_TICKETS 1\n"
                                                             : "",
            source->is_wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_unit(source, true, out);
    fprintf(out,
            "\n#line 1 \"<dispatch>\"\n#include <peal/fused.h>\n"
            "static_assert(sizeof(peal_fused) == %zu, \"peal_fused\");\n",
            sizeof(peal_fused));
    source->fused = peal_cuda_text_close(source->arena, out, &text);
}

static void print_calls(const peal_cuda_source *source, FILE *out)
{
    static const char *const builtins[PEAL_CUDA_BUILTIN_COUNT] = {"copy", "signal", "step",
                                                                  "begin"};

    fprintf(out,
            "\nstatic __device__ __forceinline__ void peal_fused_call_(unsigned function, const "
            "peal_launch &launch)\n{\n    switch (function) {\n");
    for (int b = 0; b < PEAL_CUDA_BUILTIN_COUNT; b++)
        fprintf(out, "    case %d:\n        peal_%s(launch);\n        break;\n", b, builtins[b]);
    /* What the dispatcher takes by itself is what is left without the tasks (resources.c). */
    fprintf(out, "#ifndef PEAL_FUSED_ALONE\n");
    for (int i = 0; i < source->entry_count; i++) {
        if (!is_in_loop(source, i))
            continue;
        fprintf(out, "    case %d: /* %s */\n        peal_task_%d(launch);\n        break;\n",
                peal_cuda_fused_number(i, PEAL_CUDA_FUSED_FULL), source->entry[i].task->name, i);
        if (source->entry[i].bare)
            fprintf(out, "    case %d:\n        peal_bare_%d(launch);\n        break;\n",
                    peal_cuda_fused_number(i, PEAL_CUDA_FUSED_NO_REDUCTION), i);
    }
    fprintf(out, "#endif\n    }\n}\n");
}

const char *peal_cuda_translation_units_close(const peal_cuda_source *source, const char *shapes,
                                              int shape_count, peal_arena *arena)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(&text, &bytes);

    fprintf(out, "%s", source->fused);
    print_calls(source, out);
    fprintf(out,
            "\n%sstatic __device__ __forceinline__ void peal_fused_shape_(unsigned shape, "
            "const peal_launch &launch, const peal_blocks_of_ &blocks)\n{\n    switch (shape) {\n",
            shapes);
    for (int i = 0; i < shape_count; i++)
        fprintf(out, "    case %d:\n        peal_shape_%d(launch, blocks);\n        break;\n", i,
                i);
    fprintf(out, "    }\n}\n");
    return peal_cuda_text_close(arena, out, &text);
}

bool peal_cuda_source_links(const char *text)
{
    return strstr(text, "#include <peal/linked.h>\n") != NULL;
}

void peal_cuda_translation_units_print(peal_cuda_source *source)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *unit = peal_cuda_text_open(&text, &bytes);

    fprintf(unit, "%s", source->is_wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_unit(source, false, unit);
    source->text = peal_cuda_text_close(source->arena, unit, &text);
    if (source->desc->mode == PEAL_MODE_FUSED)
        print_fused_unit(source);
    else
        print_plain_unit(source);
}
