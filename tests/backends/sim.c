/* The `sim` backend against times worked out by hand, and ranks that share a schedule against ranks
 * that have each their own. */
#include "backends/sim/sim.h"
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct simulated {
    const char *spec;
    peal_mode mode;
    int ranks, processes; /* 0: as many */
    peal_machine_times times;
    bool each; /* every rank has a schedule of its own */
    bool free_messages, path;
    int64_t steps, most_bytes;
    /* out */
    peal_diagnostics *diagnostics;
    sim_result result;
    int schedule_count;
} simulated;

static peal_status run_schedules(simulated *s, peal_compilation *compilation)
{
    int *number = calloc((size_t)s->ranks, sizeof(*number));
    const peal_schedule **schedule = calloc((size_t)s->ranks, sizeof(*schedule));
    peal_status status = PEAL_STATUS_OK;

    if (!s->each)
        peal_compilation_alike(compilation, number);
    s->schedule_count = 0;
    for (int rank = 0; rank < s->ranks && !status; rank++) {
        bool first = s->each || number[rank] == rank;
        if (first)
            status = peal_compilation_schedule(compilation, rank, &schedule[s->schedule_count]);
        number[rank] = first ? s->schedule_count++ : number[number[rank]];
    }
    sim_desc desc = {.size = sizeof(desc),
                     .ranks = s->ranks,
                     .number = number,
                     .schedule = schedule,
                     .schedule_count = s->schedule_count,
                     .times = &s->times,
                     .steps = s->steps ? s->steps : -1,
                     .free_messages = s->free_messages,
                     .most_bytes = s->most_bytes,
                     .path = s->path,
                     .path_bytes = 1 << 24,
                     .diagnostics = s->diagnostics};
    if (!status)
        status = sim_run(&desc, &s->result);
    free(number);
    free(schedule);
    return status;
}

static peal_status simulate(simulated *s)
{
    const peal_graph_data *data;
    peal_graph *graph = NULL;
    peal_compilation *compilation = NULL;
    peal_machine machine = {.ranks = s->ranks,
                            .processes = s->processes ? s->processes : s->ranks,
                            .workers = s->times.accelerator ? 2 : 1,
                            .cache_bytes = 1 << 20,
                            .accelerator = s->times.accelerator,
                            .path = s->times.accelerator ? PEAL_PATH_VMM : PEAL_PATH_NONE};

    s->diagnostics = peal_diagnostics_create();
    peal_status status =
        peal_graph_read_memory("t.yaml", s->spec, strlen(s->spec), NULL, 0, s->diagnostics, &graph);
    if (!status)
        status = peal_graph_resolve(graph, s->diagnostics, &data);
    if (!status)
        status = peal_compilation_create(data, &machine, s->mode, s->diagnostics, &compilation);
    if (!status)
        status = peal_compilation_check(compilation);
    if (!status)
        status = run_schedules(s, compilation);
    peal_compilation_destroy(compilation);
    peal_graph_destroy(graph);
    return status;
}

static void forget(simulated *s)
{
    sim_result_release(&s->result);
    peal_diagnostics_destroy(s->diagnostics);
}

static void expect(simulated s, double step_s)
{
    if (simulate(&s)) {
        peal_diagnostics_print(s.diagnostics, stderr, 5);
        fail_msg("not simulated");
    }
    if (s.result.step_s < step_s - 1e-9 || s.result.step_s > step_s + 1e-9)
        fail_msg("mode %s, %d ranks: a step takes %.9g s, not %.9g", peal_mode_name(s.mode),
                 s.ranks, s.result.step_s, step_s);
    forget(&s);
}

/* ---- by hand ---- */

#define LINE(dims, periodic)                                                                       \
    "peal: 1\nname: line\ntopology: {dims: [" dims "], periodic: " periodic "}\n"                  \
    "fields: {u: {size: [8 * ranks], halo: 1}, v: {like: u}}\nkernels: k.c\nrepeat: 10\nstep:\n"   \
    "  - {task: relax, box: u, read: {u: {star: 1}}, write: v}\n  - {exchange: v}\n"               \
    "  - {swap: [u, v]}\n"

/* Eight points take a second, a message (8 bytes) two; all sums are exact in binary. */
static peal_machine_times gpus(int devices)
{
    peal_mode_times mode = {.given = true,
                            .kernel_s = 1,
                            .launch_s = 0.25,
                            .synchronize_s = 0.5,
                            .copy_s = 0.5,
                            .write_s = 0.25,
                            .wait_s = 0.125};
    peal_machine_times times = {.given = true, .devices = devices, .accelerator = true};

    for (int i = 0; i < PEAL_MODE_COUNT; i++)
        times.mode[i] = mode;
    times.kernel[times.kernel_count++] =
        (peal_kernel_times){.task = "default", .per_point_s = 0.125};
    times.link[PEAL_LINK_DEVICE] = (peal_link_times){.given = true, .bytes_per_s = 8};
    times.link[PEAL_LINK_P2P] = (peal_link_times){.given = true, .latency_s = 2, .bytes_per_s = 4};
    return times;
}

/* What follows a kernel until the next can begin: copy, write, link, wait. GPUs store into the halo
 * itself. */
static const double message_s = 0.5 + 2 + 0.25 + 2 + 0.125;

static void test_a_step_of_two_ranks(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"), .ranks = 2, .times = gpus(2)};
    s.mode = PEAL_MODE_SYNC; /* the CPU launches and waits for the kernel */
    expect(s, 0.25 + 1 + 1 + 0.5 + message_s);
    s.mode = PEAL_MODE_STREAM; /* it is ahead */
    expect(s, 1 + 1 + message_s);
    s.mode = PEAL_MODE_FUSED;
    expect(s, 1 + 1 + message_s);
    s.free_messages = true;
    expect(s, 1 + 1);
    s.mode = PEAL_MODE_SYNC;
    expect(s, 0.25 + 1 + 1 + 0.5);
    s.mode = PEAL_MODE_STREAM; /* the CPU is not: four operations, 2.5 s each */
    s.free_messages = false;
    s.times.mode[PEAL_MODE_STREAM].launch_s = s.times.mode[PEAL_MODE_STREAM].post_s = 2.5;
    expect(s, 4 * 2.5);
}

static void add_times(simulated *s, peal_mode mode, const char *name, double fixed_s)
{
    peal_kernel_times times = {.of_mode = true, .mode = mode, .fixed_s = fixed_s, .launch_s = 3};
    strcpy(times.task, name);
    s->times.kernel[s->times.kernel_count++] = times;
}

/* Nothing is added to times of a mode. */
static void test_times_of_a_mode(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"), .ranks = 2, .times = gpus(2)};
    const double copy_and_write_s = 0.5 + 2 + 0.25;
    add_times(&s, PEAL_MODE_FUSED, "relax", 4);
    s.mode = PEAL_MODE_FUSED;
    expect(s, 4 + message_s);
    s.mode = PEAL_MODE_GRAPH;
    expect(s, 1 + 1 + message_s);
    add_times(&s, PEAL_MODE_FUSED, "send exchange v", 5);
    s.mode = PEAL_MODE_FUSED;
    expect(s, 4 + 5 + message_s - copy_and_write_s);
    s.free_messages = true;
    expect(s, 4);
    s.free_messages = false;
    s.mode = PEAL_MODE_STREAM; /* the CPU puts two there, and a wait takes it 3 s */
    s.times.mode[PEAL_MODE_STREAM].post_s = 3;
    add_times(&s, PEAL_MODE_STREAM, "relax", 0);
    add_times(&s, PEAL_MODE_STREAM, "send exchange v", 0);
    expect(s, 3 * 3);
    s.mode = PEAL_MODE_SYNC; /* all in all */
    add_times(&s, PEAL_MODE_SYNC, "relax", 0.5);
    expect(s, 0.5 + message_s);
}

/* The verdict is there long before the step is: the CPU goes on from where it is, not from there.
 */
static void test_a_verdict_early_in_the_step(void **state)
{
    (void)state;
    simulated s = {.spec = "peal: 1\nname: early\ntopology: {dims: [2]}\nkernels: k.c\n"
                           "fields: {u: {size: 16, halo: 1}, v: {like: u}}\nbuffers: {d: "
                           "{}}\nrepeat: 10\nuntil: d < 0\n"
                           "step:\n  - {task: first, box: u, update: u, reduce: {d: max}}\n"
                           "  - {allreduce: {d: max}}\n"
                           "  - {repeat: 20, step: [{exchange: u}, {task: more, box: u, read: {u: "
                           "{star: 1}}, write: v}, {swap: [u, v]}]}\n",
                   .mode = PEAL_MODE_STREAM,
                   .ranks = 2,
                   .times = gpus(2)};
    s.times.mode[PEAL_MODE_STREAM].launch_s = 50;
    assert_int_equal(simulate(&s), PEAL_STATUS_OK);
    assert_true(s.result.step_s >= 20 * 50);
    forget(&s);
}

static double seconds_of_one_step(simulated s)
{
    s.steps = 1;
    assert_int_equal(simulate(&s), PEAL_STATUS_OK);
    double seconds = s.result.seconds;
    forget(&s);
    return seconds;
}

/* Of three ranks in a ring each has two messages for the others, the lower one first. */
static void test_messages_side_by_side(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("3", "true"),
                   .mode = PEAL_MODE_FUSED,
                   .ranks = 3,
                   .times = gpus(3)};
    s.times.mode[s.mode].apart = true;
    expect(s, 1 + 1 + message_s);
    double alone = seconds_of_one_step(s);
    /* Each second message leaves behind the first, after 4 s. Rank 0 gets both first ones, at 2 and
     * 4 s, rank 2 two second ones, at 4 and 6 s. */
    s.times.link[PEAL_LINK_P2P].shared = PEAL_SHARE_DEVICE;
    assert_true(seconds_of_one_step(s) == alone + 4);
    s.times.link[PEAL_LINK_P2P].shared = PEAL_SHARE_NODE; /* six in a row */
    assert_true(seconds_of_one_step(s) == alone + 5 * 2);
    s.times.mode[s.mode].apart = false; /* copy, write, copy, write before both waits */
    s.times.link[PEAL_LINK_P2P].shared = PEAL_SHARE_NONE;
    assert_true(seconds_of_one_step(s) > alone);
}

/* On a network the adapter sends: the word goes two seconds after the copy has begun, at 4 bytes a
 * second, whatever the lane does. */
static void test_a_network(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"),
                   .mode = PEAL_MODE_FUSED,
                   .ranks = 2,
                   .times = gpus(1)};
    s.times.link[PEAL_LINK_NETWORK] =
        (peal_link_times){.given = true, .latency_s = 3, .bytes_per_s = 4};
    expect(s, 1 + 1 + 0.5 + 2 + 3 + 0.125);
    s.times.link[PEAL_LINK_NETWORK].bytes_per_s = 80; /* the lane's write is later than the bytes */
    expect(s, 1 + 1 + 0.5 + 0.25 + 3 + 0.125);
}

/* Two ranks on one device: kernels one after the other, messages by its memory. */
static void test_a_shared_device(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"),
                   .mode = PEAL_MODE_FUSED,
                   .ranks = 2,
                   .times = gpus(1)};
    s.times.nodes = 1;
    s.free_messages = true;
    s.times.mode[s.mode].kernel_s = 0;
    expect(s, 1 + 1);
    s.times.nodes = 0;
    s.times.devices = 2;
    expect(s, 1);
    s.processes = 1; /* which has one device */
    expect(s, 1 + 1);
}

/* A core does one thing at a time; two ranks of a node with two. */
static void test_cores(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"),
                   .mode = PEAL_MODE_STREAM,
                   .ranks = 2,
                   .times = gpus(2)};
    s.times.accelerator = false;
    s.times.link[PEAL_LINK_HOST] =
        (peal_link_times){.given = true, .latency_s = 0.5, .bytes_per_s = 8};
    s.times.mode[s.mode].launch_s = 0;
    expect(s, 1 + 1 + 0.5 + 1 + 0.25 + 0.5 + 0.125 + 0.5 + 1);
    s.times.nodes = 1; /* both on one core: what each does, but for the link's time */
    s.times.devices = 1;
    s.free_messages = true;
    expect(s, 2 * (1 + 1));
}

static void test_the_path_is_the_step(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"),
                   .mode = PEAL_MODE_FUSED,
                   .ranks = 2,
                   .times = gpus(2),
                   .path = true};
    assert_int_equal(simulate(&s), PEAL_STATUS_OK);
    assert_int_equal(s.result.path_steps, 10);
    const sim_piece *piece = s.result.piece;
    double sum = 0, last = s.result.seconds;
    int links = 0;
    for (int64_t i = 0; i < s.result.piece_count && piece[i].step >= 1; i++) {
        assert_true(piece[i].end_s == last); /* no gap, but where the CPU is late */
        last = piece[i].begin_s;
        sum += piece[i].end_s - piece[i].begin_s;
        links += piece[i].link;
    }
    assert_int_equal(links, 9);
    assert_true(sum == 9 * (2 + message_s));
    assert_int_equal(piece[s.result.piece_count - 1].step, 0); /* setup is not recorded */
    assert_int_equal(s.result.traffic[PEAL_LINK_P2P].messages, 20);
    assert_int_equal(s.result.traffic[PEAL_LINK_P2P].bytes, 160);
    forget(&s);
    s.mode = PEAL_MODE_STREAM; /* also where the CPU is late */
    s.times.mode[s.mode].launch_s = 20;
    assert_int_equal(simulate(&s), PEAL_STATUS_OK);
    assert_true(s.result.piece_count > 10 && s.result.step_s == 20);
    assert_int_equal(s.result.piece[s.result.piece_count - 1].step, 0);
    forget(&s);
}

/* ---- ranks that are alike ---- */

static const char *const specs[] = {
    LINE("auto", "true"), LINE("auto", "false"),
    /* nothing divides evenly; corners; a reduction up a tree */
    "peal: 1\ntopology: {dims: [auto, auto], periodic: [true, false]}\nkernels: k.c\n"
    "fields: {u: {size: [103, 89], halo: 1}, v: {like: u}}\nbuffers: {d: {}}\nrepeat: 6\nstep:\n"
    "  - {exchange: u}\n"
    "  - {task: relax, box: {u: {grow: [0, -1]}}, read: {u: {grow: 1}}, write: v, reduce: {d: "
    "sum}}\n"
    "  - {allreduce: {d: sum}, when: step % 2 == 0}\n  - {set: d, value: d + 1}\n"
    "  - {swap: [u, v]}\n",
    /* rows, a loop, sends by hand, something on one rank only */
    "peal: 1\ntopology: {dims: [3, auto]}\nkernels: k.c\n"
    "fields: {u: {size: [30, 200], halo: [0, 2]}}\nbuffers: {d: {}, b: {count: 3}, c: {count: 3}}\n"
    "repeat: 5\nstep:\n  - {task: fill, box: u, update: u, reduce: {d: max}}\n"
    "  - {task: pack, read: {u: {stale: ok}}, write: b}\n"
    "  - {send: b, to: [0, 1]}\n  - {recv: c, from: [0, -1]}\n"
    "  - {repeat: 3, step: [{exchange: u}, {task: smooth, box: u, update: u}]}\n"
    "  - {allreduce: {d: max}, along: y}\n  - {task: use, read: [c, d, {u: {stale: ok}}], when: "
    "rank == 0, "
    "write: b}\n",
    /* two grids, of which one has every second point, and walls */
    "peal: 1\ntopology: {dims: [auto, auto]}\nkernels: k.c\n"
    "fields: {u: {size: [62, 70], halo: 1, align: 2}, s: {like: u, stagger: [1, 0]},\n"
    "  c: {like: u, coarsen: 2}}\nrepeat: 4\nstep:\n  - {exchange: [u, s]}\n"
    "  - {task: r, box: c, read: [{u: {star: 1}}, s], write: c}\n"
    "  - {repeat: 3, step: [{exchange: c}, {task: t, box: u, read: {c: {grow: 1}}, update: u}]}\n"
    "  - {task: w, box: {u: {rim: 1}}, write: u}\n"
    "  - {task: v, box: {u: [[5, 40], [3, 50]]}, read: u, update: {s: tile}}\n",
    /* more members than a level of the tree has, and three axes */
    "peal: 1\ntopology: {dims: [auto, auto, auto], periodic: true}\nkernels: k.c\n"
    "fields: {u: {size: [20, 20, 20], halo: 1}}\nbuffers: {d: {}}\nrepeat: 4\nstep:\n"
    "  - {exchange: u}\n  - {task: t, box: u, update: {u: tile}, reduce: {d: sum}}\n"
    "  - {allreduce: {d: sum}}\n  - {task: w, box: u, read: d, update: u}\n"};

static void compare(simulated s)
{
    simulated each = s;
    each.each = true;
    if (simulate(&s) || simulate(&each)) {
        peal_diagnostics_print(s.diagnostics, stderr, 5);
        peal_diagnostics_print(each.diagnostics, stderr, 5);
        fail_msg("%d ranks: not simulated:\n%s", s.ranks, s.spec);
    }
    assert_int_equal(each.schedule_count, s.ranks);
    assert_true(s.schedule_count <= s.ranks);
    if (s.result.seconds != each.result.seconds || s.result.step_s != each.result.step_s ||
        s.result.ops != each.result.ops || s.result.credits != each.result.credits ||
        memcmp(s.result.traffic, each.result.traffic, sizeof(s.result.traffic)))
        fail_msg(
            "mode %s, %d ranks, %d schedules: %.9g s, %lld ops; each its own: %.9g s, %lld\n%s",
            peal_mode_name(s.mode), s.ranks, s.schedule_count, s.result.seconds,
            (long long)s.result.ops, each.result.seconds, (long long)each.result.ops, s.spec);
    forget(&s);
    forget(&each);
}

static void test_ranks_that_are_alike(void **state)
{
    static const int ranks[] = {1, 2, 3, 6, 24, 60};
    static const peal_mode modes[] = {PEAL_MODE_SYNC, PEAL_MODE_GRAPH, PEAL_MODE_FUSED};
    (void)state;
    for (size_t i = 0; i < sizeof(specs) / sizeof(specs[0]); i++)
        for (size_t k = i == 3 ? 2 : 0; k < sizeof(ranks) / sizeof(ranks[0]); k++)
            for (size_t m = 0; m < 3; m++) {
                simulated s = {.spec = specs[i], .ranks = ranks[k], .mode = modes[m]};
                s.times = gpus(4);
                s.times.mode[s.mode].apart = i % 2;
                s.times.link[PEAL_LINK_P2P].shared = PEAL_SHARE_DEVICE;
                s.times.link[PEAL_LINK_NETWORK] = (peal_link_times){.given = true,
                                                                    .latency_s = 3,
                                                                    .bytes_per_s = 5,
                                                                    .shared = PEAL_SHARE_NODE};
                compare(s);
            }
}

static void test_few_schedules_for_many_ranks(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("auto", "false"),
                   .mode = PEAL_MODE_FUSED,
                   .ranks = 20000,
                   .times = gpus(20000),
                   .steps = 3};
    assert_int_equal(simulate(&s), PEAL_STATUS_OK);
    assert_int_equal(s.result.ops, s.ranks * 4 - 4 + 3 * (s.ranks * 7 - 6));
    assert_true(s.schedule_count <= 7);
    assert_true(s.result.rank_bytes < 300);
    forget(&s);
}

/* ---- what is refused ---- */

static void expect_code(simulated s, peal_code code)
{
    assert_int_not_equal(simulate(&s), PEAL_STATUS_OK);
    assert_int_equal(peal_diagnostics_count(s.diagnostics), 1);
    assert_int_equal(peal_diagnostics_at(s.diagnostics, 0)->code, code);
    forget(&s);
}

static void test_times_that_are_missing(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"), .mode = PEAL_MODE_GRAPH, .ranks = 2};
    s.times = gpus(1); /* a rank a node, and no network */
    expect_code(s, PEAL_E_MACHINE_TIME_MISSING);
    s.times = gpus(2);
    s.times.mode[s.mode].given = false;
    expect_code(s, PEAL_E_MACHINE_TIME_MISSING);
    s.times = gpus(2);
    s.times.kernel_count = 0;
    expect_code(s, PEAL_E_MACHINE_TIME_MISSING);
    strcpy(s.times.kernel[s.times.kernel_count++].task, "relax");
    assert_int_equal(simulate(&s), PEAL_STATUS_OK);
    forget(&s);
}

static void test_too_much(void **state)
{
    (void)state;
    simulated s = {.spec = LINE("2", "false"), .mode = PEAL_MODE_GRAPH, .ranks = 2};
    s.times = gpus(2);
    s.most_bytes = 3000; /* a walk */
    expect_code(s, PEAL_E_SIMULATION_TOO_LARGE);
    s.ranks = 1000;
    s.times = gpus(1000);
    s.spec = LINE("auto", "false");
    s.most_bytes = 100000; /* all ranks */
    expect_code(s, PEAL_E_SIMULATION_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_step_of_two_ranks),
        cmocka_unit_test(test_times_of_a_mode),
        cmocka_unit_test(test_a_verdict_early_in_the_step),
        cmocka_unit_test(test_messages_side_by_side),
        cmocka_unit_test(test_a_network),
        cmocka_unit_test(test_a_shared_device),
        cmocka_unit_test(test_cores),
        cmocka_unit_test(test_the_path_is_the_step),
        cmocka_unit_test(test_ranks_that_are_alike),
        cmocka_unit_test(test_few_schedules_for_many_ranks),
        cmocka_unit_test(test_times_that_are_missing),
        cmocka_unit_test(test_too_much),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
