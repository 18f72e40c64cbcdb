/* The contract of networks between hosts: what one process puts into the memory of another, and the
 * engine that does it.
 *
 * A put is a message's bytes, if it has any, and then a word: the flag of the message, or the
 * credit that says that it has been consumed. Its number, its word and its slot are the same for a
 * plan's life. Both processes derive the same list from their schedules, so a number is all that a
 * frame needs to say which put it is. */
#ifndef PEAL_PLUGIN_NETWORK_H
#define PEAL_PLUGIN_NETWORK_H

#include <peal/plugin/atomic.h>
#include <peal/plugin/schedule.h>

typedef struct peal_diagnostics peal_diagnostics;

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
    /* Once they are bound, in this process: the word that an incoming put raises, or the shadow of
     * it that who sends stores; and slot 0: of the receiver's, or of its shadow here that an
     * outgoing message is packed into. */
    PEAL_ATOMIC(uint64_t) * at;
    uint64_t first; /* the word before any message: 0, but in tests of how numbers wrap around */
    unsigned char *first_slot;
} peal_put;

/* By rings of our own (mlx5): the entries of a message, its bytes and its word. */
static inline int peal_put_entries(const peal_put *put)
{
    return put->bytes > 0 ? 2 : 1;
}

/* The slot of the message that raises the word to a value. */
static inline unsigned char *peal_put_slot(const peal_put *put, uint64_t value)
{
    return put->first_slot +
           (int64_t)(value / put->quantum % (uint64_t)put->slots) * put->slot_bytes;
}

/* What two processes put into each other's memory. out of one is in of the other, but for index and
 * channel; so are the hashes. */
typedef struct peal_pair {
    int process; /* the other one */
    const peal_put *out, *in;
    int out_count, in_count;
    uint64_t out_hash, in_hash;
} peal_pair;

/* What the runtime offers an engine. */
typedef struct peal_network_site {
    size_t size; /* sizeof(peal_network_site) */
    int process, processes;
    int first_port, last_port; /* to listen on; 0: any */
    void *user;
    /* A stream socket to another process, the engine's to close. Both ends ask for it once. */
    peal_status (*connect)(void *user, int process, int *stream);
    /* Exactly so many bytes of a stream to a process, before the job's deadline or its end. */
    peal_status (*read)(void *user, int process, int stream, void *data, size_t bytes);
    /* The job must end: a stream has closed, or a frame makes no sense. Any thread. */
    void (*fail)(void *user, peal_status status, const char *message);
} peal_network_site;

typedef struct peal_network peal_network;           /* of a session */
typedef struct peal_network_plan peal_network_plan; /* of one plan */

/* A store of 4 or 8 bytes, aligned, whole. */
typedef struct peal_network_store {
    void *at;
    uint64_t value;
    uint32_t bytes;
} peal_network_store;

/* Pages that stores go to: memory, or registers of the adapter. */
typedef struct peal_network_pages {
    void *at;
    size_t bytes;
    bool registers;
} peal_network_pages;

enum { PEAL_NETWORK_STORES = 2, PEAL_NETWORK_PAGES = 2 };

/* What it takes to ring for a put's messages from elsewhere: a stream, a kernel, another process.
 */
typedef struct peal_network_doorbell {
    size_t size; /* sizeof(peal_network_doorbell) */
    peal_network_pages pages[PEAL_NETWORK_PAGES];
    int page_count;
    int64_t ahead; /* messages that may be written ahead before any has arrived */
} peal_network_doorbell;

/* An engine. Rules that keep others possible (adapters, devices that post): a put has its number
 * and its addresses for a plan's life; `due` takes a value, not a message; who posts need not be a
 * thread of a backend; what a put was raised to last is kept over starts, and a new plan begins at
 * zero. */
typedef struct peal_network_ops {
    size_t size; /* sizeof(peal_network_ops) */
    peal_transport_kind kind;
    /* Once a session; site is used until close. */
    peal_status (*open)(const peal_network_site *site, peal_diagnostics *diagnostics,
                        peal_network **out);
    /* The puts of a plan, whose number is the same in all processes and no other's; connects to
     * whom there is no stream yet. The pairs are used until detach. */
    peal_status (*attach)(peal_network *network, uint32_t number, const peal_pair *pair, int count,
                          peal_diagnostics *diagnostics, peal_network_plan **out);
    /* What of it is still on its way is dropped, here and by who receives it. */
    void (*detach)(peal_network_plan *plan);
    /* All messages (or credits) of an outgoing put up to `value` are due: their bytes are in their
     * slots and stay there until the receiver says that it has consumed them. They leave with the
     * next flush or turn, if not at once: several of them in one go. Any thread, one at a time for
     * a put. */
    void (*due)(peal_network_plan *plan, int pair, int put, uint64_t value);
    /* The next message of a put, whose bytes are at `from` yet: when it returns they have left, or
     * lie in the slot. NULL: the engine cannot. */
    void (*due_from)(peal_network_plan *plan, int pair, int put, uint64_t value,
                     const unsigned char *from);
    /* Where the bytes of an incoming put's message go, unless they are in its slot, until withdraw;
     * that: whether they did. expect false: not now, and nothing is to be withdrawn. NULL both: the
     * engine cannot. One thread at a time for a put. */
    bool (*expect)(peal_network_plan *plan, int pair, int put, uint64_t value, unsigned char *to);
    bool (*withdraw)(peal_network_plan *plan, int pair, int put);
    void (*flush)(peal_network_plan *plan);  /* what is due leaves; any thread. NULL: it has */
    void (*progress)(peal_network *network); /* one turn, by whoever waits; any thread */
    void (*sleep)(peal_network *network, int64_t ns); /* until something comes, at most so long */
    bool (*settle)(
        peal_network *network); /* a turn; true: nothing is left to be sent, or ever will */
    void (*disown)(peal_network *network); /* in a copy of the process that was forked */
    void (*close)(peal_network *network);
    /* Messages that others ring for, without a thread of this process. NULL, all four: the engine
     * has none; else each is as due: any thread, one at a time for a put. A put is rung for here,
     * by due, or, once its stores were asked for, there. */
    peal_status (*doorbell)(peal_network_plan *plan, int pair, int put, peal_network_doorbell *out);
    /* Messages have numbers since words wrap around: 1 is the first of the plan, and number n
     * raises its word to `first` + n quanta. Writes the entries of all of them up to one; false,
     * and nothing is done: there is no room before others have arrived. What is written and never
     * rung for is the next run's first: numbers go on where they were. */
    bool (*ahead)(peal_network_plan *plan, int pair, int put, uint64_t message);
    /* The stores that make all messages up to one due, which have been written ahead: one after the
     * other, with a fence of the system before each. Their number. From now on they are taken to be
     * made. */
    int (*stores)(peal_network_plan *plan, int pair, int put, uint64_t message,
                  peal_network_store out[PEAL_NETWORK_STORES]);
    /* From now on no message of the plan leaves, whoever rings, until it ends: after a failure,
     * when who rings goes on without having waited. Its words and slots still take what comes,
     * unless the engine cannot part the two. Any thread; more than once is fine. */
    void (*silence)(peal_network_plan *plan);
} peal_network_ops;

#endif
