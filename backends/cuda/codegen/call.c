/* Calls of the user's kernels in trampolines: with constants where the tile is whole, and without
 * (device/whole.h). What writes partials has both in all units: the same threads must have the same
 * points. */
#include "backends/cuda/codegen/call.h"

#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/jit/kernels.h"
#include "base/expression.h"
#include "base/kernel_source.h"

#include <string.h>

int peal_cuda_task_axes(const peal_schedule_task *task)
{
    return task->tiling_count > 0 ? task->tiling[0].box.axis_count : 1;
}

/* Nothing beside a point along z: threads that march along it would have nothing to keep. Tasks
 * with partials have one kind, that of the schedule's tiles. */
static bool is_flat(const peal_schedule_task *task)
{
    for (int i = 0; i < task->access_count; i++)
        for (int k = 0; k < task->access[i].reach_count; k++) {
            const peal_reach_axis *axis = &task->access[i].reach[k].axis[2];
            if (axis->fixed || axis->num != axis->den || axis->low != 0 || axis->high != 0)
                return false;
        }
    return task->reduction_count == 0;
}

int peal_cuda_task_whole(const peal_schedule_task *task)
{
    int axes = peal_cuda_task_axes(task);

    return axes == 2       ? PEAL_WHOLE_2
           : axes != 3     ? 0
           : is_flat(task) ? PEAL_WHOLE_FLAT
                           : PEAL_WHOLE_3;
}

bool peal_cuda_task_is_light(const peal_schedule *schedule, const peal_schedule_task *task)
{
    bool light = peal_cuda_task_axes(task) == 2 && task->access_count <= 2;

    for (int i = 0; i < task->access_count; i++)
        light &= peal_type_bytes(schedule->array[task->access[i].array].type) <= 4;
    return light;
}

void peal_cuda_task_shape(const peal_schedule_task *task, int threads[3])
{
    static const int shapes[4][3] = {{PEAL_CUDA_TASK_THREADS, 1, 1},
                                     {PEAL_CUDA_TASK_THREADS, 1, 1},
                                     {64, 4, 1},
                                     {32, 4, 2}};
    int axes = peal_cuda_task_axes(task);

    memcpy(threads, shapes[axes < 3 ? axes : 3], sizeof(shapes[0]));
}

static bool is_moved_field(const peal_schedule *schedule, int array)
{
    const peal_graph_data *graph = schedule->graph;

    /* Elements of a buffer are taken by the pointer itself. */
    return array < graph->array_count && graph->arrays[array].kind == PEAL_ARRAY_FIELD &&
           schedule->array[array].layout.stored.axis_count >= 2;
}

bool peal_cuda_access_is_moved(const peal_schedule *schedule, const peal_task_access *access)
{
    return access->per_tile == 0 && is_moved_field(schedule, access->array);
}

/* Along an axis: points of tiles, and of the fields that they access. */
typedef struct hull {
    int64_t lo, hi;
} hull;

static void widen(hull *hulls, const peal_box *box)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        hulls[k].lo = box->lo[k] < hulls[k].lo ? box->lo[k] : hulls[k].lo;
        hulls[k].hi = box->hi[k] > hulls[k].hi ? box->hi[k] : hulls[k].hi;
    }
}

static void find_hulls(const peal_schedule *schedule, hull *hulls)
{
    for (int k = 0; k < PEAL_AXES; k++)
        hulls[k] = (hull){INT64_MAX, INT64_MIN};
    for (int i = 0; i < schedule->array_count; i++)
        if (is_moved_field(schedule, i))
            widen(hulls, &schedule->array[i].layout.stored);
    for (int i = 0; i < schedule->task_count; i++) {
        const peal_schedule_task *task = &schedule->task[i];
        bool moves = false;
        for (int k = 0; k < task->access_count && task->mergeable; k++)
            moves |= peal_cuda_access_is_moved(schedule, &task->access[k]);
        for (int k = 0; k < task->tiling_count && moves; k++)
            widen(hulls, &task->tiling[k].box);
    }
}

bool peal_cuda_offsets_are_wide(const peal_schedule *schedule)
{
    hull hulls[PEAL_AXES];

    find_hulls(schedule, hulls);
    for (int i = 0; i < schedule->array_count; i++) {
        const peal_layout *layout = &schedule->array[i].layout;
        int64_t rest = INT32_MAX;
        int axes = layout->stored.axis_count;
        for (int k = 0; k < axes && (axes == 2 || axes == 3); k++) {
            int64_t lo = -layout->stored.lo[k], most = layout->stored.hi[k];
            most = most > lo ? most : lo;
            if (is_moved_field(schedule, i))
                most = hulls[k].hi - hulls[k].lo;
            if (most > rest / (layout->stride[k] > 0 ? layout->stride[k] : 1))
                return true;
            rest -= most * layout->stride[k];
        }
    }
    return false;
}

static const char *type_of(const peal_schedule *schedule, int array)
{
    return peal_type_c_name(schedule->array[array].type);
}

/* What a tile reads of an array around itself; false: not in one place beside it. */
static bool hull_of_reach(const peal_task_access *access, int axes, int64_t *low, int64_t *high)
{
    for (int k = 0; k < PEAL_AXES; k++)
        low[k] = high[k] = 0;
    for (int i = 0; i < access->reach_count; i++)
        for (int k = 0; k < PEAL_AXES; k++) {
            const peal_reach_axis *axis = &access->reach[i].axis[k];
            if (axis->fixed && (k < axes || axis->low != 0 || axis->high != 1))
                return false;
            if (axis->fixed)
                continue;
            if (axis->num != axis->den || axis->low < -16 || axis->high > 16)
                return false;
            /* No more than that: beside it may be no memory. */
            low[k] = i == 0 || axis->low < low[k] ? axis->low : low[k];
            high[k] = i == 0 || axis->high > high[k] ? axis->high : high[k];
        }
    for (int k = 0; k < PEAL_AXES; k++)
        if (low[k] > high[k])
            return false;
    return access->reach_count > 0;
}

bool peal_cuda_access_stages(const peal_schedule *schedule, const peal_schedule_task *task,
                             int index, int64_t *low, int64_t *high)
{
    const peal_task_access *access = &task->access[index];
    int axes = peal_cuda_task_axes(task);

    return access->mode == PEAL_READ_ACCESS && (axes == 2 || axes == 3) &&
           peal_cuda_access_is_moved(schedule, access) &&
           schedule->array[access->array].layout.stored.axis_count == axes &&
           hull_of_reach(access, axes, low, high);
}

/* turn: the buffer that the tile goes to. */
static void print_fetches(const peal_schedule *schedule, const peal_schedule_task *task,
                          const char *tile, const char *turn, FILE *out)
{
    int64_t low[PEAL_AXES], high[PEAL_AXES];
    bool any = false;

    fprintf(out, "    if (peal_box_::staged) {\n");
    for (int i = 0; i < task->access_count; i++) {
        if (!peal_cuda_access_stages(schedule, task, i, low, high))
            continue;
        if (!any)
            fprintf(out,
                    "        peal_tile peal_next_;\n"
                    "        peal_shaped_tile_<peal_box_>(peal_launch_, %s, &peal_next_);\n",
                    tile);
        any = true;
        fprintf(out,
                "        peal_stage_%d_::fetch(peal_launch_, peal_next_, peal_box_::stage(%s) + "
                "peal_box_::place(%d));\n",
                i, turn, i);
    }
    fprintf(out, "    }\n");
}

/* peal_stage_N_: how view N is staged; it begins where the one before ends. */
void peal_cuda_stage_print_begin(const peal_schedule *schedule, const peal_schedule_task *task,
                                 FILE *out)
{
    int64_t low[PEAL_AXES], high[PEAL_AXES];

    for (int i = 0; i < task->access_count; i++) {
        if (!peal_cuda_access_stages(schedule, task, i, low, high))
            continue;
        fprintf(out,
                "    typedef peal_stage_view_<%s, peal_box_, %d, %lld, %lld, %lld, %lld, %lld, "
                "%lld> peal_stage_%d_;\n",
                type_of(schedule, task->access[i].array), i, (long long)low[0], (long long)high[0],
                (long long)low[1], (long long)high[1], (long long)low[2], (long long)high[2], i);
    }
    /* Threads may still look at what tiles of a box before have staged. */
    fprintf(out, "    if (peal_box_::staged && peal_all_.begin < peal_box_::first)\n"
                 "        __syncthreads();\n");
    fprintf(out,
            "#pragma unroll\n"
            "    for (int peal_k_ = 0; peal_k_ < (peal_box_::staged ? peal_turns_now_.COUNT : 0); "
            "peal_k_++) {\n"
            "    if (peal_turns_now_.number(peal_k_) != PEAL_NO_BLOCK_) {\n");
    print_fetches(schedule, task, "peal_turns_now_.number(peal_k_)", "peal_k_", out);
    fprintf(out, "    }\n    peal_fetch_close_();\n    }\n");
}

/* What this tile reads is there, behind a barrier; then what the last one reads that there is a
 * buffer for is put on its way, unless there is one buffer only. */
void peal_cuda_stage_print_turn(const peal_schedule *schedule, const peal_schedule_task *task,
                                FILE *out)
{
    fprintf(out, "    if (peal_box_::staged) {\n"
                 "        peal_fetched_but_<peal_turns_now_.COUNT - 1>();\n"
                 "        peal_turns_now_.ask(peal_launch_);\n"
                 "        __syncthreads();\n    }\n"
                 "    const unsigned peal_ahead_ = peal_turns_now_.find(peal_launch_);\n"
                 "    if (peal_box_::buffers > 1) {\n"
                 "    if (peal_ahead_ != PEAL_NO_BLOCK_) {\n");
    print_fetches(schedule, task, "peal_ahead_",
                  "(peal_turn_ ? peal_turn_ : peal_box_::buffers) - 1", out);
    fprintf(out, "    }\n    peal_fetch_close_();\n    }\n");
}

void peal_cuda_stage_print_end(const peal_schedule *schedule, const peal_schedule_task *task,
                               FILE *out)
{
    fprintf(out, "    if (peal_box_::buffers == 1 && peal_ahead_ != PEAL_NO_BLOCK_) {\n"
                 "        __syncthreads();\n");
    print_fetches(schedule, task, "peal_ahead_", "0", out);
    fprintf(out, "    peal_fetch_close_();\n    }\n"
                 "    peal_turn_ = peal_turn_ + 1 < peal_box_::buffers ? peal_turn_ + 1 : 0;\n");
}

static void print_view(const peal_schedule *schedule, const peal_schedule_task *task, int view,
                       const char *tile, peal_cuda_trampoline kind, bool linked, FILE *out)
{
    const peal_task_access *access = &task->access[view];
    int64_t low[PEAL_AXES], high[PEAL_AXES];
    const char *constant = access->mode == PEAL_READ_ACCESS ? "const " : "";
    const char *type = type_of(schedule, access->array);
    bool shaped = peal_cuda_trampoline_is_shaped(kind);

    if (shaped && peal_cuda_access_stages(schedule, task, view, low, high)) {
        fprintf(
            out,
            ",\n        peal_stage_%d_::pointer(peal_launch_, %s, peal_box_::stage(peal_turn_) + "
            "peal_box_::place(%d)), peal_stage_%d_::strides(peal_launch_, %s)",
            view, tile, view, view, tile);
        return;
    }
    if (!linked && peal_cuda_trampoline_moves(kind, task) &&
        peal_cuda_access_is_moved(schedule, access)) {
        fprintf(out,
                ",\n        peal_moved_<%s%s>(peal_launch_.view[%d], %s), "
                "peal_moved_strides_<%s, %s%s>(peal_launch_, %d, %s)",
                constant, type, view, tile, type,
                peal_cuda_trampoline_has_partials(kind) &&
                        peal_cuda_trampoline_is_communication_free(kind)
                    ? "true"
                    : "false",
                shaped ? ", peal_box_" : "", view, tile);
        return;
    }
    fprintf(out, ",\n        (%s%s *)peal_launch_.view[%d]", constant, type, view);
    if (access->per_tile > 0)
        fprintf(out, " + peal_launch_.shift[%d] * %s.index", view, tile);
    if (!linked && peal_cuda_access_is_moved(schedule, access))
        fprintf(out, ", peal_begun_strides_%s(peal_launch_, %d, %s)", shaped ? "<peal_box_>" : "",
                view, tile);
    else
        fprintf(out, ", peal_strides_of_%s(peal_launch_, %d)", shaped ? "<peal_box_>" : "", view);
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
                       peal_cuda_trampoline kind, const char *tile, bool linked, FILE *out)
{
    fprintf(out, "peal_kernel_%s(%s", task->kernel, tile);
    for (int i = 0; i < task->access_count; i++)
        print_view(schedule, task, i, tile, kind, linked, out);
    print_partials(schedule, task, peal_cuda_trampoline_has_partials(kind), out);
    print_arguments(task, out);
    fprintf(out, ");\n");
}

/* odd: the tile's first column is the second one of a pair. Where views are not moved, it does not
 * matter. */
static void print_whole(const peal_schedule *schedule, const peal_schedule_task *task,
                        peal_cuda_trampoline kind, int odd, FILE *out)
{
    int whole = peal_cuda_task_whole(task);
    bool moves = peal_cuda_trampoline_moves(kind, task);
    const char *box = peal_cuda_trampoline_is_shaped(kind) ? ", peal_box_"
                      : moves                              ? ""
                                                           : ", peal_unmoved_box_";

    fprintf(out,
            "    if (peal_is_whole_<%d, %d%s>(peal_launch_, peal_tile_)) {\n"
            "        const peal_tile peal_whole_ = peal_whole_of_<%d, %d>(peal_tile_);\n        ",
            whole, odd, box, whole, odd);
    print_call(schedule, task, kind, "peal_whole_", false, out);
    fprintf(out, "    } else");
}

/* The points of a tile below peal_end_; messages are of whole tiles all the same. */
static void print_counted(const peal_schedule *schedule, const peal_schedule_task *task,
                          peal_cuda_trampoline kind, bool linked, FILE *out)
{
    fprintf(out, "    if (peal_tile_.lo[0] >= peal_end_) {\n");
    for (int i = 0; i < task->reduction_count && peal_cuda_trampoline_has_partials(kind); i++)
        fprintf(out,
                "        peal_no_points_(peal_partial_of_<%s>(peal_launch_, %d, %d, "
                "peal_tile_));\n",
                type_of(schedule, task->reduction[i].array), i, (int)task->reduction[i].combine);
    fprintf(out, "    } else {\n"
                 "        peal_tile peal_counted_ = peal_tile_;\n"
                 "        if (peal_counted_.hi[0] > peal_end_)\n"
                 "            peal_counted_.hi[0] = (int)peal_end_;\n        ");
    print_call(schedule, task, kind, "peal_counted_", linked, out);
    fprintf(out, "    }\n");
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

void peal_cuda_call_print(const peal_schedule *schedule, const peal_schedule_task *task,
                          peal_cuda_trampoline kind, bool linked, FILE *out)
{
    int whole = linked ? 0 : peal_cuda_task_whole(task);
    bool partials = peal_cuda_trampoline_has_partials(kind) && task->reduction_count > 0;
    bool moves = peal_cuda_trampoline_moves(kind, task);
    bool known =
        peal_cuda_trampoline_is_communication_free(kind) || peal_cuda_trampoline_is_shaped(kind);

    if (task->count) {
        print_counted(schedule, task, kind, linked, out);
        return;
    }
    if (!partials && !known && whole && moves) /* mode fused has those of known shape */
        fprintf(out, "#ifndef PEAL_FUSED\n");
    if ((partials || moves) && whole)
        print_whole(schedule, task, kind, 0, out);
    if (!partials && !known && whole && moves)
        fprintf(out, "\n#endif\n");
    /* Free tiles begin where pairs do. */
    if (partials && moves && whole == PEAL_WHOLE_2)
        print_whole(schedule, task, kind, 1, out);
    fprintf(out, "    ");
    print_call(schedule, task, kind, "peal_tile_", linked, out);
}

void peal_cuda_piggyback_print(const peal_schedule *schedule, const peal_schedule_task *task,
                               FILE *out)
{
    fprintf(
        out,
        "    if (peal_launch_.piggyback.bit && peal_box_->bit == peal_launch_.piggyback.bit) {\n");
    for (int i = 0; i < task->reduction_count; i++)
        fprintf(out,
                "        if (peal_launch_.piggyback.reduction == %d)\n"
                "            peal_piggyback_<%s, %d>(peal_launch_);\n",
                i, type_of(schedule, task->reduction[i].array), (int)task->reduction[i].combine);
    fprintf(out, "    } else {\n");
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
