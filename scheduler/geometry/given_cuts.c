/* Cuts that the topology gives: `cuts: [[0, 100, 512], auto]`. */
#include "scheduler/geometry/geometry.h"

#include <stdarg.h>
#include <stdio.h>

static peal_status refuse(const pass_context *pass, peal_source source, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static peal_status refuse(const pass_context *pass, peal_source source, const char *format, ...)
{
    char text[160];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return peal_report(pass->diagnostics, PEAL_E_CUTS_MISMATCH, source,
                       "write 0, where each part ends, and the size: [0, 100, 512] are two parts",
                       "%s", text);
}

static peal_status read_axis(common_input *c, const pass_context *pass, int k)
{
    const peal_topology *t = &c->graph->topology;
    peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    int64_t *cut = PEAL_ARENA_ARRAY(pass->arena, int64_t, t->cut_count[k]);
    for (int i = 0; i < t->cut_count[k]; i++) {
        peal_source source = t->cut[k][i]->source;
        peal_status status = peal_expr_integer(t->cut[k][i], &scope, 0, &cut[i], pass->diagnostics);
        if (status)
            return status;
        if (i == 0 && cut[0] != 0)
            return refuse(pass, source, "the cuts of axis %c begin at %lld, not at 0", "xyz"[k],
                          (long long)cut[0]);
        if (i > 0 && cut[i] <= cut[i - 1])
            return refuse(pass, source, "the cuts of axis %c don't ascend: %lld after %lld",
                          "xyz"[k], (long long)cut[i], (long long)cut[i - 1]);
    }
    c->cut[k] = cut;
    return PEAL_STATUS_OK;
}

peal_status read_given_cuts(common_input *c, const pass_context *pass, int dims[PEAL_RANK_AXES])
{
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        if (!c->graph->topology.cut_count[k])
            continue;
        peal_status status = read_axis(c, pass, k);
        if (status)
            return status;
        dims[k] = c->graph->topology.cut_count[k] - 1;
    }
    return PEAL_STATUS_OK;
}

static peal_status check_field(const common_input *c, const pass_context *pass, int array,
                               const field_shape *shape, int k)
{
    const peal_array *a = &c->graph->arrays[array];
    const peal_topology *t = &c->graph->topology;
    int parts = t->cut_count[k] - 1;
    if (c->cut[k][parts] != shape->whole[k])
        return refuse(pass, t->cut[k][parts]->source,
                      "the cuts of axis %c end at %lld, field `%.40s` has %lld points there",
                      "xyz"[k], (long long)c -> cut[k][parts], a -> name,
                      (long long)shape -> whole[k]);
    for (int i = 1; i < parts; i++)
        if (c->cut[k][i] % shape->align[k])
            return refuse(pass, t->cut[k][i]->source,
                          "axis %c is cut at %lld, field `%.40s` only at multiples of %lld "
                          "(`align`)",
                          "xyz"[k], (long long)c -> cut[k][i], a -> name,
                          (long long)shape -> align[k]);
    return PEAL_STATUS_OK;
}

peal_status check_given_cuts(const common_input *c, const pass_context *pass,
                             const cut_rules *rules)
{
    for (int i = 0; i < c->graph->array_count; i++)
        for (int k = 0; rules->known[i] && k < c->graph->arrays[i].axis_count && k < PEAL_RANK_AXES;
             k++) {
            peal_status status =
                c->cut[k] ? check_field(c, pass, i, &rules->shape[i], k) : PEAL_STATUS_OK;
            if (status)
                return status;
        }
    return PEAL_STATUS_OK;
}
