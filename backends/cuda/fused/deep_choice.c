/* How deep rounds are (deep.c), and the tiles and windows that blocks have in them. */
#include "backends/cuda/fused/deep.h"
#include "backends/cuda/gpu/occupancy.h"

#include <string.h>

enum { MOST_ACROSS = 6 /* exponent of the most tiles along x */ };

/* ---- tiles and windows ---- */

/* Points of a window along an axis: as peal_deep_most_ in device/deep.h. */
static int64_t window_along(const peal_cuda_deep *deep, const peal_launch_box *box, int axis,
                            int steps)
{
    int64_t reach = deep->chain.high[axis] - deep->chain.low[axis];
    int64_t grown = deep->extent[axis] + steps * reach,
            whole = box->hi[axis] - box->lo[axis] + reach;

    return deep->wraps[axis] == 0 && whole < grown ? whole : grown;
}

static int64_t window_bytes(const peal_cuda_deep *deep, const peal_launch_box *box, int64_t size)
{
    int64_t each = 16 / size;
    int64_t pitch = (window_along(deep, box, 0, deep->steps) + 2 * each - 2) / each * each;
    int64_t lines = window_along(deep, box, 1, deep->steps);

    return pitch * lines * window_along(deep, box, 2, deep->steps) * size;
}

/* Points that a block computes in a round, with those that other blocks compute as well. */
static int64_t points_of(const peal_cuda_deep *deep, const peal_launch_box *box)
{
    int64_t points = 0;

    for (int j = 1; j <= deep->steps; j++) {
        int64_t here = 1;
        for (int k = 0; k < 3; k++)
            here *= window_along(deep, box, k, deep->steps - j);
        points += here;
    }
    return points;
}

static int ceiling(int a, int b)
{
    return (a + b - 1) / b;
}

/* Tiles of which each worker has one at most: along x 2^i of them, along y as many as remain for
 * what z has. Keeps those with which a round computes least. False: no windows have room. */
static bool choose_tiles(const peal_launch_box *box, int64_t size, int workers, int64_t room,
                         peal_cuda_deep *deep)
{
    int length[3], best[3] = {0, 0, 0};
    int64_t least = INT64_MAX;

    for (int k = 0; k < 3; k++) {
        length[k] = box->hi[k] - box->lo[k];
        /* A window goes around the domain once at most. */
        if (deep->wraps[k] && (deep->chain.high[k] > deep->wraps[k] / deep->steps ||
                               -deep->chain.low[k] > deep->wraps[k] / deep->steps))
            return false;
    }
    for (int i = 0; i <= MOST_ACROSS && 1 << i <= workers; i++)
        for (int z = 1; z <= length[2] && z << i <= workers; z++) {
            int y = workers / (z << i);
            deep->extent[0] = ceiling(length[0], 1 << i);
            deep->extent[1] = ceiling(length[1], y < length[1] ? y : length[1]);
            deep->extent[2] = ceiling(length[2], z);
            int64_t points = points_of(deep, box);
            if (points >= least || 2 * window_bytes(deep, box, size) > room)
                continue;
            least = points;
            memcpy(best, deep->extent, sizeof(best));
        }
    memcpy(deep->extent, best, sizeof(best));
    deep->window_bytes = window_bytes(deep, box, size);
    return least < INT64_MAX;
}

/* ---- how deep ---- */

/* Microseconds, by jacobi2d of 256^2 to 2048^2 floats on one H200
 * (bench/results/2026-11-29-gpu-deep.txt): a plain step, and what a point of it adds by SM; a
 * round, a step of it, and what a point that its block computes adds. Points of four bytes, of
 * which few are read around each: others were not measured, and rounds of them are for who asks. */
static const double of_plain = 2.9, of_plain_point = 1 / 3000.0, of_round = 2.6, of_step = 0.3,
                    of_point = 1 / 3500.0;
/* So much less has to be predicted. */
static const double worth_while = 0.8;
enum { LEAST_CHOSEN = 5, MOST_CHOSEN = 15, LEAST_CHOSEN_ROWS = 4, LEAST_CHOSEN_BYTES = 4 };

/* What the steps of a run of `length` take: rounds, as deep_section.c has them, and plain steps. */
static double cost_of(const peal_cuda_plan *plan, const peal_cuda_deep *deep,
                      const peal_launch_box *box, int64_t size, int length)
{
    double words = (double)size / LEAST_CHOSEN_BYTES, points = 1;

    for (int k = 0; k < 3; k++)
        points *= box->hi[k] - box->lo[k];
    double plain = of_plain + of_plain_point * words * points / plan->device->sm_count, cost = 0;
    peal_cuda_deep round = *deep;
    while ((round.steps = peal_cuda_deep_round(deep->steps, length)) > 0) {
        cost +=
            of_round + of_step * round.steps + of_point * words * (double)points_of(&round, box);
        length -= round.steps;
    }
    return cost + length * plain;
}

const peal_cuda_deep *peal_cuda_deep_choose(const peal_cuda_plan *plan,
                                            const peal_cuda_work_item *item,
                                            const peal_cuda_deep *found, int length, int workers)
{
    const peal_cuda_sm *sm = peal_cuda_sm_find(10 * plan->device->major + plan->device->minor);
    const peal_launch_box *box = &item->launch.box[0];
    peal_cuda_deep *deep = PEAL_ARENA_NEW(plan->arena, peal_cuda_deep), best = *found;
    int64_t size = (int64_t)peal_type_bytes(
        item->schedule->array[item->task->access[found->chain.read].array].type);
    int most = plan->options.deep ? plan->options.deep : MOST_CHOSEN;
    int fewest = plan->options.deep ? PEAL_CUDA_LEAST_DEEP : LEAST_CHOSEN;

    if (!sm || (!plan->options.deep && (found->axes != 2 || size < LEAST_CHOSEN_BYTES ||
                                        found->chain.rows < LEAST_CHOSEN_ROWS)))
        return NULL;
    most = most < length ? most : length;
    double least = worth_while * cost_of(plan, &best, box, size, length);
    *deep = *found;
    for (deep->steps = most - (most % 2 == 0); deep->steps >= fewest; deep->steps -= 2) {
        if (!choose_tiles(box, size, workers,
                          sm->shared_bytes - sm->shared_block - PEAL_CUDA_DISPATCHER_BYTES, deep))
            continue;
        double cost = cost_of(plan, deep, box, size, length);
        if (plan->options.deep)
            return deep;
        best = cost < least ? *deep : best;
        least = cost < least ? cost : least;
    }
    *deep = best;
    return deep->steps >= PEAL_CUDA_LEAST_DEEP ? deep : NULL;
}

double peal_cuda_deep_saves(const peal_cuda_plan *plan, const peal_cuda_work_item *item,
                            const peal_cuda_deep *deep, int length)
{
    int64_t size = (int64_t)peal_type_bytes(
        item->schedule->array[item->task->access[deep->chain.read].array].type);
    peal_cuda_deep plain = {.steps = 1};
    const peal_launch_box *box = &item->launch.box[0];
    double before = cost_of(plan, &plain, box, size, length);
    double now = cost_of(plan, deep, box, size, length);

    return now < before ? 1 - now / before : 0;
}
