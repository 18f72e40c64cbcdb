/* Ranks in a line, as many as there may be: nothing overflows (which the sanitizer of undefined
 * behaviour sees), peers are who they should be, and few bytes are needed. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MANY = 100000, MOST = 1048576 };

#define HEAD "peal: 1\nkernels: k.c\n"

/* A stencil, messages along the line, reductions, conditions at both ends. */
static const char line[] =
    HEAD "topology: {dims: [auto], periodic: true}\n"
         "fields: {u: {size: 4 * ranks, halo: 1}, v: {like: u}}\n"
         "buffers: {a: {count: 4}, b: {count: 4, keep: true}, r: {}, place: {type: i64}}\n"
         "repeat: 1000000000\nstep:\n"
         "- {exchange: u}\n"
         "- {task: t, box: v, tile: 2, read: {u: {grow: 1}}, write: v, reduce: {r: sum}}\n"
         "- {send: a, to: (rank + 1) % ranks, when: rank >= 0}\n"
         "- {recv: b, from: (rank - 1) % ranks}\n"
         "- {allreduce: {r: sum}}\n"
         "- {set: place, value: u.x0 * 1000000 + rank}\n"
         "- {swap: [u, v]}\n";

/* The same by directions, which classes of ranks prove. */
static const char directions[] = HEAD "topology: {dims: DIMS, periodic: false}\n"
                                      "fields: {u: {size: SIZE, halo: 2}}\n"
                                      "buffers: {a: {count: 4}, b: {count: 4}}\n"
                                      "step:\n"
                                      "- {recv: b, from: FROM}\n"
                                      "- {task: s, box: {u: {grow: -1}}, tile: 2, update: u}\n"
                                      "- {send: a, to: TO}\n"
                                      "- {exchange: u}\n";

static const peal_mode modes[] = {PEAL_MODE_SERIAL, PEAL_MODE_SYNC, PEAL_MODE_STREAM,
                                  PEAL_MODE_GRAPH, PEAL_MODE_FUSED};

typedef struct job {
    peal_graph *graph;
    peal_compilation *c;
    peal_diagnostics *list;
} job;

static void begin(job *j, const char *text, int ranks, peal_mode mode)
{
    const peal_graph_data *data = NULL;
    peal_machine machine = {.ranks = ranks,
                            .processes = ranks,
                            .workers = 2,
                            .cache_bytes = 1 << 18,
                            .accelerator = mode == PEAL_MODE_GRAPH};
    j->list = peal_diagnostics_create();
    j->c = NULL;
    peal_status status =
        peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, j->list, &j->graph);
    if (!status)
        status = peal_graph_resolve(j->graph, j->list, &data);
    if (!status)
        status = peal_compilation_create(data, &machine, mode, j->list, &j->c);
    if (!status)
        status = peal_compilation_check(j->c);
    if (status)
        peal_diagnostics_print(j->list, stderr, 5);
    assert_int_equal(status, PEAL_STATUS_OK);
}

static void end(job *j)
{
    peal_compilation_destroy(j->c);
    peal_graph_destroy(j->graph);
    peal_diagnostics_destroy(j->list);
}

/* What a rank's schedule exchanges with whom; 0: with nobody. */
static int peers_of(job *j, int rank, int64_t *sum)
{
    const peal_schedule *s;
    assert_int_equal(peal_compilation_schedule(j->c, rank, &s), PEAL_STATUS_OK);
    *sum = 0;
    for (int i = 0; i < s->peer_count; i++)
        *sum += s->peer[i].rank;
    return s->peer_count;
}

static void test_a_line(void **state)
{
    (void)state;
    for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
        const int ranks[] = {0, 1, 32767, 32768, 65536, MANY - 1};
        int *like = calloc(MANY, sizeof(*like));
        job j;
        begin(&j, line, MANY, modes[m]);
        for (size_t i = 0; i < sizeof(ranks) / sizeof(ranks[0]); i++) {
            int64_t sum;
            assert_true(peers_of(&j, ranks[i], &sum) >= 2);
        }
        peal_compilation_alike(j.c, like);
        for (int rank = 0; rank < MANY; rank++)
            assert_in_range(like[rank], 0, rank);
        free(like);
        end(&j);
    }
}

/* The text with its words replaced, in a buffer. */
static const char *fill(char *out, const char *const (*words)[2], int count)
{
    char *at = out;
    for (const char *from = directions; *from;) {
        int found = -1;
        for (int i = 0; i < count; i++)
            if (!strncmp(from, words[i][0], strlen(words[i][0])))
                found = i;
        const char *text = found < 0 ? from : words[found][1];
        size_t bytes = found < 0 ? 1 : strlen(text);
        memcpy(at, text, bytes);
        at += bytes;
        from += found < 0 ? 1 : strlen(words[found][0]);
    }
    *at = '\0';
    return out;
}

static void test_each_axis(void **state)
{
    static const char *const words[][4][2] = {
        {{"DIMS", "[auto]"}, {"SIZE", "[4 * ranks]"}, {"FROM", "[-1]"}, {"TO", "[1]"}},
        {{"DIMS", "[2, auto]"}, {"SIZE", "[8, 2 * ranks]"}, {"FROM", "[0, -1]"}, {"TO", "[0, 1]"}},
        {{"DIMS", "[1, 1, auto]"},
         {"SIZE", "[4, 4, 4 * ranks]"},
         {"FROM", "[0, 0, -1]"},
         {"TO", "[0, 0, 1]"}},
        {{"DIMS", "[auto, 2, 1]"},
         {"SIZE", "[2 * ranks, 8, 4]"},
         {"FROM", "[-1, 1, 0]"},
         {"TO", "[1, -1, 0]"}},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        for (size_t m = 0; m < sizeof(modes) / sizeof(modes[0]); m++) {
            char text[2000];
            int64_t sum;
            job j;
            begin(&j, fill(text, words[i], 4), MANY, modes[m]);
            for (int rank = 0; rank < MANY; rank += 33333)
                assert_true(peers_of(&j, rank, &sum) >= 1);
            end(&j);
        }
}

/* A sample of what the check costs: bytes a message end, by the compilation's own count. */
static double bytes_an_end(const char *text, int ranks, double ends)
{
    job j;
    begin(&j, text, ranks, PEAL_MODE_SYNC);
    double bytes = (double)peal_compilation_bytes(j.c) / ends;
    end(&j);
    return bytes;
}

/* By pairs, whose receives stand above some sends; to and from one rank; all to all; along rows. */
static void test_bytes_of_messages(void **state)
{
    (void)state;
    static const char pairs[] = HEAD "buffers: {a: {count: 4}, b: {count: 4}}\nstep:\n"
                                     "- {recv: b, from: rank - 1, when: rank % 2 == 1}\n"
                                     "- {send: a, to: rank + 1, when: rank % 2 == 0}\n"
                                     "- {recv: b, from: rank + 1, when: rank % 2 == 0}\n"
                                     "- {send: a, to: rank - 1, when: rank % 2 == 1}\n";
    static const char rooted[] = HEAD "buffers: {a: {count: 4}, b: {count: 4 * ranks}}\nstep:\n"
                                      "- {send: b, to: all, offsets: 4, when: rank == 0, tag: 1}\n"
                                      "- {recv: a, from: 0, tag: 1}\n"
                                      "- {send: a, to: 0}\n"
                                      "- {recv: b, from: all, offsets: 4, when: rank == 0}\n";
    static const char all[] = HEAD "buffers: {a: {count: ranks}, b: {count: ranks}}\nstep:\n"
                                   "- {send: a, to: all, offsets: 1}\n"
                                   "- {recv: b, from: all, offsets: 1}\n";
    static const char rows[] = HEAD "topology: {dims: [auto, auto]}\n"
                                    "buffers: {a: {count: Rx}, b: {count: Rx}}\nstep:\n"
                                    "- {send: a, to: {along: x}, offsets: 1}\n"
                                    "- {recv: b, from: {along: x}, offsets: 1}\n";
    assert_true(bytes_an_end(pairs, MOST, 2.0 * MOST) < 100);
    assert_true(bytes_an_end(rooted, MOST, 4.0 * MOST) < 150);
    assert_true(bytes_an_end(all, 1000, 2.0 * 1000 * 1000) < 100);
    assert_true(bytes_an_end(rows, 10000, 2.0 * 10000 * 100) < 100);
}

/* What a schedule of exchanges and tasks on two fields costs, halos staged or stored in place,
 * tasks of one tile or of many. */
static double bytes_of_steps(int count, int side, peal_mode mode)
{
    char *text = malloc(512 + (size_t)count * 160);
    const peal_schedule *schedule;
    job j;
    assert_non_null(text);
    size_t used = (size_t)sprintf(text,
                                  HEAD "topology: {dims: [1, 4]}\n"
                                       "fields: {u: {size: [%d, %d], halo: 1}, v: {like: u}}\n"
                                       "step:\n",
                                  side, side);
    for (int i = 0; i < count; i++)
        used += (size_t)sprintf(text + used,
                                "- {exchange: %c}\n"
                                "- {task: t%d, kernel: t, box: %c, read: {%c: {grow: 1}}, "
                                "write: %c}\n",
                                "uv"[i % 2], i, "vu"[i % 2], "uv"[i % 2], "vu"[i % 2]);
    begin(&j, text, 4, mode);
    assert_int_equal(peal_compilation_schedule(j.c, 1, &schedule), 0);
    double bytes = (double)peal_compilation_bytes(j.c);
    end(&j);
    free(text);
    return bytes;
}

/* Four times as many statements need four times as many bytes. */
static void test_bytes_of_statements(void **state)
{
    static const peal_mode of[] = {PEAL_MODE_SYNC, PEAL_MODE_STREAM, PEAL_MODE_FUSED};
    (void)state;
    for (int side = 64; side <= 1024; side *= 16)
        for (size_t m = 0; m < sizeof(of) / sizeof(of[0]); m++)
            assert_true(bytes_of_steps(1000, side, of[m]) < 6 * bytes_of_steps(250, side, of[m]));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_line),
        cmocka_unit_test(test_each_axis),
        cmocka_unit_test(test_bytes_of_messages),
        cmocka_unit_test(test_bytes_of_statements),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
