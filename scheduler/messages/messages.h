/* Messages: the ends that statements name on a rank, what travels between which ranks, and what
 * must agree at both ends. */
#ifndef PEAL_SCHEDULER_MESSAGES_MESSAGES_H
#define PEAL_SCHEDULER_MESSAGES_MESSAGES_H

#include "scheduler/stories/stories.h"

peal_status make_messages(peal_compilation *c, rank_view *v);

/* ---- ends.c ---- */

peal_status make_ends(peal_compilation *c, rank_view *v);

/* ---- match_ends.c ---- */

peal_status check_pair(peal_compilation *c, const message_record *from, const message_record *to);
peal_status report_unmatched(peal_compilation *c, const message_record *r, bool outgoing);
peal_status report_ambiguous(peal_compilation *c, const message_record *r, bool outgoing,
                             int count);
/* The other end of an explicit message, owned by the peer's view. */
peal_status match_end(peal_compilation *c, rank_view *v, const message_end *end,
                      const message_end **twin);

/* ---- partner.c ---- */

/* Reports a statement between all ranks that another rank never runs, or under another condition.
 */
peal_status check_partner(peal_compilation *c, const rank_view *v, const rank_view *other,
                          const peal_statement *s);

/* ---- exchange.c ---- */

/* Whether any task or message of a rank reads an array's halo, under any name that swaps give it.
 */
bool halo_is_read(const peal_compilation *c, const rank_view *v, int array);
peal_status add_exchange(peal_compilation *c, rank_view *v, const peal_statement *s);

/* ---- reductions.c ---- */

peal_status add_reduction_messages(peal_compilation *c, rank_view *v, const peal_statement *s);
peal_status report_uneven(peal_compilation *c, const peal_statement *s, const peal_reduction *item,
                          const int rank[2], const int64_t count[2]);

/* ---- pieces.c ---- */

rank_message *add_message(peal_compilation *c, rank_view *v, rank_message m);
void add_piece(peal_compilation *c, rank_message *m, peal_piece piece);

/* ---- message_index.c: needs STAGE_MESSAGES ---- */

/* The end of message m of rank `rank` in its peer's view, an index; -1: none. */
int twin_of(peal_compilation *c, rank_view *peer_view, int rank, const rank_message *m);
/* The outgoing messages of a view to a peer, ascending. */
const int *messages_to(peal_compilation *c, rank_view *v, int peer, int *count);

#endif
