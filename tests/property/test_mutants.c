/* Wrong offsets: schedules in which one piece of one message lands one element beside its place,
 * and are run. Is that noticed in the result? Where it is not, leaving the piece out altogether
 * must change nothing either: then nobody reads it, and the mutant is equivalent. The exception:
 * what is read may be masked where it passes through a minimum, a maximum or a byte only.
 *
 * test_mutants [SEED]: one seed only. */
#include "tests/property/graph_job.h"

#include "base/box.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 100, PIECES = 12 };

static uint64_t first_seed = 1, last_seed = SEEDS;

typedef struct score {
    int tried, noticed, unread, masked;
} score;

/* A piece of a schedule: of a channel, or of a copy within the rank. */
typedef struct place {
    int rank;
    int channel; /* -1: of op */
    int op;
    int piece;
} place;

typedef enum change { SHIFT, LEAVE_OUT } change;

/* The receiver's memory that a piece may land in. */
static const peal_layout *target_layout(const graph_job *job, const place *at, const peal_piece *p)
{
    const peal_schedule *s = job->schedule[at->rank];
    if (at->channel >= 0 && s->channel[at->channel].outgoing)
        return &s->peer[s->channel[at->channel].peer_index].layout[p->target_array];
    return &s->array[p->target_array].layout;
}

/* Moves the target by one element, towards where there is memory; false: there is none. */
static bool shift(const peal_layout *layout, peal_piece *p)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        if (p->target[k] + p->target_extent[k] < layout->stored.hi[k])
            p->target[k]++;
        else if (p->target[k] > layout->stored.lo[k])
            p->target[k]--;
        else
            continue;
        return true;
    }
    return false;
}

/* Changes one piece of a list in place. */
static bool change_piece(const graph_job *job, const place *at, change how, peal_piece *list,
                         int *count)
{
    if (how == SHIFT)
        return shift(target_layout(job, at, &list[at->piece]), &list[at->piece]);
    --*count;
    memmove(&list[at->piece], &list[at->piece + 1],
            (size_t)(*count - at->piece) * sizeof(peal_piece));
    return true;
}

/* Runs with one piece changed: 1 the result differs, 0 not, -1 it cannot be changed. */
static int run_changed(graph_job *job, const place *at, change how, uint64_t expected)
{
    const peal_schedule *whole = job->schedule[at->rank];
    peal_schedule copy = *whole;
    peal_channel *channel = malloc(((size_t)copy.channel_count + 1) * sizeof(*channel));
    peal_op *op = malloc((size_t)copy.op_count * sizeof(*op));
    memcpy(channel, copy.channel, (size_t)copy.channel_count * sizeof(*channel));
    memcpy(op, copy.op, (size_t)copy.op_count * sizeof(*op));
    bool local = at->channel < 0;
    int *count = local ? &op[at->op].piece_count : &channel[at->channel].piece_count;
    const peal_piece **list = local ? &op[at->op].piece : &channel[at->channel].piece;
    peal_piece *piece = malloc((size_t)*count * sizeof(*piece));
    memcpy(piece, *list, (size_t)*count * sizeof(*piece));
    *list = piece;
    int result = -1;
    if (change_piece(job, at, how, piece, count)) {
        uint64_t digest;
        copy.channel = channel;
        copy.op = op;
        job->schedule[at->rank] = &copy;
        result = graph_job_run(job, 1, &digest) || digest != expected;
        job->schedule[at->rank] = whole;
    }
    free(piece);
    free(op);
    free(channel);
    return result;
}

static bool loses_values(const graph_job *job)
{
    const char *text = random_graph_text(job->random);
    return strstr(text, "reduce r max") || strstr(text, "reduce r min") || strstr(text, "u8");
}

static void try_piece(graph_job *job, uint64_t seed, const place *at, uint64_t expected, score *sum)
{
    int noticed = run_changed(job, at, SHIFT, expected);
    if (noticed < 0)
        return;
    sum->tried++;
    sum->noticed += noticed;
    if (noticed)
        return;
    if (run_changed(job, at, LEAVE_OUT, expected) <= 0) {
        sum->unread++;
        return;
    }
    if (!loses_values(job))
        fail_msg("seed %llu: rank %d, channel %d, op %d, piece %d is read, but may land one "
                 "element beside\n%s",
                 (unsigned long long)seed, at->rank, at->channel, at->op, at->piece,
                 random_graph_text(job->random));
    sum->masked++;
}

/* Pieces are placed by the sender if direct, else by the receiver. Those of reductions are left
 * out: with them ranks would decide differently and wait for ever. */
static bool is_placed_here(const graph_job *job, const peal_channel *c, const peal_piece *p)
{
    return c->statement >= 0 && p->array < job->graph->array_count &&
           p->target_array < job->graph->array_count &&
           job->graph->arrays[p->target_array].kind == PEAL_ARRAY_FIELD && p->direct == c->outgoing;
}

static void check_seed(uint64_t seed, score sum[2])
{
    graph_job job;
    uint64_t expected;
    int tried = 0;
    graph_job_begin(&job, seed, PEAL_MODE_FUSED);
    assert_int_equal(graph_job_run(&job, 1, &expected), 0);
    for (int rank = 0; rank < job.machine.ranks; rank++) {
        const peal_schedule *s = job.schedule[rank];
        for (int c = 0; c < s->channel_count; c++)
            for (int i = 0; i < s->channel[c].piece_count && tried < PIECES; i++)
                if (is_placed_here(&job, &s->channel[c], &s->channel[c].piece[i]) && ++tried)
                    try_piece(&job, seed, &(place){rank, c, -1, i}, expected, &sum[0]);
        for (int o = 0; o < s->op_count; o++)
            for (int i = 0; i < s->op[o].piece_count && tried < PIECES; i++)
                if (s->op[o].piece[i].target_array < job.graph->array_count && ++tried)
                    try_piece(&job, seed, &(place){rank, -1, o, i}, expected, &sum[1]);
    }
    graph_job_end(&job);
}

static void test_wrong_offsets_are_noticed(void **state)
{
    (void)state;
    static const char *const names[] = {"of messages", "of copies within a rank"};
    score sum[2] = {{0}};
    for (uint64_t seed = first_seed; seed <= last_seed; seed++)
        check_seed(seed, sum);
    for (int i = 0; i < 2; i++) {
        print_message("wrong offsets %s: %d of %d noticed, %d equivalent: nobody reads there, %d "
                      "masked\n",
                      names[i], sum[i].noticed, sum[i].tried, sum[i].unread, sum[i].masked);
        assert_true(50 * sum[i].masked <= sum[i].tried || first_seed == last_seed);
        assert_true(first_seed == last_seed || sum[i].noticed > 0);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = last_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wrong_offsets_are_noticed),
    };
    return cmocka_run_group_tests_name("mutants", tests, NULL, NULL);
}
