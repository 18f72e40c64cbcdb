/* Every diagnostic of the scheduler, provoked by the smallest spec that has it, with its line and
 * column; and specs at the edge of what is allowed, which must pass. The last test fails if a code
 * of the section has no case. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/scheduler/cases.h"
#include "tests/starve.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static bool seen[PEAL_CODE_COUNT];

static peal_status schedule_all(const peal_graph_data *data, int ranks, peal_mode mode,
                                peal_diagnostics *list)
{
    peal_machine machine = {.ranks = ranks, .processes = 1, .workers = 2, .cache_bytes = 1 << 18};
    peal_compilation *c = NULL;
    peal_status status = peal_compilation_create(data, &machine, mode, list, &c);
    if (status)
        return status;
    status = peal_compilation_check(c);
    for (int rank = 0; !status && rank < ranks; rank++) {
        const peal_schedule *schedule;
        status = peal_compilation_schedule(c, rank, &schedule);
    }
    peal_compilation_destroy(c);
    return status;
}

/* alone: as the command runs it. */
static peal_status compile_spec(const char *text, int ranks, peal_mode mode, bool alone,
                                peal_diagnostics *list)
{
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    peal_status status =
        peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph);
    if (!status && alone)
        peal_graph_set_alone(graph);
    if (!status)
        status = peal_graph_resolve(graph, list, &data);
    if (!status)
        status = schedule_all(data, ranks, mode, list);
    peal_graph_destroy(graph);
    return status;
}

static peal_status compile_text(const char *text, int ranks, peal_mode mode, peal_diagnostics *list)
{
    return compile_spec(text, ranks, mode, false, list);
}

static bool is_at(const peal_diagnostic *d, const graph_case *c)
{
    return d->source.line == c->line && d->source.column == c->column &&
           (!c->message || strstr(d->message, c->message));
}

/* What concerns several statements, tiles or ranks is told event by event. */
static bool is_about_several(peal_code code)
{
    switch (code) {
    case PEAL_E_HALO_TOO_NARROW:
    case PEAL_E_TILES_COLLIDE:
    case PEAL_E_REDUCTION_MISMATCH:
    case PEAL_E_UNMATCHED_MESSAGE:
    case PEAL_E_DUPLICATE_TAG:
    case PEAL_E_MESSAGE_SIZE_MISMATCH:
    case PEAL_E_MESSAGE_TYPE_MISMATCH:
    case PEAL_E_MESSAGE_LOOP_MISMATCH:
    case PEAL_E_MESSAGE_CONDITION_MISMATCH:
    case PEAL_E_DEADLOCK:
    case PEAL_E_STALE_HALO:
    case PEAL_E_MESSAGE_COUNT_MISMATCH:
    case PEAL_E_LEAD_WITHOUT_BOUND:
    case PEAL_E_CONDITION_CHANGES:
    case PEAL_E_CONDITIONS_NOT_COMPARABLE:
    case PEAL_E_POSSIBLE_DEADLOCK:
        return true;
    default:
        return false;
    }
}

/* Events have texts, ranks that there are, lines of the spec, and something between them; one of
 * them stands where the message does. Messages of PEAL_E_HALO_TOO_NARROW, PEAL_E_REDUCTION_MISMATCH
 * and PEAL_E_MESSAGE_COUNT_MISMATCH that need no second place have none: of per_tile, of a root or
 * a shape, of counts for its own peers. */
static bool is_told(const peal_diagnostic *d, int ranks)
{
    const peal_story *story = d->story;
    bool here = false, good = true;
    if (!is_about_several(d->code))
        return !story;
    if (!story)
        return strstr(d->message, "per_tile") || strstr(d->message, "there is no rank") ||
               strstr(d->message, "is not a plain buffer") || strstr(d->message, "need more") ||
               strstr(d->message, "there are 2 peers") || strstr(d->message, "peer 1 has none");
    for (int i = 0; i < story->event_count; i++) {
        const peal_story_event *e = &story->event[i];
        good = good && e->text[0] && e->rank >= 0 && e->rank < ranks;
        good = good && (e->source.line > 0 || strstr(e->text, "there is no "));
        here = here || (e->source.line == d->source.line && e->source.column == d->source.column);
    }
    for (int i = 0; i < story->link_count; i++)
        good = good && story->link[i].from < story->event_count &&
               story->link[i].to < story->event_count && story->link[i].why[0];
    return good && here && story->event_count >= 2 && story->link_count >= 1 && !story->left_out;
}

/* All that is reported has this code, and one of it stands at this place. */
static bool passes(const graph_case *c)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_status status = compile_text(c->text, c->ranks, PEAL_MODE_FUSED, list);
    bool here = false, alone = true, told = true;
    for (int i = 0; i < peal_diagnostics_count(list); i++) {
        const peal_diagnostic *d = peal_diagnostics_at(list, i);
        here = here || is_at(d, c);
        alone = alone && d->code == c->code;
        told = told && is_told(d, c->ranks);
        seen[d->code] = true;
    }
    bool good = here && alone && told && status == peal_code_status(c->code);
    if (!good) {
        fprintf(stderr, "%s\n%d ranks: expected %s at %d:%d%s%s, found status %d:\n", c->text,
                c->ranks, peal_code_number(c->code), c->line, c->column, c->message ? ", " : "",
                c->message ? c->message : "", (int)status);
        peal_diagnostics_print(list, stderr, 0);
    }
    peal_diagnostics_destroy(list);
    return good;
}

/* Halos that are not filled: errors; filled for nothing: warnings. */
static const char halos[] = "peal: 1\nkernels: k.c\ntopology: {dims: [auto, 1]}\n"
                            "fields: {u: {size: [12, 8], halo: 1}, v: {like: u}}\nstep:\n";
static const struct {
    const char *statements;
    peal_code code; /* PEAL_CODE_COUNT: nothing */
    int line;
    const char *hint; /* part of it */
} halo_cases[] = {
    {"- {task: t, box: u, read: {u: {star: 1}}, write: v}\n- {swap: [u, v]}\n", PEAL_E_STALE_HALO,
     6, ""},
    {"- {exchange: u}\n- {task: w, box: u, write: u}\n"
     "- {task: t, box: u, read: {u: {grow: 1}}, write: v}\n",
     PEAL_E_STALE_HALO, 8, ""},
    {"- {exchange: u}\n- {task: t, box: u, read: u, write: v}\n", PEAL_E_UNREAD_EXCHANGE, 6,
     "`t` (line 7) needs it: read: {u: {star: 1}}"},
    {"- {exchange: v}\n- {swap: [u, v]}\n- {task: w, box: u, write: v}\n- {task: t, box: u, "
     "update: u}\n",
     PEAL_E_UNREAD_EXCHANGE, 6, "`t` (line 9) needs it: update: {u: {star: 1}}"},
    {"- {task: t, box: u, read: u, write: v}\n- {exchange: v}\n- {swap: [u, v]}\n",
     PEAL_E_UNREAD_EXCHANGE, 7, "`t` (line 6) needs it: read: {u: {star: 1}}"},
    {"- {exchange: u}\n- {task: t, box: u, write: v}\n", PEAL_E_UNREAD_EXCHANGE, 6,
     "no task reads `u` at all"},
    {"- {exchange: u}\n- {task: t, box: u, read: {u: {star: 1}}, write: v}\n- {swap: [u, v]}\n",
     PEAL_CODE_COUNT, 0, ""},
    {"- {task: t, box: u, read: {u: {star: 1}}, write: v}\n- {exchange: v}\n- {swap: [u, v]}\n",
     PEAL_CODE_COUNT, 0, ""},
};

static void test_halos(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(halo_cases) / sizeof(halo_cases[0]); i++) {
        char text[600];
        snprintf(text, sizeof(text), "%s%s", halos, halo_cases[i].statements);
        peal_diagnostics *list = peal_diagnostics_create();
        assert_int_equal(compile_text(text, 3, PEAL_MODE_FUSED, list),
                         halo_cases[i].code == PEAL_E_STALE_HALO ? PEAL_STATUS_SPEC
                                                                 : PEAL_STATUS_OK);
        bool expected = halo_cases[i].code != PEAL_CODE_COUNT;
        if (peal_diagnostics_count(list) != expected) {
            peal_diagnostics_print(list, stderr, 0);
            fail_msg("%d messages for\n%s", peal_diagnostics_count(list), text);
        }
        if (expected) {
            const peal_diagnostic *d = peal_diagnostics_at(list, 0);
            seen[d->code] = true;
            assert_int_equal(d->code, halo_cases[i].code);
            assert_int_equal(d->source.line, halo_cases[i].line);
            assert_true(is_told(d, 3));
            assert_non_null(strstr(d->hint, halo_cases[i].hint));
        }
        peal_diagnostics_destroy(list);
    }
}

/* Rank 0 prints. */
static void test_prints(void **state)
{
    (void)state;
    static const char *const when[] = {"rank == 0", "rank < 1 or step == 3", "rank == 1",
                                       "rank > 0 and step % 2 == 0"};
    for (int i = 0; i < 4; i++) {
        char text[200];
        snprintf(text, sizeof(text),
                 "peal: 1\nbuffers: {x: {}}\nstep:\n- {print: {x: x}, when: %s}\n", when[i]);
        peal_diagnostics *list = peal_diagnostics_create();
        assert_int_equal(compile_text(text, 3, PEAL_MODE_FUSED, list), PEAL_STATUS_OK);
        assert_int_equal(peal_diagnostics_count(list), i >= 2);
        if (i >= 2)
            assert_int_equal(peal_diagnostics_at(list, 0)->code, PEAL_E_PRINT_NEVER_HAPPENS);
        seen[PEAL_E_PRINT_NEVER_HAPPENS] |= i >= 2;
        peal_diagnostics_destroy(list);
    }
}

/* Work for nothing: in specs that run by themselves, where nothing else changes what counts. */
static const struct {
    const char *steps;
    peal_code code; /* PEAL_CODE_COUNT: none */
} idle_cases[] = {
    {"- {task: t, box: u, read: u, write: v}\n", PEAL_E_SAME_AGAIN},
    {"- {task: t, box: u, read: u, write: v}\n- {swap: [u, v]}\n", PEAL_CODE_COUNT},
    {"- {exchange: u}\n- {task: t, box: u, read: u, write: v}\n", PEAL_E_SAME_AGAIN},
    {"- {task: t, box: u, read: u, write: v, args: step}\n- {save: v, file: v.npy}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: u, read: u, write: v, args: s}\n- {save: v, file: v.npy}\n",
     PEAL_E_SAME_AGAIN},
    {"- {set: s, value: s + 1}\n- {task: t, box: u, read: u, write: v, args: s}\n"
     "- {save: v, file: v.npy}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: {count: step, max: 9}, write: {v: whole}, tile: whole}\n"
     "- {save: v, file: v.npy}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: u, update: u}\n", PEAL_CODE_COUNT},
    {"- {task: t, box: u, write: v}\n- {task: r, box: u, read: v, update: u}\n"
     "- {task: s, box: u, update: v}\n- {save: u, file: u.npy}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: u, read: u, reduce: {s: sum}}\n", PEAL_E_SAME_AGAIN},
    {"- {task: t, box: u, update: u}\n- {task: r, box: u, read: u, write: v}\n", PEAL_E_NEVER_READ},
    {"- {task: t, box: u, update: u}\n- {task: r, box: u, read: u, write: v}\n"
     "- {task: q, box: v, read: v, reduce: {s: sum}}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {task: r, box: v, read: u, write: v, args: 2}\n- {task: q, box: u, read: v, update: "
     "u}\n",
     PEAL_E_OVERWRITTEN_UNREAD},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {task: m, box: u, read: v, reduce: {s: sum}, when: step == 3}\n"
     "- {task: r, box: v, read: u, write: v, args: 2}\n- {task: q, box: u, read: v, update: "
     "u}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {task: m, box: u, read: v, reduce: {s: sum}, when: 1 > 2}\n"
     "- {task: r, box: v, read: u, write: v, args: 2}\n- {task: q, box: u, read: v, update: "
     "u}\n",
     PEAL_E_OVERWRITTEN_UNREAD},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {copy: v, into: w}\n- {save: w, file: w.npy}\n"
     "- {task: r, box: v, read: u, write: v, args: 2}\n- {task: q, box: u, read: v, update: "
     "u}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {swap: [u, v]}\n"
     "- {task: r, box: v, read: u, write: v, args: 2}\n- {task: q, box: u, read: v, update: "
     "u}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {repeat: 2, step: [{task: m, box: u, read: v, update: u}]}\n"
     "- {task: r, box: v, read: u, write: v, args: 2}\n- {task: q, box: u, read: v, update: "
     "u}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {task: r, box: v, read: u, write: v, args: 2, when: step > 3}\n"
     "- {task: q, box: u, read: v, update: u}\n",
     PEAL_CODE_COUNT},
    {"- {task: t, box: v, read: u, write: v}\n"
     "- {task: r, box: {v: {part: interior}}, read: u, write: v, args: 2}\n"
     "- {task: q, box: u, read: v, update: u}\n",
     PEAL_CODE_COUNT},
    {"- {repeat: 4, step: [{task: t, box: u, read: u, write: v}]}\n- {swap: [u, v]}\n",
     PEAL_E_SAME_AGAIN},
    {"- {repeat: 1, step: [{task: t, box: u, read: u, write: v}]}\n- {swap: [u, v]}\n",
     PEAL_CODE_COUNT},
};

static void test_idle_tasks(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(idle_cases) / sizeof(idle_cases[0]); i++)
        for (int alone = 0; alone < 2; alone++) {
            bool told = alone && idle_cases[i].code != PEAL_CODE_COUNT;
            char text[800];
            snprintf(text, sizeof(text),
                     "peal: 1\nkernels: k.c\nfields: {u: {size: 8, halo: 1}, v: {like: u}, w: "
                     "{like: u}}\n"
                     "buffers: {s: {}}\nrepeat: 9\nstep:\n%s",
                     idle_cases[i].steps);
            peal_diagnostics *list = peal_diagnostics_create();
            peal_status status = compile_spec(text, 2, PEAL_MODE_SYNC, alone, list);
            int count = 0;
            for (int k = 0; k < peal_diagnostics_count(list); k++) {
                peal_code code = peal_diagnostics_at(list, k)->code;
                count += code == PEAL_E_SAME_AGAIN || code == PEAL_E_NEVER_READ ||
                         code == PEAL_E_OVERWRITTEN_UNREAD;
                seen[code] = true;
                if (told && code != PEAL_E_UNREAD_EXCHANGE)
                    assert_int_equal(code, idle_cases[i].code);
            }
            if (status || count != told) {
                peal_diagnostics_print(list, stderr, 0);
                fail_msg("%d messages for\n%s", count, text);
            }
            peal_diagnostics_destroy(list);
        }
}

static void test_cases(void **state)
{
    (void)state;
    int bad = 0;
    for (int i = 0; i < graph_case_count; i++)
        bad += !passes(&graph_cases[i]);
    assert_int_equal(bad, 0);
}

static void test_edges_of_what_is_allowed(void **state)
{
    (void)state;
    static const peal_mode modes[] = {PEAL_MODE_SERIAL, PEAL_MODE_SYNC, PEAL_MODE_STREAM,
                                      PEAL_MODE_FUSED};
    int bad = 0;
    for (int i = 0; i < valid_case_count; i++)
        for (int m = 0; m < 4; m++) {
            peal_diagnostics *list = peal_diagnostics_create();
            if (compile_text(valid_cases[i].text, valid_cases[i].ranks, modes[m], list)) {
                bad++;
                fprintf(stderr, "%s, %s:\n%s", valid_cases[i].what, peal_mode_name(modes[m]),
                        valid_cases[i].text);
                peal_diagnostics_print(list, stderr, 0);
            }
            peal_diagnostics_destroy(list);
        }
    assert_int_equal(bad, 0);
}

/* Each time that the check's lists grow there is no memory. */
static void test_no_memory_for_messages(void **state)
{
    (void)state;
    static const char text[] = "peal: 1\nkernels: k.c\nbuffers: {b: {count: 4}, c: {count: 4}}\n"
                               "step:\n- {send: b, to: (rank + 1) % ranks}\n"
                               "- {recv: c, from: (rank + ranks - 1) % ranks}\n";
    bool was_starved = true;
    for (int number = 0; was_starved; number++) {
        peal_graph *graph = NULL;
        const peal_graph_data *data = NULL;
        peal_diagnostics *list = peal_diagnostics_create();
        peal_machine machine = {.ranks = 2, .processes = 1, .workers = 1, .cache_bytes = 1 << 18};
        peal_compilation *c = NULL;
        assert_int_equal(peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list,
                                                &graph),
                         0);
        assert_int_equal(peal_graph_resolve(graph, list, &data), PEAL_STATUS_OK);
        assert_int_equal(peal_compilation_create(data, &machine, PEAL_MODE_SYNC, list, &c), 0);
        starve_at(STARVE_REALLOC, number);
        peal_status status = peal_compilation_check(c);
        starve_at(0, 0);
        was_starved = starved();
        assert_int_equal(status, was_starved ? PEAL_STATUS_ENVIRONMENT : PEAL_STATUS_OK);
        if (was_starved) {
            const peal_diagnostic *d = peal_diagnostics_at(list, 0);
            assert_int_equal(d->code, PEAL_E_COMPILE_OUT_OF_MEMORY);
            assert_in_range(d->source.line, 5, 6);
            seen[d->code] = true;
        }
        peal_compilation_destroy(c);
        peal_graph_destroy(graph);
        peal_diagnostics_destroy(list);
    }
}

/* The processor time that a check may use is over (test_memory.c looks at what follows). */
static void test_no_time(void **state)
{
    (void)state;
    static const char text[] = "peal: 1\nkernels: k.c\nbuffers: {b: {count: 4}, c: {count: 4}}\n"
                               "step:\n- {send: b, to: (rank + 1) % ranks}\n"
                               "- {recv: c, from: (rank + ranks - 1) % ranks}\n";
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_machine machine = {.ranks = 4000, .processes = 1, .workers = 1, .cache_bytes = 1 << 18};
    peal_compilation *c = NULL;
    assert_int_equal(peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph),
                     0);
    assert_int_equal(peal_graph_resolve(graph, list, &data), PEAL_STATUS_OK);
    assert_int_equal(peal_compilation_create(data, &machine, PEAL_MODE_SYNC, list, &c), 0);
    peal_compilation_limit(c, 1);
    assert_int_equal(peal_compilation_check(c), PEAL_STATUS_DEADLINE);
    seen[peal_diagnostics_at(list, 0)->code] = true;
    peal_compilation_destroy(c);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
}

/* Stories are told in the first step in which what they tell of happens. */
static const struct {
    const char *statements;
    peal_code code;
    int64_t step[2]; /* of the first two events */
} timed_cases[] = {
    {"- {recv: b, from: 1 - rank, when: step % 2 == 1}\n- {send: b, to: 1 - rank, when: step % 2 "
     "== 1}\n",
     PEAL_E_DEADLOCK,
     {1, 1}},
    {"- {recv: b, from: 1 - rank, when: step == 5}\n- {send: b, to: 1 - rank, when: step == 5}\n",
     PEAL_E_DEADLOCK,
     {5, 5}},
    {"- repeat: 3\n  as: k\n  when: step % 4 == 3\n  step:\n"
     "  - {recv: b, from: 1 - rank, when: k == 2}\n  - {send: b, to: 1 - rank, when: k == 2}\n",
     PEAL_E_DEADLOCK,
     {3, 3}},
    {"- repeat: 3\n  as: k\n  when: step % 4 == 3\n  step:\n  - {recv: b, from: 1 - rank, when: k "
     "== 2}\n",
     PEAL_E_UNMATCHED_MESSAGE,
     {3, 3}},
    {"- {send: b, to: 1 - rank, when: step % 2 == 1}\n- {recv: b, from: 1 - rank, when: step % 3 "
     "== 1}\n",
     PEAL_E_MESSAGE_CONDITION_MISMATCH,
     {3, 4}},
    {"- {send: b, to: 1 - rank, when: step % 4 == 3}\n- {recv: b, from: 1 - rank, when: step % 2 "
     "== 1}\n",
     PEAL_E_MESSAGE_CONDITION_MISMATCH,
     {3, 1}},
    {"- {send: b, to: 1 - rank, when: rank == 0 and step % 4 == 3}\n"
     "- {recv: b, from: 1 - rank, when: rank == 1 and step % 2 == 1}\n",
     PEAL_E_MESSAGE_CONDITION_MISMATCH,
     {3, 1}},
    {"- {allreduce: {b: sum}, when: step % 3 == rank + 1}\n",
     PEAL_E_MESSAGE_CONDITION_MISMATCH,
     {1, 2}},
    {"- {send: b, to: 1 - rank, when: step < 8}\n- {recv: b, from: 1 - rank}\n",
     PEAL_E_MESSAGE_CONDITION_MISMATCH,
     {0, 8}},
    {"- {task: t, box: [[0, 8]], tile: 4, update: {b: whole}, when: step % 2 == 1 and rank < 1}\n",
     PEAL_E_TILES_COLLIDE,
     {1, 1}},
};

static void test_steps_of_stories(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(timed_cases) / sizeof(timed_cases[0]); i++) {
        char text[600];
        snprintf(text, sizeof(text),
                 "peal: 1\nkernels: k.c\nbuffers: {b: {}}\nrepeat: 9\nstep:\n%s",
                 timed_cases[i].statements);
        peal_diagnostics *list = peal_diagnostics_create();
        assert_int_equal(compile_text(text, 2, PEAL_MODE_FUSED, list), PEAL_STATUS_SPEC);
        const peal_diagnostic *d = peal_diagnostics_at(list, 0);
        bool good = d->code == timed_cases[i].code && d->story && d->story->event_count >= 2;
        for (int k = 0; k < 2 && good; k++)
            good = d->story->event[k].step == timed_cases[i].step[k];
        if (!good) {
            peal_diagnostics_print(list, stderr, 0);
            fail_msg("%s", text);
        }
        peal_diagnostics_destroy(list);
    }
}

static void test_every_code_has_a_case(void **state)
{
    (void)state;
    static const peal_code codes[] = {
#define PEAL_DIAGNOSTIC(number, name, status, title, explanation) PEAL_E_##name,
#include "base/diagnostics/scheduler.def"
#undef PEAL_DIAGNOSTIC
    };
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (!seen[codes[i]])
            fail_msg("no case provokes %s", peal_code_number(codes[i]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_cases),
        cmocka_unit_test(test_halos),
        cmocka_unit_test(test_prints),
        cmocka_unit_test(test_idle_tasks),
        cmocka_unit_test(test_steps_of_stories),
        cmocka_unit_test(test_edges_of_what_is_allowed),
        cmocka_unit_test(test_no_memory_for_messages),
        cmocka_unit_test(test_no_time),
        cmocka_unit_test(test_every_code_has_a_case),
    };
    return cmocka_run_group_tests_name("scheduler diagnostics", tests, NULL, NULL);
}
