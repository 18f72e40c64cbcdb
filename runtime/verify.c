/* Verification: the same steps again in serial mode, all ranks in process 0 on memory of their own,
 * compared bit for bit with what the plan has left. */
#include "runtime/bind/array_rows.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/other_ranks.h"
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
static peal_status lend_copies(peal_plan *plan, const peal_oracle *oracle, peal_binding *binding,
                               peal_storage *copy)
{
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

static peal_status replay(const peal_plan *plan, const peal_oracle *oracle, peal_backend_plan *run)
{
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
        return peal_report(plan->session->diagnostics,
                           oracle->on_other_ranks ? PEAL_E_RANKS_DIFFER
                                                  : PEAL_E_VERIFICATION_FAILED,
                           PEAL_NO_SOURCE, NULL,
                           "the run stopped after %" PRId64 " steps, serial%s after %" PRId64,
                           plan->steps_done, oracle->on_other_ranks ? " on other ranks" : "",
                           steps);
    return PEAL_STATUS_OK;
}

/* ---- comparison ---- */

/* A verification under way. */
typedef struct verification {
    peal_plan *plan;
    peal_oracle *oracle;
    /* process 0: */
    peal_binding binding;
    peal_backend_plan *run;
    peal_storage *copy; /* of lent memory, by rank * arrays + array */
    peal_tally *tally;  /* on other ranks: by array */
    int64_t things;     /* arrays that were compared */
    peal_ranks_verdict verdict;
} verification;

/* In process 0: own points of the run's ranks with those of the serial ones. */
static peal_status compare_ranks(verification *v, int array, const peal_packed *packed)
{
    const peal_plan *plan = v->plan;
    peal_status status = PEAL_STATUS_OK;
    for (int r = 0; !status && r < v->oracle->ranks; r++) {
        const peal_schedule *schedule = &v->oracle->serial[r].schedule;
        if (!peal_array_is_compared(schedule, array))
            continue;
        v->things++;
        const peal_schedule_array *a = &schedule->array[array];
        int64_t bytes = peal_box_bytes(&a->layout.own, a->type);
        unsigned char *want = malloc((size_t)bytes + 1);
        if (!want)
            return no_memory(plan);
        int storage = plan->backend->storage(v->run, r, array);
        peal_box_pack(a, &a->layout.own, peal_binding_array(&v->binding, r, storage), want);
        if (memcmp(want, packed[r].data, (size_t)bytes) != 0)
            status = peal_report_difference(plan, schedule, array, packed[r].data, want);
        free(want);
    }
    return status;
}

/* Collective; process 0 has the serial run. All processes gather all arrays, whatever was found. */
static peal_status compare_array(verification *v, int array)
{
    peal_packed *packed;
    peal_status status = peal_oracle_gather(v->plan, array, PEAL_OWN_POINTS, &packed);
    if (!status && packed && v->oracle->on_other_ranks)
        status = peal_other_ranks_compare(v->plan, v->oracle, array, packed, &v->binding, v->run,
                                          &v->tally[array]);
    else if (!status && packed)
        status = compare_ranks(v, array, packed);
    if (packed && v->tally[array].points > 0)
        v->things++;
    peal_packed_free(packed, v->plan->machine.ranks);
    return status;
}

/* Serial loads what was there before the run, and what it has saved itself. */
static peal_status open_files(const peal_plan *plan, peal_oracle *oracle)
{
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
static peal_status run_serial(verification *v)
{
    peal_plan *plan = v->plan;
    peal_oracle *oracle = v->oracle;
    peal_status status =
        peal_binding_allocate(&v->binding, plan->session, oracle->compilation, &oracle->machine, 0);
    if (!status)
        status = peal_binding_attach(&v->binding);
    if (!status)
        status = lend_copies(plan, oracle, &v->binding, v->copy);
    if (!status)
        status = open_files(plan, oracle);
    if (!status)
        status = peal_plan_arm(plan, &v->binding, PEAL_MODE_SERIAL, oracle->saves, &v->run);
    peal_row_log_rewind(plan->row_log, oracle->likeness);
    return status ? status : replay(plan, oracle, v->run);
}

static peal_status check_state(const peal_plan *plan, bool prepared)
{
    if (plan->state == PEAL_PLAN_FAILED)
        return plan->failure;
    if (plan->state == PEAL_PLAN_RUNNING)
        return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "call peal_plan_wait first", "peal_plan_verify: the plan is running");
    if (!prepared)
        return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "set .verify = true in peal_plan_options",
                           "peal_plan_verify: the plan was not compiled for it");
    return PEAL_STATUS_OK;
}

/* Columns of `print` that are the same on other ranks, but for rounding: into the verdict. Those
 * that tell of something. */
static int64_t alike_rows(const peal_plan *plan, const peal_likeness *likeness,
                          peal_ranks_verdict *verdict)
{
    bool any = false;
    for (int i = 0; i < likeness->column_count; i++) {
        const peal_alike_column *column = &likeness->column[i];
        any |= column->alike != PEAL_OWN_OF_RANK;
        if (column->alike == PEAL_SAME_BUT_ROUNDING && column->difference > 0 &&
            column->difference / column->largest > verdict->rounding)
            verdict->rounding = column->difference / column->largest;
    }
    return any ? plan->row_count : 0;
}

/* What arrays don't show; and whether there was anything. */
static peal_status compare_rest(verification *v)
{
    const peal_plan *plan = v->plan;
    peal_likeness *likeness = v->oracle->likeness;
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    int files = 0;
    if (plan->session->identity.process != 0)
        return PEAL_STATUS_OK;
    peal_status status = peal_row_log_judge(plan->row_log, diagnostics);
    if (!status && likeness)
        status = peal_other_ranks_judge(plan, v->oracle, v->tally, &v->verdict);
    if (!status && v->oracle->redirect)
        status = peal_saved_compare(v->oracle->redirect, likeness, &files, diagnostics);
    int64_t rows = likeness ? alike_rows(plan, likeness, &v->verdict) : plan->row_count;
    if (!status && v->things + rows + files == 0 && v->verdict.own[0])
        return peal_report(diagnostics, PEAL_E_NOTHING_COMPARED, PEAL_NO_SOURCE,
                           "print or save something that all ranks have alike",
                           "nothing was compared: each rank has its own of what is kept (%s)",
                           v->verdict.own);
    if (!status && v->things + rows + files == 0)
        status = peal_report_nothing(plan->data, diagnostics);
    return status;
}

static void end(verification *v)
{
    size_t slots = (size_t)v->oracle->ranks * (size_t)v->oracle->arrays;
    if (v->run)
        v->plan->backend->destroy(v->run);
    close_files(v->oracle);
    for (size_t i = 0; v->copy && i < slots; i++)
        peal_storage_release(&v->copy[i]);
    free(v->copy);
    free(v->tally);
    peal_binding_release(&v->binding);
}

peal_status peal_plan_verify_by(peal_plan *plan, peal_oracle_kind which,
                                peal_ranks_verdict *verdict)
{
    peal_session *session = plan->session;
    int from = peal_diagnostics_count(session->diagnostics);
    verification v = {.plan = plan, .oracle = plan->oracle[which]};
    peal_status status = check_state(plan, v.oracle != NULL);
    if (status)
        return status;
    v.verdict.ranks = v.oracle->ranks;
    v.copy = calloc((size_t)v.oracle->ranks * (size_t)v.oracle->arrays + 1, sizeof(*v.copy));
    v.tally = calloc((size_t)v.oracle->arrays + 1, sizeof(*v.tally));
    if (!v.copy || !v.tally)
        status = no_memory(plan);
    peal_session_running(session, true);
    if (!status && session->identity.process == 0)
        status = run_serial(&v);
    peal_session_running(session, false);
    peal_status met =
        peal_session_barrier(session, PEAL_BARRIER_VERIFY, plan->hash, plan->steps_asked);
    status = met ? met : peal_session_agree(session, status, from);
    for (int a = 0; !status && a < v.oracle->arrays; a++)
        status = peal_session_agree(session, compare_array(&v, a), from);
    if (!status)
        status = peal_session_agree(session, compare_rest(&v), from);
    end(&v);
    if (verdict)
        *verdict = v.verdict;
    return status;
}

peal_status peal_plan_verify(peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return PEAL_STATUS_USAGE;
    peal_status status =
        check_state(plan, plan->oracle[PEAL_SAME_RANKS] || plan->oracle[PEAL_OTHER_RANKS]);
    for (int i = 0; i < PEAL_ORACLES && !status; i++)
        if (plan->oracle[i])
            status = peal_plan_verify_by(plan, (peal_oracle_kind)i, NULL);
    return peal_session_outcome(plan->session, status);
}
