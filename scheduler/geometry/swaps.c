/* Swaps: two arrays change their names, so on each rank they are alike. dsl/ has refused what
 * differs whatever the ranks are; counts may depend on them. */
#include "scheduler/geometry/geometry.h"

#include <string.h>

static bool same_box(const peal_box *a, const peal_box *b)
{
    bool same = a->axis_count == b->axis_count;
    for (int k = 0; k < PEAL_AXES; k++)
        same &= a->lo[k] == b->lo[k] && a->hi[k] == b->hi[k];
    return same;
}

/* How fields are cut and what they store; NULL: alike. */
static const char *compare_shapes(const field_shape *a, const field_shape *b)
{
    if (a->axis_count != b->axis_count || memcmp(a->whole, b->whole, sizeof(a->whole)))
        return "their sizes differ";
    if (memcmp(a->halo, b->halo, sizeof(a->halo)))
        return "their halos differ";
    if (memcmp(a->align, b->align, sizeof(a->align)) ||
        memcmp(a->stagger, b->stagger, sizeof(a->stagger)) ||
        memcmp(a->coarsen, b->coarsen, sizeof(a->coarsen)))
        return "their grids differ (align, stagger, coarsen)";
    return NULL;
}

static peal_status check_swap(const common_input *c, const pass_context *pass, const rank_view *v,
                              const peal_statement *s)
{
    int first = s->u.swap.first, second = s->u.swap.second;
    const peal_layout *a = &v->layout[first], *b = &v->layout[second];
    field_shape shape[2] = {0};
    const char *why = same_box(&a->stored, &b->stored) && same_box(&a->part, &b->part)
                          ? NULL
                          : "their counts differ";
    if (c->graph->arrays[first].kind == PEAL_ARRAY_FIELD) {
        peal_status status = shape_of(c, pass, &v->scope, first, &shape[0]);
        if (!status)
            status = shape_of(c, pass, &v->scope, second, &shape[1]);
        if (status)
            return status;
        why = compare_shapes(&shape[0], &shape[1]);
    }
    if (!why)
        return PEAL_STATUS_OK;
    return peal_report(
        pass->diagnostics, PEAL_E_UNEQUAL_SWAP, s->source,
        "swap exchanges names, not values; say like: for the second, or the same count",
        "`%s` and `%s` cannot be swapped: %s: %lld and %lld points on rank %d",
        array_name(c, first), array_name(c, second), why, (long long)peal_box_points(&a->stored),
        (long long)peal_box_points(&b->stored), v->rank);
}

peal_status check_swaps(const common_input *c, const pass_context *pass, const rank_view *v)
{
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; i < c->swap_count; i++) {
        peal_status status = check_swap(c, pass, v, c->swap[i]);
        first = first ? first : status;
    }
    return first;
}
