/* Two ends of a network in one process, and plans between them: for tests of any engine. */
#ifndef TESTS_NETWORK_ENDS_H
#define TESTS_NETWORK_ENDS_H

#include <peal/plugin/network.h>
#include <peal/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { SIDES = 2, CHANNELS = 6, MOST_SLOTS = 4, LONG_MESSAGE = 1 << 20 };

/* A channel from a side to the other one: its words, its slots there and their shadow here. */
typedef struct channel {
    _Atomic uint64_t flag, credit;
    unsigned char *slot, *shadow;
    uint64_t sent, received; /* messages; of the sender, of the receiver */
    /* Of the receiver: where the next message may land; whether that has been said, and whether it
     * did; how many did, and how many did not. */
    unsigned char *target;
    bool is_expected, has_landed;
    int landed, packed;
} channel;

typedef struct pair_plan {
    channel from[SIDES][CHANNELS];
    peal_put out[SIDES][2 * CHANNELS], in[SIDES][2 * CHANNELS];
    peal_pair pair[SIDES];
    peal_network_plan *attached[SIDES];
    const peal_network_ops *engine;
} pair_plan;

typedef struct end {
    peal_network_site site;
    peal_network *network;
    int socket, other; /* handed out; -1 then */
    _Atomic int failure;
    char message[256];
} end;

typedef struct job {
    const peal_network_ops *engine;
    end side[SIDES];
} job;

uint64_t quantum_of(int slots);
/* buffer: what the sockets take at a time, about; 0: what they like. */
void open_job(job *j, const peal_network_ops *engine, int buffer);
void close_job(job *j);
/* Number i: the flag of channel i, number CHANNELS + i: the credit of the other side's channel i.
 * Both sides attach at a time. */
void attach_plan(job *j, pair_plan *p, uint32_t number);
/* The same, where it may fail: attached[side] is NULL then. */
void begin_plan(job *j, pair_plan *p, uint32_t number);
void detach_side(pair_plan *p, int side);
void free_plan(pair_plan *p);
/* Sends the next message of a channel if there is a slot. */
bool send_next(pair_plan *p, int side, int i);
/* Takes the next message of the other side's channel, if it is there. */
bool take_next(pair_plan *p, int side, int i);
void turn_until_taken(job *j, pair_plan *p, int side, int i);
/* Of side 1. */
void expect_failure(job *j, peal_status status, const char *text);

/* ---- tests of any engine ---- */

/* All channels both ways, in an order at random. */
void both_ways(const peal_network_ops *engine, int buffer, uint64_t messages);
/* A thread a side, and one that only helps. */
void by_threads(const peal_network_ops *engine, int buffer);
/* Who raises a word by more than there are slots, or by a part of a message, is told. */
void without_slots(const peal_network_ops *engine);

#endif
