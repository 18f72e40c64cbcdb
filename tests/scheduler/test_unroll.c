/* Unrolls schedules of random graphs, tile by tile, and proves that dependences, flags, credits and
 * carriers order every two conflicting accesses as the sequential meaning does: nothing else may
 * order them. And mutants of these schedules: is what they lack noticed?
 *
 * test_unroll [SEED]: one seed, to look at, with its mutants. */
#include "dsl/dsl.h"
#include "scheduler/lower/lowering.h"
#include "scheduler/scheduler.h"
#include "tests/property/random_fault.h"
#include "tests/scheduler/segments.h"
#include "tests/scheduler/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 120, MUTATED_SEEDS = 20, TWINS = 75, RANKS = 8 };

/* What a mutant lacks. */
typedef enum mutation {
    NO_DEPENDENCES, /* one op has none */
    NO_FLAG_WAIT,   /* one wait for a message holds nothing back */
    NO_CREDIT_WAIT, /* the same of an explicit credit */
    NO_CARRIED,     /* a send does not wait for the message that carries its credit */
    NO_CARRYING,   /* a send that carries a credit does not wait for the uses that it vouches for */
    NO_DEPENDENCE, /* one of an op's is lacking */
    NO_OP,         /* an op does nothing, and nobody waits for it */
    MUTATIONS
} mutation;

static const char *const mutation_names[] = {"dependences of an op",
                                             "waits for a flag",
                                             "waits for a credit",
                                             "waits for a carried credit",
                                             "waits of a carrier",
                                             "one dependence",
                                             "an op"};

typedef struct score {
    int tried[MUTATIONS], noticed[MUTATIONS];
} score;

typedef struct scheduled {
    random_graph *random;
    peal_diagnostics *diagnostics;
    peal_machine machine;
    peal_compilation *compilation;
    const peal_schedule *schedule[RANKS];
} scheduled;

static bool on_gpus; /* the next graphs are run by one GPU a rank */

static void schedule_graph(scheduled *s, random_graph *random, uint64_t seed, peal_mode mode)
{
    const peal_graph_data *graph;
    *s = (scheduled){.random = random, .diagnostics = peal_diagnostics_create()};
    many_touches = seed % 2 ? 256 : 0;
    s->machine = (peal_machine){.ranks = random_graph_ranks(s->random),
                                .processes = 1,
                                .workers = 2,
                                .cache_bytes = 1 << 18};
    if (on_gpus) { /* which store halos in place that the CPU packs */
        s->machine.processes = s->machine.ranks;
        s->machine.accelerator = true;
        s->machine.path = PEAL_PATH_VMM;
    }
    peal_status status =
        peal_graph_resolve(random_graph_builder(s->random), s->diagnostics, &graph);
    if (!status)
        status = peal_compilation_create(graph, &s->machine, mode, s->diagnostics, &s->compilation);
    if (!status)
        status = peal_compilation_check(s->compilation);
    for (int rank = 0; !status && rank < s->machine.ranks; rank++)
        status = peal_compilation_schedule(s->compilation, rank, &s->schedule[rank]);
    if (!status)
        return;
    peal_diagnostics_print(s->diagnostics, stderr, 5);
    fail_msg("seed %llu is not valid:\n%s", (unsigned long long)seed, random_graph_text(s->random));
}

static void forget(scheduled *s)
{
    peal_compilation_destroy(s->compilation);
    peal_diagnostics_destroy(s->diagnostics);
    random_graph_destroy(s->random);
}

/* ---- Mutants ---- */

enum { ORDERS = 1 /* at random, of each that is not noticed */ };

/* Schedules that are accepted compute the same in orders at random. */
static void run_at_random(const peal_schedule *const *schedules, int ranks, unroll_loss loss,
                          uint64_t expected, uint64_t seed)
{
    unrolled u;
    uint64_t state = seed;
    unroll_begin(&u, schedules, ranks, UNROLL_STEPS, loss);
    values *v = values_create(&u);
    for (int i = 0; i < ORDERS; i++)
        if (values_in_random_order(v, expected, &state) != ALWAYS_EQUAL)
            fail_msg("seed %llu: accepted without op %d of rank %d, but some order fails",
                     (unsigned long long)seed, loss.op, loss.rank);
    values_destroy(v);
    unroll_end(&u);
}

/* By what orders events, or by what is computed. */
static bool is_noticed(const peal_schedule *const *schedules, int ranks, unroll_loss loss,
                       uint64_t expected, uint64_t seed)
{
    char text[1024];
    bool overflow;
    uint64_t results;
    if (unroll_races(schedules, ranks, loss, text, sizeof(text), &overflow) ||
        !values_of(schedules, ranks, UNROLL_STEPS, loss, &results) || results != expected)
        return true;
    run_at_random(schedules, ranks, loss, expected, seed);
    return false;
}

/* Whether a mutant lacks dependence `index` of an op. */
static bool lacks(const peal_schedule *s, mutation m, const peal_op *of, int index, uint64_t seed)
{
    const peal_op *on = &s->op[of->dependence[index].op];
    bool other =
        on->channel >= 0 && on->channel != of->channel && s->channel[on->channel].statement >= 0;
    if (m == NO_DEPENDENCES)
        return true;
    if (m == NO_DEPENDENCE)
        return (uint64_t)index == seed % (uint64_t)of->dependence_count;
    if (m == NO_CARRIED)
        return other && on->kind == PEAL_OP_WAIT && !on->credit;
    return other && on->kind == PEAL_OP_COPY && on->copy == PEAL_COPY_UNPACK;
}

/* Whether the mutant was made and what became of it: -1 not applicable, else if it was noticed. */
static int try_dependences(const peal_schedule **schedules, int ranks, int rank, int index,
                           mutation m, uint64_t expected, uint64_t seed)
{
    peal_schedule copy = *schedules[rank];
    const peal_op *of = &copy.op[index];
    bool is_send = of->kind == PEAL_OP_COPY && of->copy == PEAL_COPY_SEND;
    if (!of->dependence_count || ((m == NO_CARRIED || m == NO_CARRYING) && !is_send))
        return -1;
    peal_op *op = malloc((size_t)copy.op_count * sizeof(*op));
    peal_dependence *kept = malloc((size_t)of->dependence_count * sizeof(*kept));
    int count = 0, result = -1;
    for (int i = 0; i < of->dependence_count; i++)
        if (!lacks(&copy, m, of, i, seed))
            kept[count++] = of->dependence[i];
    memcpy(op, copy.op, (size_t)copy.op_count * sizeof(*op));
    op[index].dependence = kept;
    op[index].dependence_count = count;
    if (count < of->dependence_count) {
        const peal_schedule *whole = schedules[rank];
        copy.op = op;
        schedules[rank] = &copy;
        result = is_noticed(schedules, ranks, no_loss, expected, seed);
        schedules[rank] = whole;
    }
    free(kept);
    free(op);
    return result;
}

static int try_loss(const peal_schedule **schedules, int ranks, int rank, int index, mutation m,
                    uint64_t expected, uint64_t seed)
{
    const peal_op *op = &schedules[rank]->op[index];
    bool wait = m == NO_FLAG_WAIT || m == NO_CREDIT_WAIT;
    bool region = op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_IF || op->kind == PEAL_OP_END;
    if (wait ? op->kind != PEAL_OP_WAIT || op->credit != (m == NO_CREDIT_WAIT) : region)
        return -1;
    return is_noticed(schedules, ranks, (unroll_loss){rank, index, wait}, expected, seed);
}

/* Mutants of one rank's schedule, of every n-th op. */
static void try_mutants(const peal_schedule **schedules, int ranks, uint64_t seed, score *sum)
{
    static const uint64_t every[MUTATIONS] = {5, 2, 1, 1, 1, 12, 12};
    int rank = (int)(seed % (uint64_t)ranks);
    uint64_t expected;
    assert_true(values_of(schedules, ranks, UNROLL_STEPS, no_loss, &expected));
    run_at_random(schedules, ranks, no_loss, expected, seed);
    for (int i = 0; i < schedules[rank]->op_count; i++)
        for (mutation m = 0; m < MUTATIONS; m++) {
            bool loss = m == NO_FLAG_WAIT || m == NO_CREDIT_WAIT || m == NO_OP;
            if ((uint64_t)i % every[m] != seed % every[m])
                continue;
            int result =
                (loss ? try_loss : try_dependences)(schedules, ranks, rank, i, m, expected, seed);
            sum->tried[m] += result >= 0;
            sum->noticed[m] += result > 0;
        }
}

static void check_graph(random_graph *random, uint64_t seed, peal_mode mode, score *sum)
{
    scheduled s;
    char text[1024] = "";
    bool overflow = false;
    schedule_graph(&s, random, seed, mode);
    if (unroll_races(s.schedule, s.machine.ranks, no_loss, text, sizeof(text), &overflow) > 0) {
        for (int rank = 0; rank < s.machine.ranks; rank++)
            peal_schedule_print_text(s.schedule[rank], stderr);
        fail_msg("seed %llu, mode %s: %s\n%s", (unsigned long long)seed, peal_mode_name(mode), text,
                 random_graph_text(s.random));
    }
    for (int rank = 0; rank < s.machine.ranks; rank++)
        if (!segment_is_sound(s.schedule, rank, text, sizeof(text)))
            fail_msg("seed %llu, mode %s: %s\n%s", (unsigned long long)seed, peal_mode_name(mode),
                     text, random_graph_text(s.random));
    bool promised = random_graph_features(s.random) >> F_INDEPENDENT & 1; /* tiles may meet */
    if (sum && !overflow && !promised)
        try_mutants(s.schedule, s.machine.ranks, seed, sum);
    forget(&s);
}

static void check_seed(uint64_t seed, peal_mode mode, score *sum)
{
    check_graph(random_graph_create(seed), seed, mode, sum);
}

/* The twins of planted faults have what random graphs lack: pipelines, receives above their sends,
 * ranks that take no part. */
static void test_twins_order_all_conflicts(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= TWINS; seed++) {
        const random_fault *fault = &random_faults[seed % (uint64_t)random_fault_count];
        random_graph *random = random_graph_create_planted(seed, fault, true);
        if (random)
            check_graph(random, seed, seed % 3 ? PEAL_MODE_FUSED : PEAL_MODE_STREAM, NULL);
    }
}

static void test_fused_schedules_order_all_conflicts(void **state)
{
    (void)state;
    static const uint64_t failed_once[] = {
        1528, /* a direct halo that another exchange unpacks into under the other name of a swap */
        5683, /* a loop of sends that overtook a receive: waits for ever with one worker */
    };
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        check_seed(seed, PEAL_MODE_FUSED, NULL);
    for (size_t i = 0; i < sizeof(failed_once) / sizeof(failed_once[0]); i++)
        check_seed(failed_once[i], PEAL_MODE_FUSED, NULL);
}

static void test_gpus_order_all_conflicts(void **state)
{
    static const peal_mode modes[] = {PEAL_MODE_FUSED, PEAL_MODE_GRAPH, PEAL_MODE_STREAM};
    score sum = {.tried = {0}};
    (void)state;
    on_gpus = true;
    for (uint64_t seed = 1; seed <= SEEDS; seed++)
        check_seed(seed, modes[seed % 3], seed <= MUTATED_SEEDS ? &sum : NULL);
    on_gpus = false;
    assert_true(sum.noticed[NO_CARRYING] > 0);
}

/* Graphs that went wrong once: loops in setup, tiles that touch other elements after a swap, and a
 * message that carries a credit for what is used under the other name of a swap. */
static const struct {
    const char *text;
    int ranks;
} once_wrong[] = {
    {"peal: 1\nkernels: k.c\n"
     "fields: {u: {size: [8, 16], halo: [0, 1]}, v: {like: u}, p: {like: u, halo: 0}}\n"
     "setup:\n- repeat: 4\n  as: k\n  step:\n"
     "  - {task: rd, box: p, tile: [8, 4], read: {u: {grow: [0, [0, 1]]}}, update: p}\n"
     "  - {task: wr, box: v, tile: [8, 4], update: v}\n  - {swap: [u, v]}\n"
     "step: [{task: t, box: p, update: p}]\n",
     1},
    {"peal: 1\nkernels: k.c\ntopology: {dims: [1, auto]}\n"
     "fields: {a: {size: [64, 16], halo: [0, 1]}, an: {like: a}, w: {like: a}}\n"
     "setup:\n- {exchange: [a, an]}\n"
     "- {task: r1, box: {an: {grow: [0, -1]}}, read: {an: {grow: [0, 1]}}, write: w}\n"
     "- repeat: 3\n  step:\n"
     "  - {task: r2, box: {a: {grow: [0, -1]}}, read: {a: {grow: [0, 1]}}, write: an}\n"
     "  - {exchange: an}\n  - {swap: [a, an]}\n"
     "step: [{task: t, box: w, update: w}]\n",
     2},
    {"peal: 1\nkernels: k.c\nbuffers: {a: {count: 16, keep: true}, b: {count: 16, keep: true}}\n"
     "step:\n- {task: mix, box: [[0, 8]], tile: 1, read: {a: {per_tile: 2}}, write: {b: {per_tile: "
     "1}}}\n- {swap: [a, b]}\n",
     1},
    {"peal: 1\nkernels: k.c\ntopology: {dims: [1, auto]}\n"
     "fields: {u: {size: [512, 16], halo: [0, 1]}, v: {like: u}, w: {like: u}}\n"
     "setup: [{exchange: u}]\n"
     "step:\n"
     "- {task: look, box: u, tile: [512, 4], read: {u: {star: [0, 1]}}, update: w}\n"
     "- {task: advance, box: u, tile: [512, 2], read: u, write: v}\n- {exchange: v}\n"
     "- {exchange: w}\n- {swap: [u, v]}\n",
     2},
};

static void check_text(const char *spec, int ranks, int64_t least_spare)
{
    const peal_graph_data *graph;
    peal_graph *g = NULL;
    scheduled s = {
        .diagnostics = peal_diagnostics_create(),
        .machine = {.ranks = ranks, .processes = 1, .workers = 2, .cache_bytes = 1 << 18}};
    char text[1024] = "";
    bool overflow = false;
    assert_int_equal(peal_graph_read_memory("t.yaml", spec, strlen(spec), NULL, 0, s.diagnostics,
                                            &g),
                     0);
    assert_int_equal(peal_graph_resolve(g, s.diagnostics, &graph), 0);
    assert_int_equal(peal_compilation_create(graph, &s.machine, PEAL_MODE_FUSED, s.diagnostics,
                                             &s.compilation),
                     0);
    for (int rank = 0; rank < ranks; rank++)
        assert_int_equal(peal_compilation_schedule(s.compilation, rank, &s.schedule[rank]), 0);
    if (unroll_races(s.schedule, ranks, no_loss, text, sizeof(text), &overflow) > 0)
        fail_msg("%s\n%s", text, spec);
    assert_false(overflow);
    for (int rank = 0; rank < ranks; rank++)
        if (!segment_is_sound(s.schedule, rank, text, sizeof(text)))
            fail_msg("%s\n%s", text, spec);
    /* Rows go in place: their slots are not touched. */
    const peal_schedule *first = s.schedule[0];
    if (first->segment_bytes - first->used_bytes < least_spare)
        fail_msg("%lld bytes are not touched\n%s",
                 (long long)(first->segment_bytes - first->used_bytes), spec);
    forget(&s);
    peal_graph_destroy(g);
}

static void test_graphs_that_went_wrong_once(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(once_wrong) / sizeof(once_wrong[0]); i++)
        check_text(once_wrong[i].text, once_wrong[i].ranks, 0);
}

/* Halos that neighbours store in place, where others stand between an op and what it may have to
 * wait for: so does a WAIT, since its sender had to hear that the memory is free. */
static void test_dependences_left_to_others(void **state)
{
#define SWEEP(number, from, to, tile)                                                              \
    "- {exchange: " from "}\n- {task: t" number ", box: " from ", tile: " tile ", read: {" from    \
    ": {star: [0, 1]}}, write: " to "}\n"
#define FIELDS                                                                                     \
    "peal: 1\nkernels: k.c\ntopology: {dims: [1, auto]}\nrepeat: 4\n"                              \
    "fields: {a: {size: [64, 16], halo: [0, 1]}, b: {like: a}}\n"
    static const char two_fields[] =
        FIELDS "step:\n" SWEEP("1", "a", "b", "[64, 16]") SWEEP("2", "b", "a", "[64, 4]")
            SWEEP("3", "a", "b", "[64, 2]") SWEEP("4", "b", "a", "[64, 16]");
    static const char walls[] = FIELDS "setup: [{exchange: a}]\nstep:\n" SWEEP(
        "1", "a", "b", "[64, 2]") SWEEP("2", "b", "a", "[64, 16]")
        SWEEP("3", "a", "b",
              "[64, 4]") "- {task: t4, box: {b: {ghost: [0, -1]}}, read: {b: inside}, write: b}\n"
                         "- {exchange: b}\n- {exchange: b}\n"
                         "- {task: t5, box: a, read: {b: {star: [0, 1]}}, write: a}\n";
    /* Of the writes of b, t1 need not stand for `look` where t2 is done, nor t3 in the step before.
     */
    static const char conditions[] =
        FIELDS "step:\n- {task: t1, box: b, write: b, when: step % 2 == 0}\n"
               "- {task: t2, box: b, write: b, when: step % 3 == 0}\n"
               "- {task: look, box: b, read: b, update: a}\n"
               "- {task: t3, box: b, write: b, when: step % 2 == 0}\n"
               "- {task: t4, box: b, write: b, when: step % 2 == 0}\n"
               "- {task: t5, box: b, write: b, when: step % 3 == 0}\n";
    /* The first swap has not happened in the step before: `first` has written what `last` reads. */
    static const char swaps[] =
        "peal: 1\nkernels: k.c\nrepeat: 4\n"
        "fields: {u: {size: [64, 16]}, v: {like: u}, w: {like: u}}\nstep:\n"
        "- {task: first, box: u, tile: [64, 4], write: u}\n"
        "- {swap: [u, v], when: step % 2 == 1}\n"
        "- {task: last, box: {u: {grow: -1}}, tile: [64, 4], read: {u: {star: 1}}, write: w, "
        "when: step % 2 == 1}\n- {swap: [u, v]}\n";
    /* Border and rest of t1 do not wait for each other: `wipe` overwrites what the border has read,
     * where the rest has written, and the rest reads what the border wrote the last time. */
    static const char in_place[] =
        FIELDS "step:\n- {exchange: a}\n"
               "- {task: t1, box: a, tile: [64, 2], update: {a: {star: [0, 1]}}, "
               "independent: true}\n"
               "- {task: wipe, box: [[0, 64], [8 * rank + 2, 8 * rank + 6]], write: a}\n";
    /* More pieces of an array are written, and left out, than are told apart. */
    char points[8192] = "peal: 1\nkernels: k.c\nbuffers: {p: {count: 130}}\n"
                        "fields: {v: {size: [64, 16]}}\nstep:\n";
    for (int i = 0; i < 64; i++)
        snprintf(points + strlen(points), sizeof(points) - strlen(points),
                 "- {task: w%d, write: {p: [[%d, %d]]}}\n", i, 2 * i + 1, 2 * i + 2);
    strcat(points, "- {task: r, box: v, tile: [64, 4], read: {p: whole}, write: v}\n");
    (void)state;
    many_touches = 0;
    check_text(swaps, 1, 0);
    check_text(points, 1, 0);
    check_text(in_place, 2, 0);
    for (int ranks = 1; ranks <= 4; ranks++) {
        check_text(two_fields, ranks, ranks > 1 ? 4 * 2 * 512 : 0);
        check_text(walls, ranks, 0);
        check_text(conditions, ranks, 0);
    }
    many_touches = 256;
#undef SWEEP
#undef FIELDS
}

static void test_stream_schedules_order_all_conflicts(void **state)
{
    (void)state;
    for (uint64_t seed = SEEDS + 1; seed <= SEEDS + 30; seed++)
        check_seed(seed, PEAL_MODE_STREAM, NULL);
}

/* A mutant that stays unnoticed is equivalent: the check has just proved that other paths order
 * every conflicting pair without what it lacks, and one order computes the same; so do some at
 * random. (test_interleavings runs all orders of small ones.) Of each kind some are not. */
static void test_mutants_are_noticed(void **state)
{
    (void)state;
    score sum = {{0}, {0}};
    for (uint64_t seed = 1; seed <= MUTATED_SEEDS; seed++)
        check_seed(seed, PEAL_MODE_FUSED, &sum);
    for (mutation m = 0; m < MUTATIONS; m++) {
        print_message("%-27s %3d of %3d mutants noticed, %3d equivalent\n", mutation_names[m],
                      sum.noticed[m], sum.tried[m], sum.tried[m] - sum.noticed[m]);
        assert_true(sum.noticed[m] > 0);
    }
    assert_true(2 * sum.noticed[NO_DEPENDENCES] > sum.tried[NO_DEPENDENCES]);
    assert_true(2 * sum.noticed[NO_FLAG_WAIT] > sum.tried[NO_FLAG_WAIT]);
    assert_true(2 * sum.noticed[NO_OP] > sum.tried[NO_OP]);
}

int main(int argc, char **argv)
{
    if (argc > 1) { /* one seed, to look at */
        score sum = {{0}, {0}};
        check_seed(strtoull(argv[1], NULL, 10), PEAL_MODE_FUSED, &sum);
        return 0;
    }
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fused_schedules_order_all_conflicts),
        cmocka_unit_test(test_gpus_order_all_conflicts),
        cmocka_unit_test(test_twins_order_all_conflicts),
        cmocka_unit_test(test_dependences_left_to_others),
        cmocka_unit_test(test_graphs_that_went_wrong_once),
        cmocka_unit_test(test_stream_schedules_order_all_conflicts),
        cmocka_unit_test(test_mutants_are_noticed),
    };
    return cmocka_run_group_tests_name("unroll", tests, NULL, NULL);
}
