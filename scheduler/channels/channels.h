/* Channels: how each message goes: by which transport, through which memory, with which flags and
 * credits. Both ends compute the same. */
#ifndef PEAL_SCHEDULER_CHANNELS_CHANNELS_H
#define PEAL_SCHEDULER_CHANNELS_CHANNELS_H

#include "scheduler/view/compilation.h"

/* ---- credits.c ---- */

/* How a channel is lowered; decided by the two ends alike. */
typedef struct delivery {
    bool direct; /* pieces marked direct are stored in place */
    bool credit; /* the sender waits for explicit credits */
    int slots;
    int carrier; /* message of the receiver to the sender that carries the credit; -1: none needed
                  */
    const char *why; /* there is a credit, or none without a carrier */
} delivery;

/* How an outgoing message of rank `sender` is delivered; both ends decide alike. */
peal_status deliver(const common_input *c, const pass_context *pass, rank_views *views, int sender,
                    int message_index, delivery *out);
/* How many slots a staged message has. */
int message_slots(const common_input *c, const rank_message *m);
/* Whether a piece is long enough, where it goes, to be stored in place. */
bool piece_wants_direct(const common_input *c, const rank_view *receiver, int sender,
                        const peal_piece *piece);

/* ---- segment_map.c: needs STAGE_MESSAGES ---- */

/* Where everything lies in a rank's segment. */
struct segment_map {
    int64_t *array;   /* by array; -1: lent */
    int64_t *flag;    /* by message: incoming ones */
    int64_t *staging; /* by message: slot 0; of one that is delivered in place, if it may be */
    int64_t *slot_bytes;
    int64_t *spare; /* by message: the same where it could be in place and is not; -1 */
    int64_t *spare_slot_bytes;
    int64_t *credit; /* by message: outgoing ones */
    int *peer;       /* ranks that it exchanges messages with, ascending */
    int64_t *ready;  /* by peer: flag that says the peer's setup is done */
    int peer_count;
    int64_t mailbox;   /* where the arrays end */
    int64_t all_spare; /* where what is spare begins, behind all else */
    int64_t bytes;
};

const segment_map *map_segment(const common_input *c, const pass_context *pass, rank_view *v);

/* ---- connect.c ---- */

/* The channels of a rank, one a message, then two a peer that say that setup is done; and who
 * carries whose credit. */
typedef struct channel_table {
    const segment_map *map;
    peal_channel *channel;
    int count;
    delivery *delivery; /* by message; of incoming ones as the sender decides */
    int *carried;       /* by outgoing message: the first whose credit it carries; -1 */
    int *next_carried;  /* by message: the next that is carried along with it; -1 */
    int *awaits;        /* by outgoing message: the incoming one that brings its credit; -1 */
    int64_t used_bytes; /* of the segment: spare slots that are not needed are at its end */
} channel_table;

peal_status make_channels(const common_input *c, const pass_context *pass, rank_views *views,
                          rank_view *v, channel_table *out);

#endif
