/* The call of the user's kernel in a trampoline, and the reductions around it. Whole tiles are
 * called with constants (device/whole.h). In variants that write partials, the same threads have
 * the same points in all units, so they call whole tiles everywhere. */
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/codegen/text.h"
#include "base/expression.h"

#include <string.h>

static const char *type_of(const peal_schedule *schedule, int array)
{
    return peal_type_c_name(schedule->array[array].type);
}

static void print_view(const peal_schedule *schedule, const peal_schedule_task *task, int view,
                       const char *tile, peal_cuda_variant variant, bool linked, FILE *out)
{
    const peal_task_access *access = &task->access[view];
    int64_t low[PEAL_AXES], high[PEAL_AXES];
    const char *constant = access->mode == PEAL_READ_ACCESS ? "const " : "";
    const char *type = type_of(schedule, access->array);
    bool shaped = peal_cuda_variant_is_shaped(variant);
    peal_cuda_chain chain;

    if (variant == PEAL_CUDA_DEEP && peal_cuda_task_chains(schedule, task, &chain) &&
        (view == chain.read || view == chain.written)) {
        const char *row = tile + strlen("peal_row_"); /* "2_" */
        if (view == chain.read)
            fprintf(out,
                    ",\n        peal_rounds_::window(peal_step_ - 1), peal_rounds_::strides(%s, "
                    "peal_place_ + %c * peal_rounds_::APART)",
                    tile, *row);
        else
            fprintf(out, ",\n        &peal_own_%s, peal_rounds_::own(%s)", row, tile);
        return;
    }
    if (shaped && variant != PEAL_CUDA_DEEP &&
        peal_cuda_access_stages(schedule, task, view, low, high)) {
        fprintf(
            out,
            ",\n        peal_stage_%d_::pointer(peal_launch_, %s, peal_box_::stage(peal_turn_) + "
            "peal_box_::place(%d)), peal_stage_%d_::strides(peal_launch_, %s)",
            view, tile, view, view, tile);
        return;
    }
    if (!linked && peal_cuda_variant_moves(variant, task) &&
        peal_cuda_access_is_moved(schedule, access)) {
        bool fetches = peal_cuda_variant_reduces(variant, task) &&
                       peal_cuda_variant_is_communication_free(variant);
        const char *fetch = !fetches                             ? "PEAL_FETCH_NONE_"
                            : schedule->mode == PEAL_MODE_SERIAL ? "PEAL_FETCH_IF_ODD_"
                                                                 : "PEAL_FETCH_ALL_";
        fprintf(out,
                ",\n        peal_moved_<%s%s>(peal_launch_.view[%d], %s), "
                "peal_moved_strides_<%s, %s%s>(peal_launch_, %d, %s)",
                constant, type, view, tile, type, fetch, shaped ? ", peal_box_" : "", view, tile);
        return;
    }
    fprintf(out, ",\n        (%s%s *)peal_launch_.view[%d]", constant, type, view);
    if (access->per_tile > 0)
        fprintf(out, " + peal_launch_.shift[%d] * %s.index", view, tile);
    if (!linked && peal_cuda_access_is_moved(schedule, access))
        fprintf(out, ", peal_begun_strides_%s(peal_launch_, %d, %s)", shaped ? "<peal_box_>" : "",
                view, tile);
    else
        fprintf(out, ", peal_%s_of_%s(peal_launch_, %d)",
                schedule->array[access->array].has_components ? "component_strides" : "strides",
                shaped ? "<peal_box_>" : "", view);
}

static void print_partials(const peal_schedule *schedule, const peal_schedule_task *task, bool full,
                           FILE *out)
{
    for (int i = 0; i < task->reduction_count; i++) {
        const char *type = type_of(schedule, task->reduction[i].array);
        if (full)
            fprintf(out, ",\n        peal_partial_of_<%s>(peal_launch_, %d, %d, peal_tile_)", type,
                    i, (int)task->reduction[i].combine);
        else
            fprintf(out, ",\n        peal_no_partial_<%s>()", type);
    }
}

static void print_arguments(const peal_schedule_task *task, FILE *out)
{
    for (int i = 0; i < task->argument_count; i++) {
        bool real = task->argument_is_real[i];
        if (peal_expr_uses(task->argument[i]) & (PEAL_USES_COUNTER | PEAL_USES_ELEMENT))
            fprintf(out, ",\n        peal_argument_%d_", i);
        else
            fprintf(out, ",\n        (%s)peal_launch_.argument[%d].%s", real ? "double" : "long", i,
                    real ? "real" : "integer");
    }
}

static void print_call(const peal_schedule *schedule, const peal_schedule_task *task,
                       peal_cuda_variant variant, const char *tile, bool linked, FILE *out)
{
    fprintf(out, "peal_kernel_%s(%s", task->kernel, tile);
    for (int i = 0; i < task->access_count; i++)
        print_view(schedule, task, i, tile, variant, linked, out);
    print_partials(schedule, task, peal_cuda_variant_reduces(variant, task), out);
    print_arguments(task, out);
    fprintf(out, ");\n");
}

/* A whole tile. odd: its first column is the second one of a pair; where views are not moved, that
 * does not matter. */
static void print_whole(const peal_schedule *schedule, const peal_schedule_task *task,
                        peal_cuda_variant variant, int odd, FILE *out)
{
    int whole = peal_cuda_task_whole(task);
    bool moves = peal_cuda_variant_moves(variant, task);
    const char *box = peal_cuda_variant_is_shaped(variant) ? ", peal_box_"
                      : moves                              ? ""
                                                           : ", peal_unmoved_box_";

    peal_cuda_block_open(out, "if (peal_is_whole_<%d, %d%s>(peal_launch_, peal_tile_))", whole, odd,
                         box);
    fprintf(out,
            "        const peal_tile peal_whole_ = peal_whole_of_<%d, %d>(peal_tile_);\n        ",
            whole, odd);
    print_call(schedule, task, variant, "peal_whole_", false, out);
    fprintf(out, "    }");
}

/* Only the points of the tile below peal_end_. Messages have all points of tiles even so. */
static void print_counted(const peal_schedule *schedule, const peal_schedule_task *task,
                          peal_cuda_variant variant, bool linked, FILE *out)
{
    peal_cuda_block_open(out, "if (peal_tile_.lo[0] >= peal_end_)");
    for (int i = 0; i < task->reduction_count && peal_cuda_variant_reduces(variant, task); i++)
        fprintf(out,
                "        peal_no_points_(peal_partial_of_<%s>(peal_launch_, %d, %d, "
                "peal_tile_));\n",
                type_of(schedule, task->reduction[i].array), i, (int)task->reduction[i].combine);
    peal_cuda_block_else(out);
    fprintf(out, "        peal_tile peal_counted_ = peal_tile_;\n"
                 "        if (peal_counted_.hi[0] > peal_end_)\n"
                 "            peal_counted_.hi[0] = (int)peal_end_;\n        ");
    print_call(schedule, task, variant, "peal_counted_", linked, out);
    peal_cuda_block_close(out);
}

void peal_cuda_check_print(const peal_schedule_task *task, const char *signature, FILE *out)
{
    const char *text = peal_kernel_parameters(signature);

    fprintf(out, "    (void)sizeof(static_cast<void (*)(peal_tile peal_first_");
    for (int number = 0; strchr(text, '('); number++) { /* `PEAL_READ(double, in), long n)` */
        int length = (int)(strchr(strchr(text, '('), ',') - text);
        fprintf(out, "%.*s, peal_%d_", length, text, number);
        text += length + strcspn(text + length, ")");
    }
    fprintf(out, "%s>(peal_kernel_%s));\n", text, task->kernel);
}

/* The calls for `rows` points of a thread, and then where their results go: no load waits for a
 * store. */
static void print_rows(const peal_schedule *schedule, const peal_schedule_task *task, int rows,
                       const char *type, FILE *out)
{
    fprintf(out, "        const int peal_place_ = peal_rounds_::place(peal_launch_, peal_window_, "
                 "peal_x_, peal_v_, peal_w_);\n");
    for (int i = 0; i < rows; i++) {
        char tile[32];
        snprintf(tile, sizeof(tile), "peal_row_%d_", i);
        fprintf(out,
                "        %s peal_own_%d_;\n"
                "        const peal_tile %s = peal_rounds_::point(peal_launch_, peal_x_, peal_v_, "
                "peal_w_, %d);\n        ",
                type, i, tile, i);
        print_call(schedule, task, PEAL_CUDA_DEEP, tile, false, out);
    }
    for (int i = 0; i < rows; i++)
        fprintf(
            out,
            "        peal_rounds_::window(peal_step_)[peal_place_ + %d * peal_rounds_::APART] = "
            "peal_own_%d_;\n",
            i, i);
}

void peal_cuda_deep_call_print(const peal_schedule *schedule, const peal_schedule_task *task,
                               const peal_cuda_chain *chain, FILE *out)
{
    const char *type = type_of(schedule, task->access[chain->read].array);
    bool has_planes = peal_cuda_task_axes(task) == 3;

    peal_cuda_block_open(out, "if (peal_rounds_::is_tall(peal_part_))");
    fprintf(out, "        const int peal_v_ = peal_rounds_::begin(peal_part_, 1, peal_y_);\n"
                 "        const int peal_w_ = peal_rounds_::begin(peal_part_, 2, peal_z_);\n");
    print_rows(schedule, task, chain->rows, type, out);
    peal_cuda_block_else(out);
    fprintf(
        out,
        "        const int peal_end_ = peal_%c_ + peal_box_::rows < peal_part_.hi[%d] ? peal_%c_ "
        "+ peal_box_::rows : peal_part_.hi[%d];\n",
        has_planes ? 'z' : 'y', has_planes ? 2 : 1, has_planes ? 'z' : 'y', has_planes ? 2 : 1);
    fprintf(out, "#pragma unroll 1\n");
    peal_cuda_block_open(out, "for (int peal_i_ = peal_%c_; peal_i_ < peal_end_; peal_i_++)",
                         has_planes ? 'z' : 'y');
    fprintf(out, "        const int peal_v_ = %s, peal_w_ = %s;\n",
            has_planes ? "peal_y_" : "peal_i_", has_planes ? "peal_i_" : "peal_z_");
    print_rows(schedule, task, 1, type, out);
    peal_cuda_block_close(out);
    peal_cuda_block_close(out);
}

void peal_cuda_call_print(const peal_schedule *schedule, const peal_schedule_task *task,
                          peal_cuda_variant variant, bool linked, FILE *out)
{
    int whole = linked ? 0 : peal_cuda_task_whole(task);
    bool partials = peal_cuda_variant_reduces(variant, task);
    bool moves = peal_cuda_variant_moves(variant, task);
    bool known =
        peal_cuda_variant_is_communication_free(variant) || peal_cuda_variant_is_shaped(variant);

    if (task->count) {
        print_counted(schedule, task, variant, linked, out);
        return;
    }
    /* In mode fused the shaped variant runs whole tiles. */
    bool fused_has_another = !partials && !known && whole && moves;
    if (fused_has_another)
        fprintf(out, "#ifndef PEAL_FUSED\n");
    if ((partials || moves) && whole) {
        print_whole(schedule, task, variant, 0, out);
        fprintf(out, " else");
    }
    if (fused_has_another)
        fprintf(out, "\n#endif\n");
    /* Free tiles begin where pairs do. */
    if (partials && moves && whole == PEAL_WHOLE_2) {
        print_whole(schedule, task, variant, 1, out);
        fprintf(out, " else");
    }
    fprintf(out, "    ");
    print_call(schedule, task, variant, "peal_tile_", linked, out);
}

void peal_cuda_piggyback_print(const peal_schedule *schedule, const peal_schedule_task *task,
                               FILE *out)
{
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out,
                "        if (peal_launch_.piggyback.reduction == %d)\n"
                "            peal_piggyback_<%s, %d>(peal_launch_);\n",
                i, type_of(schedule, task->reduction[i].array), (int)task->reduction[i].combine);
}

void peal_cuda_folds_print(const peal_schedule *schedule, const peal_schedule_task *task, FILE *out)
{
    fprintf(out, "    if (!peal_folds_(peal_launch_) || !peal_await_folds_(peal_launch_))\n"
                 "        return;\n");
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out, "    peal_fold_tiles_<%s, %d>(peal_launch_, %d);\n",
                type_of(schedule, task->reduction[i].array), (int)task->reduction[i].combine, i);
    fprintf(out, "    peal_send_folds_(peal_launch_);\n");
}
