/* A periodic five-point relaxation with host functions, by peal and by two loops. */
#define _GNU_SOURCE
#include "tests/runtime/stencil.h"
#include "tests/runtime/job.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

double *stencil_at(const peal_view *view, int x, int y)
{
    return (double *)view->base + x + y * view->stride[1];
}

static double first_value(int x, int y)
{
    return (x * 7 + y * 13) % 17 * 0.25;
}

static void fill(const peal_call *call)
{
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *stencil_at(&call->view[0], x, y) = first_value(x, y);
}

void stencil_relax(const peal_call *call)
{
    const peal_view *a = &call->view[0], *an = &call->view[1];
    for (int y = call->tile.lo[1]; y < call->tile.hi[1]; y++)
        for (int x = call->tile.lo[0]; x < call->tile.hi[0]; x++)
            *stencil_at(an, x, y) = 0.25 * (*stencil_at(a, x - 1, y) + *stencil_at(a, x + 1, y) +
                                            *stencil_at(a, x, y - 1) + *stencil_at(a, x, y + 1));
}

peal_graph *stencil_graph(const char *ny, peal_function function, double *lent)
{
    peal_graph *g;
    assert_int_equal(peal_graph_create("relaxation", &g), PEAL_STATUS_OK);
    peal_graph_add_param(g, .name = "nx", .value = "37");
    peal_graph_add_param(g, .name = "ny", .value = ny);
    peal_graph_set_topology(g, .dims = "[1, auto]", .periodic = "true");
    peal_graph_add_field(g, .name = "a", .size = "[nx, ny]", .halo = "1", .data = lent);
    peal_graph_add_field(g, .name = "an", .size = "[nx, ny]", .halo = "1");
    peal_graph_set_loop(g, .repeat = "10");
    peal_graph_begin(g, PEAL_SETUP);
    peal_graph_add_task(g, .name = "fill", .function = fill, .box = {.name = "a"},
                        .write = {{.name = "a"}});
    peal_graph_end(g);
    peal_graph_begin(g, PEAL_STEP);
    peal_graph_add_exchange(g, .exchange = {{.name = "a"}});
    peal_graph_add_task(g, .name = "relax", .function = function, .box = {.name = "a"},
                        .read = {{.name = "a", .star = "1"}}, .write = {{.name = "an"}});
    peal_graph_add_swap(g, .swap = {"a", "an"});
    peal_graph_end(g);
    return g;
}

/* The same by two loops. */
static void reference(int steps, double out[NY][NX])
{
    static double other[NY][NX];
    for (int y = 0; y < NY; y++)
        for (int x = 0; x < NX; x++)
            out[y][x] = first_value(x, y);
    for (int s = 0; s < steps; s++) {
        memcpy(other, out, sizeof(other));
        for (int y = 0; y < NY; y++)
            for (int x = 0; x < NX; x++)
                out[y][x] = 0.25 * (other[y][(x + NX - 1) % NX] + other[y][(x + 1) % NX] +
                                    other[(y + NY - 1) % NY][x] + other[(y + 1) % NY][x]);
    }
}

/* Whether the ranks here hold what the loops give after `steps`. */
bool stencil_is_right(const peal_plan *plan, int steps)
{
    static double want[NY][NX];
    int first, end;
    reference(steps, want);
    peal_plan_ranks(plan, &first, &end);
    for (int rank = first; rank < end; rank++) {
        peal_plan_array a;
        if (peal_plan_view(plan, rank, "a", &a) != PEAL_STATUS_OK)
            return false;
        for (int y = (int)a.part.lo[1]; y < (int)a.part.hi[1]; y++)
            for (int x = (int)a.part.lo[0]; x < (int)a.part.hi[0]; x++)
                if (*stencil_at(&a.view, x, y) != want[y][x])
                    return false;
    }
    return true;
}

uint64_t stencil_run_in_parts(peal_session *session, const peal_plan_options *options)
{
    peal_plan *plan;
    peal_plan_statistics statistics;
    uint64_t digest, digest_of_a, digest_of_an;
    peal_graph *g = stencil_graph("23", stencil_relax, NULL);
    JOB_OK(session, peal_graph_compile(g, session, options, &plan));
    JOB_OK(session, peal_plan_start(plan, 3, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    TEAM_CHECK(stencil_is_right(plan, 3));
    TEAM_CHECK(peal_plan_steps_left(plan) == 7);
    JOB_OK(session, peal_plan_start(plan, PEAL_STEPS_ALL, NULL));
    JOB_OK(session, peal_plan_wait(plan));
    TEAM_CHECK(stencil_is_right(plan, 10));
    TEAM_CHECK(peal_plan_steps_left(plan) == 0);
    JOB_OK(session, peal_plan_finish(plan));
    peal_plan_statistics_get(plan, &statistics);
    int first, end;
    peal_plan_ranks(plan, &first, &end);
    if (end > first) {
        TEAM_CHECK(statistics.steps_done == 10);
        TEAM_CHECK(peal_plan_progress(plan) == 10);
        TEAM_CHECK(statistics.memory_bytes > 0);
    }
    TEAM_CHECK(!statistics.stopped);
    if (options->verify)
        JOB_OK(session, peal_plan_verify(plan));
    JOB_OK(session, peal_plan_digest(plan, NULL, &digest));
    JOB_OK(session, peal_plan_digest(plan, "a", &digest_of_a));
    JOB_OK(session, peal_plan_digest(plan, "an", &digest_of_an));
    TEAM_CHECK(digest == (digest_of_a ^ digest_of_an) && digest_of_a != digest_of_an);
    peal_plan_destroy(plan);
    peal_graph_destroy(g);
    return digest;
}
