/* What the processes say of an exchange, and whether it fits together: the same fields everywhere,
 * and boxes that make up a grid. Before anything is allocated. */
#include "runtime/exchange/exchange.h"

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
    claim own = {.axis_count = desc->axis_count, .star = desc->star};
    memcpy(own.part.lo, desc->lo, sizeof(own.part.lo));
    memcpy(own.part.hi, desc->hi, sizeof(own.part.hi));
    for (int i = 0; i < exchange->field_count; i++)
        own.field[i] = claim_field(&desc->field[i]);
    for (int k = 0; k < PEAL_RANK_AXES; k++)
        own.periodic |= desc->periodic[k] << k;
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

static peal_status compare_claims(const peal_exchange *exchange, const claim *all)
{
    peal_status status = PEAL_STATUS_OK;
    for (int p = 1; !status && p < exchange->session->identity.processes; p++)
        status = compare_fields(exchange, all, p);
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
    peal_status status = peal_exchange_gather(exchange, &own, sizeof(own), all);
    if (status) {
        free(all);
        return peal_session_fail(session, status, from);
    }
    from = peal_diagnostics_count(session->diagnostics);
    status = compare_claims(exchange, all);
    if (!status)
        status = make_grid(exchange, desc, all);
    if (!status)
        status = check_extent(exchange, desc);
    free(all);
    status = peal_session_agree(session, status, from); /* each says what its own extent is */
    if (status)
        return status;
    if (!is_in_order(&exchange->grid, processes))
        exchange->machine.process_of = exchange->grid.process_of;
    return peal_exchange_agree_on_means(exchange);
}
