/* The parts of the host backend against plain code: copies, fold trees, dependence maps and needs.
 */
#include "backends/host/dispatch.h"
#include "backends/host/fold.h"
#include "backends/host/host.h"
#include "backends/host/wait.h"
#include "base/copy.h"
#include "tests/backends/check.h"

#include <math.h>
#include <stdlib.h>

/* Copies. */

typedef struct box_copy {
    int64_t extent[PEAL_AXES], source[PEAL_AXES], target[PEAL_AXES];
    int64_t source_points, target_points;
} box_copy;

static int64_t draw(uint64_t *state, int64_t low, int64_t high)
{
    return low + (int64_t)(host_random(state) % (uint64_t)(high - low + 1));
}

/* Strides of dense arrays that are some points larger than the box, or just as large. */
static box_copy random_box(uint64_t *state)
{
    box_copy box = {.source_points = 1, .target_points = 1};
    for (int k = 0; k < PEAL_AXES; k++) {
        box.extent[k] = draw(state, 0, 3) ? draw(state, 1, k == 0 ? 40 : 5) : 1;
        box.source[k] = box.source_points;
        box.target[k] = box.target_points;
        box.source_points *= box.extent[k] + (draw(state, 0, 1) ? draw(state, 1, 4) : 0);
        box.target_points *= box.extent[k] + (draw(state, 0, 1) ? draw(state, 1, 4) : 0);
    }
    return box;
}

static void check_copy(const box_copy *box, size_t bytes, uint64_t *state)
{
    size_t from_bytes = (size_t)box->source_points * bytes;
    size_t to_bytes = (size_t)box->target_points * bytes;
    unsigned char *from = malloc(from_bytes), *to = malloc(to_bytes), *want = malloc(to_bytes);
    peal_copy copy;
    int64_t p[PEAL_AXES];

    for (size_t i = 0; i < from_bytes; i++)
        from[i] = (unsigned char)host_random(state);
    memset(to, 0xee, to_bytes);
    memset(want, 0xee, to_bytes);
    for (p[3] = 0; p[3] < box->extent[3]; p[3]++)
        for (p[2] = 0; p[2] < box->extent[2]; p[2]++)
            for (p[1] = 0; p[1] < box->extent[1]; p[1]++)
                for (p[0] = 0; p[0] < box->extent[0]; p[0]++) {
                    int64_t s = 0, t = 0;
                    for (int k = 0; k < PEAL_AXES; k++) {
                        s += p[k] * box->source[k];
                        t += p[k] * box->target[k];
                    }
                    memcpy(want + t * (int64_t)bytes, from + s * (int64_t)bytes, bytes);
                }
    peal_copy_prepare(&copy, bytes, box->extent, box->source, box->target);
    peal_copy_run(&copy, to, from);
    assert_memory_equal(to, want, to_bytes);
    free(from);
    free(to);
    free(want);
}

static void copies(void **test)
{
    static const size_t sizes[] = {1, 4, 8};
    uint64_t state = 20240607;
    (void)test;
    for (int round = 0; round < 1500; round++) {
        box_copy box = random_box(&state);
        check_copy(&box, sizes[round % 3], &state);
    }
}

/* A pair does what its two copies do one after the other. Returns whether there is such a pair. */
static bool check_pair(const box_copy *box, size_t bytes, uint64_t *state)
{
    size_t from_bytes = (size_t)box->source_points * bytes;
    size_t to_bytes = (size_t)box->target_points * bytes;
    unsigned char *from = malloc(2 * from_bytes), *to = malloc(2 * to_bytes),
                  *want = malloc(2 * to_bytes);
    peal_copy copy;
    for (size_t i = 0; i < 2 * from_bytes; i++)
        from[i] = (unsigned char)host_random(state);
    memset(to, 0xee, 2 * to_bytes);
    memset(want, 0xee, 2 * to_bytes);
    peal_copy_prepare(&copy, bytes, box->extent, box->source, box->target);
    peal_copy_run(&copy, want, from);
    peal_copy_run(&copy, want + to_bytes, from + from_bytes);
    bool paired = peal_copy_pair(&copy, (int64_t)from_bytes, (int64_t)to_bytes);
    if (paired) {
        peal_copy_run(&copy, to, from);
        assert_memory_equal(to, want, 2 * to_bytes);
    }
    free(from);
    free(to);
    free(want);
    return paired;
}

static void pairs(void **test)
{
    static const size_t sizes[] = {1, 4, 8};
    uint64_t state = 20240608;
    int found = 0;
    (void)test;
    for (int round = 0; round < 1500; round++) {
        box_copy box = random_box(&state);
        box.extent[0] = round % 2 ? 1 : box.extent[0]; /* faces across x are columns */
        found += check_pair(&box, sizes[round % 3], &state);
    }
    assert_true(found > 300);
}

static void empty_copy(void **test)
{
    const int64_t extent[PEAL_AXES] = {4, 0, 1, 1}, stride[PEAL_AXES] = {1, 4, 4, 4};
    unsigned char from[8] = {1}, to[8] = {7, 7, 7, 7, 7, 7, 7, 7};
    peal_copy copy;
    (void)test;
    peal_copy_prepare(&copy, 1, extent, stride, stride);
    peal_copy_run(&copy, to, from);
    for (int i = 0; i < 8; i++)
        assert_int_equal(to[i], 7);
}

/* Fold trees. */

/* The definition, by recursion on the text of the contract. */
static double tree(const double *v, int64_t n)
{
    int64_t power = 1;
    if (n == 1)
        return v[0];
    for (int64_t p = 1; p < n; p *= 2)
        power = p;
    return tree(v, power) + tree(v + power, n - power);
}

static void sums_follow_the_tree(void **test)
{
    enum { MOST = 70 };
    double v[MOST], gapped[3 * MOST];
    uint64_t state = 5;
    bool differs = false;
    (void)test;
    for (int i = 0; i < MOST; i++)
        gapped[3 * i] = v[i] =
            ldexp((double)(int64_t)host_random(&state), (int)draw(&state, -80, 0));
    for (int64_t n = 1; n <= MOST; n++) {
        double sum, strided, plain = 0;
        host_fold(PEAL_F64, PEAL_SUM, v, n, 1, &sum);
        host_fold(PEAL_F64, PEAL_SUM, gapped, n, 3, &strided);
        double want = tree(v, n);
        assert_memory_equal(&sum, &want, sizeof(sum));
        assert_memory_equal(&strided, &want, sizeof(sum));
        for (int i = 0; i < n; i++)
            plain += v[i];
        differs = differs || plain != want;
    }
    assert_true(differs); /* the order matters for these numbers */
}

static void nan_wins(void **test)
{
    (void)test;
    for (int at = 0; at < 5; at++)
        for (int combine = PEAL_MIN; combine <= PEAL_MAX; combine++) {
            double v[5] = {3, -1, 2, 9, 0}, result;
            float w[5] = {3, -1, 2, 9, 0}, narrow;
            v[at] = NAN;
            w[at] = NAN;
            host_fold(PEAL_F64, (peal_combine)combine, v, 5, 1, &result);
            host_fold(PEAL_F32, (peal_combine)combine, w, 5, 1, &narrow);
            assert_true(isnan(result) && isnan(narrow));
        }
}

static void integers_and_limits(void **test)
{
    const int32_t small[3] = {INT32_MAX, 5, -7};
    const int64_t large[3] = {INT64_MIN, 4, INT64_MAX};
    const uint8_t byte[3] = {200, 100, 3};
    int32_t i32;
    int64_t i64;
    uint8_t u8;
    double f64;
    float f32;
    (void)test;
    host_fold(PEAL_I32, PEAL_SUM, small, 3, 1, &i32);
    assert_int_equal(i32, INT32_MAX - 2);
    host_fold(PEAL_I32, PEAL_MIN, small, 3, 1, &i32);
    assert_int_equal(i32, -7);
    host_fold(PEAL_I64, PEAL_MAX, large, 3, 1, &i64);
    assert_true(i64 == INT64_MAX);
    host_fold(PEAL_U8, PEAL_SUM, byte, 3, 1, &u8);
    assert_int_equal(u8, (200 + 100 + 3) % 256);
    host_fold(PEAL_F64, PEAL_SUM, NULL, 0, 1, &f64);
    assert_true(f64 == 0);
    host_fold(PEAL_F64, PEAL_MIN, NULL, 0, 1, &f64);
    assert_true(isinf(f64) && f64 > 0);
    host_fold(PEAL_F32, PEAL_MAX, NULL, 0, 1, &f32);
    assert_true(isinf(f32) && f32 < 0);
    host_fold(PEAL_I32, PEAL_MAX, NULL, 0, 1, &i32);
    assert_int_equal(i32, INT32_MIN);
    host_fold(PEAL_I64, PEAL_MIN, NULL, 0, 1, &i64);
    assert_true(i64 == INT64_MAX);
    host_fold(PEAL_U8, PEAL_MIN, NULL, 0, 1, &u8);
    assert_int_equal(u8, UINT8_MAX);
}

/* The dispatcher. */

static void owners_and_targets(void **test)
{
    (void)test;
    for (int workers = 1; workers <= 7; workers++)
        for (int64_t tiles = 1; tiles <= 40; tiles++)
            for (int w = 0; w <= workers; w++) {
                int64_t first = 0;
                while (first < tiles && first * workers / tiles < w)
                    first++;
                assert_int_equal(peal_dispatch_first(w, tiles, workers), first);
            }
    assert_true(peal_dispatch_target(0, 0, 5, 2) == 0);
    assert_true(peal_dispatch_target(1, 1, 5, 2) == 0);
    assert_true(peal_dispatch_target(1, 0, 5, 2) == 3);
    assert_true(peal_dispatch_target(3, 1, 5, 0) == 6);
    assert_true(peal_dispatch_reached(3, UINT64_MAX));
    assert_false(peal_dispatch_reached(UINT64_MAX, 3));
}

static void maps(void **test)
{
    uint64_t state = 77;
    (void)test;
    for (int round = 0; round < 3000; round++) {
        peal_map_axis map = {.b_axis = (int)draw(&state, -1, 3),
                             .step = draw(&state, -3, 5),
                             .low = draw(&state, -20, 20),
                             .divisor = draw(&state, 1, 6),
                             .first = draw(&state, 0, 5)};
        int64_t j[PEAL_AXES], first, last;
        map.high = map.low + draw(&state, 0, 9);
        map.last = map.first + draw(&state, 0, 9);
        for (int k = 0; k < PEAL_AXES; k++)
            j[k] = draw(&state, 0, 9);
        peal_dispatch_map(&map, j, &first, &last);
        int64_t at = map.b_axis < 0 ? 0 : j[map.b_axis] * map.step;
        for (int64_t i = -5; i < 30; i++) {
            bool inside = i >= map.first && i <= map.last &&
                          (double)i >= floor((double)(at + map.low) / (double)map.divisor) &&
                          (double)i <= floor((double)(at + map.high) / (double)map.divisor);
            assert_int_equal(inside, i >= first && i <= last);
        }
    }
}

/* What a worker waits for before a tile must cover all that the maps name, and name nothing else.
 */

typedef struct two_ops {
    peal_tiling tiling[2];
    peal_schedule_task source[2];
    peal_tile_range range[2];
    peal_dependence dependence;
    peal_op op[2];
    peal_schedule schedule;
    host_task task[2];
    host_op host[2];
    host_rank rank;
    struct peal_backend_plan plan;
} two_ops;

static void make_ops(two_ops *t, uint64_t *state)
{
    memset(t, 0, sizeof(*t));
    for (int i = 0; i < 2; i++) {
        t->source[i].tile_count = 1;
        for (int k = 0; k < PEAL_AXES; k++) {
            int64_t count = k < 2 ? draw(state, 1, 7) : draw(state, 1, 2);
            t->tiling[i].count[k] = count;
            t->tiling[i].extent[k] = 3;
            t->tiling[i].box.hi[k] = 3 * count;
            t->source[i].tile_count *= count;
            bool whole = draw(state, 0, 3) > 0;
            t->range[i].lo[k] = whole ? 0 : draw(state, 0, count - 1);
            t->range[i].hi[k] = whole ? count : draw(state, t->range[i].lo[k] + 1, count);
        }
        t->source[i].tiling = &t->tiling[i];
        t->source[i].tiling_count = 1;
        t->task[i].source = &t->source[i];
        t->op[i] = (peal_op){.kind = PEAL_OP_LAUNCH, .range = &t->range[i], .range_count = 1};
        t->host[i] = (host_op){.kind = PEAL_OP_LAUNCH, .source = &t->op[i], .task = &t->task[i]};
    }
    t->dependence = (peal_dependence){.op = 0, .b_tiling = -1};
    for (int k = 0; k < PEAL_AXES; k++)
        t->dependence.map[k] = (peal_map_axis){.b_axis = k,
                                               .step = draw(state, 0, 2),
                                               .low = draw(state, -2, 0),
                                               .high = draw(state, 0, 2),
                                               .divisor = draw(state, 1, 2),
                                               .first = t->range[0].lo[k],
                                               .last = t->range[0].hi[k] - 1};
    t->op[1].dependence = &t->dependence;
    t->op[1].dependence_count = 1;
    t->plan.arena = peal_arena_create();
    t->plan.desc.hooks.shuffle_seed = draw(state, 0, 1) ? host_random(state) | 1 : 0;
    t->schedule.op = t->op;
    t->schedule.op_count = 2;
    t->rank.plan = &t->plan;
    t->rank.schedule = &t->schedule;
    t->rank.op = t->host;
    t->rank.share_count = (int)draw(state, 2, 4);
}

static void indexes_of(const peal_tiling *tiling, int64_t tile, int64_t *j)
{
    for (int k = 0; k < PEAL_AXES; k++) {
        j[k] = tile % tiling->count[k];
        tile /= tiling->count[k];
    }
}

static bool named(const two_ops *t, int64_t a, int64_t b)
{
    int64_t i[PEAL_AXES], j[PEAL_AXES];
    indexes_of(&t->tiling[0], a, i);
    indexes_of(&t->tiling[1], b, j);
    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t first, last;
        peal_dispatch_map(&t->dependence.map[k], j, &first, &last);
        if (i[k] < first || i[k] > last)
            return false;
    }
    return true;
}

static int64_t tile_at(const host_share *share, int64_t place)
{
    int r = 0;
    while (place >= share->run[r].count)
        place -= share->run[r++].count;
    return share->run[r].first + place;
}

static int check_needs(const two_ops *t)
{
    int checked = 0;
    for (int me = 0; me < t->rank.share_count; me++) {
        const host_share *mine = &t->host[1].share[me];
        for (int other = 0; other < t->rank.share_count; other++) {
            const host_share *theirs = &t->host[0].share[other];
            int64_t most = -1;
            for (int64_t b = 0; b < mine->tiles && other != me; b++) {
                int64_t waited = -1;
                for (int64_t a = 0; a < theirs->tiles; a++)
                    if (named(t, tile_at(theirs, a), tile_at(mine, b)))
                        most = a > most ? a : most;
                for (int n = 0; n < mine->need_count; n++) {
                    const host_need *need = &mine->need[n];
                    if (need->worker == other && need->position <= b)
                        waited = (int64_t)need->target;
                }
                assert_int_equal(waited, most);
                checked += most >= 0;
            }
        }
    }
    return checked;
}

static void needs_are_the_maps(void **test)
{
    uint64_t state = 4711;
    int checked = 0;
    (void)test;
    for (int round = 0; round < 1000; round++) {
        two_ops t;
        make_ops(&t, &state);
        host_shares_prepare(&t.rank);
        int64_t tiles = 0, want = 1;
        for (int w = 0; w < t.rank.share_count; w++)
            tiles += t.host[1].share[w].tiles;
        for (int k = 0; k < PEAL_AXES; k++)
            want *= t.range[1].hi[k] - t.range[1].lo[k];
        assert_int_equal(tiles, want);
        assert_int_equal(host_needs_prepare(&t.rank), PEAL_STATUS_OK);
        checked += check_needs(&t);
        peal_arena_destroy(t.plan.arena);
    }
    assert_true(checked > 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(copies),
        cmocka_unit_test(pairs),
        cmocka_unit_test(empty_copy),
        cmocka_unit_test(sums_follow_the_tree),
        cmocka_unit_test(nan_wins),
        cmocka_unit_test(integers_and_limits),
        cmocka_unit_test(owners_and_targets),
        cmocka_unit_test(maps),
        cmocka_unit_test(needs_are_the_maps),
    };
    return cmocka_run_group_tests_name("host parts", tests, NULL, NULL);
}
