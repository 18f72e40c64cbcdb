/* Which boxes of a rank's halo an exchange fills, by the direction of their owner. */
#include "scheduler/geometry/geometry.h"

static peal_status item_amount(const common_input *c, const pass_context *pass, const rank_view *v,
                               const peal_exchange_item *item, int64_t amount[PEAL_AXES][2])
{
    field_shape shape;
    peal_status status = shape_of(c, pass, &v->scope, item->array, &shape);
    if (status)
        return status;
    for (int k = 0; k < PEAL_AXES; k++)
        amount[k][0] = shape.halo[k][0], amount[k][1] = shape.halo[k][1];
    if (item->footprint == PEAL_FOOTPRINT_WHOLE)
        return PEAL_STATUS_OK;
    int64_t part[PEAL_AXES][2];
    status = amount_of(pass, &v->scope, &item->amount, part);
    for (int k = 0; !status && k < PEAL_AXES; k++)
        for (int side = 0; side < 2; side++) {
            if (part[k][side] < 0 || part[k][side] > amount[k][side])
                return peal_report(
                    pass->diagnostics, PEAL_E_EXCHANGE_TOO_WIDE, item->source,
                    part[k][side] < 0 ? "exchange 0 points or more"
                                      : "exchange at most the field's halo",
                    "exchange of %lld points of `%s` along axis %c; its halo there is %lld",
                    (long long)part[k][side], array_name(c, item->array), "xyzw"[k],
                    (long long)amount[k][side]);
            amount[k][side] = part[k][side];
        }
    return status;
}

static peal_status check_copy(const common_input *c, const pass_context *pass, const rank_view *v,
                              const peal_exchange_item *item)
{
    field_shape from, into;
    peal_status status = shape_of(c, pass, &v->scope, item->array, &from);
    status = status ? status : shape_of(c, pass, &v->scope, item->into, &into);
    for (int k = 0; !status && k < from.axis_count; k++)
        if (from.size[k] != into.size[k])
            return peal_report(pass->diagnostics, PEAL_E_UNEQUAL_COPY, item->source,
                               "sizes are compared after coarsen and stagger",
                               "`%s` has %lld points along axis %c, `%s` has %lld",
                               array_name(c, item->array), (long long)from.size[k], "xyzw"[k],
                               array_name(c, item->into), (long long)into.size[k]);
    return status;
}

/* What is wrong with an exchange, whoever its neighbours are. */
peal_status check_exchange(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_statement *s)
{
    int64_t amount[PEAL_AXES][2];
    peal_status first = PEAL_STATUS_OK;
    for (int i = 0; i < s->u.exchange.item_count; i++) {
        const peal_exchange_item *item = &s->u.exchange.item[i];
        peal_status status =
            item->into >= 0 ? check_copy(c, pass, v, item) : item_amount(c, pass, v, item, amount);
        first = first ? first : status;
    }
    return first;
}

static int nonzero_steps(const int direction[PEAL_RANK_AXES])
{
    return (direction[0] != 0) + (direction[1] != 0) + (direction[2] != 0);
}

peal_status exchange_boxes(const common_input *c, const pass_context *pass, const rank_view *v,
                           const peal_exchange_item *item, peal_box out[27])
{
    int64_t amount[PEAL_AXES][2];
    peal_status status = item_amount(c, pass, v, item, amount);
    int axes = c->graph->arrays[item->array].axis_count;
    for (int number = 0; number < 27; number++) {
        int direction[PEAL_RANK_AXES] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
        int steps = nonzero_steps(direction);
        out[number] = (peal_box){0};
        if (!status && steps && !(axes < 3 && direction[2]) && !(axes < 2 && direction[1]) &&
            !(item->footprint == PEAL_FOOTPRINT_STAR && steps > 1) &&
            halo_owner(c, v, item->array, direction) >= 0)
            out[number] = halo_box(v, item->array, (const int64_t(*)[2])amount, direction);
    }
    return status;
}
