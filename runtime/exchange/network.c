/* An exchange over several hosts, on CPUs: messages go and come by the thread that calls. */
#include "runtime/session/network.h"
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/bind/puts.h"
#include "runtime/exchange/exchange.h"

#include <inttypes.h>

/* Also one that sends nothing to other hosts itself: what another exchange of this process has
 * queued leaves meanwhile. */
void peal_exchange_pause(const peal_exchange *exchange, const peal_exchange_word *word,
                         peal_backoff *backoff)
{
    const int64_t longest_ns = 1000000;
    const peal_network_hook *network = peal_bound_puts_hook(exchange->binding.puts);
    peal_session_turn(exchange->session);
    if (network && peal_transport_is_network(word->channel->transport) &&
        peal_backoff_sleeps(backoff))
        network->sleep(network->user, longest_ns);
    else
        peal_backoff_wait(backoff);
}

peal_status peal_exchange_await_sent(peal_exchange *exchange)
{
    const int64_t slice_ns = 100000;
    const peal_network_hook *network = peal_bound_puts_hook(exchange->binding.puts);
    peal_session *session = exchange->session;
    peal_patience patience = peal_patience_begin(peal_clock_ns(), exchange->deadline_ns);
    while (network && !peal_session_status(session) && !network->settle(network->user)) {
        if (peal_patience_is_over(&patience, peal_clock_ns())) {
            int from = peal_diagnostics_count(session->diagnostics);
            peal_status status =
                peal_report(session->diagnostics, PEAL_E_BORDER_LATE, PEAL_NO_SOURCE, NULL,
                            "a process of another host has not taken what %s %" PRIu64
                            " sends within %g s",
                            exchange->form->noun, exchange->round,
                            (double)exchange->deadline_ns * 1e-9);
            exchange->failure = peal_session_fail(session, status, from);
            return exchange->failure;
        }
        network->sleep(network->user, slice_ns);
    }
    return PEAL_STATUS_OK;
}

void peal_exchange_tell(const peal_exchange *exchange, const peal_exchange_word *word,
                        uint64_t value)
{
    const peal_network_hook *network = peal_bound_puts_hook(exchange->binding.puts);
    network->due(network->user, word->index, word->number, word->credit, value);
}

void peal_exchange_flush(const peal_exchange *exchange)
{
    const peal_network_hook *network = peal_bound_puts_hook(exchange->binding.puts);
    if (network)
        network->flush(network->user);
}
