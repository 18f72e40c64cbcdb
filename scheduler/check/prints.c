/* Rows that are never printed: rank 0 prints, and never comes to the statement. (Conditions of
 * loops are alike on all ranks.) */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"

void warn_of_prints(const common_input *c, const pass_context *pass, rank_views *views)
{
    for (int i = 0; i < c->graph->statement_count; i++) {
        const peal_statement *s = c->statement[i];
        if (!s || s->kind != PEAL_STATEMENT_PRINT)
            continue;
        const rank_view *v = view_at(views, 0, STAGE_GEOMETRY);
        if (v && condition_known(s->when, &v->scope) == CONDITION_FALSE)
            peal_warn(pass->diagnostics, PEAL_E_PRINT_NEVER_HAPPENS, s->source,
                      peal_expr_uses(s->when) & PEAL_USES_RANK
                          ? "rank 0 prints: leave the rank out of `when`, and print what allreduce "
                            "gives"
                          : "mend its `when`, which never holds, or leave it out",
                      "rank 0 never comes to this `print`, so it prints nothing");
    }
}
