/* Translation units of a plan's kernels: the one of all modes, the one of communication-free
 * kernels, and the one of the persistent kernel in mode fused.
 *
 * peal's own kernels and expressions come first, then the user's files, then the trampolines: what
 * comes before the user's files cannot meet their macros. Each kernel of a task is in a pseudo file
 * "<task N>", so that the compiler's messages about it can be told from those about the user's
 * lines. */
#include "backends/cuda/codegen/translation_unit.h"

#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/codegen/text.h"

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

/* Whether a task of the loop is run by the entry: what is in the persistent kernel costs registers,
 * used or not. */
static bool is_in_loop(const peal_cuda_source *source, int index)
{
    for (int r = 0; r < source->desc.rank_count; r++) {
        const peal_schedule *schedule = source->desc.rank[r].schedule;
        for (int i = schedule->step.first; i < schedule->step.end; i++)
            if (schedule->op[i].kind == PEAL_OP_LAUNCH &&
                source->task[r][schedule->op[i].task].entry == index)
                return true;
    }
    return false;
}

const char *peal_cuda_builtin_name(peal_cuda_builtin which)
{
    static const char *const name[PEAL_CUDA_BUILTIN_COUNT] = {
        [PEAL_CUDA_BUILTIN_COPY] = "peal_copy",   [PEAL_CUDA_BUILTIN_SIGNAL] = "peal_signal",
        [PEAL_CUDA_BUILTIN_STEP] = "peal_step",   [PEAL_CUDA_BUILTIN_BEGIN] = "peal_begin",
        [PEAL_CUDA_BUILTIN_TOUCH] = "peal_touch",
    };
    return name[which];
}

/* Launch bounds of an entry's kernel in the unit of all modes. A linked function has all the
 * registers that the guide promises. */
static const char *bounds_of(const peal_cuda_entry *entry, peal_cuda_variant variant)
{
    bool self_sends = peal_cuda_variant_is_self_sending(variant);

    if (!entry->is_users && entry->task->kind != PEAL_TASK_FOLD &&
        entry->task->kind != PEAL_TASK_COMBINE)
        return "32";
    if (!entry->is_users || entry->is_linked)
        return "PEAL_THREADS_, PEAL_BLOCKS_";
    if (peal_cuda_task_whole(entry->task) == PEAL_WHOLE_FLAT)
        return "PEAL_THREADS_, PEAL_FLAT_BLOCKS_";
    return self_sends && entry->is_light ? "PEAL_THREADS_, PEAL_LIGHT_BLOCKS_"
                                         : "PEAL_THREADS_, PEAL_BLOCKS_";
}

/* The pseudo file of a kernel. */
static void print_pseudo_file(int index, FILE *out)
{
    fprintf(out, "\n#line 1 \"<task %d>\"\n", index);
}

static void print_entry(const peal_cuda_entry *entry, int index, FILE *out)
{
    for (int v = PEAL_CUDA_FULL; v <= PEAL_CUDA_SELF_SENDING_NO_REDUCTION; v++) {
        if (!entry->text[v])
            continue;
        print_pseudo_file(index, out);
        fprintf(out, "%s(%s) peal_task_%d%s%s", entry->is_users ? "PEAL_TASK_" : "PEAL_ENTRY_",
                bounds_of(entry, (peal_cuda_variant)v), index,
                peal_cuda_variant_suffix((peal_cuda_variant)v), entry->text[v]);
    }
}

static void print_shaped_entry(const peal_cuda_entry *entry, int index, FILE *out)
{
    for (int v = PEAL_CUDA_SHAPED; v <= PEAL_CUDA_DEEP; v++) {
        if (!entry->text[v])
            continue;
        print_pseudo_file(index, out);
        fprintf(out,
                "template <class peal_box_>\nstatic __device__ __forceinline__ void "
                "peal_tiles_%d%s%s",
                index, peal_cuda_variant_suffix((peal_cuda_variant)v), entry->text[v]);
    }
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
        char name[PEAL_PARAMETER_BYTES];
        peal_kernel_parameter(entry->schedule, task, i, name);
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

/* Whether an entry before has the same function. */
static bool is_printed(const peal_cuda_source *source, int index)
{
    for (int i = 0; i < index; i++)
        if (source->entry[i].is_linked &&
            strcmp(source->entry[i].task->kernel, source->entry[index].task->kernel) == 0)
            return true;
    return false;
}

static void print_all_linked(const peal_cuda_source *source, FILE *out)
{
    if (source->needs.linked)
        fprintf(out, "\n#line 1 \"<link>\"\n#include <peal/linked.h>\n");
    for (int i = 0; i < source->entry_count; i++)
        if (source->entry[i].is_linked && !is_printed(source, i))
            print_linked(&source->entry[i], out);
}

/* ---- the unit of all modes ---- */

static void print_unit(const peal_cuda_source *source, bool fused, FILE *out)
{
    fprintf(out,
            "%s#include <peal/kernel.h>\n#include <peal/launch.h>\n#include <peal/run.h>\n"
            "#include <peal/whole.h>\n#include <peal/expression.h>\n#include <peal/builtin.h>\n"
            "#include <peal/reduce.h>\n%s"
            "static_assert(sizeof(peal_launch) == %zu, \"peal_launch\");\n\n",
            source->needs.counted ? "#define PEAL_COUNTED 1\n" : "",
            fused ? "#include <peal/shaped.h>\n#include <peal/deep.h>\n" : "", sizeof(peal_launch));
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

/* ---- the unit of communication-free kernels ---- */

static void print_communication_free_entry(const peal_cuda_entry *entry, peal_cuda_variant variant,
                                           int index, FILE *out)
{
    bool light = entry->is_light && peal_cuda_variant_reduces(variant, entry->task);

    if (!entry->text[variant])
        return;
    print_pseudo_file(index, out);
    fprintf(out,
            "extern \"C\" __global__ void __launch_bounds__(PEAL_THREADS_, %s) peal_task_%d%s%s",
            light ? "PEAL_LIGHT_BLOCKS_" : "PEAL_BLOCKS_", index, peal_cuda_variant_suffix(variant),
            entry->text[variant]);
}

/* `serial` runs only tiles with partials by them. */
static bool has_communication_free(const peal_cuda_source *source)
{
    peal_cuda_variant least = source->desc.mode == PEAL_MODE_SERIAL
                                  ? PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION
                                  : PEAL_CUDA_COMMUNICATION_FREE;

    for (int i = 0; i < source->entry_count; i++)
        if (source->entry[i].text[least])
            return true;
    return false;
}

/* A unit of its own, since the text of the user's kernels means something else with
 * PEAL_COMMUNICATION_FREE (device/kernel.h). */
static void print_communication_free_unit(peal_cuda_source *source)
{
    char *text = NULL;
    size_t bytes = 0;

    if (!has_communication_free(source))
        return;
    FILE *out = peal_cuda_text_open(source->arena, &text, &bytes);
    fprintf(out,
            "#define PEAL_COMMUNICATION_FREE 1\n%s#include <peal/kernel.h>\n"
            "#include <peal/launch.h>\n#include <peal/run.h>\n#include <peal/whole.h>\n"
            "#include <peal/expression.h>\n#include <peal/reduce.h>\n\n",
            source->needs.wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_expressions(source, out);
    for (int i = 0; i < source->files.count; i++)
        peal_kernel_file_print(&source->files.file[i], out);
    print_all_linked(source, out);
    for (int i = 0; i < source->entry_count; i++) {
        const peal_cuda_entry *entry = &source->entry[i];
        print_communication_free_entry(entry, PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION, i, out);
        print_communication_free_entry(entry, PEAL_CUDA_COMMUNICATION_FREE, i, out);
    }
    source->communication_free = peal_cuda_text_close(source->arena, out, &text);
}

/* ---- the unit of mode fused ---- */

/* Ranks of the first one's process: who only looks at kernels may have all ranks. */
static int ranks_of_kernel(const peal_cuda_source *source)
{
    const peal_backend_rank *rank = source->desc.rank;
    const peal_machine *machine = rank[0].schedule->machine;
    int count = 0;

    if (!machine)
        return source->desc.rank_count;
    for (int r = 0; r < source->desc.rank_count; r++)
        count += peal_machine_process(machine, rank[r].schedule->rank) ==
                 peal_machine_process(machine, rank[0].schedule->rank);
    return count;
}

/* With PEAL_FUSED kernels are functions, which one kernel calls. */
static void print_fused_unit(peal_cuda_source *source)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(source->arena, &text, &bytes);

    fprintf(out,
            "#define PEAL_FUSED 1\n#define PEAL_FUSED_RANKS %d\n#define PEAL_FUSED_JITTER %d\n%s",
            ranks_of_kernel(source), source->desc.hooks.jitter_ns,
            source->needs.wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_unit(source, true, out);
    fprintf(out,
            "\n#line 1 \"<dispatch>\"\n#include <peal/%s.h>\n"
            "static_assert(sizeof(peal_fused) == %zu, \"peal_fused\");\n",
            source->fused_text.device_header, sizeof(peal_fused));
    source->fused = peal_cuda_text_close(source->arena, out, &text);
}

/* Like the unit of mode fused, with another kernel. */
static void print_bundle_unit(const peal_cuda_source *source, FILE *out)
{
    fprintf(out,
            "#define PEAL_FUSED 1\n#define PEAL_BUNDLE 1\n#define PEAL_FUSED_RANKS 1\n"
            "#define PEAL_FUSED_JITTER 0\n%s",
            source->needs.wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_unit(source, true, out);
    fprintf(out,
            "\n#line 1 \"<dispatch>\"\n#include <peal/bundle.h>\n"
            "static_assert(sizeof(peal_bundle_item_) == %zu, \"peal_bundle_item_\");\n",
            sizeof(peal_launch) + sizeof(peal_bundle_rest));
}

static bool is_called(const peal_cuda_fused_calls *calls, int number)
{
    return !calls->is_called || (number < calls->numbers && calls->is_called[number]);
}

static void print_entry_cases(const peal_cuda_entry *entry, int index,
                              const peal_cuda_fused_calls *calls, FILE *out)
{
    const int full = peal_cuda_fused_number(index, PEAL_CUDA_FUSED_FULL),
              no_reduction = peal_cuda_fused_number(index, PEAL_CUDA_FUSED_NO_REDUCTION);

    if (is_called(calls, full))
        fprintf(out, "    case %d: /* %s */\n        peal_task_%d(launch);\n        break;\n", full,
                entry->task->name, index);
    if (entry->text[PEAL_CUDA_NO_REDUCTION] && is_called(calls, no_reduction))
        fprintf(out, "    case %d: /* %s */\n        peal_task_%d%s(launch);\n        break;\n",
                no_reduction, entry->task->name, index,
                peal_cuda_variant_suffix(PEAL_CUDA_NO_REDUCTION));
}

static void print_calls(const peal_cuda_source *source, const peal_cuda_fused_calls *calls,
                        FILE *out)
{
    peal_cuda_body_open(out, "\nstatic __device__ __forceinline__ void peal_fused_call_(unsigned "
                             "function, const peal_launch &launch)");
    peal_cuda_block_open(out, "switch (function)");
    for (int b = 0; b < PEAL_CUDA_BUILTIN_COUNT; b++)
        if (is_called(calls, b))
            fprintf(out, "    case %d:\n        %s(launch);\n        break;\n", b,
                    peal_cuda_builtin_name((peal_cuda_builtin)b));
    /* The dispatcher's own needs are known by compiling it without the tasks. */
    fprintf(out, "#ifndef PEAL_FUSED_ALONE\n");
    for (int i = 0; i < source->entry_count; i++)
        if (is_in_loop(source, i))
            print_entry_cases(&source->entry[i], i, calls, out);
    fprintf(out, "#endif\n");
    peal_cuda_block_close(out);
    peal_cuda_body_close(out);
}

static void print_shape_calls(int shape_count, FILE *out)
{
    peal_cuda_body_open(out, "static __device__ __forceinline__ void peal_fused_shape_(unsigned "
                             "shape, const peal_launch &launch, const peal_blocks_of_ &blocks)");
    peal_cuda_block_open(out, "switch (shape)");
    for (int i = 0; i < shape_count; i++)
        fprintf(out, "    case %d:\n        peal_shape_%d(launch, blocks);\n        break;\n", i,
                i);
    peal_cuda_block_close(out);
    peal_cuda_body_close(out);
}

const char *peal_cuda_fused_unit_print(const peal_cuda_source *source,
                                       const peal_cuda_fused_calls *calls, peal_arena *arena)
{
    const peal_cuda_fused_calls all = {.shapes = ""};
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(arena, &text, &bytes);

    calls = calls ? calls : &all;
    if (calls->on_sm)
        fprintf(out, "#define PEAL_FUSED_ON_SM %d\n", calls->on_sm);
    if (calls->is_wide)
        fprintf(out, "#define PEAL_FUSED_IS_WIDE 1\n");
    if (calls->turns > 1)
        fprintf(out, "#define PEAL_FUSED_TURNS %d\n", calls->turns);
    fprintf(out, "%s", source->fused);
    print_calls(source, calls, out);
    fprintf(out, "\n%s", calls->shapes);
    print_shape_calls(calls->shape_count, out);
    return peal_cuda_text_close(arena, out, &text);
}

const char *peal_cuda_bundle_unit_print(const peal_cuda_source *source,
                                        const peal_cuda_fused_calls *calls, peal_arena *arena)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(arena, &text, &bytes);

    print_bundle_unit(source, out);
    print_calls(source, calls, out);
    fprintf(out, "\n%s", calls->shapes);
    print_shape_calls(calls->shape_count, out);
    return peal_cuda_text_close(arena, out, &text);
}

void peal_cuda_translation_units_print(peal_cuda_source *source)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *unit = peal_cuda_text_open(source->arena, &text, &bytes);

    fprintf(unit, "%s", source->needs.wide ? "" : "#define PEAL_OFFSET_ int\n");
    print_unit(source, false, unit);
    source->text = peal_cuda_text_close(source->arena, unit, &text);
    if (source->desc.mode == PEAL_MODE_FUSED)
        print_fused_unit(source);
    else
        print_communication_free_unit(source);
}
