/* A transfer as its files see it. */
#ifndef PEAL_RUNTIME_EXCHANGE_TRANSFER_H
#define PEAL_RUNTIME_EXCHANGE_TRANSFER_H

#include "runtime/exchange/exchange.h"

#include <peal/transfer.h>

struct peal_transfer {
    peal_exchange exchange;
    int from, to;
    bool on_demand;
    int64_t bytes;
    uint64_t alignment; /* of the bytes, and of their addresses at both ends: up to 8 */
};

/* For messages: " on demand". */
const char *peal_transfer_on_demand(bool it_is);
/* What makes no sense, whatever the other processes say. */
peal_status peal_transfer_check(peal_transfer *transfer, const peal_transfer_desc *desc);
/* Whether all say the same, and by which means it goes. Collective. */
peal_status peal_transfer_agree(peal_transfer *transfer);

extern const peal_exchange_form peal_transfer_form;

#endif
