/* Boxes of processes as a grid: random grids in any order are found, and of random boxes that are
 * none, what is said about them is so, point by point. */
#include "runtime/exchange/decompose.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST = 64, TRIALS = 20000 };

typedef struct trial {
    uint64_t state;
    int axes, processes;
    peal_box part[MOST];
} trial;

static int below(trial *t, int limit)
{
    uint64_t z = (t->state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return (int)((z ^ (z >> 31)) % (uint64_t)limit);
}

static bool owns(const trial *t, int process, const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < t->axes; k++)
        if (p[k] < t->part[process].lo[k] || p[k] >= t->part[process].hi[k])
            return false;
    return true;
}

static int owners(const trial *t, const int64_t p[PEAL_AXES])
{
    int count = 0;
    for (int i = 0; i < t->processes; i++)
        count += owns(t, i, p);
    return count;
}

static void swap_parts(trial *t, int a, int b)
{
    peal_box kept = t->part[a];
    t->part[a] = t->part[b];
    t->part[b] = kept;
}

/* A grid with cuts anywhere, its cells in any order. */
static void make_grid(trial *t, int dims[PEAL_RANK_AXES], int64_t cut[PEAL_RANK_AXES][8])
{
    int64_t last[2] = {-below(t, 3), 0};
    last[1] = last[0] + 1 + below(t, 3);
    t->axes = 1 + below(t, 4);
    t->processes = 1;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        dims[k] = k < t->axes ? 1 + below(t, 4) : 1;
        cut[k][0] = k < t->axes ? below(t, 9) - 4 : 0;
        for (int i = 0; i < dims[k]; i++)
            cut[k][i + 1] = cut[k][i] + 1 + below(t, 4);
        t->processes *= dims[k];
    }
    for (int p = 0; p < t->processes; p++) {
        for (int k = 0, left = p; k < PEAL_RANK_AXES; left /= dims[k++]) {
            t->part[p].lo[k] = cut[k][left % dims[k]];
            t->part[p].hi[k] = cut[k][left % dims[k] + 1];
        }
        t->part[p].lo[3] = last[0];
        t->part[p].hi[3] = last[1];
    }
    for (int p = t->processes - 1; p > 0; p--)
        swap_parts(t, p, below(t, p + 1));
}

static void grids(void **state)
{
    (void)state;
    for (int n = 0; n < TRIALS; n++) {
        trial t = {.state = (uint64_t)n};
        int dims[PEAL_RANK_AXES];
        int64_t cut[PEAL_RANK_AXES][8];
        peal_decomposition d;
        peal_misfit why;
        make_grid(&t, dims, cut);
        if (peal_decompose(t.part, t.processes, t.axes, &d, &why))
            fail_msg("trial %d: %s", n, why.text);
        for (int k = 0; k < PEAL_RANK_AXES && k < t.axes; k++) {
            assert_int_equal(d.dims[k], dims[k]);
            assert_int_equal(d.lo[k], cut[k][0]);
            assert_int_equal(d.extent[k], cut[k][dims[k]] - cut[k][0]);
            for (int i = 0; i <= dims[k]; i++)
                assert_int_equal(d.cut[k][i], cut[k][i] - cut[k][0]);
        }
        for (int rank = 0; rank < t.processes; rank++)
            for (int k = 0, left = rank; k < PEAL_RANK_AXES && k < t.axes; left /= dims[k++])
                assert_int_equal(t.part[d.process_of[rank]].lo[k], cut[k][left % dims[k]]);
        peal_decomposition_free(&d);
    }
}

/* Halves boxes at random places until there are enough: each point has one owner. */
static void make_bricks(trial *t)
{
    t->axes = 1 + below(t, 3);
    t->processes = 1;
    for (int k = 0; k < t->axes; k++) {
        t->part[0].lo[k] = -below(t, 3);
        t->part[0].hi[k] = t->part[0].lo[k] + 4 + below(t, 6);
    }
    for (int i = 0; i < 12; i++) {
        int of = below(t, t->processes), k = below(t, t->axes);
        int64_t extent = t->part[of].hi[k] - t->part[of].lo[k];
        if (extent < 2)
            continue;
        int64_t at = t->part[of].lo[k] + 1 + below(t, (int)extent - 1);
        t->part[t->processes] = t->part[of];
        t->part[of].hi[k] = t->part[t->processes++].lo[k] = at;
    }
}

/* A box moved, grown, shrunk, or another's. */
static void spoil(trial *t)
{
    peal_box *part = &t->part[below(t, t->processes)];
    int k = below(t, t->axes), by = below(t, 5) - 2;
    switch (below(t, 4)) {
    case 0:
        part->lo[k] += by;
        part->hi[k] += by;
        break;
    case 1:
        part->lo[k] += by;
        break;
    case 2:
        part->hi[k] += by;
        break;
    default:
        *part = t->part[below(t, t->processes)];
    }
}

/* Cuts go through: no box begins within another's range. */
static bool cuts_go_through(const trial *t)
{
    for (int k = 0; k < t->axes; k++)
        for (int p = 0; p < t->processes; p++)
            for (int q = 0; q < t->processes; q++)
                if (t->part[q].lo[k] < t->part[p].lo[k] && t->part[p].lo[k] < t->part[q].hi[k])
                    return false;
    return true;
}

static bool all_have_one_owner(const trial *t)
{
    int64_t lo[PEAL_AXES] = {0}, hi[PEAL_AXES] = {1, 1, 1, 1}, p[PEAL_AXES];
    for (int k = 0; k < t->axes; k++) {
        lo[k] = hi[k] = t->part[0].lo[k];
        for (int i = 0; i < t->processes; i++) {
            if (t->part[i].hi[k] <= t->part[i].lo[k])
                return false;
            lo[k] = t->part[i].lo[k] < lo[k] ? t->part[i].lo[k] : lo[k];
            hi[k] = t->part[i].hi[k] > hi[k] ? t->part[i].hi[k] : hi[k];
        }
    }
    for (p[3] = lo[3]; p[3] < hi[3]; p[3]++)
        for (p[2] = lo[2]; p[2] < hi[2]; p[2]++)
            for (p[1] = lo[1]; p[1] < hi[1]; p[1]++)
                for (p[0] = lo[0]; p[0] < hi[0]; p[0]++)
                    if (owners(t, p) != 1)
                        return false;
    return true;
}

static int read_point(const char *text, int64_t p[PEAL_AXES])
{
    long long value[PEAL_AXES] = {0};
    const char *at = strrchr(text, '(');
    int count =
        at ? sscanf(at, "(%lld, %lld, %lld, %lld)", &value[0], &value[1], &value[2], &value[3]) : 0;
    for (int k = 0; k < PEAL_AXES; k++)
        p[k] = value[k];
    return count;
}

enum { OVERLAP, GAP, CUT, EMPTY, SAME, APART, KINDS };

/* Whether what is said is so; which kind it is. */
static int check_words(const trial *t, const char *text)
{
    int a, b;
    char axis;
    long long begin, lo, hi;
    int64_t p[PEAL_AXES];
    if (sscanf(text, "processes %d and %d both own", &a, &b) == 2) {
        assert_int_equal(read_point(text, p), t->axes);
        assert_true(a != b && owns(t, a, p) && owns(t, b, p));
        return OVERLAP;
    }
    if (!strncmp(text, "no process owns the point", 25)) {
        assert_int_equal(read_point(text, p), t->axes);
        assert_int_equal(owners(t, p), 0);
        return GAP;
    }
    if (sscanf(text,
               "the boxes are no grid: process %d begins at %c = %lld, which lies within process "
               "%d's [%lld, %lld)",
               &a, &axis, &begin, &b, &lo, &hi) == 6) {
        int k = (int)(strchr("xyzw", axis) - "xyzw");
        assert_true(t->part[a].lo[k] == begin && t->part[b].lo[k] == lo && t->part[b].hi[k] == hi);
        assert_true(lo < begin && begin < hi);
        return CUT;
    }
    if (sscanf(text, "process %d owns no points along %c", &a, &axis) == 2) {
        int k = (int)(strchr("xyzw", axis) - "xyzw");
        assert_true(t->part[a].hi[k] <= t->part[a].lo[k]);
        return EMPTY;
    }
    if (sscanf(text, "process %d owns [%lld, %lld) of axis w", &a, &lo, &hi) == 3) {
        assert_true(t->part[a].lo[3] == lo && t->part[a].hi[3] == hi);
        assert_true(t->part[0].lo[3] != lo || t->part[0].hi[3] != hi);
        return APART;
    }
    assert_int_equal(sscanf(text, "all %d processes own the same points, from (%lld", &a, &lo), 2);
    assert_int_equal(a, t->processes);
    return SAME;
}

static void misfits(void **state)
{
    (void)state;
    int count[KINDS] = {0}, good = 0;
    for (int n = 0; n < TRIALS; n++) {
        trial t = {.state = (uint64_t)n};
        int dims[PEAL_RANK_AXES];
        int64_t cut[PEAL_RANK_AXES][8];
        peal_decomposition d;
        peal_misfit why;
        if (below(&t, 3))
            make_bricks(&t);
        else
            make_grid(&t, dims, cut);
        if (below(&t, 3))
            spoil(&t);
        bool apart = false;
        for (int p = 0; t.axes > PEAL_RANK_AXES && p < t.processes; p++)
            apart |= t.part[p].lo[3] != t.part[0].lo[3] || t.part[p].hi[3] != t.part[0].hi[3];
        bool grid = !apart && all_have_one_owner(&t) && cuts_go_through(&t);
        peal_status status = peal_decompose(t.part, t.processes, t.axes, &d, &why);
        if ((status == PEAL_STATUS_OK) != grid)
            fail_msg("trial %d: a grid: %d, said: %s", n, grid, status ? why.text : "it is one");
        if (status)
            count[check_words(&t, why.text)]++;
        good += grid;
        peal_decomposition_free(&d);
    }
    print_message("%d grids, %d overlaps, %d gaps, %d cuts, %d empty, %d same, %d apart\n", good,
                  count[OVERLAP], count[GAP], count[CUT], count[EMPTY], count[SAME], count[APART]);
    for (int kind = 0; kind < KINDS; kind++)
        assert_true(count[kind] > 5);
}

static void far_apart(void **state)
{
    (void)state;
    peal_decomposition d;
    peal_misfit why;
    const peal_box part[2] = {{1, {INT64_MIN}, {0}}, {1, {0}, {INT64_MAX}}};
    assert_int_equal(peal_decompose(part, 2, 1, &d, &why), PEAL_STATUS_USAGE);
    assert_non_null(strstr(why.text, "the boxes lie between"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(grids), cmocka_unit_test(misfits),
                                       cmocka_unit_test(far_apart)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
