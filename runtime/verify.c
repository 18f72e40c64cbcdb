/* Verification: the same steps again in serial mode, all ranks in process 0 on memory of their own,
 * compared bit for bit with what the plan has left. */
#include "base/box.h"
#include "runtime/memory/available.h"
#include "runtime/plan/plan.h"
#include "runtime/verify/saved.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What was started `times` times in a row. */
typedef struct note {
    int64_t steps, times;
    bool finish;
} note;

/* A schedule whose lent memory is a copy. */
typedef struct twin {
    peal_schedule schedule;
    peal_schedule_array *array;
} twin;

struct peal_oracle {
    peal_machine machine;
    peal_compilation *compilation; /* process 0 */
    twin *twin;                    /* process 0: by rank */
    unsigned char **lent;          /* process 0: by rank * arrays + array; initial contents */
    int ranks, arrays;
    note *note;
    int note_count, note_capacity;
    peal_redirect *redirect; /* process 0: where serial saves; NULL: nothing is saved */
    peal_saves *saves;       /* while serial runs */
};

static peal_status no_memory(const peal_plan *plan)
{
    return peal_report(plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                       "no memory for the verification's tables");
}

/* ---- before the run ---- */

static peal_status check_memory(const peal_plan *plan, const peal_oracle *oracle)
{
    char reason[160] = "";
    int64_t segments = 0, largest = 0;
    for (int a = 0; a < oracle->arrays; a++) {
        int64_t bytes = 0;
        for (int r = 0; r < oracle->ranks; r++) {
            const peal_schedule_array *array = &oracle->twin[r].schedule.array[a];
            bytes += peal_box_bytes(&array->layout.own, array->type);
            if (array->layout.offset < 0)
                segments += array->layout.bytes;
        }
        largest = bytes > largest ? bytes : largest;
    }
    for (int r = 0; r < oracle->ranks; r++)
        segments += oracle->twin[r].schedule.segment_bytes;
    /* the job's own memory, all on this host, is still to be allocated */
    int64_t need = 2 * segments + 2 * largest,
            have = peal_memory_available("", reason, sizeof(reason));
    if (need <= have)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_NO_MEMORY_TO_VERIFY, PEAL_NO_SOURCE,
                       "verify a smaller size, or run without",
                       "the run and its verification need %" PRId64
                       " bytes, process 0 can have %" PRId64 " (%s)",
                       need, have, reason);
}

static bool saves_files(const peal_schedule *schedule)
{
    for (int i = 0; i < schedule->task_count; i++)
        if (schedule->task[i].kind == PEAL_TASK_SAVE)
            return true;
    return false;
}

/* Where a rank saves, serial saves into a folder of its own. */
static peal_status redirect(const peal_plan *plan, const peal_schedule *schedule)
{
    peal_oracle *oracle = plan->oracle;
    if (oracle->redirect || !saves_files(schedule))
        return PEAL_STATUS_OK;
    oracle->redirect = peal_redirect_create();
    if (oracle->redirect)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_LOAD_SAVE_FAILED, PEAL_NO_SOURCE,
                       "set TMPDIR to a folder that can be written",
                       "cannot make a folder for the files of the verification: %s",
                       strerror(errno));
}

/* A copy of the schedule's arrays. */
static peal_status make_twin(const peal_plan *plan, const peal_schedule *schedule, twin *out)
{
    out->array = calloc((size_t)schedule->array_count + 1, sizeof(*out->array));
    if (!out->array)
        return no_memory(plan);
    out->schedule = *schedule;
    for (int i = 0; i < schedule->array_count; i++)
        out->array[i] = schedule->array[i];
    out->schedule.array = out->array;
    return redirect(plan, schedule);
}

peal_status peal_oracle_create(peal_plan *plan)
{
    peal_oracle *oracle = plan->oracle = calloc(1, sizeof(*oracle));
    if (!oracle)
        return no_memory(plan);
    oracle->machine = plan->machine;
    oracle->machine.processes = 1;
    oracle->ranks = plan->machine.ranks;
    oracle->arrays = plan->data->array_count;
    if (plan->session->identity.process != 0)
        return PEAL_STATUS_OK;
    plan->row_log = peal_row_log_create();
    if (!plan->row_log)
        return no_memory(plan);
    peal_status status = peal_compilation_create(plan->data, &oracle->machine, PEAL_MODE_SERIAL,
                                                 plan->session->diagnostics, &oracle->compilation);
    if (status)
        return status;
    oracle->twin = calloc((size_t)oracle->ranks, sizeof(*oracle->twin));
    oracle->lent =
        calloc((size_t)oracle->ranks * (size_t)oracle->arrays + 1, sizeof(*oracle->lent));
    if (!oracle->twin || !oracle->lent)
        return no_memory(plan);
    for (int r = 0; r < oracle->ranks; r++) {
        const peal_schedule *schedule;
        status = peal_compilation_schedule(oracle->compilation, r, &schedule);
        if (!status)
            status = make_twin(plan, schedule, &oracle->twin[r]);
        if (status)
            return status;
    }
    return check_memory(plan, oracle);
}

/* ---- contents of all processes, in process 0 ---- */

/* Which part of an array is gathered. */
typedef enum extent { OWN_POINTS, STORED_POINTS } extent;

static const peal_box *box_of(const peal_schedule_array *array, extent what)
{
    return what == OWN_POINTS ? &array->layout.own : &array->layout.stored;
}

static int64_t bytes_of(const peal_schedule_array *array, extent what)
{
    return peal_box_bytes(box_of(array, what), array->type);
}

/* Packs the array of all ranks here. */
static peal_status pack_array(const peal_plan *plan, int array, extent what, unsigned char *place)
{
    const peal_binding *binding = &plan->binding;
    for (int i = 0; i < binding->count; i++) {
        const peal_schedule_array *a = &binding->rank[i].schedule->array[array];
        int storage = plan->backend->storage(peal_plan_runner(plan), i, array);
        unsigned char *copy;
        const unsigned char *data;
        peal_status status = peal_binding_read(binding, i, storage, &copy, &data);
        if (status)
            return status;
        peal_box_pack(a, box_of(a, what), data, place);
        free(copy);
        place += bytes_of(a, what);
    }
    return PEAL_STATUS_OK;
}

/* Collective. In process 0 packed[r] becomes the array of rank r (malloc'ed). */
static peal_status gather_array(peal_plan *plan, int array, extent what, unsigned char **packed)
{
    peal_session *session = plan->session;
    const peal_binding *binding = &plan->binding;
    int processes = session->identity.processes;
    int64_t bytes = 0;
    for (int i = 0; i < binding->count; i++)
        bytes += bytes_of(&binding->rank[i].schedule->array[array], what);
    unsigned char *mine = malloc((size_t)bytes + 1);
    void **blob = calloc((size_t)processes, sizeof(*blob));
    size_t *size = calloc((size_t)processes, sizeof(*size));
    if (!mine || !blob || !size) {
        free(mine);
        free(blob);
        free(size);
        return no_memory(plan);
    }
    /* all gather, whatever happens here: the others wait for it */
    peal_status packing = pack_array(plan, array, what, mine);
    peal_status status = peal_control_gather(session->control, mine, (size_t)bytes, blob, size);
    for (int p = 0; !status && packed && p < processes; p++) {
        int first, end;
        peal_machine_ranks(&plan->machine, p, &first, &end);
        const unsigned char *from = blob[p];
        size_t left = size[p];
        for (int r = first; r < end && !status; r++) {
            const peal_schedule_array *a = &plan->oracle->twin[r].schedule.array[array];
            size_t need = (size_t)bytes_of(a, what);
            packed[r] = malloc(need + 1);
            if (!packed[r] || left < need) {
                status = packed[r] ? PEAL_STATUS_INTERNAL : no_memory(plan);
                break;
            }
            memcpy(packed[r], from, need);
            from += need;
            left -= need;
        }
    }
    for (int p = 0; p < processes; p++)
        free(blob[p]);
    free(mine);
    free(blob);
    free(size);
    return packing ? packing : status;
}

static void free_packed(unsigned char **packed, int ranks)
{
    for (int r = 0; packed && r < ranks; r++)
        free(packed[r]);
    free(packed);
}

peal_status peal_oracle_remember(peal_plan *plan)
{
    peal_oracle *oracle = plan->oracle;
    bool first = plan->session->identity.process == 0;
    peal_status status = PEAL_STATUS_OK;
    for (int a = 0; !status && a < oracle->arrays; a++) {
        if (!plan->data->arrays[a].data)
            continue;
        unsigned char **packed = first ? calloc((size_t)oracle->ranks, sizeof(*packed)) : NULL;
        if (first && !packed)
            return no_memory(plan);
        status = gather_array(plan, a, STORED_POINTS, packed);
        for (int r = 0; packed && r < oracle->ranks; r++)
            oracle->lent[(size_t)r * (size_t)oracle->arrays + (size_t)a] = packed[r];
        free(packed);
    }
    return status;
}

peal_status peal_oracle_note(peal_plan *plan, int64_t steps, bool finish)
{
    peal_oracle *oracle = plan->oracle;
    note *last = oracle->note_count ? &oracle->note[oracle->note_count - 1] : NULL;
    if (last && last->steps == steps && last->finish == finish && !finish) {
        last->times++;
        return PEAL_STATUS_OK;
    }
    if (oracle->note_count == oracle->note_capacity) {
        int capacity = oracle->note_capacity ? 2 * oracle->note_capacity : 8;
        note *grown = realloc(oracle->note, (size_t)capacity * sizeof(*grown));
        if (!grown)
            return no_memory(plan);
        oracle->note = grown;
        oracle->note_capacity = capacity;
    }
    oracle->note[oracle->note_count++] = (note){steps, 1, finish};
    return PEAL_STATUS_OK;
}

/* ---- the serial run ---- */

/* Lends each twin its own copy of what the plan was lent. */
static peal_status lend_copies(peal_plan *plan, peal_binding *binding, peal_storage *copy)
{
    peal_oracle *oracle = plan->oracle;
    for (int r = 0; r < oracle->ranks; r++) {
        for (int a = 0; a < oracle->arrays; a++) {
            size_t slot = (size_t)r * (size_t)oracle->arrays + (size_t)a;
            peal_schedule_array *array = &oracle->twin[r].array[a];
            if (array->layout.offset >= 0 || !oracle->lent[slot])
                continue;
            peal_status status =
                peal_storage_create(&binding->place, array->layout.bytes + 1, false,
                                    plan->session->diagnostics, &copy[slot]);
            if (status)
                return status;
            peal_box_unpack(array, &array->layout.stored, copy[slot].base, oracle->lent[slot]);
            array->lent = copy[slot].base;
        }
        binding->rank[r].schedule = &oracle->twin[r].schedule;
        binding->backend_rank[r].schedule = &oracle->twin[r].schedule;
    }
    return PEAL_STATUS_OK;
}

static peal_status replay(const peal_plan *plan, peal_backend_plan *run)
{
    const peal_oracle *oracle = plan->oracle;
    int64_t steps = 0;
    bool setup = true;
    for (int i = 0; i < oracle->note_count; i++)
        for (int64_t t = 0; t < oracle->note[i].times; t++) {
            peal_backend_result result = {0};
            peal_status status =
                plan->backend->start(run, setup, oracle->note[i].steps, oracle->note[i].finish);
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

/* Collective; process 0 has the serial run. All processes gather all arrays, whatever was found. */
static peal_status compare_array(peal_plan *plan, int array, const peal_binding *serial,
                                 const peal_backend_plan *run, int64_t *things)
{
    peal_oracle *oracle = plan->oracle;
    bool first = plan->session->identity.process == 0;
    unsigned char **packed = first ? calloc((size_t)oracle->ranks, sizeof(*packed)) : NULL;
    if (first && !packed)
        return no_memory(plan);
    peal_status status = gather_array(plan, array, OWN_POINTS, packed);
    for (int r = 0; !status && packed && r < oracle->ranks; r++) {
        const peal_schedule *schedule = &oracle->twin[r].schedule;
        if (!peal_array_is_compared(schedule, array))
            continue;
        ++*things;
        const peal_schedule_array *a = &schedule->array[array];
        int64_t bytes = bytes_of(a, OWN_POINTS);
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

peal_saves *peal_oracle_saves(const peal_oracle *oracle)
{
    return oracle->saves;
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

peal_status peal_report_nothing(const peal_graph_data *graph, peal_diagnostics *diagnostics)
{
    const peal_array *empty = NULL;
    for (int i = graph->array_count - 1; i >= 0; i--)
        if (graph->arrays[i].kind == PEAL_ARRAY_FIELD || graph->arrays[i].keep)
            empty = &graph->arrays[i];
    if (empty)
        return peal_report(diagnostics, PEAL_E_NOTHING_COMPARED, empty->source,
                           "give it elements, or print or save a result",
                           "nothing was compared: what the spec keeps (`%s`) has 0 elements on all "
                           "ranks, and no row was printed and no file saved",
                           empty->name);
    return peal_report(diagnostics, PEAL_E_NOTHING_COMPARED, PEAL_NO_SOURCE,
                       "let a buffer `keep: true`, or print or save a result",
                       "nothing was compared: the spec has no fields and keeps no buffer, and "
                       "no row was printed and no file saved");
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
    peal_status met = peal_session_meet(session, PEAL_MEET_VERIFY, plan->hash, plan->steps_asked);
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

void peal_oracle_destroy(peal_oracle *oracle)
{
    if (!oracle)
        return;
    for (int r = 0; oracle->twin && r < oracle->ranks; r++)
        free(oracle->twin[r].array);
    peal_redirect_destroy(oracle->redirect);
    for (int i = 0; oracle->lent && i < oracle->ranks * oracle->arrays; i++)
        free(oracle->lent[i]);
    free(oracle->twin);
    free(oracle->lent);
    free(oracle->note);
    peal_compilation_destroy(oracle->compilation);
    free(oracle);
}
