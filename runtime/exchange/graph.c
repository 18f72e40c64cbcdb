/* A halo descriptor as a graph: one exchange, and a task that stands for the application, which
 * reads all halos after it.
 *
 * The graph's coordinates begin at 0. A point of several components is as many points along x:
 * where fields differ in that, the axis is as fine as the finest of them needs, and each field
 * coarsens it. The graph's halos are the widths; what the caller stores beyond is its own. */
#include "runtime/exchange/exchange.h"

#include "base/checked.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_BYTES = 200, NUMBER_BYTES = 13 /* of a cut, with its comma */ };

#define LARGEST_EXTENT INT64_C(0x7fffffff) /* axes have fewer than 2^31 points */
#define LARGEST_STRIDE (INT64_C(1) << 48)

int peal_halo_components(const peal_halo_field *field)
{
    return field->components ? field->components : 1;
}

static bool has_width(const peal_halo_field *field)
{
    for (int k = 0; k < PEAL_AXES; k++)
        if (field->width[k][0] || field->width[k][1])
            return true;
    return false;
}

static bool is_there(const peal_halo_field *field)
{
    return has_width(field) || field->data[0] || field->data[1];
}

int peal_halo_field_count(const peal_halo_desc *desc)
{
    int count = 0;
    while (count < PEAL_EXCHANGE_FIELDS && is_there(&desc->field[count]))
        count++;
    return count;
}

void peal_halo_stored(const peal_halo_field *field, int64_t out[PEAL_AXES][2])
{
    bool given = false;
    for (int k = 0; k < PEAL_AXES; k++)
        given |= field->halo[k][0] || field->halo[k][1];
    for (int k = 0; k < PEAL_AXES; k++)
        for (int side = 0; side < 2; side++)
            out[k][side] = given ? field->halo[k][side] : field->width[k][side];
}

/* ---- what makes no sense, whatever the other processes say ---- */

peal_status peal_exchange_refuse(const peal_exchange *exchange, const char *hint,
                                 const char *format, ...)
{
    char text[PEAL_EXCHANGE_TEXT_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    return peal_report(exchange->session->diagnostics, PEAL_E_INVALID_EXCHANGE, exchange->source,
                       hint, "%s", text);
}

static peal_status check_axis(const peal_exchange *exchange, const peal_halo_desc *desc, int index,
                              int k)
{
    const peal_halo_field *field = &desc->field[index];
    bool there = k < desc->axis_count;
    int64_t halo[PEAL_AXES][2];
    peal_halo_stored(field, halo);
    for (int side = 0; side < 2; side++) {
        int width = field->width[k][side];
        if (width < 0 || (!there && width))
            return peal_exchange_refuse(exchange, "receive 0 points or more along each axis",
                                        "field %d has width %d along axis %d of %d", index, width,
                                        k, desc->axis_count);
        if (width && k >= PEAL_RANK_AXES)
            return peal_exchange_refuse(exchange,
                                        "nobody else owns points along it: `halo` says what is "
                                        "stored there",
                                        "field %d has width %d along axis %d, which is not cut",
                                        index, width, k);
        if (there && halo[k][side] < width)
            return peal_exchange_refuse(
                exchange, "store at least as many points as are received",
                "field %d stores %lld points %s its own along axis %d and receives %d", index,
                (long long)halo[k][side], side ? "above" : "below", k, width);
        if (!field->data[0] && there && halo[k][side] != width)
            return peal_exchange_refuse(exchange, "leave `halo` 0: peal stores what is received",
                                        "field %d says how it is stored, but peal allocates it",
                                        index);
    }
    if (field->stride[k] && !field->data[0])
        return peal_exchange_refuse(exchange, "leave the strides 0",
                                    "field %d has strides, but peal allocates it", index);
    if (field->stride[k] < 0 || field->stride[k] > LARGEST_STRIDE || (!there && field->stride[k]))
        return peal_exchange_refuse(exchange, "strides count points, and rows must not overlap",
                                    "field %d has stride %lld along axis %d of %d", index,
                                    (long long)field->stride[k], k, desc->axis_count);
    if (!there && (field->halo[k][0] || field->halo[k][1]))
        return peal_exchange_refuse(exchange, "say how the axes that there are, are stored",
                                    "field %d has a halo along axis %d of %d", index, k,
                                    desc->axis_count);
    if (field->stagger[k] < 0 || (!there && field->stagger[k]))
        return peal_exchange_refuse(exchange, "a field has 0 staggered points or more",
                                    "field %d has stagger %d along axis %d of %d", index,
                                    field->stagger[k], k, desc->axis_count);
    return PEAL_STATUS_OK;
}

static peal_status check_field(const peal_exchange *exchange, const peal_halo_desc *desc, int index)
{
    const peal_halo_field *field = &desc->field[index];
    if ((int)field->type < 0 || field->type >= PEAL_TYPE_COUNT)
        return peal_exchange_refuse(exchange, "PEAL_F64, PEAL_F32, ...", "field %d has type %d",
                                    index, (int)field->type);
    if (field->components < 0)
        return peal_exchange_refuse(exchange, "1 or more, or 0 for 1", "field %d has %d components",
                                    index, field->components);
    if (field->data[1] && (!field->data[0] || field->data[1] == field->data[0]))
        return peal_exchange_refuse(exchange, "data[0] and data[1] are two arrays of the caller's",
                                    "field %d has a second buffer, but %s", index,
                                    field->data[0] ? "it is the first one" : "no first one");
    if (!has_width(field))
        return peal_exchange_refuse(exchange, "set .width = {{below, above}, ...} by axis",
                                    "field %d has memory, but no width", index);
    if (field->stride[0] > 1 || field->stride[0] < 0)
        return peal_exchange_refuse(exchange, "x is contiguous: stride[0] is 1 or 0",
                                    "field %d has stride[0] = %lld", index,
                                    (long long)field->stride[0]);
    peal_status status = PEAL_STATUS_OK;
    for (int k = 0; !status && k < PEAL_AXES; k++)
        status = check_axis(exchange, desc, index, k);
    return status;
}

peal_status peal_exchange_check(const peal_exchange *exchange, const peal_halo_desc *desc)
{
    if (desc->size_bytes != sizeof(*desc))
        return peal_report(
            exchange->session->diagnostics, PEAL_E_INVALID_DESCRIPTOR, exchange->source,
            "set .size_bytes = sizeof(peal_halo_desc) and build against this version",
            "peal_halo_desc has %zu bytes here, the caller's has %zu", sizeof(*desc),
            desc->size_bytes);
    if (desc->axis_count < 1 || desc->axis_count > PEAL_AXES)
        return peal_exchange_refuse(exchange, "set .axis_count to 1, 2, 3 or 4", "%d axes",
                                    desc->axis_count);
    for (int k = desc->axis_count; k < PEAL_RANK_AXES; k++)
        if (desc->periodic[k])
            return peal_exchange_refuse(exchange, "say so of the axes that there are",
                                        "axis %d of %d is periodic", k, desc->axis_count);
    int fields = peal_halo_field_count(desc);
    if (!fields)
        return peal_exchange_refuse(
            exchange, "set .field = {{PEAL_F64, .data = {u}, .width = {{1, 1}, ...}}}",
            "the first field has neither memory nor a width");
    for (int i = fields; i < PEAL_EXCHANGE_FIELDS; i++)
        if (is_there(&desc->field[i]))
            return peal_exchange_refuse(exchange, "fill `field` from [0] on",
                                        "field %d comes behind one with neither memory nor a width",
                                        i);
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; !status && i < fields; i++)
        status = check_field(exchange, desc, i);
    return status;
}

/* ---- the graph ---- */

typedef struct builder {
    peal_graph *graph;
    const peal_halo_desc *desc;
    const peal_decomposition *grid;
    int64_t fine; /* points of the x axis for each of the caller's */
    int fields;
} builder;

/* The least that all fields' components divide. */
static peal_status choose_fineness(const peal_exchange *exchange, builder *b)
{
    int64_t points;
    b->fine = 1;
    for (int i = 0; i < b->fields; i++) {
        const peal_halo_field *field = &b->desc->field[i];
        int64_t more = peal_halo_components(field);
        for (int k = 0; k < b->desc->axis_count; k++) {
            int64_t beyond = (int64_t)field->stagger[k] + field->width[k][0] + field->width[k][1];
            if ((b->grid->extent[k] + beyond) * (k ? 1 : more) > LARGEST_EXTENT)
                return peal_exchange_refuse(
                    exchange, "an axis has at most 2147483647 values, halo and stagger included",
                    "field %d has %lld points along %c, and %lld beyond, of %lld components", i,
                    (long long)b->grid->extent[k], "xyzw"[k], (long long)beyond, (long long)more);
        }
        more /= peal_greatest_divisor(b->fine, more);
        if (peal_multiply_overflows(b->fine, more, &b->fine) ||
            peal_multiply_overflows(b->fine, b->grid->extent[0], &points) ||
            points > LARGEST_EXTENT)
            return peal_exchange_refuse(
                exchange, "split the fields over several exchanges, by their components",
                "%lld points along x, as often as all components divide, are more than %lld",
                (long long)b->grid->extent[0], (long long)LARGEST_EXTENT);
    }
    return PEAL_STATUS_OK;
}

/* "[a, b, c]", the first one times `x`. */
static const char *list(char text[TEXT_BYTES], int axes, const int64_t *value, int64_t x)
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "[");
    for (int k = 0; k < axes && used < TEXT_BYTES; k++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s%lld", k ? ", " : "",
                                 (long long)(k ? value[k] : value[k] * x));
    if (used < TEXT_BYTES)
        snprintf(text + used, TEXT_BYTES - used, "]");
    return text;
}

/* "[[a, b], [c, d]]" */
static const char *amounts(char text[TEXT_BYTES], int axes, int (*value)[2], int64_t x)
{
    size_t used = (size_t)snprintf(text, TEXT_BYTES, "[");
    for (int k = 0; k < axes && used < TEXT_BYTES; k++)
        used += (size_t)snprintf(text + used, TEXT_BYTES - used, "%s[%lld, %lld]", k ? ", " : "",
                                 (long long)value[k][0] * (k ? 1 : x),
                                 (long long)value[k][1] * (k ? 1 : x));
    if (used < TEXT_BYTES)
        snprintf(text + used, TEXT_BYTES - used, "]");
    return text;
}

static bool add_topology(const builder *b)
{
    int axes = b->desc->axis_count < PEAL_RANK_AXES ? b->desc->axis_count : PEAL_RANK_AXES;
    char periodic[TEXT_BYTES] = "[";
    size_t room = TEXT_BYTES, used = 1;
    for (int k = 0; k < axes; k++)
        room += (size_t)(b->grid->dims[k] + 1) * NUMBER_BYTES;
    char *cuts = malloc(room);
    if (!cuts)
        return false;
    strcpy(cuts, "[");
    for (int k = 0; k < axes; k++) {
        for (int i = 0; i <= b->grid->dims[k]; i++)
            used += (size_t)snprintf(cuts + used, room - used, "%s%lld",
                                     i   ? ", "
                                     : k ? ", ["
                                         : "[",
                                     (long long)b->grid->cut[k][i] * (k ? 1 : b->fine));
        used += (size_t)snprintf(cuts + used, room - used, "]");
        size_t end = strlen(periodic);
        snprintf(periodic + end, sizeof(periodic) - end, "%s%s", k ? ", " : "",
                 b->desc->periodic[k] ? "true" : "false");
    }
    strcat(cuts, "]");
    strcat(periodic, "]");
    const peal_topology_desc topology = {.size_bytes = sizeof(topology),
                                         .source = b->desc->source,
                                         .cuts = cuts,
                                         .periodic = periodic};
    peal_graph_set_topology_desc(b->graph, &topology);
    free(cuts);
    return true;
}

static void add_field(const builder *b, int index)
{
    const peal_halo_field *field = &b->desc->field[index];
    const int axes = b->desc->axis_count, components = peal_halo_components(field);
    const int64_t coarsen[PEAL_AXES] = {b->fine / components, 1, 1, 1};
    const int64_t align[PEAL_AXES] = {b->fine, 1, 1, 1};
    int64_t stagger[PEAL_AXES];
    int width[PEAL_AXES][2];
    char name[32], text[5][TEXT_BYTES];
    memcpy(width, field->width, sizeof(width));
    for (int k = 0; k < PEAL_AXES; k++)
        stagger[k] = field->stagger[k];
    snprintf(name, sizeof(name), "u%d", index);
    const peal_field_desc desc = {.size_bytes = sizeof(desc),
                                  .source = b->desc->source,
                                  .name = name,
                                  .type = peal_type_name(field->type),
                                  .size = list(text[0], axes, b->grid->extent, b->fine),
                                  .halo = amounts(text[1], axes, width, components),
                                  .align = list(text[2], axes, align, 1),
                                  .coarsen = list(text[3], axes, coarsen, 1),
                                  .stagger = list(text[4], axes, stagger, components),
                                  .data = field->data[0]};
    peal_graph_add_field_desc(b->graph, &desc);
}

/* The application's own loop. */
static void application(const peal_call *call)
{
    (void)call;
}

/* After an exchange the application reads the halos, then writes its own points. */
static void add_step(const builder *b)
{
    char width[PEAL_EXCHANGE_FIELDS][TEXT_BYTES], name[PEAL_EXCHANGE_FIELDS][32], task[32];
    const peal_source source = b->desc->source;
    peal_exchange_desc exchange = {.size_bytes = sizeof(exchange), .source = source};
    peal_task_desc reader = {.size_bytes = sizeof(reader),
                             .source = source,
                             .name = "application_reads",
                             .function = application,
                             .tile = "whole"};
    for (int i = 0; i < b->fields; i++) {
        const peal_halo_field *field = &b->desc->field[i];
        int amount[PEAL_AXES][2];
        memcpy(amount, field->width, sizeof(amount));
        snprintf(name[i], sizeof(name[i]), "u%d", i);
        const char *text =
            amounts(width[i], b->desc->axis_count, amount, peal_halo_components(field));
        exchange.exchange[i] = (peal_access_desc){.name = name[i],
                                                  .grow = b->desc->star ? NULL : text,
                                                  .star = b->desc->star ? text : NULL};
        reader.read[i] = (peal_access_desc){.name = name[i], .whole = true, .stale_ok = true};
    }
    peal_graph_begin_at(b->graph, PEAL_STEP, source);
    peal_graph_add_exchange_desc(b->graph, &exchange);
    peal_graph_add_task_desc(b->graph, &reader);
    for (int i = 0; i < b->fields; i++) {
        snprintf(task, sizeof(task), "application_writes_%d", i);
        const peal_task_desc writer = {.size_bytes = sizeof(writer),
                                       .source = source,
                                       .name = task,
                                       .function = application,
                                       .box = {.name = name[i]},
                                       .tile = "whole",
                                       .write = {{.name = name[i]}}};
        peal_graph_add_task_desc(b->graph, &writer);
    }
    peal_graph_end_at(b->graph, source);
}

peal_status peal_exchange_build(peal_exchange *exchange, const peal_halo_desc *desc)
{
    builder b = {.desc = desc, .grid = &exchange->grid, .fields = exchange->field_count};
    peal_status status = choose_fineness(exchange, &b);
    if (!status)
        status = peal_graph_create("exchange", &exchange->graph);
    if (status)
        return status;
    b.graph = exchange->graph;
    bool good = add_topology(&b);
    for (int i = 0; i < b.fields; i++)
        add_field(&b, i);
    peal_graph_set_loop(b.graph, .repeat = "9223372036854775807");
    add_step(&b);
    return good ? PEAL_STATUS_OK
                : peal_report(exchange->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE,
                              NULL, "no memory for the cuts of an exchange");
}
