/* A random field on a random topology, for tests of the geometry. */
#include "tests/scheduler/trial.h"

#include "tests/property/random_graph.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

int trial_below(trial *t, int limit)
{
    return random_below(&t->state, limit);
}

const char *trial_list(const trial *t, const int64_t *value, char *text)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < t->f.axis_count; k++)
        used += sprintf(text + used, "%s%d", k ? ", " : "", (int)value[k]);
    sprintf(text + used, "]");
    return text;
}

const char *trial_amounts(const trial *t, int64_t (*value)[2], char *text)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < t->f.axis_count; k++)
        used +=
            sprintf(text + used, "%s[%d, %d]", k ? ", " : "", (int)value[k][0], (int)value[k][1]);
    sprintf(text + used, "]");
    return text;
}

/* Where parts end, at random multiples of `align`; not always. */
static void choose_cuts(trial *t, int k)
{
    brute_field *f = &t->f;
    int64_t at = 0;
    if (f->dims[k] < 2 || trial_below(t, 3))
        return;
    for (int part = 0; part < f->dims[k] - 1; part++)
        t->end[k][part] = at += f->align[k] * (1 + trial_below(t, 4));
    f->whole[k] = t->end[k][f->dims[k] - 1] = at + 1 + trial_below(t, 8);
    f->end[k] = t->end[k];
}

/* "[[0, 3, 8], auto]" */
static void list_cuts(const trial *t, char *text)
{
    int used = sprintf(text, "[");
    for (int k = 0; k < t->f.axis_count; k++) {
        used += sprintf(text + used, "%s%s", k ? ", " : "", t->f.end[k] ? "[0" : "auto");
        for (int part = 0; t->f.end[k] && part < t->f.dims[k]; part++)
            used += sprintf(text + used, ", %d%s", (int)t->f.end[k][part],
                            part + 1 < t->f.dims[k] ? "" : "]");
    }
    sprintf(text + used, "]");
}

static void choose_field(trial *t, bool automatic)
{
    brute_field *f = &t->f;
    f->axis_count = 1 + trial_below(t, 3);
    t->ranks = 1;
    for (int k = 0; k < PEAL_AXES; k++) {
        bool there = k < f->axis_count;
        f->whole[k] = f->align[k] = f->coarsen[k] = f->dims[k] = 1;
        if (!there)
            continue;
        f->dims[k] = k < PEAL_RANK_AXES ? 1 + trial_below(t, f->axis_count == 1 ? 5 : 3) : 1;
        f->periodic[k] = trial_below(t, 2);
        f->coarsen[k] = trial_below(t, 4) ? 1 : 2;
        f->align[k] = f->coarsen[k] * (trial_below(t, 3) ? 1 : 2);
        f->stagger[k] = trial_below(t, 4) == 0;
        f->whole[k] = 1 + trial_below(t, f->axis_count == 3 ? 10 : 24);
        f->halo[k][0] = trial_below(t, 3);
        f->halo[k][1] = trial_below(t, 3);
        t->ranks *= f->dims[k];
        if (!automatic)
            choose_cuts(t, k);
    }
}

void trial_begin(trial *t, uint64_t seed, bool automatic)
{
    *t = (trial){.seed = seed, .state = seed * 0x9e3779b97f4a7c15u};
    char size[64], halo[96], align[64], stagger[64], coarsen[64], dims[64], periodic[64];
    char cuts[128];
    choose_field(t, automatic);
    brute_finish(&t->f);
    int64_t wide[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++)
        wide[k] = t->f.dims[k];
    int used = sprintf(periodic, "[");
    for (int k = 0; k < t->f.axis_count; k++)
        used +=
            sprintf(periodic + used, "%s%s", k ? ", " : "", t->f.periodic[k] ? "true" : "false");
    sprintf(periodic + used, "]");
    t->diagnostics = peal_diagnostics_create();
    assert_int_equal(peal_graph_create("geometry", &t->graph), 0);
    trial_list(t, wide, dims);
    if (automatic) {
        used = sprintf(dims, "[");
        for (int k = 0; k < t->f.axis_count; k++)
            used += sprintf(dims + used, "%sauto", k ? ", " : "");
        sprintf(dims + used, "]");
    }
    peal_graph_add_kernels(t->graph, "k.c", PEAL_HERE);
    list_cuts(t, cuts);
    peal_graph_set_topology(t->graph, .dims = dims, .periodic = periodic, .cuts = cuts);
    peal_graph_add_field(t->graph, .name = "u", .size = trial_list(t, t->f.whole, size),
                         .halo = trial_amounts(t, t->f.halo, halo),
                         .align = trial_list(t, t->f.align, align),
                         .stagger = trial_list(t, t->f.stagger, stagger),
                         .coarsen = trial_list(t, t->f.coarsen, coarsen));
    snprintf(t->about, sizeof(t->about),
             "seed %llu: %d ranks, dims %s, cuts %s, periodic %s, size %s, halo %s, align %s, "
             "stagger %s, coarsen %s",
             (unsigned long long)seed, t->ranks, dims, cuts, periodic, size, halo, align, stagger,
             coarsen);
}

bool trial_compile(trial *t)
{
    const peal_graph_data *data;
    peal_machine machine = {.ranks = t->ranks,
                            .processes = 1,
                            .workers = 2,
                            .cache_bytes = 1 << 18};
    peal_status status = peal_graph_resolve(t->graph, t->diagnostics, &data);
    if (!status)
        status = peal_compilation_create(data, &machine, PEAL_MODE_FUSED, t->diagnostics, &t->c);
    if (!status)
        status = peal_compilation_check(t->c);
    return !status;
}

void trial_end(trial *t)
{
    peal_compilation_destroy(t->c);
    peal_graph_destroy(t->graph);
    peal_diagnostics_destroy(t->diagnostics);
}

bool trial_holds(const peal_box *box, const int64_t p[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (p[k] < box->lo[k] || p[k] >= box->hi[k])
            return false;
    return true;
}

void trial_position(const trial *t, int rank, int position[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        position[k] = rank % t->f.dims[k];
        rank /= t->f.dims[k];
    }
}

void trial_range(const trial *t, int64_t low[PEAL_AXES], int64_t high[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        bool there = k < t->f.axis_count;
        low[k] = there ? -t->f.halo[k][0] - 1 : 0;
        high[k] = there ? t->f.size[k] + t->f.halo[k][1] + 1 : 1;
    }
}
