/* Which work items of mode fused wait for all blocks but those that fold aside: copies of fields
 * do, unless a message of theirs leans on what is done aside. */
#include "backends/cuda/fused/fused.h"
#include "backends/cuda/lower/emit.h"
#include "tests/backends/check.h"

#include <string.h>

/* A step: FOLD, WAIT for the credit of a message, its COPY, and a COPY of contributions. */
enum { FOLD, CREDIT, SEND, CONTRIBUTE, OPS };
enum { FIELD, GATHERED, ARRAYS };

typedef struct bench {
    peal_schedule schedule;
    peal_op op[OPS];
    peal_schedule_task task[1];
    peal_schedule_array array[ARRAYS];
    peal_channel channel[2];
    peal_piece piece[2];
    peal_dependence after[1];
    peal_cuda_op lowered[OPS];
    peal_cuda_rank rank;
    bool served[OPS];
} bench;

static void set_up(bench *b)
{
    *b = (bench){.schedule = {.op = b->op,
                              .op_count = OPS,
                              .task = b->task,
                              .task_count = 1,
                              .array = b->array,
                              .array_count = ARRAYS,
                              .channel = b->channel,
                              .channel_count = 2,
                              .step = {0, OPS}},
                 .task = {{.kind = PEAL_TASK_FOLD}},
                 .array = {[GATHERED] = {.hidden = true}},
                 .piece = {{.target_array = FIELD}, {.target_array = GATHERED}},
                 .after = {{.op = FOLD}},
                 .rank = {.schedule = &b->schedule, .op = b->lowered}};
    for (int i = 0; i < 2; i++) {
        b->channel[i].piece = &b->piece[i];
        b->channel[i].piece_count = 1;
    }
    b->op[FOLD] = (peal_op){.kind = PEAL_OP_LAUNCH, .channel = -1};
    b->op[CREDIT] = (peal_op){.kind = PEAL_OP_WAIT, .channel = 0, .credit = true};
    b->op[SEND] = (peal_op){.kind = PEAL_OP_COPY, .copy = PEAL_COPY_SEND, .channel = 0};
    b->op[CONTRIBUTE] = (peal_op){.kind = PEAL_OP_COPY, .copy = PEAL_COPY_SEND, .channel = 1};
    for (int i = 0; i < OPS; i++)
        b->lowered[i].source = &b->op[i];
}

/* Of a work item that is one COPY. */
static bool spares(bench *b, int copy)
{
    peal_cuda_touch touch[PEAL_CUDA_WORK_ITEM_TOUCHES];
    peal_cuda_work_item item = {.touch = touch};
    peal_cuda_group group;

    memset(&group, 0, sizeof(group));
    group.kind = PEAL_CUDA_GROUP_COPY;
    group.op = &copy;
    group.op_count = 1;
    peal_cuda_footprint_note(&b->rank, &item, &group, b->served);
    assert_true(item.after_all);
    return item.spares;
}

static void messages_that_lean_on_folds(void **unused)
{
    bench b;

    (void)unused;
    set_up(&b);
    assert_true(spares(&b, SEND));
    assert_false(spares(&b, CONTRIBUTE));
    b.served[CREDIT] = true; /* a FOLD's work item waited for it */
    assert_false(spares(&b, SEND));
    b.served[CREDIT] = false;
    b.op[SEND].dependence = b.after;
    b.op[SEND].dependence_count = 1;
    assert_false(spares(&b, SEND));
    b.after[0].op = CREDIT;
    assert_true(spares(&b, SEND));
    b.served[CREDIT] = true;
    assert_false(spares(&b, SEND));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_that_lean_on_folds)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
