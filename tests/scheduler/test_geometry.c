/* Who owns and stores which points, what boxes mean and how ranks are laid out: on random
 * topologies and sizes, against the language's definitions point by point.
 *
 * test_geometry [SEED]: one seed only. */
#include "tests/scheduler/trial.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { SEEDS = 1500 };

static uint64_t first_seed = 1, last_seed = SEEDS;

static void check_layout(trial *t, int rank)
{
    rank_view *v = view_at(&t->c->views, rank, STAGE_GEOMETRY);
    int position[PEAL_AXES];
    int64_t low[PEAL_AXES], high[PEAL_AXES], p[PEAL_AXES];
    trial_position(t, rank, position);
    trial_range(t, low, high);
    memcpy(p, low, sizeof(p));
    const peal_layout *layout = &v->layout[0];
    do {
        EXPECT(t, trial_holds(&layout->part, p) == brute_in_part(&t->f, position, p),
               "rank %d: part at (%d, %d, %d)", rank, (int)p[0], (int)p[1], (int)p[2]);
        EXPECT(t, trial_holds(&layout->own, p) == brute_is_own(&t->f, position, p),
               "rank %d: own at (%d, %d, %d)", rank, (int)p[0], (int)p[1], (int)p[2]);
        EXPECT(t, trial_holds(&layout->stored, p) == brute_is_stored(&t->f, position, p),
               "rank %d: stored at (%d, %d, %d)", rank, (int)p[0], (int)p[1], (int)p[2]);
    } while (brute_next(low, high, p));
}

static void test_parts(void **state)
{
    (void)state;
    int refused = 0;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        trial t;
        trial_begin(&t, seed, false);
        bool valid = trial_compile(&t);
        EXPECT(&t, valid == !brute_is_refused(&t.f), "valid: %d", valid);
        refused += !valid;
        for (int rank = 0; valid && rank < t.ranks; rank++)
            check_layout(&t, rank);
        trial_end(&t);
    }
    print_message("%d fields, %d of them refused\n", (int)(last_seed - first_seed + 1), refused);
}

/* ---- Boxes ---- */

typedef struct box_trial {
    peal_points_kind kind;
    peal_part part;
    int64_t amount[PEAL_AXES][2], part_amount[PEAL_AXES][2], lo[PEAL_AXES], hi[PEAL_AXES];
    int direction[PEAL_AXES];
} box_trial;

static bool in_box(const brute_field *f, const box_trial *b, const int64_t p[PEAL_AXES])
{
    bool inside = true, near = false;
    for (int k = 0; k < f->axis_count; k++) {
        int64_t low = 0, high = f->size[k];
        if (b->kind == PEAL_POINTS_GROW)
            low -= b->amount[k][0], high += b->amount[k][1];
        if (b->kind == PEAL_POINTS_RANGES)
            low = b->lo[k], high = b->hi[k];
        if (b->kind == PEAL_POINTS_GHOST) {
            low = b->direction[k] > 0 ? f->size[k] : -f->halo[k][0];
            high = b->direction[k] < 0 ? 0 : f->size[k] + f->halo[k][1];
        }
        inside &= p[k] >= low && p[k] < high;
        near |= p[k] < b->amount[k][0] || p[k] >= f->size[k] - b->amount[k][1];
    }
    return inside && (b->kind != PEAL_POINTS_RIM || near);
}

static bool has_rank(const brute_field *f, const int position[PEAL_AXES], int axis, int side)
{
    int other = position[axis] + (side ? 1 : -1);
    return f->periodic[axis] || (other >= 0 && other < f->dims[axis]);
}

/* At least the halo's width (its wider side) from every neighbouring rank. */
static bool is_interior(const brute_field *f, const int position[PEAL_AXES],
                        const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < f->axis_count; k++) {
        int64_t width = f->halo[k][0] > f->halo[k][1] ? f->halo[k][0] : f->halo[k][1];
        for (int64_t far = 1; far <= width; far++)
            for (int side = 0; side < 2; side++) {
                int64_t q[PEAL_AXES] = {p[0], p[1], p[2], p[3]};
                q[k] += side ? far : -far;
                int64_t image = brute_image(f, k, q[k]);
                bool foreign = image >= 0 && image < f->size[k] &&
                               (brute_owner_along(f, k, image) != position[k] || image != q[k]);
                if (foreign && has_rank(f, position, k, side))
                    return false;
            }
    }
    return true;
}

static bool visits(const brute_field *f, const int position[PEAL_AXES], const box_trial *b,
                   const int64_t p[PEAL_AXES])
{
    int64_t image[PEAL_AXES];
    if (b->part == PEAL_PART_EXTENDED) { /* also halo points within the amount, as their owner */
        int direction[PEAL_AXES];
        if (!brute_is_stored(f, position, p))
            return false;
        brute_direction(f, position, p, direction);
        for (int k = 0; k < PEAL_AXES; k++) {
            int64_t step[PEAL_AXES] = {p[0], p[1], p[2], p[3]};
            image[k] = brute_image(f, k, p[k]);
            if (!direction[k])
                continue;
            step[k] -= direction[k] * b->part_amount[k][direction[k] > 0];
            int there[PEAL_AXES];
            brute_direction(f, position, step, there);
            if (there[k] == direction[k])
                return false;
        }
        return in_box(f, b, image);
    }
    if (!brute_is_own(f, position, p) || !in_box(f, b, p))
        return false;
    return b->part == PEAL_PART_ALL ||
           is_interior(f, position, p) == (b->part == PEAL_PART_INTERIOR);
}

/* Border and halo, by who stores whose points. */
static bool is_directed(const trial *t, const int position[PEAL_AXES], const box_trial *b,
                        const int64_t p[PEAL_AXES])
{
    const brute_field *f = &t->f;
    int other[PEAL_AXES], direction[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++) {
        other[k] = position[k] + b->direction[k];
        if (f->periodic[k])
            other[k] = (other[k] + f->dims[k]) % f->dims[k];
        if (other[k] < 0 || other[k] >= f->dims[k])
            return false; /* nobody there */
    }
    if (b->kind == PEAL_POINTS_HALO) {
        if (!brute_is_stored(f, position, p))
            return false;
        brute_direction(f, position, p, direction);
        return !memcmp(direction, b->direction, sizeof(direction));
    }
    if (!brute_is_own(f, position, p))
        return false;
    int64_t low[PEAL_AXES], high[PEAL_AXES], q[PEAL_AXES];
    trial_range(t, low, high);
    memcpy(q, low, sizeof(q));
    do { /* a halo point of the other that is an image of p, in the opposite direction */
        bool same = true;
        for (int k = 0; k < PEAL_AXES; k++)
            same &= brute_image(f, k, q[k]) == p[k];
        if (!same || !brute_is_stored(f, other, q))
            continue;
        brute_direction(f, other, q, direction);
        for (int k = 0; k < PEAL_AXES; k++)
            same &= direction[k] == -b->direction[k];
        if (same)
            return true;
    } while (brute_next(low, high, q));
    return false;
}

static void choose_box(trial *t, box_trial *b, peal_points_desc *d, char text[3][96])
{
    static const peal_points_kind kinds[] = {PEAL_POINTS_ALL,    PEAL_POINTS_GROW,
                                             PEAL_POINTS_RIM,    PEAL_POINTS_RANGES,
                                             PEAL_POINTS_BORDER, PEAL_POINTS_HALO,
                                             PEAL_POINTS_GHOST};
    const brute_field *f = &t->f;
    int64_t way[PEAL_AXES] = {0};
    *b = (box_trial){.kind = kinds[trial_below(t, 7)]};
    *d = (peal_points_desc){.name = "u"};
    for (int k = 0; k < f->axis_count; k++) {
        for (int side = 0; side < 2; side++) {
            b->amount[k][side] = b->kind == PEAL_POINTS_RIM
                                     ? trial_below(t, 3)
                                     : trial_below(t, (int)f->halo[k][side] + 3) - 2;
            b->part_amount[k][side] = trial_below(t, (int)f->halo[k][side] + 1);
        }
        b->lo[k] = trial_below(t, (int)(f->size[k] + f->halo[k][0])) - f->halo[k][0];
        b->hi[k] = b->lo[k] + trial_below(t, (int)(f->size[k] + f->halo[k][1] - b->lo[k]) + 1);
        way[k] = b->direction[k] = trial_below(t, 3) - 1;
    }
    if (!way[0] && !way[1] && !way[2])
        way[0] = b->direction[0] = trial_below(t, 2) ? 1 : -1;
    trial_amounts(t, b->amount, text[0]);
    if (b->kind == PEAL_POINTS_GROW)
        d->grow = text[0];
    if (b->kind == PEAL_POINTS_RIM)
        d->rim = text[0];
    if (b->kind == PEAL_POINTS_RANGES) {
        int used = sprintf(text[0], "[");
        for (int k = 0; k < f->axis_count; k++)
            used +=
                sprintf(text[0] + used, "%s[%d, %d]", k ? ", " : "", (int)b->lo[k], (int)b->hi[k]);
        sprintf(text[0] + used, "]");
        d->box = text[0];
    }
    bool directed = b->kind == PEAL_POINTS_BORDER || b->kind == PEAL_POINTS_HALO;
    if (directed)
        *(b->kind == PEAL_POINTS_BORDER ? &d->border : &d->halo) = trial_list(t, way, text[0]);
    else if (b->kind == PEAL_POINTS_GHOST)
        d->ghost = trial_list(t, way, text[0]);
    if (!directed && b->kind != PEAL_POINTS_GHOST && b->kind != PEAL_POINTS_RIM &&
        trial_below(t, 2)) {
        b->part = (peal_part)(1 + trial_below(t, 3));
        d->part = b->part == PEAL_PART_INTERIOR   ? "interior"
                  : b->part == PEAL_PART_BOUNDARY ? "boundary"
                                                  : trial_amounts(t, b->part_amount, text[1]);
    }
}

/* Whether the domain has ghost points in the direction of a ghost box. */
static bool has_ghosts(const brute_field *f, const box_trial *b)
{
    bool has = true;
    for (int k = 0; k < f->axis_count; k++)
        if (b->direction[k])
            has &= !f->periodic[k] && f->halo[k][b->direction[k] > 0] > 0;
    return has;
}

/* Every point is in exactly one box of the task if the definition says that it is visited. */
static void check_boxes(trial *t, int task, const box_trial *b)
{
    for (int rank = 0; rank < t->ranks; rank++) {
        rank_view *v = view_at(&t->c->views, rank, STAGE_TASKS);
        const peal_schedule_task *of = &v->task[task];
        int position[PEAL_AXES];
        int64_t low[PEAL_AXES], high[PEAL_AXES], p[PEAL_AXES];
        bool directed = b->kind == PEAL_POINTS_BORDER || b->kind == PEAL_POINTS_HALO;
        trial_position(t, rank, position);
        trial_range(t, low, high);
        memcpy(p, low, sizeof(p));
        do {
            int found = 0;
            for (int i = 0; i < of->tiling_count; i++)
                found += trial_holds(&of->tiling[i].box, p);
            bool wanted = directed ? is_directed(t, position, b, p) : visits(&t->f, position, b, p);
            EXPECT(t, found == wanted, "rank %d: point (%d, %d, %d) is in %d boxes, not %d", rank,
                   (int)p[0], (int)p[1], (int)p[2], found, wanted);
        } while (brute_next(low, high, p));
    }
}

static void test_boxes(void **state)
{
    (void)state;
    int checked[PEAL_POINTS_COUNT][4] = {{0}};
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        trial t;
        box_trial b;
        peal_points_desc d;
        char text[3][96];
        trial_begin(&t, seed, false);
        choose_box(&t, &b, &d, text);
        size_t used = strlen(t.about);
        snprintf(t.about + used, sizeof(t.about) - used, "\nbox kind %d %s part %s", (int)b.kind,
                 text[0], d.part ? d.part : "-");
        peal_graph_begin(t.graph, PEAL_STEP);
        peal_graph_add_task(t.graph, .name = "t", .kernel = "t", .box = d,
                            .read = {{.name = "u", .tile = true}});
        peal_graph_end(t.graph);
        bool wrong = b.kind == PEAL_POINTS_GHOST && !has_ghosts(&t.f, &b);
        if (trial_compile(&t)) {
            EXPECT(&t, !wrong, "accepted");
            check_boxes(&t, 0, &b);
            checked[b.kind][b.part]++;
        } else
            EXPECT(&t, brute_is_refused(&t.f) || b.part == PEAL_PART_EXTENDED || wrong, "refused");
        trial_end(&t);
    }
    for (int kind = PEAL_POINTS_ALL; kind <= PEAL_POINTS_GHOST; kind++)
        print_message("box kind %d: %d all, %d interior, %d boundary, %d extended\n", kind,
                      checked[kind][0], checked[kind][1], checked[kind][2], checked[kind][3]);
}

/* ---- Automatic dims ---- */

static int64_t busiest(const brute_field *f, int ranks)
{
    int64_t most = 0;
    if (brute_is_refused(f))
        return INT64_MAX;
    for (int rank = 0; rank < ranks; rank++) {
        int left = rank, position[PEAL_AXES];
        for (int k = 0; k < PEAL_AXES; k++) {
            position[k] = left % f->dims[k];
            left /= f->dims[k];
        }
        int64_t points = brute_halo_points(f, position);
        most = points > most ? points : most;
    }
    return most;
}

/* Tries all factors, those with more ranks on later axes last, so that they win ties. */
static int64_t best_dims(const trial *t, int best[PEAL_RANK_AXES])
{
    int64_t least = INT64_MAX;
    brute_field f = t->f;
    int most[PEAL_RANK_AXES];
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        most[k] = k < f.axis_count ? t->ranks : 1;
    for (f.dims[2] = 1; f.dims[2] <= most[2]; f.dims[2]++)
        for (f.dims[1] = 1; f.dims[1] <= most[1]; f.dims[1]++)
            for (f.dims[0] = 1; f.dims[0] <= most[0]; f.dims[0]++) {
                if (f.dims[0] * f.dims[1] * f.dims[2] != t->ranks)
                    continue;
                int64_t points = busiest(&f, t->ranks);
                if (points < INT64_MAX && points <= least) {
                    least = points;
                    memcpy(best, f.dims, sizeof(int) * PEAL_RANK_AXES);
                }
            }
    return least;
}

static void test_automatic_dims(void **state)
{
    (void)state;
    for (uint64_t seed = first_seed; seed <= last_seed; seed++) {
        trial t;
        trial_begin(&t, seed, true);
        int best[PEAL_RANK_AXES], found[PEAL_RANK_AXES];
        int64_t least = best_dims(&t, best);
        bool valid = trial_compile(&t);
        EXPECT(&t, valid == (least < INT64_MAX), "valid: %d, least %lld", valid, (long long)least);
        if (valid) {
            peal_compilation_dims(t.c, found);
            EXPECT(&t, !memcmp(found, best, sizeof(best)),
                   "chose %d x %d x %d; %d x %d x %d has %lld halo points", found[0], found[1],
                   found[2], best[0], best[1], best[2], (long long)least);
        }
        trial_end(&t);
    }
}

/* ---- rows ---- */

/* Whether rows of the array's part begin at lines of memory. */
static bool begins_at_lines(const peal_schedule_array *array)
{
    const peal_layout *layout = &array->layout;
    int64_t bytes = (int64_t)peal_type_bytes(array->type);
    int64_t before = (layout->part.lo[0] - layout->stored.lo[0]) * bytes;

    return layout->stride[1] * bytes % 128 == 0 && (layout->offset + before) % 128 == 0;
}

static bool is_dense(const peal_schedule_array *array)
{
    const peal_layout *layout = &array->layout;
    return layout->stride[1] == layout->stored.hi[0] - layout->stored.lo[0];
}

static void test_rows(void **state)
{
    static const char text[] =
        "peal: 1\nkernels: k.c\nfields:\n  a: {type: f32, size: [600, 5], halo: [1, 1]}\n"
        "  b: {size: [301, 4, 3], halo: [[0, 2], 0, 0]}\n  c: {size: [40, 5], halo: 1}\n"
        "  d: {size: [500]}\nsetup:\n  - {task: t, box: a, write: a}\n";
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;
    const peal_graph_data *data = NULL;

    (void)state;
    assert_int_equal(peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list, &graph),
                     0);
    assert_int_equal(peal_graph_resolve(graph, list, &data), 0);
    for (int accelerator = 0; accelerator < 2; accelerator++) {
        peal_machine machine = {.ranks = 2,
                                .processes = 2,
                                .workers = 1,
                                .accelerator = accelerator};
        peal_compilation *c = NULL;
        assert_int_equal(peal_compilation_create(data, &machine, PEAL_MODE_SYNC, list, &c), 0);
        for (int rank = 0; rank < 2; rank++) {
            const peal_schedule *schedule = NULL;
            assert_int_equal(peal_compilation_schedule(c, rank, &schedule), 0);
            for (int i = 0; i < 2; i++) {
                assert_int_equal(begins_at_lines(&schedule->array[i]), accelerator);
                assert_int_equal(is_dense(&schedule->array[i]), !accelerator);
            }
            assert_true(is_dense(&schedule->array[2])); /* rows that are short */
            assert_int_equal(schedule->array[3].layout.bytes % 8, 0);
        }
        peal_compilation_destroy(c);
    }
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
}

/* ---- tiles ---- */

/* Of a task on a GPU in mode fused: whole planes, if blocks compute all of the box at a time. */
static void test_tiles_of_three_axes(void **state)
{
    static const struct {
        int64_t size[3], tile[2];
    } cases[] = {{{128, 64, 64}, {128, 64}},   /* 2^19 points */
                 {{128, 128, 64}, {128, 64}},  /* 2^20, a plane has more than a tile */
                 {{128, 128, 65}, {128, 8}},   /* more */
                 {{2048, 16, 16}, {2048, 8}}}; /* 8 rows are more already */

    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        const int64_t *size = cases[i].size;
        peal_diagnostics *list = peal_diagnostics_create();
        peal_machine machine = {.ranks = 1, .processes = 1, .workers = 2, .accelerator = true};
        peal_graph *graph = NULL;
        const peal_graph_data *data = NULL;
        peal_compilation *c = NULL;
        const peal_schedule *schedule = NULL;
        char text[200];

        snprintf(text, sizeof(text),
                 "peal: 1\nkernels: k.c\nfields:\n  a: {size: [%lld, %lld, %lld]}\n"
                 "step:\n  - {task: t, box: a, update: a}\n",
                 (long long)size[0], (long long)size[1], (long long)size[2]);
        assert_int_equal(peal_graph_read_memory("t.yaml", text, strlen(text), NULL, 0, list,
                                                &graph),
                         0);
        assert_int_equal(peal_graph_resolve(graph, list, &data), 0);
        assert_int_equal(peal_compilation_create(data, &machine, PEAL_MODE_FUSED, list, &c), 0);
        assert_int_equal(peal_compilation_schedule(c, 0, &schedule), 0);
        for (int k = 0; k < 2; k++)
            assert_int_equal(schedule->task[0].tiling[0].extent[k], cases[i].tile[k]);
        peal_compilation_destroy(c);
        peal_graph_destroy(graph);
        peal_diagnostics_destroy(list);
    }
}

int main(int argc, char **argv)
{
    if (argc > 1)
        first_seed = last_seed = strtoull(argv[1], NULL, 10);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_parts),
        cmocka_unit_test(test_boxes),
        cmocka_unit_test(test_automatic_dims),
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_tiles_of_three_axes),
    };
    return cmocka_run_group_tests_name("geometry", tests, NULL, NULL);
}
