/* Whether two ranks that need each other in an exchange or a reduction both take part, under one
 * condition. */
#include "scheduler/conditions/conditions.h"
#include "scheduler/messages/messages.h"
#include "scheduler/stories/stories.h"

/* Whether two ranks do what both take part in under one condition. */
static peal_status check_alike(const common_input *c, const pass_context *pass,
                               condition_table *conditions, const rank_view *v,
                               const rank_view *other, const peal_statement *s)
{
    int rank[2] = {v->rank, other->rank};
    const condition_end one = {s, v->statement[s->id].condition},
                        two = {s, other->statement[s->id].condition};
    const peal_statement *writer;
    int array;
    condition_match how = one.term == two.term
                              ? CONDITIONS_AGREE
                              : match_conditions(c, conditions, &one, &two, &writer, &array);
    peal_code code = how == CONDITIONS_UNDECIDED ? PEAL_E_CONDITIONS_NOT_COMPARABLE
                                                 : PEAL_E_MESSAGE_CONDITION_MISMATCH;
    peal_story story = {0};
    if (how == CONDITIONS_AGREE)
        return PEAL_STATUS_OK;
    if (peal_diagnostics_want(pass->diagnostics, code, s->source))
        tell_apart(c, s, rank, &story);
    return peal_report_story(
        pass->diagnostics, code, s->source, "give it a `when` that is the same on all ranks",
        &story,
        how == CONDITIONS_UNDECIDED
            ? "`%s` on rank %d needs rank %d: whether its `when` is the same there cannot be "
              "decided"
            : "`%s` on rank %d needs rank %d, where its `when` holds in other iterations",
        s->name, v->rank, other->rank);
}

peal_status check_partner(const common_input *c, const pass_context *pass,
                          condition_table *conditions, const rank_view *v, const rank_view *other,
                          const peal_statement *s)
{
    peal_story story = {0};
    if (is_active(other, s))
        return check_alike(c, pass, conditions, v, other, s);
    if (peal_diagnostics_want(pass->diagnostics, PEAL_E_UNMATCHED_MESSAGE, s->source))
        tell_absent(c, v, other, s, &story);
    return peal_report_story(pass->diagnostics, PEAL_E_UNMATCHED_MESSAGE, s->source,
                             "give it a `when` that is the same on all ranks", &story,
                             "`%s` on rank %d needs rank %d, but rank %d takes no part", s->name,
                             v->rank, other->rank, other->rank);
}
