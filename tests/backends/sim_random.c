/* The contract of the `sim` backend on random graphs, and under random delays: what the unrolled
 * schedules order is done in that order, as often as it stands there, with the flags' values; and
 * nobody waits for ever.
 *
 * test_backends_sim_random [SEED]: one seed, to look at. */
#include "backends/sim/sim.h"
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/property/random_graph.h"
#include "tests/scheduler/unroll.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 60, RANKS = 8, STEPS = 5 };

typedef struct interval {
    double begin_s, end_s;
} interval;

typedef struct flag_word {
    int rank; /* in whose memory it is */
    bool credit;
    int64_t offset;
    uint64_t value;
    int written, awaited; /* how often */
} flag_word;

typedef struct job {
    uint64_t seed;
    random_graph *random;
    peal_diagnostics *diagnostics;
    peal_machine machine;
    peal_compilation *compilation;
    const peal_schedule *schedule[RANKS];
    peal_machine_times times;
    sim_result result;
    /* what was executed: by rank, by op, by instance */
    interval *done[RANKS][1024];
    int done_count[RANKS][1024];
    double latest_s;
    flag_word word[4096];
    int word_count;
} job;

/* ---- what is observed ---- */

static flag_word *word_of(job *j, int rank, bool credit, int64_t offset)
{
    for (int i = 0; i < j->word_count; i++)
        if (j->word[i].rank == rank && j->word[i].credit == credit && j->word[i].offset == offset)
            return &j->word[i];
    assert_true(j->word_count < 4096);
    j->word[j->word_count] = (flag_word){.rank = rank, .credit = credit, .offset = offset};
    return &j->word[j->word_count++];
}

/* A WRITE stores the next value, a WAIT goes on when the word is not behind what it waits for. In
 * mode serial nothing bounds how far it is ahead, so that its value does not tell: messages are
 * counted. */
static void check_word(job *j, const sim_event *seen, const peal_op *op)
{
    const peal_channel *c = &j->schedule[seen->rank]->channel[op->channel];
    bool waits = op->kind == PEAL_OP_WAIT;
    flag_word *word = word_of(j, waits ? seen->rank : c->peer, op->credit,
                              op->credit ? c->credit_offset : c->flag_offset);
    if (op->kind == PEAL_OP_WRITE) {
        assert_true(seen->flag == word->value + c->quantum);
        word->value = seen->flag;
        word->written++;
    } else if (j->schedule[seen->rank]->mode == PEAL_MODE_SERIAL
                   ? ++word->awaited > word->written
                   : (int64_t)(word->value - seen->flag) < 0)
        fail_msg("seed %llu: rank %d goes on at word %llx, before %llx",
                 (unsigned long long)j->seed, seen->rank, (unsigned long long)word->value,
                 (unsigned long long)seen->flag);
}

static void note(void *user, const sim_event *seen)
{
    job *j = user;
    const peal_op *op = &j->schedule[seen->rank]->op[seen->op];
    int *count = &j->done_count[seen->rank][seen->op];
    interval **list = &j->done[seen->rank][seen->op];

    assert_true(seen->end_s >= j->latest_s && seen->begin_s <= seen->end_s);
    j->latest_s = seen->end_s;
    *list = realloc(*list, (size_t)(*count + 1) * sizeof(**list));
    (*list)[(*count)++] = (interval){seen->begin_s, seen->end_s};
    if (op->kind == PEAL_OP_WRITE || op->kind == PEAL_OP_WAIT)
        check_word(j, seen, op);
}

/* ---- a simulation ---- */

static double random_seconds(uint64_t *state)
{
    return random_below(state, 3) ? (double)random_below(state, 1000) / 1000 : 0;
}

/* Any machine will do: few devices or many, times that are 0, links that are shared. */
static peal_machine_times random_times(uint64_t seed)
{
    uint64_t state = seed * 77 + 1;
    peal_machine_times times = {.given = true,
                                .devices = 1 + random_below(&state, 4),
                                .nodes = random_below(&state, 3),
                                .accelerator = random_below(&state, 2)};
    for (int i = 0; i < PEAL_MODE_COUNT; i++)
        times.mode[i] = (peal_mode_times){.given = true,
                                          .launch_s = random_seconds(&state),
                                          .post_s = random_seconds(&state),
                                          .kernel_s = random_seconds(&state),
                                          .copy_s = random_seconds(&state),
                                          .write_s = random_seconds(&state),
                                          .wait_s = random_seconds(&state),
                                          .synchronize_s = random_seconds(&state),
                                          .apart = random_below(&state, 2)};
    times.kernel[times.kernel_count++] =
        (peal_kernel_times){.task = "default",
                            .fixed_s = random_seconds(&state),
                            .per_point_s = random_seconds(&state) / 100,
                            .per_byte_s = random_seconds(&state) / 100};
    for (int i = 0; i < PEAL_LINK_COUNT; i++)
        times.link[i] = (peal_link_times){.given = true,
                                          .latency_s = random_seconds(&state),
                                          .bytes_per_s = 1 + random_below(&state, 1000),
                                          .shared = (peal_link_share)random_below(&state, 3)};
    return times;
}

/* Unrolling doesn't know which verdicts are looked at. */
static bool has_verdicts(const job *j)
{
    for (int rank = 0; rank < j->machine.ranks; rank++)
        if (j->schedule[rank]->decision_count)
            return true;
    return false;
}

static void begin(job *j, uint64_t seed, peal_mode mode)
{
    const peal_graph_data *graph;
    *j = (job){.seed = seed,
               .random = random_graph_create(seed),
               .diagnostics = peal_diagnostics_create(),
               .times = random_times(seed)};
    j->machine = (peal_machine){.ranks = random_graph_ranks(j->random),
                                .processes = seed % 3 ? random_graph_ranks(j->random) : 1,
                                .workers = 2,
                                .cache_bytes = 1 << 18};
    peal_status status =
        peal_graph_resolve(random_graph_builder(j->random), j->diagnostics, &graph);
    if (!status)
        status = peal_compilation_create(graph, &j->machine, mode, j->diagnostics, &j->compilation);
    if (!status)
        status = peal_compilation_check(j->compilation);
    for (int rank = 0; !status && rank < j->machine.ranks; rank++)
        status = peal_compilation_schedule(j->compilation, rank, &j->schedule[rank]);
    if (!status)
        return;
    peal_diagnostics_print(j->diagnostics, stderr, 5);
    fail_msg("seed %llu is not valid", (unsigned long long)seed);
}

static peal_status simulate(job *j, double jitter)
{
    static const int number[RANKS] = {0, 1, 2, 3, 4, 5, 6, 7};
    sim_desc desc = {.size = sizeof(desc),
                     .ranks = j->machine.ranks,
                     .number = number,
                     .schedule = j->schedule,
                     .schedule_count = j->machine.ranks,
                     .times = &j->times,
                     .steps = STEPS,
                     .jitter = jitter,
                     .seed = j->seed,
                     .path = true,
                     .path_bytes = 1 << 20,
                     .observe = note,
                     .user = j,
                     .diagnostics = j->diagnostics};
    memset(j->done_count, 0, sizeof(j->done_count));
    j->latest_s = 0;
    j->word_count = 0;
    return sim_run(&desc, &j->result);
}

static void end(job *j)
{
    for (int rank = 0; rank < RANKS; rank++)
        for (int i = 0; i < 1024; i++)
            free(j->done[rank][i]);
    sim_result_release(&j->result);
    peal_compilation_destroy(j->compilation);
    peal_diagnostics_destroy(j->diagnostics);
    random_graph_destroy(j->random);
}

static uint64_t only; /* seed; 0: all */
static int checked;

/* ---- against the unrolled schedules ---- */

/* When an event of the unrolled schedules was executed; NULL: it lies in steps that the graph does
 * not have. Tiles of an instance stand one after the other. */
static const interval *when(const job *j, const unrolled *u, const int *instance, int number)
{
    const event *e = &u->event[number];
    if (e->key[0] == 1 && e->key[1] >= j->result.steps)
        return NULL;
    if (instance[number] >= j->done_count[e->rank][e->op])
        fail_msg("seed %llu: op %d of rank %d was executed %d times only",
                 (unsigned long long)j->seed, e->op, e->rank, j->done_count[e->rank][e->op]);
    return &j->done[e->rank][e->op][instance[number]];
}

static void count_instances(const unrolled *u, int *instance)
{
    int(*tile_of)[1024] = calloc(RANKS, sizeof(*tile_of)),
    (*seen)[1024] = calloc(RANKS, sizeof(*seen));
    for (int i = 0; i < u->event_count; i++) {
        const event *e = &u->event[i];
        if (!seen[e->rank][e->op])
            tile_of[e->rank][e->op] = (int)e->tile;
        seen[e->rank][e->op] += e->tile == tile_of[e->rank][e->op]; /* its first tile again */
        instance[i] = seen[e->rank][e->op] - 1;
    }
    free(tile_of);
    free(seen);
}

static void compare(const job *j)
{
    unrolled u;

    unroll_begin(&u, (const peal_schedule *const *)j->schedule, j->machine.ranks, UNROLL_STEPS,
                 no_loss);
    unroll_connect_flags(&u);
    int *instance = calloc((size_t)u.event_count + 1, sizeof(*instance));
    count_instances(&u, instance);
    for (int i = 0; i < u.edge_count && !u.overflow; i++) {
        const interval *from = when(j, &u, instance, u.edge[i][0]);
        const interval *to = when(j, &u, instance, u.edge[i][1]);
        const event *a = &u.event[u.edge[i][0]], *b = &u.event[u.edge[i][1]];
        bool waits = j->schedule[b->rank]->op[b->op].kind == PEAL_OP_WAIT;
        if (from && to && from->end_s > (waits ? to->end_s : to->begin_s)) {
            if (only)
                peal_schedule_print_text(j->schedule[b->rank], stderr);
            fail_msg("seed %llu: op %d of rank %d begins at %g, op %d of rank %d ends at %g",
                     (unsigned long long)j->seed, b->op, b->rank, to->begin_s, a->op, a->rank,
                     from->end_s);
        }
    }
    unroll_end(&u);
    free(instance);
}

static void check_seed(uint64_t seed, peal_mode mode)
{
    static const double jitters[] = {0, 0.3, 1000};
    job *j = malloc(sizeof(*j));
    begin(j, seed, mode);
    for (int i = 0; i < 3; i++) {
        if (simulate(j, jitters[i])) {
            peal_diagnostics_print(j->diagnostics, stderr, 5);
            fail_msg("seed %llu, mode %s, jitter %g:\n%s", (unsigned long long)seed,
                     peal_mode_name(mode), jitters[i], random_graph_text(j->random));
        }
        if (!has_verdicts(j)) {
            compare(j);
            checked++;
        }
        sim_result_release(&j->result);
    }
    end(j);
    free(j);
}

static void test_order_and_flags(void **state)
{
    static const peal_mode modes[] = {PEAL_MODE_SERIAL, PEAL_MODE_SYNC, PEAL_MODE_STREAM,
                                      PEAL_MODE_FUSED};
    (void)state;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        for (int i = 0; i < 4; i++)
            if (!only || only == seed)
                check_seed(seed, modes[i]);
    if (!only)
        assert_in_range(checked, 2 * SEEDS, 12 * SEEDS);
}

static bool has_code(const peal_diagnostics *diagnostics, peal_code code)
{
    for (int i = 0; i < peal_diagnostics_count(diagnostics); i++)
        if (peal_diagnostics_at(diagnostics, i)->code == code)
            return true;
    return false;
}

/* Without one WRITE of a flag somebody waits for ever, and is told of. */
static void test_a_lost_write(void **state)
{
    int found = 0;
    (void)state;
    for (uint64_t seed = 1; seed <= 10; seed++) {
        job *j = malloc(sizeof(*j));
        begin(j, seed, PEAL_MODE_FUSED);
        assert_int_equal(simulate(j, 0), PEAL_STATUS_OK);
        sim_result_release(&j->result);
        peal_schedule copy = *j->schedule[0];
        peal_op *op = malloc((size_t)copy.op_count * sizeof(*op));
        memcpy(op, copy.op, (size_t)copy.op_count * sizeof(*op));
        copy.op = op;
        j->schedule[0] = &copy;
        for (int i = copy.step.first; i < copy.step.end && op; i++)
            if (op[i].kind == PEAL_OP_WRITE && !op[i].credit && j->done_count[0][i]) {
                op[i].kind = PEAL_OP_FENCE;
                op[i].channel = -1;
                found++;
                assert_int_equal(simulate(j, 0), PEAL_STATUS_SPEC);
                assert_true(has_code(j->diagnostics, PEAL_E_DEADLOCK_IN_SIMULATION));
                break;
            }
        free(op);
        end(j);
        free(j);
    }
    assert_true(found > 3);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_order_and_flags),
        cmocka_unit_test(test_a_lost_write),
    };
    only = argc > 1 ? strtoull(argv[1], NULL, 10) : 0;
    return cmocka_run_group_tests(tests, NULL, NULL);
}
