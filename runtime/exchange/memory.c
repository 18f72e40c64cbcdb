/* The caller's memory: how it lies, and whether it is there. */
#include "runtime/exchange/exchange.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- how it lies ---- */

/* The layout of the caller's memory: its halo, and strides in points or dense. Only its owner
 * addresses it: neighbours send to staging. */
static peal_status lay_out_field(const peal_exchange *exchange, const peal_halo_desc *desc,
                                 int index, peal_layout *layout)
{
    const peal_halo_field *field = &desc->field[index];
    const int64_t components = exchange->components[index];
    int64_t halo[PEAL_AXES][2], dense = 1;
    peal_halo_stored(field, halo);
    for (int k = 0; k < desc->axis_count; k++) {
        const int64_t unit = k ? 1 : components; /* points of the graph's for one of the caller's */
        int64_t asked = 0;
        layout->stored.lo[k] = layout->part.lo[k] - halo[k][0] * unit;
        layout->stored.hi[k] = layout->part.hi[k] + halo[k][1] * unit;
        if (k && peal_multiply_overflows(field->stride[k], components, &asked))
            asked = INT64_MAX;
        if (asked && asked < dense)
            return peal_exchange_refuse(exchange, "strides count points, and rows must not overlap",
                                        "field %d has stride[%d] = %" PRId64
                                        ", the stored points of process %d need %" PRId64,
                                        index, k, field->stride[k],
                                        exchange->session->identity.process, dense / components);
        layout->stride[k] = asked ? asked : dense;
        if (peal_multiply_overflows(layout->stride[k], layout->stored.hi[k] - layout->stored.lo[k],
                                    &dense))
            dense = INT64_MAX;
    }
    return PEAL_STATUS_OK;
}

/* A copy of the schedule, whose arrays lie as the caller's do. */
static peal_status copy_schedule(peal_exchange *exchange)
{
    peal_binding *binding = &exchange->binding;
    const peal_schedule *schedule = binding->rank[0].schedule;
    size_t bytes = (size_t)schedule->array_count * sizeof(*schedule->array);
    exchange->schedule = malloc(sizeof(*exchange->schedule));
    exchange->array = malloc(bytes + 1);
    if (!exchange->schedule || !exchange->array)
        return peal_report(exchange->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE,
                           NULL, "no memory for the layouts of an exchange");
    memcpy(exchange->array, schedule->array, bytes);
    *exchange->schedule = *schedule;
    exchange->schedule->array = exchange->array;
    binding->rank[0].schedule = exchange->schedule;
    binding->backend_rank[0].schedule = exchange->schedule;
    return PEAL_STATUS_OK;
}

/* ---- whether it is there ---- */

/* By the kernel's list of mappings, which is sorted. Without that list nobody knows. */
bool peal_is_memory(uintptr_t first, uintptr_t end)
{
    FILE *maps = fopen("/proc/self/maps", "re");
    char line[512], access[5];
    uintptr_t lo, hi;
    bool good = true, knows = false;
    while (maps && first < end && good && fgets(line, sizeof(line), maps)) {
        bool whole = strchr(line, '\n') != NULL;
        if (sscanf(line, "%" SCNxPTR "-%" SCNxPTR " %4s", &lo, &hi, access) == 3 && hi > first) {
            good = lo <= first && access[0] == 'r' && access[1] == 'w';
            first = hi;
        }
        knows = true;
        for (int c = 0; !whole && c != '\n' && c != EOF;) /* a long path */
            c = fgetc(maps);
    }
    if (maps)
        fclose(maps);
    return !knows || (good && first >= end);
}

/* Bytes from the first stored point to the last; false: more than there can be. */
static bool find_span(const peal_layout *layout, int axes, int64_t element, int64_t *bytes)
{
    int64_t last = 0, along;
    for (int k = 0; k < axes; k++)
        if (peal_multiply_overflows(layout->stored.hi[k] - layout->stored.lo[k] - 1,
                                    layout->stride[k], &along) ||
            peal_add_overflows(last, along, &last))
            return false;
    return !peal_add_overflows(last, 1, &last) && !peal_multiply_overflows(last, element, bytes);
}

/* What the caller says that it has. */
static peal_status check_bytes(const peal_exchange *exchange, const peal_halo_desc *desc, int index,
                               int64_t needed)
{
    const peal_halo_field *field = &desc->field[index];
    int64_t there = field->bytes;
    bool dense = true;
    for (int k = 0; k < PEAL_AXES; k++)
        dense &= field->stride[k] == 0;
    if (!there || needed == there || (!dense && needed < there))
        return PEAL_STATUS_OK;
    if (needed < there)
        return peal_exchange_refuse(exchange,
                                    "set .halo to what is stored around the own points, or .stride "
                                    "where rows are longer",
                                    "field %d of process %d has %" PRId64
                                    " bytes, but its own points and a halo as wide as received, "
                                    "densely, have %" PRId64,
                                    index, exchange->session->identity.process, there, needed);
    return peal_exchange_refuse(
        exchange,
        "each axis has hi - lo points and those of its halo; strides count "
        "points",
        "field %d of process %d has %" PRId64
        " bytes, from its first stored point to its last there are %" PRId64,
        index, exchange->session->identity.process, there, needed);
}

static peal_status check_field(const peal_exchange *exchange, const peal_halo_desc *desc, int index)
{
    const peal_schedule_array *array = &exchange->array[index];
    int64_t bytes = INT64_MAX;
    bool fits =
        find_span(&array->layout, desc->axis_count, (int64_t)peal_type_bytes(array->type), &bytes);
    peal_status status = check_bytes(exchange, desc, index, fits ? bytes : INT64_MAX);
    for (int buffer = 0; !status && !exchange->backend && buffer < 2; buffer++) {
        uintptr_t first = (uintptr_t)desc->field[index].data[buffer];
        if (!first || (fits && (uint64_t)bytes <= UINTPTR_MAX - first &&
                       peal_is_memory(first, first + (uintptr_t)bytes)))
            continue;
        status = peal_exchange_refuse(
            exchange,
            "data is the lowest corner with its halo, each axis has hi - lo points and those of "
            "its halo; strides count points",
            "field %d of process %d does not lie in memory that it may write, from its first "
            "stored point to its last",
            index, exchange->session->identity.process);
    }
    return status;
}

peal_status peal_exchange_lay_out(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_status status = copy_schedule(exchange);
    for (int i = 0; !status && i < exchange->field_count; i++) {
        if (!desc->field[i].data[0])
            continue;
        status = lay_out_field(exchange, desc, i, &exchange->array[i].layout);
        if (!status)
            status = check_field(exchange, desc, i);
    }
    return status;
}
