/* Staging: tiles of a shaped box read their views from shared memory, into which they are loaded
 * while tiles before are run (device/staged.h). These are the statements around the call. */
#include "backends/cuda/codegen/task_printer.h"
#include "backends/cuda/codegen/task_traits.h"
#include "backends/cuda/codegen/text.h"

/* The loads of a tile's views. turn: the buffer that the tile goes to. */
static void print_fetches(const peal_schedule *schedule, const peal_schedule_task *task,
                          const char *tile, const char *turn, FILE *out)
{
    int64_t low[PEAL_AXES], high[PEAL_AXES];
    bool any = false;

    peal_cuda_block_open(out, "if (peal_box_::staged)");
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
    peal_cuda_block_close(out);
}

/* peal_stage_N_: how view N is staged. */
static void print_stage_types(const peal_schedule *schedule, const peal_schedule_task *task,
                              FILE *out)
{
    int64_t low[PEAL_AXES], high[PEAL_AXES];

    for (int i = 0; i < task->access_count; i++)
        if (peal_cuda_access_stages(schedule, task, i, low, high))
            fprintf(out,
                    "    typedef peal_stage_view_<%s, peal_box_, %d, %lld, %lld, %lld, %lld, "
                    "%lld, %lld> peal_stage_%d_;\n",
                    peal_type_c_name(schedule->array[task->access[i].array].type), i,
                    (long long)low[0], (long long)high[0], (long long)low[1], (long long)high[1],
                    (long long)low[2], (long long)high[2], i);
}

static void print_fetch_close(FILE *out)
{
    fprintf(out, "    peal_fetch_close_();\n");
}

/* The barrier: threads may still read what tiles of a box before have staged. Boxes are run in the
 * order of their index, whatever their blocks' numbers. The loop is not unrolled: a fetch is much
 * to compile. */
void peal_cuda_stage_print_begin(const peal_schedule *schedule, const peal_schedule_task *task,
                                 FILE *out)
{
    print_stage_types(schedule, task, out);
    fprintf(out, "    if (peal_box_::staged && peal_follows_box_<peal_box_>(peal_all_))\n"
                 "        __syncthreads();\n"
                 "#pragma unroll 1\n");
    peal_cuda_block_open(out, "for (int peal_k_ = 0; peal_k_ < (peal_box_::staged ? "
                              "peal_turns_now_.COUNT : 0); peal_k_++)");
    fprintf(out,
            "    const unsigned peal_first_ = peal_turns_now_.first(peal_k_, peal_blocks_);\n");
    peal_cuda_block_open(out, "if (peal_first_ != PEAL_NO_BLOCK_)");
    print_fetches(schedule, task, "peal_first_", "peal_k_", out);
    peal_cuda_block_close(out);
    print_fetch_close(out);
    peal_cuda_block_close(out);
}

/* First, behind a barrier, all that this tile reads is in its buffer. Then, if there are several
 * buffers, the loads of the last tile that has a free one are started. */
void peal_cuda_stage_print_before(const peal_schedule *schedule, const peal_schedule_task *task,
                                  FILE *out)
{
    peal_cuda_block_open(out, "if (peal_box_::staged)");
    fprintf(out, "        peal_fetched_but_<peal_turns_now_.COUNT - 1>();\n"
                 "        peal_turns_now_.ask(peal_launch_);\n"
                 "        __syncthreads();\n");
    peal_cuda_block_close(out);
    fprintf(out, "    const unsigned peal_ahead_ = peal_turns_now_.find(peal_launch_);\n");
    peal_cuda_block_open(out, "if (peal_box_::buffers > 1)");
    peal_cuda_block_open(out, "if (peal_ahead_ != PEAL_NO_BLOCK_)");
    print_fetches(schedule, task, "peal_ahead_",
                  "(peal_turn_ ? peal_turn_ : peal_box_::buffers) - 1", out);
    peal_cuda_block_close(out);
    print_fetch_close(out);
    peal_cuda_block_close(out);
}

/* With one buffer, the next tile's loads have to wait until this tile has been run. */
void peal_cuda_stage_print_after(const peal_schedule *schedule, const peal_schedule_task *task,
                                 FILE *out)
{
    peal_cuda_block_open(out, "if (peal_box_::buffers == 1 && peal_ahead_ != PEAL_NO_BLOCK_)");
    fprintf(out, "        __syncthreads();\n");
    print_fetches(schedule, task, "peal_ahead_", "0", out);
    print_fetch_close(out);
    peal_cuda_block_close(out);
    fprintf(out, "    peal_turn_ = peal_turn_ + 1 < peal_box_::buffers ? peal_turn_ + 1 : 0;\n");
}
