/* What the processes say of an exchange, and whether it fits together: the same fields everywhere,
 * and boxes that make up a grid. Before anything is allocated. */
#define _GNU_SOURCE
#include "runtime/exchange/exchange.h"

#include "runtime/bind/peer_path.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* What must be equal of a field, by hashes; all 0: there is none. */
typedef struct field_claim {
    uint32_t kind, width, stagger, memory;
} field_claim;

/* What a process is about to do. */
typedef struct claim {
    peal_box part;
    int32_t axis_count, periodic, star; /* equal in all, too */
    field_claim field[PEAL_EXCHANGE_FIELDS];
    int32_t accelerated, next_key;
    char transport[16]; /* as asked for */
    peal_device_identity device;
} claim;

static uint32_t add(uint32_t hash, int64_t value)
{
    uint64_t mixed = (hash ^ (uint64_t)value) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(mixed >> 32) | 1;
}

static field_claim claim_field(const peal_halo_field *field)
{
    field_claim out = {
        .kind = add(add(1, (int64_t)field->type), peal_halo_components(field)),
        .memory = add(1, (field->data[0] != NULL) + 2 * (field->data[1] != NULL)),
    };
    for (int k = 0; k < PEAL_AXES; k++) {
        out.width = add(add(out.width, field->width[k][0]), field->width[k][1]);
        out.stagger = add(out.stagger, field->stagger[k]);
    }
    return out;
}

static claim own_claim(const peal_exchange *exchange, const peal_halo_desc *desc)
{
    const peal_session *session = exchange->session;
    claim own = {.axis_count = desc->axis_count,
                 .star = desc->star,
                 .next_key = session->next_key,
                 .accelerated = exchange->backend != NULL};
    memcpy(own.part.lo, desc->lo, sizeof(own.part.lo));
    memcpy(own.part.hi, desc->hi, sizeof(own.part.hi));
    for (int i = 0; i < exchange->field_count; i++)
        own.field[i] = claim_field(&desc->field[i]);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        own.periodic |= desc->periodic[k] << k;
    snprintf(own.transport, sizeof(own.transport), "%s",
             exchange->transport ? exchange->transport : "auto");
    if (exchange->backend)
        exchange->backend->identify(session->device, &own.device);
    return own;
}

/* ---- the same everywhere ---- */

/* What differs; NULL: nothing. */
static const char *difference(const field_claim *a, const field_claim *b)
{
    return !a->kind != !b->kind       ? "presence"
           : a->kind != b->kind       ? "type or number of components"
           : a->width != b->width     ? "width"
           : a->stagger != b->stagger ? "stagger"
           : a->memory != b->memory   ? "memory (the caller's, one or two, or peal's)"
                                      : NULL;
}

static peal_status compare_fields(const peal_exchange *exchange, const claim *all, int p)
{
    peal_diagnostics *diagnostics = exchange->session->diagnostics;
    const char *what = all[p].axis_count != all[0].axis_count ? "number of axes"
                       : all[p].periodic != all[0].periodic   ? "periodic axes"
                       : all[p].star != all[0].star           ? "star"
                                                              : NULL;
    if (what)
        return peal_report(diagnostics, PEAL_E_GRAPHS_DIFFER, exchange->source,
                           "axis_count, periodic and star are equal in all processes",
                           "the exchange of process %d and that of process 0 differ: %s", p, what);
    for (int i = 0; i < PEAL_EXCHANGE_FIELDS; i++) {
        what = difference(&all[p].field[i], &all[0].field[i]);
        if (what)
            return peal_report(diagnostics, PEAL_E_GRAPHS_DIFFER, exchange->source,
                               "types, components, widths, staggers, and whose memory it is, are "
                               "equal in all processes",
                               "field %d of process %d and that of process 0 differ: %s", i, p,
                               what);
    }
    return PEAL_STATUS_OK;
}

static peal_status compare_means(const peal_exchange *exchange, const claim *all, int p)
{
    peal_diagnostics *diagnostics = exchange->session->diagnostics;
    if (all[p].accelerated != all[0].accelerated)
        return peal_report(diagnostics, PEAL_E_CALLS_DIFFER, exchange->source,
                           "lend the same kind of memory in all processes",
                           "the exchange of process %d is %s, that of process 0 %s", p,
                           all[p].accelerated ? "on a GPU" : "on the host",
                           all[0].accelerated ? "on a GPU" : "on the host");
    if (strcmp(all[p].transport, all[0].transport) != 0)
        return peal_report(diagnostics, PEAL_E_CALLS_DIFFER, exchange->source,
                           "give all processes the same options",
                           "the exchange of process %d has another transport than that of "
                           "process 0",
                           p);
    if (strcmp(all[p].device.model, all[0].device.model) != 0)
        return peal_report(diagnostics, PEAL_E_GPUS_DIFFER, exchange->source,
                           "let the job use equal GPUs only (CUDA_VISIBLE_DEVICES)",
                           "process %d has %s, process 0 has %s", p, all[p].device.model,
                           all[0].device.model);
    return PEAL_STATUS_OK;
}

static peal_status compare_claims(const peal_exchange *exchange, const claim *all)
{
    peal_status status = PEAL_STATUS_OK;
    for (int p = 1; !status && p < exchange->session->identity.processes; p++) {
        status = compare_fields(exchange, all, p);
        if (!status)
            status = compare_means(exchange, all, p);
    }
    return status;
}

/* ---- a grid ---- */

/* A halo reaches into the next process's box, no further. */
static peal_status check_reach(const peal_exchange *exchange, const peal_halo_desc *desc, int field,
                               int k)
{
    const peal_decomposition *grid = &exchange->grid;
    const int *width = desc->field[field].width[k];
    for (int i = 0; i < grid->dims[k]; i++) {
        bool is_last = i == grid->dims[k] - 1;
        int64_t extent = grid->cut[k][i + 1] - grid->cut[k][i] +
                         (is_last && !desc->periodic[k] ? desc->field[field].stagger[k] : 0);
        bool below = desc->periodic[k] || i > 0;
        bool above = desc->periodic[k] || !is_last;
        int wanted = above && width[0] > extent ? width[0] : below ? width[1] : 0;
        if (wanted <= extent)
            continue;
        int stride = k > 1 ? grid->dims[0] * grid->dims[1] : k > 0 ? grid->dims[0] : 1;
        return peal_exchange_refuse(
            exchange, "use wider boxes, fewer processes along the axis, or a narrower width",
            "process %d owns %lld point%s along %c, of which its neighbour receives %d (field %d)",
            grid->process_of[i * stride], (long long)extent, extent == 1 ? "" : "s", "xyz"[k],
            wanted, field);
    }
    return PEAL_STATUS_OK;
}

static peal_status make_grid(peal_exchange *exchange, const peal_halo_desc *desc, const claim *all)
{
    int processes = exchange->session->identity.processes;
    peal_box *part = malloc((size_t)processes * sizeof(*part));
    peal_misfit misfit = {.text = "no memory for the boxes of an exchange"};
    peal_status status = PEAL_STATUS_ENVIRONMENT;
    for (int p = 0; part && p < processes; p++)
        part[p] = all[p].part;
    if (part)
        status = peal_decompose(part, processes, desc->axis_count, &exchange->grid, &misfit);
    free(part);
    if (status == PEAL_STATUS_ENVIRONMENT)
        return peal_report(exchange->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE,
                           NULL, "%s", misfit.text);
    if (status)
        return peal_exchange_refuse(exchange, misfit.hint, "%s", misfit.text);
    for (int f = 0; !status && f < exchange->field_count; f++)
        for (int k = 0; !status && k < PEAL_RANK_AXES && k < desc->axis_count; k++)
            status = check_reach(exchange, desc, f, k);
    return status;
}

/* What this process thinks that the whole grid is. */
static peal_status check_extent(const peal_exchange *exchange, const peal_halo_desc *desc)
{
    const int process = exchange->session->identity.process;
    for (int k = 0; k < desc->axis_count; k++)
        if (desc->extent[k] && desc->extent[k] != exchange->grid.extent[k])
            return peal_exchange_refuse(
                exchange, "`extent` is that of the whole grid; lo and hi are coordinates of it",
                "all boxes make up %lld points along %c, process %d expects %lld",
                (long long)exchange->grid.extent[k], "xyzw"[k], process,
                (long long)desc -> extent[k]);
    return PEAL_STATUS_OK;
}

/* ---- paths ---- */

static int compare_devices(const void *a, const void *b, void *devices)
{
    const peal_device_identity *of = devices;
    int x = *(const int *)a, y = *(const int *)b, order = strcmp(of[x].unique, of[y].unique);
    return order ? order : (x > y) - (x < y);
}

/* Whom the devices belong to: paths to neighbours depend on it. */
static peal_status keep_devices(peal_exchange *exchange, const claim *all)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes;
    if (!exchange->backend)
        return PEAL_STATUS_OK;
    if (!session->neighbours)
        session->neighbours = calloc((size_t)processes, sizeof(*session->neighbours));
    if (!session->neighbours)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the devices of an exchange");
    for (int p = 0; p < processes; p++)
        session->neighbours[p] = all[p].device;
    int *order = malloc((size_t)processes * sizeof(*order));
    if (!order)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the devices of an exchange");
    for (int p = 0; p < processes; p++)
        order[p] = p;
    qsort_r(order, (size_t)processes, sizeof(*order), compare_devices, session->neighbours);
    for (int i = 1; i < processes; i++)
        exchange->machine.shares_device |= !strcmp(session->neighbours[order[i]].unique,
                                                   session->neighbours[order[i - 1]].unique) &&
                                           peal_session_are_near(session, order[i], order[i - 1]);
    free(order);
    return PEAL_STATUS_OK;
}

static peal_status settle_path(peal_exchange *exchange)
{
    peal_session *session = exchange->session;
    if (session->identity.processes == 1)
        return PEAL_STATUS_OK;
    if (!exchange->backend)
        return peal_transport_check_host(exchange->transport, session->diagnostics);
    return peal_peer_path_settle(session, exchange->transport, &exchange->machine, exchange->note,
                                 sizeof(exchange->note));
}

/* Blocks of ranks: rank r in process r. */
static bool is_in_order(const peal_decomposition *grid, int processes)
{
    for (int rank = 0; rank < processes; rank++)
        if (grid->process_of[rank] != rank)
            return false;
    return true;
}

peal_status peal_exchange_agree(peal_exchange *exchange, const peal_halo_desc *desc)
{
    peal_session *session = exchange->session;
    int processes = session->identity.processes,
        from = peal_diagnostics_count(session->diagnostics);
    claim own = own_claim(exchange, desc), *all = calloc((size_t)processes, sizeof(own));
    peal_status status =
        all ? PEAL_STATUS_OK
            : peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                          "no memory for %d processes", processes);
    if (processes > 1 && !status)
        status = peal_control_allgather(session->control, &own, sizeof(own), all);
    else if (!status)
        all[0] = own;
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    for (int p = 0; p < processes; p++)
        if (all[p].next_key > session->next_key)
            session->next_key = all[p].next_key;
    from = peal_diagnostics_count(session->diagnostics);
    status = compare_claims(exchange, all);
    if (!status)
        status = make_grid(exchange, desc, all);
    if (!status)
        status = check_extent(exchange, desc);
    if (!status)
        status = keep_devices(exchange, all);
    free(all);
    status = peal_session_agree(session, status, from); /* each says what its own extent is */
    if (status)
        return status;
    if (!is_in_order(&exchange->grid, processes))
        exchange->machine.process_of = exchange->grid.process_of;
    return settle_path(exchange);
}
