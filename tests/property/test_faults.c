/* One fault in a random graph: the check finds it, with the right number, at the right line, on the
 * right rank, and finds nothing else. Its sound twin, which differs in what is wrong alone, passes,
 * and so do graphs without anything planted.
 *
 * test_faults [GRAPHS [FIRST SEED]]: so many of each; 75 without. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/property/random_fault.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static int graphs = 75;
static uint64_t first_seed = 1;

typedef struct trial {
    uint64_t seed;
    const random_fault *fault;
    random_graph *graph;
    peal_diagnostics *diagnostics;
    peal_status status;
} trial;

static void complain(const trial *t, const char *what)
{
    peal_diagnostics_print(t->diagnostics, stderr, 5);
    fail_msg("seed %llu, %s: %s\n%s", (unsigned long long)t->seed,
             t->fault ? t->fault->name : "nothing planted", what, random_graph_text(t->graph));
}

/* The check of all ranks, and the schedules that it allows: none may find anything more. */
static void check_graph(trial *t)
{
    const peal_graph_data *data;
    const peal_schedule *schedule;
    peal_compilation *c = NULL;
    peal_machine machine = {.ranks = random_graph_ranks(t->graph),
                            .processes = 1,
                            .workers = 2,
                            .cache_bytes = 1 << 18};
    t->diagnostics = peal_diagnostics_create();
    t->status = peal_graph_resolve(random_graph_builder(t->graph), t->diagnostics, &data);
    if (!t->status)
        t->status = peal_compilation_create(data, &machine, PEAL_MODE_FUSED, t->diagnostics, &c);
    if (!t->status)
        t->status = peal_compilation_check(c);
    for (int rank = 0; !t->status && rank < machine.ranks; rank++)
        if (peal_compilation_schedule(c, rank, &schedule)) {
            complain(t, "the check has passed what a schedule refuses");
            break;
        }
    peal_compilation_destroy(c);
}

static void end_trial(trial *t)
{
    peal_diagnostics_destroy(t->diagnostics);
    random_graph_destroy(t->graph);
}

/* The graph of this seed, or of the next one that the fault fits. */
static void begin_trial(trial *t, uint64_t seed, const random_fault *fault, bool sound)
{
    *t = (trial){.seed = seed, .fault = fault};
    while (!(t->graph = random_graph_create_planted(t->seed, fault, sound)))
        t->seed += 1000003;
    check_graph(t);
}

static bool is_planted(const peal_diagnostic *d)
{
    return d->source.file && !strcmp(d->source.file, RANDOM_FAULT_FILE);
}

/* What is said must be of the fault's kind, and said of a planted line. */
static bool is_of_fault(const trial *t, const peal_diagnostic *d)
{
    return is_planted(d) && d->code == t->fault->code &&
           (d->source.line == t->fault->line[0] || d->source.line == t->fault->line[1]);
}

/* A fault that is about one rank is told of that rank. */
static bool names_rank(const trial *t, const peal_diagnostic *d)
{
    if (strcmp(t->fault->name, "one rank that does not receive") &&
        strncmp(t->fault->name, "a rank that skips", 17))
        return true;
    for (int i = 0; d->story && i < d->story->event_count; i++)
        if (d->story->event[i].rank == random_graph_planted_rank(t->graph))
            return true;
    return false;
}

/* What is planted in a loop without iterations is never read: not told of, and rightly. */
static bool may_never_run(const trial *t)
{
    return t->fault->code == PEAL_E_STALE_HALO &&
           strstr(random_graph_text(t->graph), "- repeat 0 ");
}

static void expect_fault(const trial *t)
{
    bool found = false;
    for (int i = 0; i < peal_diagnostics_count(t->diagnostics); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(t->diagnostics, i);
        if (d->severity == PEAL_ERROR && !is_of_fault(t, d))
            complain(t, "something else was found");
        found = found || (is_of_fault(t, d) && names_rank(t, d));
    }
    if (!found && may_never_run(t))
        return;
    if (!found)
        complain(t, "was not found");
    if (t->status != PEAL_STATUS_SPEC)
        complain(t, "has another status");
}

static void expect_sound(const trial *t)
{
    for (int i = 0; i < peal_diagnostics_count(t->diagnostics); i++)
        if (t->fault && is_planted(peal_diagnostics_at(t->diagnostics, i)) &&
            peal_diagnostics_at(t->diagnostics, i)->code == t->fault->code)
            complain(t, "the sound twin is said to have it, too");
    if (t->status)
        complain(t, "a sound graph was refused");
}

static void test_faults_are_found(void **state)
{
    (void)state;
    for (int i = 0; i < graphs; i++) {
        trial t;
        begin_trial(&t, first_seed + (uint64_t)i, &random_faults[i % random_fault_count], false);
        expect_fault(&t);
        end_trial(&t);
    }
    print_message("%d graphs with a fault of %d kinds: all found\n", graphs, random_fault_count);
}

static void test_sound_twins_pass(void **state)
{
    (void)state;
    for (int i = 0; i < graphs; i++) {
        trial t;
        begin_trial(&t, first_seed + (uint64_t)i, &random_faults[i % random_fault_count], true);
        expect_sound(&t);
        end_trial(&t);
    }
    print_message("%d sound twins: none refused\n", graphs);
}

static void test_sound_graphs_pass(void **state)
{
    (void)state;
    for (int i = 0; i < graphs; i++) {
        trial t = {.seed = first_seed + (uint64_t)i};
        t.graph = random_graph_create(t.seed);
        check_graph(&t);
        expect_sound(&t);
        end_trial(&t);
    }
    print_message("%d sound graphs: none refused\n", graphs);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        graphs = atoi(argv[1]);
    if (argc > 2)
        first_seed = strtoull(argv[2], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_faults_are_found),
        cmocka_unit_test(test_sound_twins_pass),
        cmocka_unit_test(test_sound_graphs_pass),
    };
    return cmocka_run_group_tests_name("planted faults", tests, NULL, NULL);
}
