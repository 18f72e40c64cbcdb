/* What can be asked of an exchange: where its ranks and arrays are, how it runs. */
#include "base/handle.h"
#include "runtime/exchange/exchange.h"

#include <inttypes.h>
#include <string.h>

void peal_exchange_ranks(const peal_exchange *exchange, int *first, int *end)
{
    bool known = peal_is_exchange(exchange, __func__);
    if (first)
        *first = known ? exchange->binding.first : 0;
    if (end)
        *end = known ? exchange->binding.first + exchange->binding.count : 0;
}

peal_status peal_exchange_view(const peal_exchange *exchange, int rank, int field,
                               peal_exchange_array *out)
{
    if (!peal_is_exchange(exchange, __func__) ||
        !peal_argument_check(out, "where the view goes", __func__))
        return PEAL_STATUS_USAGE;
    const peal_binding *binding = &exchange->binding;
    int index = rank < 0 ? 0 : rank - binding->first;
    if (field < 0 || field >= exchange->field_count || index < 0 || index >= binding->count)
        return peal_report(exchange->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER, PEAL_NO_SOURCE,
                           NULL, "peal_exchange_view: process %d has no field %d of rank %d",
                           exchange->session->identity.process, field, rank);
    const peal_layout *layout = &binding->rank[index].schedule->array[field].layout;
    out->data = peal_binding_array(binding, index, field);
    for (int k = 0; k < PEAL_AXES; k++) {
        out->stride[k] = layout->stride[k];
        out->origin[k] = layout->part.lo[k];
        out->extent[k] = layout->part.hi[k] - layout->part.lo[k];
        out->halo[k] = layout->part.lo[k] - layout->stored.lo[k];
    }
    return PEAL_STATUS_OK;
}

void peal_exchange_describe(const peal_exchange *exchange, char *text, size_t bytes)
{
    if (!text || !bytes)
        return;
    *text = 0;
    if (!peal_is_exchange(exchange, __func__))
        return;
    int dims[PEAL_RANK_AXES], messages = 0;
    const peal_binding *binding = &exchange->binding;
    peal_compilation_dims(exchange->compilation, dims);
    for (int r = 0; r < binding->count; r++)
        for (int c = 0; c < binding->rank[r].schedule->channel_count; c++)
            messages += binding->rank[r].schedule->channel[c].outgoing;
    char paths[64] = "", device[120] = "";
    if (exchange->backend)
        peal_exchange_describe_device(exchange, device, sizeof(device));
    for (int k = 0; k < PEAL_TRANSPORT_COUNT; k++)
        if (binding->transports >> k & 1) {
            size_t used = strlen(paths);
            snprintf(paths + used, sizeof(paths) - used, "%s%s", used ? "+" : "",
                     k == PEAL_TRANSPORT_P2P ? peal_path_name(exchange->machine.path)
                                             : peal_transport_name((peal_transport_kind)k));
        }
    snprintf(text, bytes,
             "exchange of %d field%s%s, %d rank%s (%d x %d x %d) in %d process%s, from process %d: "
             "%d message%s, %" PRId64 " bytes by %s, plan %016" PRIx64 "%s%s%s",
             exchange->field_count, exchange->field_count == 1 ? "" : "s", device,
             exchange->machine.ranks, exchange->machine.ranks == 1 ? "" : "s", dims[0], dims[1],
             dims[2], exchange->machine.processes, exchange->machine.processes == 1 ? "" : "es",
             exchange->session->identity.process, messages, messages == 1 ? "" : "s",
             exchange->bytes, paths[0] ? paths : "none", exchange->hash,
             exchange->note[0] ? " (" : "", exchange->note, exchange->note[0] ? ")" : "");
}
