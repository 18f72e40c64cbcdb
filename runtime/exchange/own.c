/* What an application says that its rank owns, compared with how peal cuts the grid: sizes of a
 * part taken for the grid's, ranks counted along another axis first, or arrays without the halo
 * would exchange wrong points, or none. */
#include "runtime/exchange/exchange.h"

#include "base/checked.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

enum { TEXT_BYTES = 160 };

static bool is_given(const peal_halo_desc *desc)
{
    for (int k = 0; k < desc->axis_count; k++)
        if (desc->own_extent[k] || desc->own_origin[k])
            return true;
    return false;
}

static bool has_lent(const peal_halo_desc *desc)
{
    for (int i = 0; i < desc->field_count; i++)
        if (desc->field[i].data)
            return true;
    return false;
}

static const char *print_box(char text[TEXT_BYTES], int axes, const int64_t *first,
                             const int64_t *extent)
{
    int used = snprintf(text, TEXT_BYTES, "[");
    for (int k = 0; k < axes && used < TEXT_BYTES; k++) {
        int64_t end; /* the application may say anything */
        if (peal_add_overflows(first[k], extent[k], &end))
            end = INT64_MAX;
        used += snprintf(text + used, (size_t)(TEXT_BYTES - used), "%s%" PRId64 ":%" PRId64,
                         k ? ", " : "", first[k], end);
    }
    if (used < TEXT_BYTES)
        snprintf(text + used, (size_t)(TEXT_BYTES - used), "]");
    return text;
}

/* What most likely was meant. */
static const char *guess(const peal_halo_desc *desc, const peal_schedule *schedule,
                         const int64_t *extent)
{
    bool same_extent = true, of_a_part = false, no_origin = true;
    for (int k = 0; k < desc->axis_count; k++) {
        bool is_cut = k < PEAL_RANK_AXES && schedule->rank_dims[k] > 1;
        same_extent &= desc->own_extent[k] == extent[k];
        no_origin &= desc->own_origin[k] == 0;
        of_a_part |= is_cut && desc->own_extent[k] == desc->extent[k];
    }
    if (of_a_part)
        return "`extent` is that of the whole grid, own_extent that of this rank's part";
    if (same_extent && no_origin)
        return "own_origin is where the rank's first point lies in the whole grid";
    if (same_extent)
        return "ranks count along x first: rank = rx + Rx * (ry + Ry * rz), x being the contiguous "
               "axis";
    return "an axis is cut into as many parts as it has ranks, the first (extent mod ranks) of "
           "them one point longer; set dims to cut as you do";
}

static peal_status compare_part(const peal_exchange *exchange, const peal_halo_desc *desc,
                                const peal_schedule *schedule)
{
    const peal_box *part = &schedule->array[0].layout.part;
    int64_t origin[PEAL_AXES] = {0}, extent[PEAL_AXES] = {0};
    char mine[TEXT_BYTES], theirs[TEXT_BYTES];
    bool equal = true;
    for (int k = 0; k < desc->axis_count; k++) {
        origin[k] = part->lo[k];
        extent[k] = part->hi[k] - part->lo[k];
        equal &= desc->own_origin[k] == origin[k] && desc->own_extent[k] == extent[k];
    }
    if (equal)
        return PEAL_STATUS_OK;
    return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE, exchange->source,
                       guess(desc, schedule, extent),
                       "rank %d has the points %s of the grid, own_origin and own_extent say %s",
                       schedule->rank, print_box(mine, desc->axis_count, origin, extent),
                       print_box(theirs, desc->axis_count, desc->own_origin, desc->own_extent));
}

/* Whether this process may read and write [first, end), by the kernel's list of mappings, which is
 * sorted. Without that list nobody knows. */
static bool is_memory(uintptr_t first, uintptr_t end)
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
static peal_status check_bytes(const peal_exchange *exchange, const peal_halo_desc *desc,
                               const peal_schedule *schedule)
{
    for (int f = 0; f < desc->field_count; f++) {
        const peal_schedule_array *array = &schedule->array[f];
        int64_t there = desc->field[f].bytes, needed = INT64_MAX;
        bool fits = find_span(&array->layout, desc->axis_count,
                              (int64_t)peal_type_bytes(array->type), &needed);
        if (desc->field[f].data && there && (!fits || needed > there))
            return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE,
                               exchange->source,
                               "each axis has own_extent + 2 * halo points, and strides count "
                               "elements",
                               "field %d of rank %d has %" PRId64 " bytes, from its first stored "
                               "point to its last there are %" PRId64,
                               f, schedule->rank, there, needed);
    }
    return PEAL_STATUS_OK;
}

/* Strides are known: what is stored is somewhere. */
static peal_status check_memory(const peal_exchange *exchange, const peal_halo_desc *desc,
                                const peal_schedule *schedule)
{
    for (int f = 0; f < desc->field_count; f++) {
        const peal_schedule_array *array = &schedule->array[f];
        uintptr_t first = (uintptr_t)desc->field[f].data;
        int64_t bytes = 0;
        bool fits = find_span(&array->layout, desc->axis_count,
                              (int64_t)peal_type_bytes(array->type), &bytes) &&
                    (uint64_t)bytes <= UINTPTR_MAX - first;
        if (!first || (fits && is_memory(first, first + (uintptr_t)bytes)))
            continue;
        return peal_report(
            exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE, exchange->source,
            "data is the lowest corner with its halo, and each axis has own_extent + "
            "2 * halo points; strides count elements",
            "field %d of rank %d does not lie in memory that this process may write, "
            "from its first stored point to its last",
            f, schedule->rank);
    }
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_check_own(const peal_exchange *exchange, const peal_halo_desc *desc)
{
    const peal_binding *binding = &exchange->binding;
    if (!is_given(desc) && !has_lent(desc))
        return PEAL_STATUS_OK;
    if (!is_given(desc))
        return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE,
                           exchange->source,
                           "set .own_origin, the global coordinates of its first point, and "
                           ".own_extent, its points along each axis",
                           "fields are lent, but nothing says which points of the grid the rank "
                           "owns");
    if (binding->count != 1)
        return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE,
                           exchange->source, "leave them 0, or run a rank a process",
                           "own_origin and own_extent are of one rank, this process has %d",
                           binding->count);
    peal_status status = compare_part(exchange, desc, binding->rank[0].schedule);
    if (!status)
        status = check_bytes(exchange, desc, binding->rank[0].schedule);
    return status || exchange->backend ? status
                                       : check_memory(exchange, desc, binding->rank[0].schedule);
}
