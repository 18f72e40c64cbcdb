/* Shapes of fields: their points over all ranks, and how an axis is cut.
 *
 * An axis is cut in units of `align` points; the first (units mod ranks) parts are one unit longer.
 * Or the topology says where. A coarsened point c lives where c * coarsen lives; a staggered axis
 * has its extra points at the last rank (none if periodic). */
#include "scheduler/geometry/geometry.h"

peal_status amount_of(const pass_context *pass, const peal_scope *scope, const peal_amount *amount,
                      int64_t out[PEAL_AXES][2])
{
    peal_status status = PEAL_STATUS_OK;
    for (int k = 0; !status && k < PEAL_AXES; k++) {
        status = peal_expr_integer(amount->low[k], scope, 0, &out[k][0], pass->diagnostics);
        if (!status)
            status = peal_expr_integer(amount->high[k], scope, 0, &out[k][1], pass->diagnostics);
        for (int side = 0; !status && side < 2; side++)
            if (out[k][side] > INT32_MAX || out[k][side] < -(int64_t)INT32_MAX)
                status = peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, amount->source,
                                     NULL, "an amount of %lld points", (long long)out[k][side]);
    }
    return status;
}

static peal_status positive(const pass_context *pass, const peal_scope *scope, const peal_array *a,
                            const peal_expr *expr, int64_t missing, int64_t least, int64_t *out,
                            const char *what)
{
    peal_status status = peal_expr_integer(expr, scope, missing, out, pass->diagnostics);
    if (!status && (*out < least || *out > INT32_MAX))
        status = peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, expr->source,
                             "an axis has 1 to 2147483647 points", "%s of field `%s` is %lld", what,
                             a->name, (long long)*out);
    return status;
}

static void stagger_and_coarsen(const common_input *c, field_shape *s, int k)
{
    s->size[k] = peal_ceil_divide(s->whole[k], s->coarsen[k]);
    if (!(k < PEAL_RANK_AXES && c->periodic[k]))
        s->size[k] += s->stagger[k];
    else
        s->stagger[k] = 0;
}

peal_status shape_of(const common_input *c, const pass_context *pass, const peal_scope *scope,
                     int array, field_shape *out)
{
    const peal_array *a = &c->graph->arrays[array];
    field_shape s = {.axis_count = peal_stored_axes(a),
                     .cut = {c->cut[0], c->cut[1], c->cut[2]},
                     .replicated = a->replicated};
    peal_status status = amount_of(pass, scope, &a->halo, s.halo);
    for (int k = 0; !status && k < s.axis_count; k++) {
        if (k == a->axis_count) {
            s.whole[k] = s.size[k] = a->components;
            s.align[k] = s.coarsen[k] = 1;
            break;
        }
        status = positive(pass, scope, a, a->size[k], 1, 1, &s.whole[k], "an extent");
        if (!status)
            status = positive(pass, scope, a, a->align[k], 1, 1, &s.align[k], "`align`");
        if (!status)
            status = positive(pass, scope, a, a->stagger[k], 0, 0, &s.stagger[k], "`stagger`");
        if (!status)
            status = positive(pass, scope, a, a->coarsen[k], 1, 1, &s.coarsen[k], "`coarsen`");
        if (!status && s.align[k] % s.coarsen[k] && ranks_along(c, array, k) > 1)
            status = peal_report(
                pass->diagnostics, PEAL_E_ALIGN_COARSEN_MISMATCH, a->source,
                "make `align` a multiple of `coarsen`",
                "field `%s`: align %lld does not divide into coarsen %lld along axis %c", a->name,
                (long long)s.align[k], (long long)s.coarsen[k], "xyzw"[k]);
        if (!status && (s.halo[k][0] < 0 || s.halo[k][1] < 0))
            status =
                peal_report(pass->diagnostics, PEAL_E_SIZE_OUT_OF_RANGE, a->halo.source,
                            "a halo is 0 or more points wide",
                            "the halo of field `%s` is %lld points wide along axis %c", a->name,
                            (long long)(s.halo[k][0] < 0 ? s.halo[k][0] : s.halo[k][1]), "xyzw"[k]);
        if (!status)
            stagger_and_coarsen(c, &s, k);
    }
    if (!status)
        *out = s;
    return status;
}

int ranks_along(const common_input *c, int array, int axis)
{
    if (c->graph->arrays[array].replicated)
        return 1;
    return axis < PEAL_RANK_AXES && c->dims[axis] > 0 ? c->dims[axis] : 1;
}

void part_along(const field_shape *s, int axis, int position, int ranks, int64_t *lo, int64_t *hi)
{
    int64_t low, high;
    if (s->replicated) {
        *lo = 0;
        *hi = s->size[axis];
        return;
    }
    if (axis < PEAL_RANK_AXES && s->cut[axis]) {
        low = s->cut[axis][position];
        high = s->cut[axis][position + 1];
    } else {
        int64_t units = peal_ceil_divide(s->whole[axis], s->align[axis]);
        int64_t base = units / ranks, longer = units % ranks;
        int64_t first = position * base + (position < longer ? position : longer);
        int64_t end = first + base + (position < longer);
        low = first * s->align[axis];
        high = end * s->align[axis];
        if (high > s->whole[axis])
            high = s->whole[axis];
    }
    *lo = peal_ceil_divide(low, s->coarsen[axis]);
    *hi = peal_ceil_divide(high, s->coarsen[axis]);
    if (position == ranks - 1 && *hi > *lo) /* a rank needs a point beside these */
        *hi += s->stagger[axis];
}
