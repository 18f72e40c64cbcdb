/* Reaches: what of an array a tile touches, from the points that it visits. */
#include "scheduler/tasks/tasks.h"

#include "base/checked.h"

#include <stdio.h>

static int64_t coarsening(const common_input *c, const rank_view *v, int array, int k)
{
    int64_t ratio = 1;
    if (array >= 0 && array < c->graph->array_count) {
        const peal_array *a = &c->graph->arrays[array];
        if (a->kind == PEAL_ARRAY_BUFFER && a->points.kind != PEAL_POINTS_ONE)
            return coarsening(c, v, a->points.array, k);
        if (a->kind == PEAL_ARRAY_FIELD)
            peal_expr_integer(a->coarsen[k], &v->scope, 1, &ratio, NULL);
    }
    return ratio;
}

static void base_reach(const common_input *c, const rank_view *v, const peal_points *box,
                       int box_axes, int array, peal_reach *out)
{
    const peal_layout *layout = &v->layout[array];
    const int axes = axes_of_points(c, v, array);
    for (int k = 0; k < PEAL_AXES; k++) {
        peal_reach_axis *axis = &out->axis[k];
        if (k >= box_axes || k >= axes) {
            *axis = (peal_reach_axis){true, 1, 1, layout->stored.lo[k], layout->stored.hi[k]};
            continue;
        }
        int64_t num = coarsening(c, v, box->array, k), den = coarsening(c, v, array, k);
        int64_t common = peal_greatest_divisor(num, den);
        *axis = (peal_reach_axis){false, (int32_t)(num / common), (int32_t)(den / common), 0, 0};
    }
}

static void fix_reach(const peal_box *box, peal_reach *out)
{
    for (int k = 0; k < PEAL_AXES; k++)
        out->axis[k] = (peal_reach_axis){true, 1, 1, box->lo[k], box->hi[k]};
}

static peal_status grown_reaches(const common_input *c, const pass_context *pass,
                                 const rank_view *v, const peal_access *a, const peal_reach *base,
                                 peal_reach *reach, int *count)
{
    int64_t amount[PEAL_AXES][2];
    peal_status status = amount_of(pass, &v->scope, &a->amount, amount);
    bool star = a->footprint == PEAL_FOOTPRINT_STAR;
    char hint[160];
    snprintf(hint, sizeof(hint), "give the task the box whose points it visits, e.g. `box: %.60s`",
             array_name(c, a->array));
    *count = 1;
    reach[0] = *base;
    int arms = 0;
    for (int k = 0; !status && k < PEAL_AXES; k++) {
        if (!amount[k][0] && !amount[k][1])
            continue;
        if (base->axis[k].fixed)
            return peal_report(pass->diagnostics, PEAL_E_FOOTPRINT_WITHOUT_BOX, a->source, hint,
                               "`%s` is widened along axis %c, which the task's box does not have",
                               array_name(c, a->array), "xyzw"[k]);
        if (amount[k][0] + amount[k][1] < 0)
            return peal_report(
                pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, a->source,
                "say how many points beyond its own the task touches: 0, or more",
                "`%s` of `%s` is %lld and %lld points along axis %c: less than nothing",
                star ? "star" : "grow", array_name(c, a->array), (long long)amount[k][0],
                (long long)amount[k][1], "xyzw"[k]);
        peal_reach *arm = star ? &reach[arms++] : &reach[0];
        if (star)
            *arm = *base;
        arm->axis[k].low = -amount[k][0];
        arm->axis[k].high = amount[k][1];
    }
    if (arms)
        *count = arms;
    return status;
}

/* The reaches of one access; their number in *count. */
peal_status reaches_of(const common_input *c, const pass_context *pass, const rank_view *v,
                       const peal_task_statement *task, int box_axes, const peal_access *a,
                       peal_reach reach[PEAL_AXES], int *count)
{
    peal_reach base;
    peal_box box;
    peal_status status = PEAL_STATUS_OK;
    base_reach(c, v, &task->box, box_axes, a->array, &base);
    *count = 1;
    reach[0] = base;
    switch (a->footprint) {
    case PEAL_FOOTPRINT_GROW:
    case PEAL_FOOTPRINT_STAR:
        status = grown_reaches(c, pass, v, a, &base, reach, count);
        break;
    case PEAL_FOOTPRINT_RANGES:
        status = ranges_of(pass, &v->scope, &a->ranges, &box);
        if (!status) {
            for (int k = box.axis_count; k < PEAL_AXES; k++)
                box.lo[k] = v->layout[a->array].stored.lo[k],
                box.hi[k] = v->layout[a->array].stored.hi[k];
            fix_reach(&box, reach);
        }
        break;
    case PEAL_FOOTPRINT_INSIDE:
        status = beside_ghosts(c, pass, v, &task->box, a->array, &box);
        for (int k = 0; !status && k < PEAL_AXES; k++)
            if (box.lo[k] < box.hi[k])
                reach->axis[k] = (peal_reach_axis){true, 1, 1, box.lo[k], box.hi[k]};
        break;
    case PEAL_FOOTPRINT_WHOLE:
    case PEAL_FOOTPRINT_PER_TILE:
        fix_reach(&v->layout[a->array].stored, reach);
        break;
    default:
        break;
    }
    return status;
}

void tile_multiples(const common_input *c, const rank_view *v, const peal_task_statement *task,
                    int64_t multiple[PEAL_AXES])
{
    for (int k = 0; k < PEAL_AXES; k++) {
        multiple[k] = 1;
        for (int i = 0; i < task->access_count; i++) {
            int64_t num = coarsening(c, v, task->box.array, k),
                    den = coarsening(c, v, task->access[i].array, k);
            int64_t ratio = den / peal_greatest_divisor(num, den);
            if (multiple[k] % ratio)
                multiple[k] *= ratio / peal_greatest_divisor(multiple[k], ratio);
        }
    }
}
