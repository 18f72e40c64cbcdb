/* What a verification needs to know of a run: what was started, what memory was lent with which
 * contents, and schedules of mode serial for all ranks. And the contents of an array of all ranks,
 * gathered in process 0. */
#include "runtime/verify/oracle.h"
#include "runtime/bind/array_rows.h"
#include "runtime/memory/available.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

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
            const peal_schedule_array *array = &oracle->serial[r].schedule.array[a];
            bytes += peal_box_bytes(&array->layout.own, array->type);
            if (array->layout.offset < 0)
                segments += array->layout.bytes;
        }
        largest = bytes > largest ? bytes : largest;
    }
    for (int r = 0; r < oracle->ranks; r++)
        segments += oracle->serial[r].schedule.segment_bytes;
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
static peal_status copy_arrays(const peal_plan *plan, const peal_schedule *schedule,
                               peal_serial_rank *out)
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
    oracle->serial = calloc((size_t)oracle->ranks, sizeof(*oracle->serial));
    oracle->lent =
        calloc((size_t)oracle->ranks * (size_t)oracle->arrays + 1, sizeof(*oracle->lent));
    if (!oracle->serial || !oracle->lent)
        return no_memory(plan);
    for (int r = 0; r < oracle->ranks; r++) {
        const peal_schedule *schedule;
        status = peal_compilation_schedule(oracle->compilation, r, &schedule);
        if (!status)
            status = copy_arrays(plan, schedule, &oracle->serial[r]);
        if (status)
            return status;
    }
    return check_memory(plan, oracle);
}

/* ---- contents of all processes, in process 0 ---- */

static const peal_box *box_of(const peal_schedule_array *array, peal_extent what)
{
    return what == PEAL_OWN_POINTS ? &array->layout.own : &array->layout.stored;
}

static int64_t bytes_of(const peal_schedule_array *array, peal_extent what)
{
    return peal_box_bytes(box_of(array, what), array->type);
}

/* Packs the array of all ranks here. */
static peal_status pack_array(const peal_plan *plan, int array, peal_extent what,
                              unsigned char *out)
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
        peal_box_pack(a, box_of(a, what), data, out);
        free(copy);
        out += bytes_of(a, what);
    }
    return PEAL_STATUS_OK;
}

peal_status peal_oracle_gather(peal_plan *plan, int array, peal_extent what, unsigned char **packed)
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
            const peal_schedule_array *a = &plan->oracle->serial[r].schedule.array[array];
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
        status = peal_oracle_gather(plan, a, PEAL_STORED_POINTS, packed);
        for (int r = 0; packed && r < oracle->ranks; r++)
            oracle->lent[(size_t)r * (size_t)oracle->arrays + (size_t)a] = packed[r];
        free(packed);
    }
    return status;
}

peal_status peal_oracle_note(peal_plan *plan, int64_t steps, bool finish)
{
    peal_oracle *oracle = plan->oracle;
    peal_start_run *last = oracle->start_count ? &oracle->start[oracle->start_count - 1] : NULL;
    if (last && last->steps == steps && last->finish == finish && !finish) {
        last->times++;
        return PEAL_STATUS_OK;
    }
    if (oracle->start_count == oracle->start_room) {
        int capacity = oracle->start_room ? 2 * oracle->start_room : 8;
        peal_start_run *grown = realloc(oracle->start, (size_t)capacity * sizeof(*grown));
        if (!grown)
            return no_memory(plan);
        oracle->start = grown;
        oracle->start_room = capacity;
    }
    oracle->start[oracle->start_count++] = (peal_start_run){steps, 1, finish};
    return PEAL_STATUS_OK;
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

peal_saves *peal_oracle_saves(const peal_oracle *oracle)
{
    return oracle->saves;
}

void peal_oracle_destroy(peal_oracle *oracle)
{
    if (!oracle)
        return;
    for (int r = 0; oracle->serial && r < oracle->ranks; r++)
        free(oracle->serial[r].array);
    peal_redirect_destroy(oracle->redirect);
    for (int i = 0; oracle->lent && i < oracle->ranks * oracle->arrays; i++)
        free(oracle->lent[i]);
    free(oracle->serial);
    free(oracle->lent);
    free(oracle->start);
    peal_compilation_destroy(oracle->compilation);
    free(oracle);
}
