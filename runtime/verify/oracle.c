/* What a verification needs to know of a run: what was started, what memory was lent with which
 * contents, and schedules of mode serial for all ranks. And the contents of an array of all ranks,
 * gathered in process 0. */
#include "runtime/verify/oracle.h"
#include "runtime/bind/array_rows.h"
#include "runtime/memory/available.h"
#include "runtime/verify/other_ranks.h"

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
static peal_status redirect(const peal_plan *plan, peal_oracle *oracle,
                            const peal_schedule *schedule)
{
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
static peal_status copy_arrays(const peal_plan *plan, peal_oracle *oracle,
                               const peal_schedule *schedule, peal_serial_rank *out)
{
    out->array = calloc((size_t)schedule->array_count + 1, sizeof(*out->array));
    if (!out->array)
        return no_memory(plan);
    out->schedule = *schedule;
    for (int i = 0; i < schedule->array_count; i++)
        out->array[i] = schedule->array[i];
    out->schedule.array = out->array;
    return redirect(plan, oracle, schedule);
}

/* In process 0: the schedules of all serial ranks. */
static peal_status schedule_all(const peal_plan *plan, peal_oracle *oracle)
{
    peal_status status = peal_compilation_create(plan->data, &oracle->machine, PEAL_MODE_SERIAL,
                                                 plan->session->diagnostics, &oracle->compilation);
    if (!status)
        peal_compilation_limit(oracle->compilation, peal_plan_deadline_ns(plan));
    if (!status && oracle->on_other_ranks)
        status = peal_compilation_check(oracle->compilation);
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
            status = copy_arrays(plan, oracle, schedule, &oracle->serial[r]);
        if (status)
            return status;
    }
    return PEAL_STATUS_OK;
}

peal_status peal_oracle_create(peal_plan *plan, int ranks, peal_oracle **out)
{
    peal_oracle *oracle = *out = calloc(1, sizeof(*oracle));
    if (!oracle)
        return no_memory(plan);
    oracle->machine = plan->machine;
    oracle->machine.processes = 1;
    oracle->machine.ranks = oracle->ranks = ranks ? ranks : plan->machine.ranks;
    oracle->arrays = plan->data->array_count;
    oracle->on_other_ranks = ranks > 0;
    if (plan->session->identity.process != 0)
        return PEAL_STATUS_OK;
    if (!plan->row_log)
        plan->row_log = peal_row_log_create();
    if (!plan->row_log)
        return no_memory(plan);
    if (ranks)
        oracle->likeness = peal_likeness_create(plan->data);
    if (ranks && !oracle->likeness)
        return no_memory(plan);
    peal_status status = schedule_all(plan, oracle);
    if (ranks)
        status = peal_other_ranks_admit(plan, oracle, status);
    return status ? status : check_memory(plan, oracle);
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

/* Packs the array of all ranks here, each behind its box. */
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
        memcpy(out, box_of(a, what), sizeof(peal_box));
        out += sizeof(peal_box);
        peal_box_pack(a, box_of(a, what), data, out);
        free(copy);
        out += bytes_of(a, what);
    }
    return PEAL_STATUS_OK;
}

/* In process 0: what a process has packed of its ranks. */
static peal_status take_packed(const peal_plan *plan, int process, int array,
                               const unsigned char *from, size_t left, peal_packed *packed)
{
    int first, end;
    peal_machine_ranks(&plan->machine, process, &first, &end);
    for (int r = first; r < end; r++) {
        if (left < sizeof(packed[r].box))
            return PEAL_STATUS_INTERNAL;
        memcpy(&packed[r].box, from, sizeof(packed[r].box));
        from += sizeof(packed[r].box);
        left -= sizeof(packed[r].box);
        size_t need = (size_t)peal_box_bytes(&packed[r].box, plan->data->arrays[array].type);
        if (left < need)
            return PEAL_STATUS_INTERNAL;
        packed[r].data = malloc(need + 1);
        if (!packed[r].data)
            return no_memory(plan);
        memcpy(packed[r].data, from, need);
        from += need;
        left -= need;
    }
    return PEAL_STATUS_OK;
}

peal_status peal_oracle_gather(peal_plan *plan, int array, peal_extent what, peal_packed **packed)
{
    peal_session *session = plan->session;
    const peal_binding *binding = &plan->binding;
    int processes = session->identity.processes;
    size_t bytes = 0;
    for (int i = 0; i < binding->count; i++)
        bytes +=
            sizeof(peal_box) + (size_t)bytes_of(&binding->rank[i].schedule->array[array], what);
    unsigned char *mine = malloc(bytes + 1);
    void **blob = calloc((size_t)processes, sizeof(*blob));
    size_t *size = calloc((size_t)processes, sizeof(*size));
    *packed = session->identity.process == 0 ? calloc((size_t)plan->machine.ranks, sizeof(**packed))
                                             : NULL;
    if (!mine || !blob || !size || (session->identity.process == 0 && !*packed)) {
        free(mine);
        free(blob);
        free(size);
        return no_memory(plan);
    }
    /* all gather, whatever happens here: the others wait for it */
    peal_status packing = pack_array(plan, array, what, mine);
    peal_status status = peal_control_gather(session->control, mine, bytes, blob, size);
    for (int p = 0; !status && *packed && p < processes; p++)
        status = take_packed(plan, p, array, blob[p], size[p], *packed);
    for (int p = 0; p < processes; p++)
        free(blob[p]);
    free(mine);
    free(blob);
    free(size);
    return packing ? packing : status;
}

void peal_packed_free(peal_packed *packed, int ranks)
{
    for (int r = 0; packed && r < ranks; r++)
        free(packed[r].data);
    free(packed);
}

/* What the serial ranks find in lent memory: what the same rank of the run has or, if they are
 * others, what is theirs of what all have. */
static peal_status take_lent(const peal_plan *plan, peal_oracle *oracle, int array,
                             peal_packed *packed)
{
    for (int r = 0; r < oracle->ranks; r++) {
        unsigned char **lent = &oracle->lent[(size_t)r * (size_t)oracle->arrays + (size_t)array];
        if (!oracle->on_other_ranks) {
            *lent = packed[r].data;
            packed[r].data = NULL;
            continue;
        }
        *lent = peal_other_ranks_part(plan, oracle, r, array, packed);
        if (!*lent)
            return no_memory(plan);
    }
    return PEAL_STATUS_OK;
}

peal_status peal_oracle_remember(peal_plan *plan, peal_oracle *oracle)
{
    peal_status status = PEAL_STATUS_OK;
    for (int a = 0; !status && a < oracle->arrays; a++) {
        if (!plan->data->arrays[a].data)
            continue;
        peal_packed *packed;
        peal_extent what = oracle->on_other_ranks ? PEAL_OWN_POINTS : PEAL_STORED_POINTS;
        status = peal_oracle_gather(plan, a, what, &packed);
        if (!status && packed)
            status = take_lent(plan, oracle, a, packed);
        peal_packed_free(packed, plan->machine.ranks);
    }
    return status;
}

peal_status peal_oracle_note(const peal_plan *plan, peal_oracle *oracle, int64_t steps, bool finish)
{
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
    peal_likeness_destroy(oracle->likeness);
    peal_compilation_destroy(oracle->compilation);
    free(oracle);
}
