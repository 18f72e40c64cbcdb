/* Runs the program of an exchange of host memory on the calling thread. */
#include "base/backoff.h"
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/exchange/exchange.h"

#include <inttypes.h>

static peal_status give_up(peal_exchange *exchange, const peal_exchange_word *word)
{
    peal_session *session = exchange->session;
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = PEAL_STATUS_OK;
    if (!peal_session_status(session))
        status = peal_report(session->diagnostics, PEAL_E_BORDER_LATE, exchange->source, NULL,
                             "process %d has waited %g s for %s of process %d (%s %" PRIu64 ")",
                             session->identity.process, (double)exchange->deadline_ns * 1e-9,
                             word->channel->outgoing ? "a credit" : exchange->form->brings,
                             peal_machine_process(&exchange->machine, word->channel->peer),
                             exchange->form->noun, exchange->round);
    exchange->failure = peal_session_fail(session, status, from);
    return exchange->failure;
}

/* At the clock, while nobody sleeps. */
enum { ROUNDS_A_LOOK = 1000 };

static bool is_reached(const peal_exchange_word *word, uint64_t value)
{
    /* pairs with the release in write_word of the other side; cyclic: flags wrap */
    return (int64_t)(atomic_load_explicit(word->word, memory_order_acquire) - value) >= 0;
}

static peal_status wait_word(peal_exchange *exchange, const peal_exchange_word *word,
                             uint64_t value)
{
    peal_patience patience = peal_patience_begin(peal_clock_ns(), exchange->longest_wait_ns);
    peal_backoff backoff = peal_session_backoff(exchange->session);
    for (int round = 1; !is_reached(word, value); round++) {
        if (peal_session_status(exchange->session))
            return give_up(exchange, word);
        peal_exchange_pause(exchange, word, &backoff);
        if (round % ROUNDS_A_LOOK != 0 && !peal_backoff_sleeps(&backoff))
            continue;
        if (peal_patience_is_over(&patience, peal_clock_ns()))
            return give_up(exchange, word);
    }
    return PEAL_STATUS_OK;
}

peal_status peal_exchange_run(peal_exchange *exchange, const peal_exchange_program *program,
                              int first, int end)
{
    uint64_t round = exchange->round;
    for (int i = first; i < end; i++) {
        const peal_exchange_action *action = &program->action[i];
        if (action->kind == PEAL_EXCHANGE_COPY) {
            peal_copies_run(&program->copy[action->first], action->count,
                            (int64_t)(round % action->slots));
            continue;
        }
        if (action->kind == PEAL_EXCHANGE_FETCH) {
            int64_t next = (int64_t)((round + 1) % action->slots);
            peal_prefetch_write(action->staging + next * action->slot_bytes, action->message_bytes);
            continue;
        }
        const peal_exchange_word *word = &action->word;
        if (round <= word->behind)
            continue;
        uint64_t value = (round - word->behind) * word->quantum;
        if (action->kind == PEAL_EXCHANGE_WRITE) {
            /* pairs with the acquire in is_reached: what was moved before is seen after */
            atomic_store_explicit(word->word, value, memory_order_release);
            if (word->index >= 0)
                peal_exchange_tell(exchange, word, value);
            continue;
        }
        peal_status status =
            is_reached(word, value) ? PEAL_STATUS_OK : wait_word(exchange, word, value);
        if (status)
            return status;
    }
    peal_exchange_flush(exchange);
    return PEAL_STATUS_OK;
}
