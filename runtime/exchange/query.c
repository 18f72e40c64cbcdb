/* What can be asked of an exchange: where its arrays are, how it runs. */
#include "base/handle.h"
#include "runtime/bind/puts.h"
#include "runtime/exchange/exchange.h"

#include <inttypes.h>
#include <string.h>

peal_status peal_exchange_view(const peal_exchange *exchange, int field, peal_exchange_array *out)
{
    if (!peal_is_exchange(exchange, __func__) ||
        !peal_argument_check(out, "where the view goes", __func__))
        return PEAL_STATUS_USAGE;
    if (field < 0 || field >= exchange->field_count)
        return peal_report(exchange->session->diagnostics, PEAL_E_CALL_OUT_OF_ORDER,
                           exchange->source, NULL, "peal_exchange_view: there is no field %d of %d",
                           field, exchange->field_count);
    const peal_binding *binding = &exchange->binding;
    const peal_layout *layout = &binding->rank[0].schedule->array[field].layout;
    const int64_t components = exchange->components[field];
    out->data = peal_binding_array(binding, 0, field);
    for (int k = 0; k < PEAL_AXES; k++) {
        const int64_t unit = k ? 1 : components; /* of x */
        out->stride[k] = k ? layout->stride[k] / components : layout->stride[k];
        out->lo[k] = exchange->grid.lo[k] + layout->part.lo[k] / unit;
        out->hi[k] = exchange->grid.lo[k] + layout->part.hi[k] / unit;
        out->halo[k][0] = (int)((layout->part.lo[k] - layout->stored.lo[k]) / unit);
        out->halo[k][1] = (int)((layout->stored.hi[k] - layout->part.hi[k]) / unit);
    }
    return PEAL_STATUS_OK;
}

void peal_exchange_describe_paths(const peal_exchange *exchange, char *text, size_t bytes)
{
    *text = 0;
    for (int k = 0; k < PEAL_TRANSPORT_COUNT; k++)
        if (exchange->binding.transports >> k & 1) {
            size_t used = strlen(text);
            snprintf(text + used, bytes - used, "%s%s", used ? "+" : "",
                     k == PEAL_TRANSPORT_P2P ? peal_path_name(exchange->machine.path)
                                             : peal_transport_name((peal_transport_kind)k));
        }
    if (!*text)
        snprintf(text, bytes, "none");
    size_t used = strlen(text);
    if (exchange->backend && (exchange->binding.transports >> PEAL_TRANSPORT_MLX5 & 1))
        snprintf(text + used, bytes - used,
                 peal_bound_puts_are_rung_for(exchange->binding.puts) ? " (rung for by streams)"
                                                                      : " (posted by a thread)");
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
    for (int c = 0; c < binding->rank[0].schedule->channel_count; c++)
        messages += binding->rank[0].schedule->channel[c].outgoing;
    char paths[96], device[120] = "";
    if (exchange->backend)
        peal_exchange_describe_device(exchange, device, sizeof(device));
    peal_exchange_describe_paths(exchange, paths, sizeof(paths));
    snprintf(text, bytes,
             "exchange of %d field%s%s, %d process%s (%d x %d x %d), from process %d: %d "
             "message%s, %" PRId64 " bytes by %s, plan %016" PRIx64 "%s%s%s",
             exchange->field_count, exchange->field_count == 1 ? "" : "s", device,
             exchange->machine.processes, exchange->machine.processes == 1 ? "" : "es", dims[0],
             dims[1], dims[2], exchange->session->identity.process, messages,
             messages == 1 ? "" : "s", exchange->bytes, paths, exchange->hash,
             exchange->note[0] ? " (" : "", exchange->note, exchange->note[0] ? ")" : "");
}
