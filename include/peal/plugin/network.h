/* The contract of networks between hosts, as far as it has grown: what one process puts into the
 * memory of another.
 *
 * A put is a message's bytes, if it has any, and then a word: the flag of the message, or the
 * credit that says that it has been consumed. Its number, its word and its slot are the same for a
 * plan's life. Both processes derive the same list from their schedules, so a number is all that a
 * frame needs to say which put it is. */
#ifndef PEAL_PLUGIN_NETWORK_H
#define PEAL_PLUGIN_NETWORK_H

#include <peal/plugin/schedule.h>

typedef struct peal_put {
    int rank;     /* in whose segment it lands */
    int64_t word; /* where: the order of a list is by rank and word */
    bool credit;  /* the word is a credit; else a flag */
    int64_t slot; /* where slot 0 of the message is in that segment; -1: no bytes go along */
    int64_t slot_bytes;
    int64_t bytes; /* of a message in its slot, multiples of 8 */
    int slots; /* the message that raises the word to `value` has slot (value / quantum) % slots */
    uint64_t quantum;
    int index;   /* of the rank here, among those that this process hosts */
    int channel; /* its channel */
} peal_put;

/* What two processes put into each other's memory. out of one is in of the other, but for index and
 * channel; so are the hashes. */
typedef struct peal_pair {
    int process; /* the other one */
    const peal_put *out, *in;
    int out_count, in_count;
    uint64_t out_hash, in_hash;
} peal_pair;

#endif
