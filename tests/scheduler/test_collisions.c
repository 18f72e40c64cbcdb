/* Whether tiles meet is decided by what the spec says: the answer is the same on any number of
 * ranks, whatever tiles peal would choose there. */
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define HEAD                                                                                       \
    "peal: 1\nkernels: k.c\ntopology: {dims: [auto, 1]}\n"                                         \
    "fields: {u: {size: [24, 20], halo: 1, align: 2}, v: {like: u}, h: {like: u, coarsen: 2}}\n"   \
    "buffers: {s: {}, b: {count: 40}, p: {count: 480}}\nstep:\n- "

typedef struct collision_case {
    const char *statement;
    peal_code code; /* 0: good */
} collision_case;

static const collision_case cases[] = {
    {"{task: t, box: u, update: {u: {star: 1, stale: ok}}}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: u, update: {v: {grow: [[0, 1], 0]}}}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: {u: {rim: [0, 1]}}, update: {u: {grow: [1, 0]}}}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: [[0, 3]], update: b}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: [[0, 2]], write: s}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: [[0, 1]], write: s}", 0},
    {"{task: t, box: [[0, 40]], write: {b: {per_tile: 2}}}", PEAL_E_HALO_TOO_NARROW},
    {"{task: t, box: [[0, 40]], write: {b: {per_tile: 1}}}", 0},
    {"{task: t, box: [[0, 40]], write: {b: {per_tile: 40}}, tile: whole}", 0},
    {"{task: t, box: u, update: {u: {star: 1, stale: ok}}, tile: whole}", 0},
    {"{task: t, box: u, update: {u: {star: 1, stale: ok}}, independent: true}", 0},
    {"{task: t, box: u, read: {u: {grow: 1}}, update: v}", 0},
    {"{task: t, box: u, write: h}", 0},
    {"{task: t, box: [[0, 3]], update: b, tile: whole}", 0},
    {"{task: t, box: [[0, 3]], update: b, tile: 3}", 0},
    /* an array that is read and written */
    {"{task: t, box: u, read: u, write: u}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: u, read: u, update: u, independent: true}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: u, read: u, write: u, tile: whole}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: {u: {ghost: [-1, 0]}}, read: {u: inside}, write: u}", 0},
    {"{task: t, box: {u: {ghost: [-1, 0]}}, read: {u: inside}, update: u}", 0},
    {"{task: t, box: {u: {ghost: [1, -1]}}, read: {u: inside}, write: u}", 0},
    {"{task: t, box: {u: {ghost: [-1, 0]}}, read: {u: inside}, write: v}", 0},
    {"{task: t, box: {u: {ghost: [-1, 0]}}, read: u, write: u}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: {u: {ghost: [-1, 0]}}, read: {u: whole}, write: u}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: {u: {ghost: [-1, 0]}}, write: {u: inside}}", 0},
    {"{task: t, box: [[0, 8]], read: {b: [[8, 40]]}, write: {b: tile}}", 0},
    {"{task: t, box: [[0, 8]], read: {b: [[7, 40]]}, write: {b: tile}}", PEAL_E_TILES_COLLIDE},
    {"{task: t, box: [[0, 4]], tile: 1, read: {p: [[4, 400]]}, write: {p: {per_tile: 1}}}", 0},
    {"{task: t, box: [[0, 4]], tile: 1, read: {p: [[3, 400]]}, write: {p: {per_tile: 1}}}",
     PEAL_E_TILES_COLLIDE},
    {"{task: t, box: {u: {part: boundary}}, read: {u: {star: 1}}, write: v}", 0},
};

static peal_status check(const char *text, const peal_machine *machine, peal_diagnostics *list)
{
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;
    peal_compilation *c = NULL;
    const peal_schedule *schedule;
    peal_status status =
        peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph);

    if (!status)
        status = peal_graph_resolve(graph, list, &data);
    if (!status)
        status = peal_compilation_create(data, machine, PEAL_MODE_SYNC, list, &c);
    if (!status)
        status = peal_compilation_check(c);
    for (int rank = 0; !status && rank < machine->ranks; rank++)
        status = peal_compilation_schedule(c, rank, &schedule);
    peal_compilation_destroy(c);
    peal_graph_destroy(graph);
    return status;
}

static bool has(const peal_diagnostics *list, peal_code code)
{
    for (int i = 0; i < peal_diagnostics_count(list); i++)
        if (peal_diagnostics_at(list, i)->code == code)
            return true;
    return false;
}

static void one(const collision_case *c, const peal_machine *machine)
{
    char text[1000];
    peal_diagnostics *list = peal_diagnostics_create();

    snprintf(text, sizeof(text), "%s%s\n", HEAD, c->statement);
    peal_status status = check(text, machine, list);
    bool right = c->code ? status == PEAL_STATUS_SPEC && has(list, c->code) : !status;
    if (!right) {
        peal_diagnostics_print(list, stderr, 5);
        fail_msg("%s on %d ranks, accelerator %d, tiles of %lld points: status %d", c->statement,
                 machine->ranks, machine->accelerator, (long long)machine->tile_points, status);
    }
    peal_diagnostics_destroy(list);
}

static void test_every_cut_has_one_answer(void **state)
{
    static const int64_t points[] = {0, 1, 7, 100, 1 << 20};
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (int ranks = 1; ranks <= 8; ranks++)
            for (int variant = 0; variant < 10; variant++) {
                const peal_machine machine = {.ranks = ranks,
                                              .processes = 1,
                                              .workers = 1 + variant % 3,
                                              .cache_bytes = variant % 2 ? 1 << 10 : 1 << 20,
                                              .accelerator = variant >= 5,
                                              .tile_points = points[variant % 5]};
                one(&cases[i], &machine);
            }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_every_cut_has_one_answer)};
    return cmocka_run_group_tests_name("scheduler collisions", tests, NULL, NULL);
}
