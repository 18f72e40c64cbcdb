/* What is warned of without being asked for: a NaN that `print` shows, or that `until` compares. */
#include "base/expression.h"
#include "runtime/plan/plan.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

void peal_watch_row(peal_watch *watch, int64_t step, int count, const char *const *names,
                    const peal_value *values)
{
    for (int i = 0; i < count && !watch->row_seen; i++) {
        if (values[i].kind != PEAL_REAL || !isnan(values[i].u.real))
            continue;
        watch->row_seen = true;
        watch->row_step = step;
        snprintf(watch->row_name, sizeof(watch->row_name), "%s", names[i]);
    }
}

typedef struct until_scan {
    const peal_plan *plan;
    const char *name; /* of a buffer that is NaN; NULL: none */
} until_scan;

static void look_at_until(void *user, int array)
{
    until_scan *u = user;
    const peal_schedule_array *a = &u->plan->binding.rank[0].schedule->array[array];
    const unsigned char *data;
    unsigned char *copy;
    int storage = u->plan->backend->storage(peal_plan_runner(u->plan), 0, array);
    if (u->name || peal_binding_read(&u->plan->binding, 0, storage, &copy, &data))
        return;
    int64_t bytes = (int64_t)peal_type_bytes(a->type);
    if (data && peal_watch_find(PEAL_WATCH_NAN, a->type, data, bytes) >= 0)
        u->name = a->name;
    free(copy);
}

void peal_watch_tell(peal_plan *plan)
{
    peal_watch *watch = &plan->watch;
    const peal_expr *until = plan->data->step.until;
    static const char *const hint = "`--watch nan` says where it begins";
    if (watch->what)
        return;
    if (watch->row_seen)
        peal_warn(plan->session->diagnostics, PEAL_E_NOT_A_NUMBER, PEAL_NO_SOURCE, hint,
                  "'%s' of `print` is nan at step %" PRId64, watch->row_name, watch->row_step);
    if (!until || plan->binding.count < 1 || plan->binding.first > 0 || !plan->steps_done)
        return;
    until_scan u = {.plan = plan};
    peal_expr_elements(until, look_at_until, &u);
    if (!u.name)
        return;
    peal_warn(plan->session->diagnostics, PEAL_E_NOT_A_NUMBER, until->source, hint,
              "`until` compares `%s`, which is nan after %" PRId64 " steps", u.name,
              plan->steps_done);
}
