/* Classes of ranks against looking at each rank: the same verdict, the same reports, and few ranks
 * analysed, on random graphs, many of which have something wrong somewhere.
 *
 * test_classes [FIRST [COUNT]]: seeds FIRST .. FIRST + COUNT - 1. */
#define _GNU_SOURCE
#include "dsl/dsl.h"
#include "scheduler/check/check.h"
#include "tests/property/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { GRAPHS = 3000, AXIS_CLASSES = 12 /* with ends of boxes and conditions */ };

static uint64_t first_seed = 1;
static int graph_count = GRAPHS;

static void function(const peal_call *call)
{
    (void)call;
}

/* A random choice of some texts. */
static const char *one_of(uint64_t *state, int count, const char *const *text)
{
    return text[random_below(state, count)];
}
#define ONE_OF(state, ...)                                                                         \
    one_of((state), (int)(sizeof((const char *[]){__VA_ARGS__}) / sizeof(char *)),                 \
           (const char *[]){__VA_ARGS__})

/* Conditions that tell ranks apart; most messages have none. */
static const char *random_when(uint64_t *state)
{
    if (random_below(state, 3))
        return NULL;
    return ONE_OF(state, "rx == 0", "rx > 0", "rx < Rx - 1", "rx % 2 == 0", "rank == 3",
                  "rank != ranks - 1", "rx == 1 or Rx == 1", "u.nx > 3", "ranks > 4",
                  "rank == 0 and step % 2 == 0", "step % 2 == rx % 2", "step % 3 == rank",
                  "step % 2 == 0 or rx > 0", "u.nx > 3 and step % 2 == 1", "step < 1 and rx == 0");
}

static void add_random_task(peal_graph *g, uint64_t *state, const char *name)
{
    peal_points_desc box = {.name = "u"};
    switch (random_below(state, 7)) {
    case 0:
        box.grow = ONE_OF(state, "1", "-1", "2", "-3");
        break;
    case 1:
        box.rim = ONE_OF(state, "1", "2", "5");
        break;
    case 2:
        box.box = ONE_OF(state, "[[0, 3]]", "[[2, 9]]", "[[5, 6]]", "[[-1, 4]]");
        break;
    case 3:
        box = (peal_points_desc){.box = "[[0, 4], [0, 2], [0, 2]]"}; /* of no field */
        break;
    default:
        break;
    }
    if (box.name && !random_below(state, 4))
        box.part = ONE_OF(state, "interior", "boundary", "1");
    peal_graph_add_task(g, .name = name, .function = function, .box = box,
                        .tile = random_below(state, 3) ? NULL : "2", .when = random_when(state),
                        .read = {{.name = random_below(state, 2) ? "u" : "v",
                                  .grow = random_below(state, 2) ? "1" : NULL}},
                        .write = {{.name = "w"}});
}

static void add_random_messages(peal_graph *g, uint64_t *state, int axes)
{
    static const char *const to[3][2] = {{"1", "-1"},
                                         {"[1, 0]", "[1, -1]"},
                                         {"[0, 1, 0]", "[-1, 0, 1]"}};
    static const char *const from[3][2] = {{"-1", "1"},
                                           {"[-1, 0]", "[-1, 1]"},
                                           {"[0, -1, 0]", "[1, 0, -1]"}};
    int direction = random_below(state, 2);
    const char *when = random_when(state);
    const char *tag = ONE_OF(state, "0", "1", "rx", "rx % 2");
    const char *count = ONE_OF(state, "[[0, 4]]", "[[0, 4]]", "[[0, u.nx]]", "[[0, rx + 1]]");
    const char *receives = random_below(state, 4) ? count : "[[0, 4]]";
    bool swapped = !random_below(state, 8);
    for (int i = 0; i < 2; i++) {
        bool sends = swapped ? i == 1 : i == 0;
        if (!random_below(state, 20))
            continue;
        if (sends)
            peal_graph_add_send(g, .send = {.name = "out", .box = count},
                                .to = to[axes - 1][direction], .tag = tag, .when = when);
        else
            peal_graph_add_recv(g, .recv = {.name = "in", .box = receives},
                                .from = from[axes - 1][direction],
                                .tag = random_below(state, 3) ? tag : "0",
                                .when = random_below(state, 3) ? when : NULL);
    }
}

typedef struct sample {
    peal_graph *graph;
    int ranks, axes;
    bool same_cut; /* fields end on a rank at the same points */
    char about[400];
} sample;

/* Lists of numbers, one an axis. */
static char *list(char *text, int axes, const int *value)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < axes; k++)
        used += sprintf(text + used, "%s%d", k ? ", " : "", value[k]);
    sprintf(text + used, "]");
    return text;
}

/* Parts of so many points, multiples of `align`, instead of equal ones. */
static int list_cuts(uint64_t *state, int dims, int align, char *text, int *size)
{
    int used = sprintf(text, "[0");
    *size = 0;
    for (int part = 0; part < dims; part++) {
        *size += align * (2 + (random_below(state, 3) ? 0 : random_below(state, 3)));
        used += sprintf(text + used, ", %d", *size);
    }
    return used + sprintf(text + used, "]");
}

static void begin_sample(sample *s, uint64_t seed)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u;
    int dims[3], size[3], coarsen[3], align[3];
    char text[5][48], cuts[400] = "[";
    const char *periodic = ONE_OF(&state, "true", "false", "false");
    bool uneven = random_below(&state, 3) == 0;
    *s = (sample){.ranks = 1, .axes = 1 + random_below(&state, 3)};
    for (int k = 0; k < s->axes; k++) {
        dims[k] = 1 + random_below(&state, s->axes == 1 ? 40 : 7);
        coarsen[k] = random_below(&state, 4) ? 1 : 2;
        align[k] = coarsen[k] * (random_below(&state, 4) ? 1 : 2);
        size[k] = dims[k] * (2 + random_below(&state, 5)) + random_below(&state, 7);
        s->ranks *= dims[k];
        strcat(cuts, k ? ", " : "");
        if (uneven && random_below(&state, 3))
            list_cuts(&state, dims[k], align[k], cuts + strlen(cuts), &size[k]);
        else
            strcat(cuts, "auto");
    }
    strcat(cuts, "]");
    assert_int_equal(peal_graph_create("classes", &s->graph), 0);
    snprintf(s->about, sizeof(s->about),
             "seed %llu: dims %s, size %s, coarsen %s, periodic %s, cuts %.150s",
             (unsigned long long)seed, list(text[0], s->axes, dims), list(text[1], s->axes, size),
             list(text[2], s->axes, coarsen), periodic, cuts);
    list(text[3], s->axes, align);
    bool aligned = random_below(&state, 2) || uneven;
    s->same_cut = aligned && (random_below(&state, 4) || uneven);
    size[0] += s->same_cut ? 0 : random_below(&state, 9);
    list(text[4], s->axes, size);
    peal_graph_set_topology(s->graph, .dims = text[0], .periodic = periodic, .cuts = cuts);
    peal_graph_add_field(s->graph, .name = "u", .size = text[1],
                         .halo = ONE_OF(&state, "1", "2", "[1]"),
                         .align = aligned ? text[3] : NULL);
    peal_graph_add_field(s->graph, .name = "v", .size = text[4], .halo = "1", .align = text[3],
                         .coarsen = random_below(&state, 3) ? NULL : text[2]);
    peal_graph_add_field(s->graph, .name = "w", .like = "u");
    peal_graph_add_buffer(s->graph, .name = "out", .count = "8");
    peal_graph_add_buffer(s->graph, .name = "in", .count = ONE_OF(&state, "8", "5 + u.nx", "8"));
    peal_graph_begin(s->graph, PEAL_STEP);
    peal_graph_add_exchange(s->graph, .exchange = {{.name = "u"}});
    add_random_task(s->graph, &state, "one");
    if (random_below(&state, 2))
        add_random_task(s->graph, &state, "two");
    if (random_below(&state, 2))
        add_random_messages(s->graph, &state, s->axes);
    if (!random_below(&state, 4))
        peal_graph_add_allreduce(s->graph, .reduce = {{"in", "sum"}});
    peal_graph_end(s->graph);
}

typedef struct verdict {
    peal_status status;
    int64_t analysed;
    bool classed;
    bool proved; /* no rank but those of classes was looked at */
    char *text;  /* of all reports */
} verdict;

/* False: the graph is refused before its ranks are looked at. */
static bool judge(const sample *s, const peal_graph_data *data, bool each, verdict *out)
{
    peal_machine machine = {.ranks = s->ranks,
                            .processes = 1,
                            .workers = 2,
                            .cache_bytes = 1 << 18};
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    peal_compilation *c;
    rank_classes classes;
    size_t bytes;
    bool made = !peal_compilation_create(data, &machine, PEAL_MODE_FUSED, diagnostics, &c);
    if (made) {
        out->status = each ? check_each_rank(c) : peal_compilation_check(c);
        out->analysed = c->analysed_count;
        out->classed = find_classes(&c->common, &c->pass, true, &classes);
        out->proved = out->classed && out->analysed == class_count(&classes);
        FILE *stream = open_memstream(&out->text, &bytes);
        peal_diagnostics_print(diagnostics, stream, 1000);
        fclose(stream);
        peal_compilation_destroy(c);
    }
    peal_diagnostics_destroy(diagnostics);
    return made;
}

typedef struct tally {
    int refused, good, bad, classed, proved;
    int apart; /* a condition tells each rank from every other */
} tally;

static void check_seed(uint64_t seed, tally *count)
{
    sample s;
    const peal_graph_data *data;
    verdict by_class = {0}, each = {0};
    int most = 1;
    begin_sample(&s, seed);
    for (int k = 0; k < s.axes; k++)
        most *= AXIS_CLASSES;
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    if (peal_graph_resolve(s.graph, diagnostics, &data) || !judge(&s, data, false, &by_class)) {
        count->refused++;
    } else {
        assert_true(judge(&s, data, true, &each));
        if (by_class.status != each.status || strcmp(by_class.text, each.text))
            fail_msg("%s\nby class: %d\n%s\neach: %d\n%s", s.about, by_class.status, by_class.text,
                     each.status, each.text);
        count->good += !each.status;
        count->bad += each.status != 0;
        count->classed += by_class.classed;
        if (!each.status && by_class.classed && by_class.analysed <= s.ranks) {
            count->proved++; /* else a receive may be in a cycle: all ranks are replayed */
            bool apart = by_class.analysed == s.ranks && s.ranks > most;
            count->apart += s.same_cut && apart;
            if (s.same_cut && by_class.analysed > most && !apart)
                fail_msg("%s: %lld of %d ranks analysed", s.about, (long long)by_class.analysed,
                         s.ranks);
        }
    }
    free(by_class.text);
    free(each.text);
    peal_diagnostics_destroy(diagnostics);
    peal_graph_destroy(s.graph);
}

static void test_verdicts_agree(void **state)
{
    tally count = {0};
    (void)state;
    print_message("seeds %llu to %llu\n", (unsigned long long)first_seed,
                  (unsigned long long)first_seed + (unsigned long long)graph_count - 1);
    for (int i = 0; i < graph_count; i++)
        check_seed(first_seed + (uint64_t)i, &count);
    print_message("%d refused, %d good, %d bad, %d classed, %d proved, %d apart\n", count.refused,
                  count.good, count.bad, count.classed, count.proved, count.apart);
    assert_true(count.apart * 10 <= count.proved);
    assert_true(graph_count < GRAPHS ||
                (count.good > 300 && count.bad > 300 && count.classed > 600 && count.proved > 200));
}

/* ---- Cycles of waits ---- */

enum { PAIRS = 5, PROGRAMS = 1500 };

/* Which statements of a program there are: all, without conditions; all, some with conditions;
 * those that happen in even or in odd steps, without. */
typedef enum program_part { PLAIN, CONDITIONAL, EVEN_STEPS, ODD_STEPS } program_part;

/* Pairs of messages in some direction, their ends in any order; something that all ranks do
 * between. */
static void add_random_program(peal_graph *g, uint64_t *state, int axes, program_part part)
{
    static const char *const whens[] = {NULL, "step % 2 == 0", "(step + 3) % 4 % 2 == 0"};
    int pairs = 1 + random_below(state, PAIRS), ends[2 * PAIRS], count = 0, way[PAIRS][3];
    int steps[PAIRS]; /* 0: all, 1: even, 2: odd */
    char to[48], from[48], tag[16];
    for (int i = 0; i < pairs; i++) {
        bool moves = false;
        for (int k = 0; k < axes; k++) {
            way[i][k] = random_below(state, 3) - 1;
            moves |= way[i][k] != 0;
        }
        way[i][0] = moves ? way[i][0] : 1;
        steps[i] = random_below(state, 3);
        ends[count++] = 2 * i;
        ends[count++] = 2 * i + 1;
    }
    for (int left = count; left > 0; left--) {
        int at = random_below(state, left), pair = ends[at] / 2, back[3];
        for (int k = 0; k < axes; k++)
            back[k] = -way[pair][k];
        list(to, axes, way[pair]);
        list(from, axes, back);
        sprintf(tag, "%d", pair);
        const char *when = part == CONDITIONAL ? whens[steps[pair]] : NULL;
        bool absent =
            (part == EVEN_STEPS && steps[pair] == 2) || (part == ODD_STEPS && steps[pair] == 1);
        if (ends[at] % 2 && !absent)
            peal_graph_add_send(g, .send = {.name = "out"}, .to = to, .tag = tag, .when = when);
        else if (!absent)
            peal_graph_add_recv(g, .recv = {.name = "in"}, .from = from, .tag = tag, .when = when);
        ends[at] = ends[left - 1];
        if (!random_below(state, 12))
            peal_graph_add_exchange(g, .exchange = {{.name = "u"}});
        if (!random_below(state, 25))
            peal_graph_add_allreduce(g, .reduce = {{"out", "sum"}});
    }
}

static void begin_program(sample *s, uint64_t seed, program_part part)
{
    uint64_t state = seed * 0x2545f4914f6cdd1du;
    int dims[3], size[3];
    char text[2][48], periodic[48];
    *s = (sample){.ranks = 1, .axes = 1 + random_below(&state, 3)};
    int used = sprintf(periodic, "[");
    for (int k = 0; k < s->axes; k++) {
        dims[k] = 1 + random_below(&state, s->axes == 1 ? 9 : 4);
        size[k] = 2 * dims[k];
        s->ranks *= dims[k];
        used += sprintf(periodic + used, "%s%s", k ? ", " : "",
                        random_below(&state, 4) ? "false" : "true");
    }
    sprintf(periodic + used, "]");
    assert_int_equal(peal_graph_create("cycles", &s->graph), 0);
    snprintf(s->about, sizeof(s->about), "program %llu: dims %s, periodic %s",
             (unsigned long long)seed, list(text[0], s->axes, dims), periodic);
    peal_graph_set_topology(s->graph, .dims = text[0], .periodic = periodic);
    peal_graph_add_field(s->graph, .name = "u", .size = list(text[1], s->axes, size), .halo = "1");
    peal_graph_add_buffer(s->graph, .name = "out");
    peal_graph_add_buffer(s->graph, .name = "in");
    peal_graph_begin(s->graph, PEAL_STEP);
    add_random_program(s->graph, &state, s->axes, part);
    peal_graph_end(s->graph);
}

/* What directions show, replaying all ranks shows as well; and they show it of most. */
static void test_cycles_agree(void **state)
{
    int good = 0, bad = 0, shown = 0;
    (void)state;
    for (int i = 0; i < (graph_count == GRAPHS ? PROGRAMS : graph_count); i++) {
        sample s;
        const peal_graph_data *data;
        verdict by_class = {0}, each = {0};
        peal_diagnostics *diagnostics = peal_diagnostics_create();
        begin_program(&s, first_seed + (uint64_t)i, PLAIN);
        assert_int_equal(peal_graph_resolve(s.graph, diagnostics, &data), 0);
        assert_true(judge(&s, data, false, &by_class) && judge(&s, data, true, &each));
        if (by_class.status != each.status || strcmp(by_class.text, each.text))
            fail_msg("%s\nby class: %s\neach: %s", s.about, by_class.text, each.text);
        good += !each.status;
        bad += each.status != 0;
        shown += !each.status && by_class.proved;
        free(by_class.text);
        free(each.text);
        peal_diagnostics_destroy(diagnostics);
        peal_graph_destroy(s.graph);
    }
    print_message("%d without a cycle, %d of them shown by directions, %d with one\n", good, shown,
                  bad);
    assert_true(graph_count < GRAPHS || (good > 300 && bad > 300 && 4 * shown > 3 * good));
}

static bool has_cycle(uint64_t seed, program_part part)
{
    sample s;
    const peal_graph_data *data;
    verdict v = {0};
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    begin_program(&s, seed, part);
    assert_int_equal(peal_graph_resolve(s.graph, diagnostics, &data), 0);
    assert_true(judge(&s, data, false, &v));
    free(v.text);
    peal_diagnostics_destroy(diagnostics);
    peal_graph_destroy(s.graph);
    return v.status != 0;
}

/* Statements under conditions are in a cycle if those of the even or of the odd steps are. */
static void test_cycles_of_steps(void **state)
{
    int good = 0, only_apart = 0;
    (void)state;
    for (int i = 0; i < (graph_count == GRAPHS ? PROGRAMS : graph_count); i++) {
        uint64_t seed = first_seed + (uint64_t)i;
        bool cycle = has_cycle(seed, EVEN_STEPS) || has_cycle(seed, ODD_STEPS);
        if (has_cycle(seed, CONDITIONAL) != cycle)
            fail_msg("program %llu: %s cycle is seen", (unsigned long long)seed,
                     cycle ? "no" : "a");
        good += !cycle;
        only_apart += !cycle && has_cycle(seed, PLAIN);
    }
    print_message("%d without a cycle in any step, %d of them only since steps differ\n", good,
                  only_apart);
    assert_true(graph_count < GRAPHS || only_apart > 5);
}

/* Analyses of a stencil with a reduction on so many ranks. */
static int64_t analyses(const char *dims, const char *size, int ranks, const char *periodic)
{
    const peal_graph_data *data;
    sample s = {.ranks = ranks};
    verdict v;
    assert_int_equal(peal_graph_create("classes", &s.graph), 0);
    peal_graph_set_topology(s.graph, .dims = dims, .periodic = periodic);
    peal_graph_add_field(s.graph, .name = "u", .size = size, .halo = "1");
    peal_graph_add_field(s.graph, .name = "v", .like = "u");
    peal_graph_add_buffer(s.graph, .name = "sum");
    peal_graph_begin(s.graph, PEAL_STEP);
    peal_graph_add_exchange(s.graph, .exchange = {{.name = "u"}});
    peal_graph_add_task(s.graph, .name = "step", .function = function,
                        .box = {.name = "u", .grow = "-1"}, .read = {{.name = "u", .grow = "1"}},
                        .write = {{.name = "v"}});
    peal_graph_add_allreduce(s.graph, .reduce = {{"sum", "sum"}});
    peal_graph_add_swap(s.graph, .swap = {"u", "v"});
    peal_graph_end(s.graph);
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    assert_int_equal(peal_graph_resolve(s.graph, diagnostics, &data), 0);
    assert_true(judge(&s, data, false, &v));
    assert_int_equal(v.status, 0);
    free(v.text);
    peal_diagnostics_destroy(diagnostics);
    peal_graph_destroy(s.graph);
    return v.analysed;
}

/* A sweep from one corner of a grid to the other. */
static void test_a_pipeline_of_a_million_ranks(void **state)
{
    (void)state;
    const peal_graph_data *data;
    sample s = {.ranks = 1000000};
    verdict v;
    assert_int_equal(peal_graph_create("sweep", &s.graph), 0);
    peal_graph_set_topology(s.graph, .dims = "[1000, 1000]");
    peal_graph_add_buffer(s.graph, .name = "x");
    peal_graph_begin(s.graph, PEAL_STEP);
    peal_graph_add_recv(s.graph, .recv = {.name = "x"}, .from = "[-1, 0]");
    peal_graph_add_recv(s.graph, .recv = {.name = "x"}, .from = "[0, -1]");
    peal_graph_add_send(s.graph, .send = {.name = "x"}, .to = "[1, 0]");
    peal_graph_add_send(s.graph, .send = {.name = "x"}, .to = "[0, 1]");
    peal_graph_end(s.graph);
    peal_diagnostics *diagnostics = peal_diagnostics_create();
    assert_int_equal(peal_graph_resolve(s.graph, diagnostics, &data), 0);
    assert_true(judge(&s, data, false, &v));
    assert_int_equal(v.status, 0);
    assert_int_equal(v.analysed, 9);
    free(v.text);
    peal_diagnostics_destroy(diagnostics);
    peal_graph_destroy(s.graph);
}

static void test_few_are_analysed(void **state)
{
    (void)state;
    assert_int_equal(analyses("[1000000]", "[16000000]", 1000000, "false"), 3);
    assert_int_equal(analyses("[1000000]", "[16000007]", 1000000, "false"), 4);
    assert_int_equal(analyses("[1000, 1000]", "[16000, 16007]", 1000000, "false"), 12);
    assert_int_equal(analyses("[100, 100, 100]", "[807, 807, 807]", 1000000, "false"), 64);
    assert_int_equal(analyses("[2, 1, 50000]", "[16, 8, 400000]", 100000, "true"), 6);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = strtoull(argv[1], NULL, 10);
    if (argc > 2)
        graph_count = atoi(argv[2]);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verdicts_agree),
        cmocka_unit_test(test_cycles_agree),
        cmocka_unit_test(test_cycles_of_steps),
        cmocka_unit_test(test_few_are_analysed),
        cmocka_unit_test(test_a_pipeline_of_a_million_ranks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
