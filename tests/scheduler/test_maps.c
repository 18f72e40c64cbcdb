/* Dependence maps in closed form against brute force: every tile of A that truly meets a tile of B
 * must be among those that the map names; without coarsening and fixed reaches no other may be.
 *
 * test_maps [SEED]: one seed only. */
#include "scheduler/order/nodes.h"
#include "tests/property/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 30000 };

static uint64_t first_seed = 1, last_seed = SEEDS;

/* One side: a launch's tiles, or a message's box. */
typedef struct side {
    touch touch;
    peal_reach reach;
    peal_tiling tiling;
    peal_tile_range range;
    bool plain; /* one point of the array for each point of the box */
} side;

static int pick(uint64_t *state, int low, int high)
{
    return low + random_below(state, high - low + 1);
}

static peal_reach_axis random_reach(uint64_t *state, bool plain)
{
    peal_reach_axis axis = {false, 1, 1, -pick(state, 0, 2), pick(state, 0, 2)};
    if (plain)
        return axis;
    switch (random_below(state, 4)) {
    case 0:
        axis.num = pick(state, 2, 3);
        break;
    case 1:
        axis.den = pick(state, 2, 3);
        break;
    case 2:
        axis = (peal_reach_axis){true, 1, 1, pick(state, -4, 8), 0};
        axis.high = axis.low + pick(state, 0, 8);
        break;
    default:
        break;
    }
    return axis;
}

static void random_side(uint64_t *state, int axis_count, bool fixed, side *s)
{
    *s = (side){.plain = fixed || random_below(state, 2)};
    s->touch.tiling = fixed ? -1 : 0;
    s->touch.reach = &s->reach;
    for (int k = 0; k < PEAL_AXES; k++) {
        peal_tiling *t = &s->tiling;
        t->box.hi[k] = t->extent[k] = t->count[k] = s->range.hi[k] = s->touch.box.hi[k] = 1;
        s->reach.axis[k] = (peal_reach_axis){false, 1, 1, 0, 0};
        if (k >= axis_count)
            continue;
        t->box.lo[k] = pick(state, -3, 12);
        t->box.hi[k] = t->box.lo[k] + pick(state, 1, 14);
        s->touch.box = t->box;
        t->extent[k] = pick(state, 1, 6);
        t->count[k] = peal_ceil_divide(t->box.hi[k] - t->box.lo[k], t->extent[k]);
        s->range.lo[k] = random_below(state, (int)t->count[k]);
        s->range.hi[k] = pick(state, (int)s->range.lo[k] + 1, (int)t->count[k]);
        s->reach.axis[k] = random_reach(state, s->plain);
    }
}

/* What tile i touches along an axis; by hand, so that a slip in the formulas shows. */
static void touched(const side *s, int k, int64_t i, int64_t *lo, int64_t *hi)
{
    if (s->touch.tiling < 0) {
        *lo = s->touch.box.lo[k];
        *hi = s->touch.box.hi[k];
        return;
    }
    const peal_reach_axis *r = &s->reach.axis[k];
    int64_t first = s->tiling.box.lo[k] + i * s->tiling.extent[k];
    int64_t end = first + s->tiling.extent[k];
    end = end < s->tiling.box.hi[k] ? end : s->tiling.box.hi[k];
    if (r->fixed) {
        *lo = r->low;
        *hi = r->high;
        return;
    }
    *lo = first * r->num;
    *hi = end * r->num;
    while (*lo % r->den) /* down to a multiple */
        --*lo;
    while (*hi % r->den) /* up to a multiple */
        ++*hi;
    *lo = *lo / r->den + r->low;
    *hi = *hi / r->den + r->high;
}

static bool tiles_meet(const side *a, const int64_t i[PEAL_AXES], const side *b,
                       const int64_t j[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t alo, ahi, blo, bhi;
        touched(a, k, i[k], &alo, &ahi);
        touched(b, k, j[k], &blo, &bhi);
        if (alo >= ahi || blo >= bhi || alo >= bhi || blo >= ahi)
            return false;
    }
    return true;
}

static bool is_named(const peal_map_axis map[PEAL_AXES], const int64_t i[PEAL_AXES],
                     const int64_t j[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        const peal_map_axis *m = &map[k];
        int64_t at = m->b_axis < 0 ? 0 : j[m->b_axis];
        if (i[k] < m->first || i[k] > m->last ||
            i[k] < peal_floor_divide(at * m->step + m->low, m->divisor) ||
            i[k] > peal_floor_divide(at * m->step + m->high, m->divisor))
            return false;
    }
    return true;
}

static bool next_tile(const side *s, int64_t i[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        if (s->touch.tiling >= 0 && ++i[k] < s->range.hi[k])
            return true;
        i[k] = s->touch.tiling >= 0 ? s->range.lo[k] : 0;
    }
    return false;
}

typedef struct tally {
    int64_t pairs, meet, named, exact_maps;
} tally;

static void fail_pair(uint64_t seed, const char *what, const int64_t i[PEAL_AXES],
                      const int64_t j[PEAL_AXES])
{
    fail_msg("seed %llu: tile (%d, %d, %d) of A, tile (%d, %d, %d) of B: %s",
             (unsigned long long)seed, (int)i[0], (int)i[1], (int)i[2], (int)j[0], (int)j[1],
             (int)j[2], what);
}

/* The last tile of a box may be smaller than the others, which maps do not know: at the cut end
 * they may name one tile that does not meet. */
static bool is_cut(const side *s)
{
    for (int k = 0; k < PEAL_AXES && s->touch.tiling >= 0; k++)
        if ((s->tiling.box.hi[k] - s->tiling.box.lo[k]) % s->tiling.extent[k])
            return true;
    return false;
}

static void check_seed(uint64_t seed, tally *sum)
{
    uint64_t state = seed * 0x9e3779b97f4a7c15u;
    int axis_count = 1 + random_below(&state, 3);
    side a, b;
    peal_map_axis map[PEAL_AXES];
    random_side(&state, axis_count, random_below(&state, 5) == 0, &a);
    random_side(&state, axis_count, random_below(&state, 5) == 0, &b);
    bool launch_a = a.touch.tiling >= 0, launch_b = b.touch.tiling >= 0;
    bool any = map_tiles(&a.touch, launch_a ? &a.tiling : NULL, launch_a ? &a.range : NULL,
                         &b.touch, launch_b ? &b.tiling : NULL, launch_b ? &b.range : NULL, map);
    bool exact = a.plain && b.plain && !is_cut(&a) && !is_cut(&b);
    sum->exact_maps += exact;
    int64_t i[PEAL_AXES], j[PEAL_AXES] = {0};
    if (launch_b)
        memcpy(j, b.range.lo, sizeof(j));
    do {
        memset(i, 0, sizeof(i));
        if (launch_a)
            memcpy(i, a.range.lo, sizeof(i));
        do {
            bool meet = tiles_meet(&a, i, &b, j), named = any && is_named(map, i, j);
            sum->pairs++;
            sum->meet += meet;
            sum->named += named;
            if (meet && !named)
                fail_pair(seed, "they meet, the map does not say so", i, j);
            if (exact && named && !meet)
                fail_pair(seed, "they do not meet, the map says so", i, j);
        } while (next_tile(&a, i));
    } while (next_tile(&b, j));
}

static void test_maps_name_every_tile_that_meets(void **state)
{
    (void)state;
    tally sum = {0};
    for (uint64_t seed = first_seed; seed <= last_seed; seed++)
        check_seed(seed, &sum);
    print_message("%lld pairs of tiles, %lld meet, %lld are named; %lld maps are exact\n",
                  (long long)sum.pairs, (long long)sum.meet, (long long)sum.named,
                  (long long)sum.exact_maps);
    assert_true(sum.meet > 0);
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = last_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_maps_name_every_tile_that_meets),
    };
    return cmocka_run_group_tests_name("maps", tests, NULL, NULL);
}
