/* Addressed copies: copies of boxes whose two addresses are known beforehand, for paths where a
 * hundred nanoseconds count. */
#ifndef PEAL_RUNTIME_EXCHANGE_COPY_PAIRS_H
#define PEAL_RUNTIME_EXCHANGE_COPY_PAIRS_H

#include "base/copy.h"
#include "base/prefetch.h"

typedef struct peal_addressed_copy {
    peal_copy copy;
    unsigned char *to;
    const unsigned char *from;
    int64_t to_slot, from_slot; /* bytes; added to the addresses for each slot */
    /* Dense bytes at one end that another core holds, asked for before they are touched; 0: none */
    int64_t fetch_to, fetch_from;
} peal_addressed_copy;

/* Joins copies that may run in any order to pairs where both touch the same cache lines, as the
 * faces at the two ends of x do (the end of a row and the start of the next are neighbours in
 * memory). Returns how many are left; they come first. */
int peal_copies_pair(peal_addressed_copy *item, int count);

static inline void peal_copy_fetch(const peal_addressed_copy *m, int64_t slot)
{
    if (m->fetch_to) {
        unsigned char *to = m->to + slot * m->to_slot;
        peal_prefetch_write(to, m->fetch_to);
        if (m->copy.target_twin)
            peal_prefetch_write(to + m->copy.target_twin, m->fetch_to);
    } else if (m->fetch_from) {
        const unsigned char *from = m->from + slot * m->from_slot;
        peal_prefetch_read(from, m->fetch_from);
        if (m->copy.source_twin)
            peal_prefetch_read(from + m->copy.source_twin, m->fetch_from);
    }
}

/* Runs them in order. slot counts for those with to_slot or from_slot. */
static inline void peal_copies_run(const peal_addressed_copy *item, int count, int64_t slot)
{
    if (count > 0)
        peal_copy_fetch(item, slot);
    for (const peal_addressed_copy *m = item; m < item + count; m++) {
        if (m + 1 < item + count)
            peal_copy_fetch(m + 1, slot);
        peal_copy_run(&m->copy, m->to + slot * m->to_slot, m->from + slot * m->from_slot);
    }
}

#endif
