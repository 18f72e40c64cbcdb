/* Where a plan's arrays are, and copies of them. */
#include "base/handle.h"
#include "runtime/bind/array_rows.h"
#include "runtime/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* An array of a rank of this process, as it is now. */
typedef struct place {
    int index; /* of the rank here */
    int storage;
    const peal_schedule_array *array;
} place;

static int array_of(const peal_schedule *schedule, const char *name)
{
    for (int a = 0; a < schedule->array_count; a++)
        if (!schedule->array[a].hidden && !strcmp(schedule->array[a].name, name))
            return a;
    return -1;
}

static peal_status unknown_array(const peal_plan *plan, const char *name, const char *call)
{
    const char *known[64];
    char hint[128];
    size_t count = 0;
    for (int a = 0; a < plan->data->array_count && count < 64; a++)
        known[count++] = plan->data->arrays[a].name;
    const char *nearest = peal_nearest_word(name, known, count);
    snprintf(hint, sizeof(hint), "did you mean '%s'?", nearest ? nearest : "");
    return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                       nearest ? hint : NULL, "%s: the graph has no '%s'", call, name);
}

static peal_status find(const peal_plan *plan, int rank, const char *name, const char *call,
                        place *out)
{
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    const peal_binding *binding = &plan->binding;
    if (plan->state == PEAL_PLAN_RUNNING)
        return peal_report(diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           "call peal_plan_wait first", "%s: the plan is running", call);
    if (rank < binding->first || rank >= binding->first + binding->count)
        return peal_report(diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE, NULL,
                           "%s: process %d hosts %d ranks from %d on, rank %d is not among them",
                           call, plan->session->identity.process, binding->count, binding->first,
                           rank);
    int index = rank - binding->first;
    const peal_schedule *schedule = binding->rank[index].schedule;
    int array = array_of(schedule, name);
    if (array < 0)
        return unknown_array(plan, name, call);
    *out = (place){.index = index,
                   .storage = plan->backend->storage(peal_plan_runner(plan), index, array),
                   .array = &schedule->array[array]};
    return PEAL_STATUS_OK;
}

peal_status peal_plan_view(const peal_plan *plan, int rank, const char *name, peal_plan_array *out)
{
    if (!peal_is_plan(plan, __func__) || !peal_argument_check(name, "the name", __func__) ||
        !peal_argument_check(out, "where the view goes", __func__))
        return PEAL_STATUS_USAGE;
    place at;
    peal_status status = find(plan, rank, name, __func__, &at);
    if (status)
        return status;
    const peal_layout *layout = &at.array->layout;
    int64_t before = 0;
    for (int k = 0; k < PEAL_AXES; k++)
        before += layout->stored.lo[k] * layout->stride[k];
    peal_plan_array result = {.type = at.array->type,
                              .part = layout->part,
                              .own = layout->own,
                              .stored = layout->stored};
    for (int a = 0; a < plan->data->array_count; a++)
        if (!strcmp(plan->data->arrays[a].name, name))
            result.is_buffer = plan->data->arrays[a].kind == PEAL_ARRAY_BUFFER;
    /* the point with coordinates 0 may lie outside the array: integers, not pointers */
    result.view.base =
        (void *)((uintptr_t)peal_binding_array(&plan->binding, at.index, at.storage) -
                 (uintptr_t)(before * (int64_t)peal_type_bytes(result.type)));
    memcpy(result.view.stride, layout->stride, sizeof(result.view.stride));
    *out = result;
    return PEAL_STATUS_OK;
}

int peal_plan_array_count(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) ? plan->data->array_count : -1;
}

const char *peal_plan_array_name(const peal_plan *plan, int index)
{
    if (!peal_is_plan(plan, __func__) || index < 0 || index >= plan->data->array_count)
        return NULL;
    return plan->data->arrays[index].name;
}

/* ---- copies ---- */

static peal_status check_bytes(const peal_plan *plan, const place *at, const char *name,
                               size_t bytes, const char *call)
{
    int64_t wanted = peal_box_bytes(&at->array->layout.part, at->array->type);
    if ((uint64_t)wanted == bytes)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE, NULL,
                       "%s: the part of '%s' has %lld bytes, the caller's memory %zu", call, name,
                       (long long)wanted, bytes);
}

/* The array, in memory of the host: itself, or a copy, which is the caller's to free. */
static peal_status reach(const peal_plan *plan, int rank, const char *name, size_t bytes,
                         const char *call, place *at, unsigned char **copy,
                         const unsigned char **data)
{
    peal_status status = find(plan, rank, name, call, at);
    if (!status)
        status = check_bytes(plan, at, name, bytes, call);
    return status ? status : peal_binding_read(&plan->binding, at->index, at->storage, copy, data);
}

peal_status peal_plan_read(const peal_plan *plan, int rank, const char *name, void *to,
                           size_t bytes)
{
    if (!peal_is_plan(plan, __func__) || !peal_argument_check(name, "the name", __func__) ||
        !peal_argument_check(to, "where the points go", __func__))
        return PEAL_STATUS_USAGE;
    place at;
    unsigned char *copy = NULL;
    const unsigned char *data = NULL;
    peal_status status = reach(plan, rank, name, bytes, __func__, &at, &copy, &data);
    if (!status && data)
        peal_box_pack(at.array, &at.array->layout.part, data, to);
    free(copy);
    return status;
}

peal_status peal_plan_write(peal_plan *plan, int rank, const char *name, const void *from,
                            size_t bytes)
{
    if (!peal_is_plan(plan, __func__) || !peal_argument_check(name, "the name", __func__) ||
        !peal_argument_check(from, "where the points are", __func__))
        return PEAL_STATUS_USAGE;
    place at;
    unsigned char *copy = NULL;
    const unsigned char *data = NULL;
    peal_status status = reach(plan, rank, name, bytes, __func__, &at, &copy, &data);
    if (status || !data)
        return status;
    unsigned char *array = peal_binding_array(&plan->binding, at.index, at.storage);
    peal_box_unpack(at.array, &at.array->layout.part, copy ? copy : array, from);
    if (copy) /* of a GPU: the whole array goes back, halo and all */
        status = peal_space_write(&plan->binding.space, array, copy, at.array->layout.bytes,
                                  plan->session->diagnostics);
    free(copy);
    return status;
}
