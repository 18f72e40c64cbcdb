/* Verification: the same steps again in serial mode, all ranks in process 0 on memory of their own,
 * compared bit for bit with what the plan has left. */
#include "runtime/bind/array_rows.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/oracle.h"
#include "runtime/verify/saved.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static peal_status no_memory(const peal_plan *plan)
{
    return peal_report(plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the verification's tables");
}

/* ---- the serial run ---- */

/* Lends each serial rank its own copy of what the plan was lent. */
static peal_status lend_copies(peal_plan *plan, peal_binding *binding, peal_storage *copy)
{
    peal_oracle *oracle = plan->oracle;
    for (int r = 0; r < oracle->ranks; r++) {
        for (int a = 0; a < oracle->arrays; a++) {
            size_t slot = (size_t)r * (size_t)oracle->arrays + (size_t)a;
            peal_schedule_array *array = &oracle->serial[r].array[a];
            if (array->layout.offset >= 0 || !oracle->lent[slot])
                continue;
            peal_status status =
                peal_storage_create(&binding->space, array->layout.bytes + 1, false,
                                    plan->session->diagnostics, &copy[slot]);
            if (status)
                return status;
            peal_box_unpack(array, &array->layout.stored, copy[slot].base, oracle->lent[slot]);
            array->lent = copy[slot].base;
        }
        binding->rank[r].schedule = &oracle->serial[r].schedule;
        binding->backend_rank[r].schedule = &oracle->serial[r].schedule;
    }
    return PEAL_STATUS_OK;
}

static peal_status replay(const peal_plan *plan, peal_backend_plan *run)
{
    const peal_oracle *oracle = plan->oracle;
    int64_t steps = 0;
    bool setup = true;
    for (int i = 0; i < oracle->start_count; i++)
        for (int64_t t = 0; t < oracle->start[i].times; t++) {
            peal_backend_result result = {0};
            peal_status status =
                plan->backend->start(run, setup, oracle->start[i].steps, oracle->start[i].finish);
            if (!status)
                status = plan->backend->wait(run, &result);
            if (status)
                return status;
            setup = false;
            steps += result.steps_done;
        }
    if (plan->binding.count && steps != plan->steps_done)
        return peal_report(plan->session->diagnostics, PEAL_E_VERIFICATION_FAILED, PEAL_NO_SOURCE,
                           NULL, "the run stopped after %" PRId64 " steps, serial after %" PRId64,
                           plan->steps_done, steps);
    return PEAL_STATUS_OK;
}

/* ---- comparison ---- */

static void free_packed(unsigned char **packed, int ranks)
{
    for (int r = 0; packed && r < ranks; r++)
        free(packed[r]);
    free(packed);
}

/* Collective; process 0 has the serial run. All processes gather all arrays, whatever was found. */
static peal_status compare_array(peal_plan *plan, int array, const peal_binding *serial,
                                 const peal_backend_plan *run, int64_t *things)
{
    peal_oracle *oracle = plan->oracle;
    bool first = plan->session->identity.process == 0;
    unsigned char **packed = first ? calloc((size_t)oracle->ranks, sizeof(*packed)) : NULL;
    if (first && !packed)
        return no_memory(plan);
    peal_status status = peal_oracle_gather(plan, array, PEAL_OWN_POINTS, packed);
    for (int r = 0; !status && packed && r < oracle->ranks; r++) {
        const peal_schedule *schedule = &oracle->serial[r].schedule;
        if (!peal_array_is_compared(schedule, array))
            continue;
        ++*things;
        const peal_schedule_array *a = &schedule->array[array];
        int64_t bytes = peal_box_bytes(&a->layout.own, a->type);
        unsigned char *want = malloc((size_t)bytes + 1);
        if (!want) {
            status = no_memory(plan);
            break;
        }
        int storage = plan->backend->storage(run, r, array);
        peal_box_pack(a, &a->layout.own, peal_binding_array(serial, r, storage), want);
        if (memcmp(want, packed[r], (size_t)bytes) != 0)
            status = peal_report_difference(plan, schedule, array, packed[r], want);
        free(want);
    }
    free_packed(packed, oracle->ranks);
    return status;
}

/* Serial loads what was there before the run, and what it has saved itself. */
static peal_status open_files(const peal_plan *plan)
{
    peal_oracle *oracle = plan->oracle;
    if (!oracle->redirect)
        return PEAL_STATUS_OK;
    peal_redirect_clear(oracle->redirect); /* of an earlier verification */
    oracle->saves = peal_saves_create(plan->data, oracle->ranks, NULL, &plan->session->abort_word);
    if (!oracle->saves)
        return no_memory(plan);
    peal_saves_divert(oracle->saves, plan->originals, oracle->redirect);
    return PEAL_STATUS_OK;
}

static void close_files(peal_oracle *oracle)
{
    peal_saves_destroy(oracle->saves);
    oracle->saves = NULL;
}

/* In process 0: everything is run again. */
static peal_status run_serial(peal_plan *plan, peal_binding *binding, peal_backend_plan **run,
                              peal_storage *copy)
{
    peal_oracle *oracle = plan->oracle;
    peal_status status =
        peal_binding_allocate(binding, plan->session, oracle->compilation, &oracle->machine, 0);
    if (!status)
        status = peal_binding_attach(binding);
    if (!status)
        status = lend_copies(plan, binding, copy);
    if (!status)
        status = open_files(plan);
    if (!status)
        status = peal_plan_arm(plan, binding, PEAL_MODE_SERIAL, run);
    peal_row_log_rewind(plan->row_log);
    return status ? status : replay(plan, *run);
}

static peal_status check_state(const peal_plan *plan)
{
    if (plan->state == PEAL_PLAN_FAILED)
        return plan->failure;
    if (plan->state == PEAL_PLAN_RUNNING)
        return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "call peal_plan_wait first", "peal_plan_verify: the plan is running");
    if (!plan->oracle)
        return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "set .verify = true in peal_plan_options",
                           "peal_plan_verify: the plan was not compiled for it");
    return PEAL_STATUS_OK;
}

/* What arrays don't show; and whether there was anything (*things: arrays so far). */
static peal_status compare_rest(const peal_plan *plan, int64_t things)
{
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    int files = 0;
    if (plan->session->identity.process != 0)
        return PEAL_STATUS_OK;
    peal_status status = peal_row_log_judge(plan->row_log, diagnostics);
    if (!status && plan->oracle->redirect)
        status = peal_saved_compare(plan->oracle->redirect, &files, diagnostics);
    if (!status && things + plan->row_count + files == 0)
        status = peal_report_nothing(plan->data, diagnostics);
    return status;
}

peal_status peal_plan_verify(peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return PEAL_STATUS_USAGE;
    peal_session *session = plan->session;
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = check_state(plan);
    if (status)
        return status;
    peal_oracle *oracle = plan->oracle;
    peal_binding binding = {0};
    peal_backend_plan *run = NULL;
    size_t slots = (size_t)oracle->ranks * (size_t)oracle->arrays;
    peal_storage *copy = calloc(slots + 1, sizeof(*copy));
    if (!copy)
        status = no_memory(plan);
    peal_session_running(session, true);
    if (!status && session->identity.process == 0)
        status = run_serial(plan, &binding, &run, copy);
    peal_session_running(session, false);
    peal_status met =
        peal_session_barrier(session, PEAL_BARRIER_VERIFY, plan->hash, plan->steps_asked);
    status = met ? met : peal_session_agree(session, status, from);
    int64_t things = 0;
    for (int a = 0; !status && a < oracle->arrays; a++)
        status = peal_session_agree(session, compare_array(plan, a, &binding, run, &things), from);
    if (!status)
        status = peal_session_agree(session, compare_rest(plan, things), from);
    if (run)
        plan->backend->destroy(run);
    close_files(oracle);
    for (size_t i = 0; copy && i < slots; i++)
        peal_storage_release(&copy[i]);
    free(copy);
    peal_binding_release(&binding);
    return status;
}
