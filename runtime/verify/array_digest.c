/* The contents of arrays as a number by which modes can be compared. */
#include "base/box.h"
#include "base/handle.h"
#include "runtime/bind/array_rows.h"
#include "runtime/verify/verify.h"

#include <stdlib.h>
#include <string.h>

bool peal_array_is_compared(const peal_schedule *schedule, int array)
{
    const peal_schedule_array *a = &schedule->array[array];
    return a->defined && !a->hidden && !peal_box_is_empty(&a->layout.own);
}

typedef struct cursor {
    const unsigned char *from;
    uint64_t digest;
} cursor;

static uint64_t mix(uint64_t digest, uint64_t word)
{
    digest = (digest ^ word) * UINT64_C(0x9E3779B97F4A7C15);
    return digest ^ digest >> 29;
}

static void digest_row(void *user, int64_t offset, int64_t bytes)
{
    cursor *c = user;
    uint64_t word;
    int64_t i = 0;
    for (; i + 8 <= bytes; i += 8) {
        memcpy(&word, c->from + offset + i, 8);
        c->digest = mix(c->digest, word);
    }
    if (i < bytes) {
        word = 0;
        memcpy(&word, c->from + offset + i, (size_t)(bytes - i));
        c->digest = mix(c->digest, word);
    }
}

/* Adds that of one array of one rank; rank and array are mixed in, so that digests may be combined
 * in any order. */
static peal_status digest_array(const peal_plan *plan, int index, int array, uint64_t *digest)
{
    const peal_schedule *schedule = plan->binding.rank[index].schedule;
    int storage = plan->backend->storage(peal_plan_runner(plan), index, array);
    unsigned char *copy;
    cursor c = {0};
    peal_status status = peal_binding_read(&plan->binding, index, storage, &copy, &c.from);
    if (status)
        return status;
    c.digest = mix(mix(0, (uint64_t)schedule->rank), (uint64_t)array);
    peal_box_rows(&schedule->array[array], &schedule->array[array].layout.own, digest_row, &c);
    free(copy);
    *digest ^= mix(c.digest, 0);
    return PEAL_STATUS_OK;
}

static peal_status no_memory(peal_session *session)
{
    return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the results of %d processes", session->identity.processes);
}

peal_status peal_plan_digest(peal_plan *plan, const char *name, uint64_t *digest)
{
    if (!peal_is_plan(plan, __func__) ||
        !peal_argument_check(digest, "where the number goes", __func__))
        return PEAL_STATUS_USAGE;
    peal_session *session = plan->session;
    int processes = session->identity.processes,
        from = peal_diagnostics_count(session->diagnostics);
    bool known = !name;
    uint64_t own = 0;
    for (int a = 0; name && a < plan->data->array_count; a++)
        known |= !strcmp(plan->data->arrays[a].name, name);
    peal_status status = PEAL_STATUS_OK;
    if (plan->state != PEAL_PLAN_READY && plan->state != PEAL_PLAN_FINISHED)
        status = peal_report(session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                             "call peal_plan_wait first", "peal_plan_digest: the plan is running");
    else if (!known)
        status = peal_report(session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE, NULL,
                             "peal_plan_digest: the graph has no '%s'", name);
    for (int r = 0; !status && r < plan->binding.count; r++)
        for (int a = 0; !status && a < plan->data->array_count; a++)
            if (peal_array_is_compared(plan->binding.rank[r].schedule, a) &&
                (!name || !strcmp(plan->data->arrays[a].name, name)))
                status = digest_array(plan, r, a, &own);
    status = peal_session_agree(session, status, from);
    if (status || processes == 1) {
        if (!status)
            *digest = own;
        return status;
    }
    uint64_t *all = calloc((size_t)processes, sizeof(*all));
    status =
        all ? peal_control_allgather(session->control, &own, sizeof(own), all) : no_memory(session);
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    *digest = 0;
    for (int p = 0; p < processes; p++)
        *digest ^= all[p];
    free(all);
    return PEAL_STATUS_OK;
}

/* Arrays of all ranks here that are compared. */
static int64_t compared_arrays(const peal_plan *plan)
{
    int64_t count = 0;

    for (int r = 0; r < plan->binding.count; r++)
        for (int a = 0; a < plan->data->array_count; a++)
            count += peal_array_is_compared(plan->binding.rank[r].schedule, a);
    return count;
}

peal_status peal_plan_outcome(peal_plan *plan, uint64_t *digest, int64_t *things)
{
    peal_session *session = plan->session;
    int processes = session->identity.processes,
        from = peal_diagnostics_count(session->diagnostics);
    int64_t own = compared_arrays(plan) + plan->row_count;
    uint64_t rows = plan->row_hash; /* of process 0 */
    peal_status status = peal_plan_digest(plan, NULL, digest);

    *things = own;
    if (!status && processes > 1) {
        int64_t *all = calloc((size_t)processes, sizeof(*all));
        status = all ? peal_control_allgather(session->control, &own, sizeof(own), all)
                     : no_memory(session);
        if (!status)
            status = peal_control_broadcast(session->control, 0, &rows, sizeof(rows));
        *things = 0;
        for (int p = 0; all && p < processes; p++)
            *things += all[p];
        free(all);
        if (status)
            return peal_session_fail(session, status, from);
    }
    *digest = mix(*digest, rows);
    return status;
}
