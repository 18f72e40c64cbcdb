/* Every interleaving of small schedules, and what remains of their proofs when something is taken
 * away: an op, what a wait holds back, one dependence.
 *
 * A schedule is accepted if no two conflicting accesses are unordered, nothing waits in a circle,
 * every wait is released by one write, and in one order it computes what it computed before the
 * change. Accepted ones are run in every order that an executor may take: all must end, with the
 * same results. So what unroll_races() and the rules for credits promise is tried, not argued.
 *
 * test_interleavings [STATES [CASE]]: visits at most so many states each. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/scheduler/values.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { RANKS = UNROLL_RANKS };

static int64_t most_states = 60000;
static int only = -1;

#define HEAD  "peal: 1\nkernels: k.c\n"
#define ALONG HEAD "topology: {dims: [auto], periodic: true}\n"

static const struct {
    const char *name, *text;
    int ranks, steps;
} cases[] = {
    {"a symmetric halo: its credits are carried",
     ALONG "fields: {u: {size: 4, halo: 1}, v: {like: u}}\n"
           "step:\n- {exchange: u}\n"
           "- {task: t, box: u, tile: 1, read: {u: {star: 1}}, write: v}\n- {swap: [u, v]}\n",
     2, 2},
    {"a halo from one side: its credit is kept",
     ALONG "fields: {u: {size: 2, halo: [[1, 0]]}, v: {like: u}}\n"
           "step:\n- {exchange: u}\n"
           "- {task: t, box: u, read: {u: {star: [[1, 0]]}}, write: v}\n- {swap: [u, v]}\n",
     2, 4},
    {"a message each step, one way",
     HEAD "buffers: {a: {keep: true}, b: {keep: true}}\n"
          "step:\n- {task: make, update: a}\n- {send: a, to: 1, when: rank == 0}\n"
          "- {recv: b, from: 0, when: rank == 1}\n- {task: use, read: b, update: a}\n",
     2, 4},
    {"a message there and one back",
     HEAD
     "buffers: {a: {keep: true}, b: {keep: true}}\n"
     "step:\n- {task: make, update: a}\n- {send: a, to: 1 - rank}\n- {recv: b, from: 1 - rank}\n"
     "- {task: use, read: b, update: a}\n",
     2, 3},
    {"a pipeline of three ranks",
     HEAD "topology: {dims: [auto]}\nbuffers: {a: {keep: true}}\n"
          "step:\n- {recv: a, from: [-1]}\n- {task: t, update: a}\n- {send: a, to: [1]}\n",
     3, 2},
    {"a reduction that decides",
     HEAD "buffers: {a: {keep: true}, s: {keep: true}}\n"
          "step:\n- {task: t, box: [[0, 2]], tile: 1, reduce: {s: sum}}\n- {allreduce: {s: sum}}\n"
          "- {set: a, value: s + 1, when: s > 0.5}\n",
     2, 2},
    {"a loop of messages in setup",
     ALONG "fields: {u: {size: 2, halo: 1}, v: {like: u}}\n"
           "setup:\n- repeat: 2\n  step:\n  - {exchange: u}\n"
           "  - {task: t, box: u, read: {u: {star: 1}}, write: v}\n  - {swap: [u, v]}\n"
           "step: [{task: t, box: u, update: u}]\n",
     2, 1},
    {"a field that is changed in place",
     ALONG "fields: {u: {size: 4, halo: 1}}\n"
           "step:\n- {exchange: u}\n"
           "- {task: t, box: u, tile: whole, update: {u: {star: 1}}}\n",
     2, 4},
    {"halos that are stored in place",
     HEAD "topology: {dims: [1, auto]}\n"
          "fields: {u: {size: [512, 4], halo: [0, 1]}, v: {like: u}}\n"
          "step:\n- {exchange: u}\n"
          "- {task: t, box: {u: {grow: [0, -1]}}, tile: [512, 1], read: {u: {star: [0, 1]}}, "
          "write: v}\n- {swap: [u, v]}\n",
     2, 4},
    {"messages under a condition",
     HEAD "buffers: {a: {keep: true}, b: {keep: true}}\n"
          "step:\n- {task: make, update: a}\n"
          "- {send: a, to: 1 - rank, when: step % 2 == 0}\n"
          "- {recv: b, from: 1 - rank, when: step % 2 == 0}\n- {task: use, read: b, update: a}\n",
     2, 4},
    {"two ranks, one of which sends first",
     HEAD "buffers: {a: {keep: true}, b: {keep: true}}\n"
          "step:\n- {send: a, to: 1, when: rank == 0}\n- {recv: b, from: 0, when: rank == 1}\n"
          "- {task: use, update: [a, b]}\n"
          "- {send: b, to: 0, tag: 1, when: rank == 1}\n"
          "- {recv: a, from: 1, tag: 1, when: rank == 0}\n",
     2, 3},
    {"an exchange and an allreduce",
     ALONG "fields: {u: {size: 2, halo: 1}, v: {like: u}}\nbuffers: {s: {keep: true}}\n"
           "step:\n- {exchange: u}\n"
           "- {task: t, box: u, read: {u: {star: 1}}, write: v, reduce: {s: sum}}\n"
           "- {allreduce: {s: sum}}\n- {swap: [u, v]}\n",
     2, 2},
};
enum { CASES = sizeof(cases) / sizeof(cases[0]) };

typedef struct job {
    peal_diagnostics *diagnostics;
    peal_machine machine;
    peal_graph *graph;
    peal_compilation *compilation;
    const peal_schedule *schedule[RANKS];
    int ranks, steps;
} job;

static void begin_job(job *j, int index, peal_mode mode)
{
    const peal_graph_data *graph;
    const char *text = cases[index].text;
    *j = (job){.diagnostics = peal_diagnostics_create(),
               .machine = {.ranks = cases[index].ranks,
                           .processes = 1,
                           .workers = 2,
                           .cache_bytes = 1 << 18},
               .ranks = cases[index].ranks,
               .steps = cases[index].steps};
    peal_status status =
        peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, j->diagnostics, &j->graph);
    if (!status)
        status = peal_graph_resolve(j->graph, j->diagnostics, &graph);
    if (!status)
        status = peal_compilation_create(graph, &j->machine, mode, j->diagnostics, &j->compilation);
    if (!status)
        status = peal_compilation_check(j->compilation);
    for (int rank = 0; !status && rank < j->ranks; rank++)
        status = peal_compilation_schedule(j->compilation, rank, &j->schedule[rank]);
    if (status) {
        peal_diagnostics_print(j->diagnostics, stderr, 0);
        fail_msg("%s", text);
    }
}

static void end_job(job *j)
{
    peal_compilation_destroy(j->compilation);
    peal_graph_destroy(j->graph);
    peal_diagnostics_destroy(j->diagnostics);
}

/* Whether the checker takes it; expected: what it should compute. */
static bool is_accepted(const job *j, unroll_loss loss, uint64_t expected)
{
    char text[1024];
    bool overflow;
    uint64_t result;
    int races = unroll_races(j->schedule, j->ranks, loss, text, sizeof(text), &overflow);
    assert_false(overflow);
    return !races && values_of(j->schedule, j->ranks, j->steps, loss, &result) &&
           result == expected;
}

static verdict try_every_order(const job *j, unroll_loss loss, uint64_t expected, int64_t *states)
{
    unrolled u;
    unroll_begin(&u, j->schedule, j->ranks, j->steps, loss);
    values *v = values_create(&u);
    verdict found = values_in_every_order(v, expected, most_states, states);
    values_destroy(v);
    unroll_end(&u);
    return found;
}

/* ---- Mutants ---- */

typedef struct score {
    int tried, refused, equivalent; /* refused: by the checker; equivalent: in every order */
    int too_many, strict;           /* not visited to the end; refused, but equal in every order */
} score;

static void judge(const job *j, int index, const char *what, unroll_loss loss, uint64_t expected,
                  score *sum)
{
    int64_t states;
    bool accepted = is_accepted(j, loss, expected);
    verdict found = try_every_order(j, loss, expected, &states);
    sum->tried++;
    sum->refused += !accepted;
    sum->too_many += found == TOO_MANY;
    sum->equivalent += accepted && found == ALWAYS_EQUAL;
    sum->strict += !accepted && found == ALWAYS_EQUAL;
    if (accepted && (found == DIFFERS || found == STUCK))
        fail_msg("%s: accepted without %s of op %d of rank %d, but some order %s",
                 cases[index].name, what, loss.op, loss.rank,
                 found == STUCK ? "does not end" : "computes something else");
}

static bool is_region(const peal_op *op)
{
    return op->kind == PEAL_OP_LOOP || op->kind == PEAL_OP_IF || op->kind == PEAL_OP_END;
}

/* One dependence of an op is left out. */
static void try_dependences(job *j, int index, int rank, int at, uint64_t expected, score *sum)
{
    const peal_schedule *whole = j->schedule[rank];
    int count = whole->op[at].dependence_count;
    peal_schedule copy = *whole;
    peal_op *op = malloc((size_t)copy.op_count * sizeof(*op));
    peal_dependence *kept = malloc((size_t)(count + 1) * sizeof(*kept));
    memcpy(op, copy.op, (size_t)copy.op_count * sizeof(*op));
    copy.op = op;
    op[at].dependence = kept;
    op[at].dependence_count = count - 1;
    j->schedule[rank] = &copy;
    for (int without = 0; without < count; without++) {
        memcpy(kept, whole->op[at].dependence, (size_t)count * sizeof(*kept));
        memmove(&kept[without], &kept[without + 1], (size_t)(count - without - 1) * sizeof(*kept));
        judge(j, index, "a dependence", (unroll_loss){-1, at, false}, expected, sum);
    }
    j->schedule[rank] = whole;
    free(kept);
    free(op);
}

static void test_every_interleaving_of_mutants(void **state)
{
    (void)state;
    score ops = {0}, waits = {0}, dependences = {0};
    for (int index = 0; index < CASES; index++) {
        job j;
        uint64_t expected;
        if (only >= 0 && index != only)
            continue;
        begin_job(&j, index, PEAL_MODE_FUSED);
        assert_true(values_of(j.schedule, j.ranks, j.steps, no_loss, &expected));
        for (int rank = 0; rank < j.ranks; rank++)
            for (int at = 0; at < j.schedule[rank]->op_count; at++) {
                const peal_op *op = &j.schedule[rank]->op[at];
                if (!is_region(op))
                    judge(&j, index, "the whole", (unroll_loss){rank, at, false}, expected, &ops);
                if (op->kind == PEAL_OP_WAIT)
                    judge(&j, index, "what holds", (unroll_loss){rank, at, true}, expected, &waits);
                try_dependences(&j, index, rank, at, expected, &dependences);
            }
        end_job(&j);
    }
    const struct {
        const char *name;
        score *sum;
    } rows[] = {{"an op", &ops}, {"a wait", &waits}, {"a dependence", &dependences}};
    for (int i = 0; i < 3; i++) {
        const score *s = rows[i].sum;
        print_message(
            "without %-12s %4d mutants: %4d refused (%d of them compute the same in every "
            "order), %d equal in every order, %d with too many orders\n",
            rows[i].name, s->tried, s->refused, s->strict, s->equivalent, s->too_many);
        assert_true(s->refused > 0 && s->equivalent > 0);
    }
}

static void test_every_interleaving(void **state)
{
    (void)state;
    static const peal_mode modes[] = {PEAL_MODE_FUSED, PEAL_MODE_STREAM, PEAL_MODE_SYNC};
    for (int index = 0; index < CASES; index++)
        for (int m = 0; m < 3; m++) {
            job j;
            uint64_t expected;
            int64_t states;
            if (only >= 0 && index != only)
                continue;
            begin_job(&j, index, modes[m]);
            assert_true(values_of(j.schedule, j.ranks, j.steps, no_loss, &expected));
            assert_true(is_accepted(&j, no_loss, expected));
            verdict found = try_every_order(&j, no_loss, expected, &states);
            if (m == 0)
                print_message("%-45s %8lld states\n", cases[index].name, (long long)states);
            if (found != ALWAYS_EQUAL)
                fail_msg("%s, mode %s: %s", cases[index].name, peal_mode_name(modes[m]),
                         found == TOO_MANY ? "too many states"
                         : found == STUCK  ? "some order does not end"
                                           : "some order computes something else");
            end_job(&j);
        }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        most_states = atoll(argv[1]);
    if (argc > 2)
        only = atoi(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_interleaving),
        cmocka_unit_test(test_every_interleaving_of_mutants),
    };
    return cmocka_run_group_tests_name("interleavings", tests, NULL, NULL);
}
