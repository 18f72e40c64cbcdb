/* Trampolines: the kernels that run tiles by the user's kernel. The skeleton of each is a function
 * here: what is opened is closed there, and what stands in between is printed by fragments. */
#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/text.h"

/* ---- arguments ---- */

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
static peal_status print_count(const peal_cuda_task_printer *p, FILE *out)
{
    const peal_schedule_task *task = p->task;
    long long most = task->tiling_count ? task->tiling[0].box.hi[0] : 0;
    int number = 0;
    peal_value_kind kind;
    peal_status status = peal_cuda_expression_add(p, task->count, &number, &kind);

    fprintf(out,
            "    long long peal_end_ = %lld;\n"
            "    if (peal_launch_.evaluate >> %d & 1)\n"
            "        peal_end_ = peal_expression_%d_(&peal_launch_, &peal_bad_);\n"
            "    if (!peal_bad_ && peal_miscounts_(peal_launch_, peal_end_, %lld))\n"
            "        return;\n",
            most, PEAL_LAUNCH_ARGUMENTS, number, most);
    return status;
}

/* Arguments that depend on counters or buffers: the launch has their values, or has them computed
 * here. */
static peal_status print_evaluation(const peal_cuda_task_printer *p, FILE *out)
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
        peal_status status = peal_cuda_expression_add(p, task->argument[i], &number, &kind);
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

/* ---- skeletons ---- */

/* Finds the block's box and tile, and waits for what they need. */
static void print_enter(FILE *out)
{
    fprintf(out, "    peal_tile peal_tile_;\n"
                 "    const peal_launch_box *const peal_box_ = peal_enter_tile_(peal_launch_, "
                 "&peal_tile_);\n"
                 "    if (!peal_box_)\n        return;\n");
}

/* Whether a wait has been given up. The word is read early and looked at late: the load is under
 * way while the tile is run. */
static void print_given_up(FILE *out)
{
    fprintf(out, "    const unsigned peal_gone_ = peal_box_->sends ? peal_has_given_up_() : 0;\n");
}

static void print_send(peal_cuda_variant variant, FILE *out)
{
    fprintf(out,
            "    if (peal_box_->sends)\n        %s(peal_launch_, peal_box_, peal_tile_, "
            "peal_gone_);\n",
            peal_cuda_variant_is_self_sending(variant) ? "peal_self_send_" : "peal_send_tile_");
}

/* A kernel whose blocks run one tile each. */
static peal_status print_kernel(const peal_cuda_task_printer *p, const peal_cuda_entry *entry,
                                peal_cuda_variant variant, FILE *out)
{
    bool sends = !peal_cuda_variant_is_communication_free(variant);
    bool folds = peal_cuda_variant_reduces(variant, p->task);
    bool piggybacks = folds && sends;

    peal_cuda_body_open(out, "(PEAL_LAUNCH_ peal_launch_)");
    print_enter(out);
    if (sends)
        print_given_up(out);
    if (piggybacks) {
        peal_cuda_block_open(out, PEAL_CUDA_IS_PIGGYBACK);
        peal_cuda_piggyback_print(p->schedule, p->task, out);
        peal_cuda_block_else(out);
    }
    peal_status status = print_evaluation(p, out);
    peal_cuda_check_print(p->task, entry->signature, out);
    peal_cuda_call_print(p->schedule, p->task, variant, entry->is_linked, out);
    if (piggybacks)
        peal_cuda_block_close(out);
    if (sends)
        print_send(variant, out);
    if (folds)
        peal_cuda_folds_print(p->schedule, p->task, out);
    peal_cuda_body_close(out);
    return status;
}

/* A function that runs those tiles of a box that the block has in mode fused. */
static peal_status print_shaped(const peal_cuda_task_printer *p, peal_cuda_variant variant,
                                FILE *out)
{
    peal_cuda_body_open(out, "(const peal_launch &peal_launch_, const peal_blocks_of_ &peal_all_)");
    fprintf(out,
            "    const peal_blocks_of_ peal_blocks_ = peal_shaped_blocks_<peal_box_>(peal_all_);\n"
            "    unsigned peal_turn_ = 0;\n"
            "    if (peal_blocks_.begin >= peal_blocks_.end)\n        return;\n");
    peal_status status = print_evaluation(p, out);
    fprintf(out, "    peal_turns_<peal_box_> peal_turns_now_(peal_launch_, peal_blocks_);\n");
    peal_cuda_stage_print_begin(p->schedule, p->task, out);
    peal_cuda_block_open(out, "for (; peal_turns_now_.number(0) != PEAL_NO_BLOCK_; "
                              "peal_turns_now_.go_on())");
    fprintf(out, "    const unsigned peal_at_ = peal_turns_now_.number(0);\n"
                 "    peal_tile peal_tile_;\n"
                 "    peal_shaped_tile_<peal_box_>(peal_launch_, peal_at_, &peal_tile_);\n");
    peal_cuda_stage_print_before(p->schedule, p->task, out);
    peal_cuda_call_print(p->schedule, p->task, variant, false, out);
    peal_cuda_stage_print_after(p->schedule, p->task, out);
    peal_cuda_block_close(out);
    peal_cuda_body_close(out);
    return status;
}

/* A function that runs several steps of a chain on each of the block's tiles. */
static peal_status print_deep(const peal_cuda_task_printer *p, FILE *out)
{
    bool has_planes = peal_cuda_task_axes(p->task) == 3;
    peal_cuda_chain chain;

    peal_cuda_task_chains(p->schedule, p->task, &chain);
    peal_cuda_body_open(out, "(const peal_launch &peal_launch_, const peal_blocks_of_ &peal_all_)");
    fprintf(out,
            "    typedef peal_deep_<%s, peal_box_> peal_rounds_;\n"
            "    const peal_blocks_of_ peal_blocks_ = peal_shaped_blocks_<peal_box_>(peal_all_);\n",
            peal_type_c_name(p->schedule->array[p->task->access[chain.read].array].type));
    peal_status status = print_evaluation(p, out);
    fprintf(out, "#pragma unroll 1\n");
    peal_cuda_block_open(out, "for (unsigned peal_at_ = peal_blocks_.begin; peal_at_ < "
                              "peal_blocks_.end; peal_at_ += peal_blocks_.stride)");
    fprintf(out, "    peal_tile peal_tile_;\n"
                 "    peal_shaped_tile_<peal_box_>(peal_launch_, peal_at_, &peal_tile_);\n"
                 "    const peal_deep_range_ peal_window_ = peal_rounds_::around(peal_launch_, "
                 "peal_tile_, peal_rounds_::steps(peal_launch_));\n"
                 "    peal_rounds_::fetch(peal_launch_, peal_window_);\n"
                 "    peal_rounds_::fetch_rim(peal_launch_, peal_window_);\n"
                 "    peal_fetched_();\n"
                 "#pragma unroll 1\n");
    peal_cuda_block_open(
        out, "for (int peal_step_ = 1; peal_step_ <= peal_rounds_::steps(peal_launch_); "
             "peal_step_++)");
    fprintf(out, "    const peal_deep_range_ peal_part_ = peal_rounds_::part(peal_launch_, "
                 "peal_tile_, peal_step_);\n"
                 "    __syncthreads();\n");
    fprintf(out, "#pragma unroll 1\n");
    peal_cuda_block_open(out, "for (int peal_x_ = peal_rounds_::first_x(peal_part_); peal_x_ < "
                              "peal_part_.hi[0]; peal_x_ += peal_rounds_::each(0))");
    fprintf(out, "#pragma unroll 1\n");
    peal_cuda_block_open(out, "for (int peal_y_ = peal_rounds_::first_y(peal_part_); peal_y_ < "
                              "peal_part_.hi[1]; peal_y_ += peal_rounds_::each(1))");
    fprintf(out, "#pragma unroll 1\n");
    peal_cuda_block_open(out, has_planes ? "for (int peal_z_ = peal_part_.lo[2]; peal_z_ < "
                                           "peal_part_.hi[2]; peal_z_ += peal_rounds_::each(2))"
                                         : "for (int peal_z_ = 0, peal_once_ = 1; peal_once_; "
                                           "peal_once_ = 0)");
    peal_cuda_deep_call_print(p->schedule, p->task, &chain, out);
    for (int k = 0; k < 4; k++) /* three axes, and the steps */
        peal_cuda_block_close(out);
    fprintf(out, "    __syncthreads();\n"
                 "    peal_rounds_::store(peal_launch_, peal_tile_, peal_window_);\n"
                 "    __syncthreads();\n");
    peal_cuda_block_close(out);
    peal_cuda_body_close(out);
    return status;
}

peal_status peal_cuda_trampoline_print(const peal_cuda_task_printer *p,
                                       const peal_cuda_entry *entry, peal_cuda_variant variant,
                                       const char **out_text)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = peal_cuda_text_open(p->source->arena, &text, &bytes);
    peal_status status = variant == PEAL_CUDA_DEEP ? print_deep(p, out)
                         : peal_cuda_variant_is_shaped(variant)
                             ? print_shaped(p, variant, out)
                             : print_kernel(p, entry, variant, out);

    *out_text = peal_cuda_text_close(p->source->arena, out, &text);
    return status;
}
