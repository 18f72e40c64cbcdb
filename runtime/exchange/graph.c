/* A halo descriptor as a graph: one exchange, and a task that stands for the application, which
 * reads all halos after it. */
#include "runtime/exchange/exchange.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 160 };

#define LARGEST_EXTENT INT64_C(0x7fffffff) /* axes have fewer than 2^31 points */

static peal_status refuse(const peal_exchange *exchange, const char *hint, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

static peal_status refuse(const peal_exchange *exchange, const char *hint, const char *format, ...)
{
    char text[TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE, exchange->source,
                       hint, "%s", text);
}

/* Points stored at each end of an axis. */
static int halo_of(const peal_halo_desc *desc, const peal_exchange_field *field, int axis)
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (field->halo[k])
            return field->halo[axis];
    return desc->width[axis];
}

static peal_status check_field(const peal_exchange *exchange, const peal_halo_desc *desc, int index)
{
    const peal_exchange_field *field = &desc->field[index];
    if ((int)field->type < 0 || field->type >= PEAL_TYPE_COUNT)
        return refuse(exchange, "PEAL_F64, PEAL_F32, ...", "field %d has type %d", index,
                      (int)field->type);
    for (int k = 0; k < PEAL_AXES; k++) {
        int halo = k < desc->axis_count ? halo_of(desc, field, k) : 0;
        if (halo < 0 || (k < desc->axis_count && halo < desc->width[k]))
            return refuse(exchange, "store at least as many points as are received",
                          "field %d stores %d points at the ends of axis %d, the width is %d",
                          index, halo, k, desc->width[k]);
        if (field->stride[k] && !field->data)
            return refuse(exchange, "leave the strides 0",
                          "field %d has strides, but peal allocates it", index);
    }
    if (field->stride[0] > 1 || field->stride[0] < 0)
        return refuse(exchange, "x is contiguous: stride[0] is 1 or 0",
                      "field %d has stride[0] = %lld", index, (long long)field->stride[0]);
    return PEAL_STATUS_OK;
}

static peal_status check(const peal_exchange *exchange, const peal_halo_desc *desc)
{
    if (desc->size_bytes != sizeof(*desc))
        return peal_report(
            exchange->session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, exchange->source,
            "set .size_bytes = sizeof(peal_halo_desc) and build against this version",
            "peal_halo_desc has %zu bytes here, the caller's has %zu", sizeof(*desc),
            desc->size_bytes);
    if (desc->axis_count < 1 || desc->axis_count > PEAL_AXES)
        return refuse(exchange, NULL, "%d axes", desc->axis_count);
    if (desc->field_count < 1 || desc->field_count > PEAL_EXCHANGE_FIELDS)
        return refuse(exchange, NULL, "%d fields", desc->field_count);
    for (int k = 0; k < desc->axis_count; k++)
        if (desc->extent[k] < 1 || desc->extent[k] > LARGEST_EXTENT || desc->width[k] < 0)
            return refuse(exchange, NULL, "axis %d has %lld points and width %d", k,
                          (long long)desc->extent[k], desc->width[k]);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        if (desc->dims[k] < 0 || (k >= desc->axis_count && desc->dims[k] > 1))
            return refuse(exchange, "axes beyond the fields' have one rank",
                          "%d ranks along axis %d of %d", desc->dims[k], k, desc->axis_count);
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < desc->field_count; i++)
        status = check_field(exchange, desc, i);
    return status;
}

/* "[a, b, c]" of the first `count` values. */
static void write_list(char *text, int count, const int64_t *value)
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "[");
    for (int k = 0; k < count && used < TEXT_BYTES; k++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s%lld", k ? ", " : "",
                                 (long long)value[k]);
    if (used < TEXT_BYTES)
        snprintf(text + used, TEXT_BYTES - used, "]");
}

static void add_topology(peal_graph *graph, const peal_halo_desc *desc)
{
    int axes = desc->axis_count < PEAL_RANK_AXES ? desc->axis_count : PEAL_RANK_AXES;
    char dims[TEXT_BYTES] = "[", periodic[TEXT_BYTES] = "[";
    for (int k = 0; k < axes; k++) {
        size_t used = strlen(dims);
        if (desc->dims[k])
            snprintf(dims + used, sizeof(dims) - used, "%s%d", k ? ", " : "", desc->dims[k]);
        else
            snprintf(dims + used, sizeof(dims) - used, "%sauto", k ? ", " : "");
        used = strlen(periodic);
        snprintf(periodic + used, sizeof(periodic) - used, "%s%s", k ? ", " : "",
                 desc->periodic[k] ? "true" : "false");
    }
    strcat(dims, "]");
    strcat(periodic, "]");
    peal_graph_set_topology(graph, .dims = dims, .periodic = periodic);
}

static void add_field(peal_graph *graph, const peal_halo_desc *desc, int index)
{
    const peal_exchange_field *field = &desc->field[index];
    char name[32], size[TEXT_BYTES], halo[TEXT_BYTES];
    int64_t amount[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++)
        amount[k] = halo_of(desc, field, k);
    snprintf(name, sizeof(name), "u%d", index);
    write_list(size, desc->axis_count, desc->extent);
    write_list(halo, desc->axis_count, amount);
    peal_graph_add_field(graph, .name = name, .type = peal_type_name(field->type), .size = size,
                         .halo = halo, .data = field->data);
}

/* The application's own loop. */
static void application(const peal_call *call)
{
    (void)call;
}

/* After an exchange the application reads the halos, then writes its own points. */
static void add_step(peal_graph *graph, const peal_halo_desc *desc)
{
    char width[TEXT_BYTES], name[PEAL_EXCHANGE_FIELDS][32];
    int64_t amount[PEAL_AXES];
    for (int k = 0; k < PEAL_AXES; k++)
        amount[k] = desc->width[k];
    write_list(width, desc->axis_count, amount);
    peal_exchange_desc exchange = {.size_bytes = sizeof(exchange), .source = PEAL_HERE};
    peal_task_desc reader = {.size_bytes = sizeof(reader),
                             .source = PEAL_HERE,
                             .name = "application_reads",
                             .function = application,
                             .tile = "whole"};
    peal_task_desc writer = {.size_bytes = sizeof(writer),
                             .source = PEAL_HERE,
                             .name = "application_writes",
                             .function = application,
                             .box = {.name = "u0"},
                             .tile = "whole"};
    for (int i = 0; i < desc->field_count; i++) {
        snprintf(name[i], sizeof(name[i]), "u%d", i);
        exchange.exchange[i] = (peal_access_desc){.name = name[i], .grow = width};
        /* what is beyond the exchange's width is the application's */
        reader.read[i] = (peal_access_desc){.name = name[i], .whole = true, .stale_ok = true};
        writer.write[i] = (peal_access_desc){.name = name[i]};
    }
    peal_graph_begin(graph, PEAL_STEP);
    peal_graph_add_exchange_desc(graph, &exchange);
    peal_graph_add_task_desc(graph, &reader);
    peal_graph_add_task_desc(graph, &writer);
    peal_graph_end(graph);
}

peal_status peal_exchange_build(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_status status = check(exchange, desc);
    if (!status)
        status = peal_graph_create("exchange", &exchange->graph);
    if (status)
        return status;
    peal_graph *graph = exchange->graph;
    add_topology(graph, desc);
    for (int i = 0; i < desc->field_count; i++)
        add_field(graph, desc, i);
    peal_graph_set_loop(graph, .repeat = "9223372036854775807");
    add_step(graph, desc);
    return PEAL_STATUS_OK;
}
