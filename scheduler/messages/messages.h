/* Messages: the ends that statements name on a rank, what travels between which ranks, and what
 * must agree at both ends. */
#ifndef PEAL_SCHEDULER_MESSAGES_MESSAGES_H
#define PEAL_SCHEDULER_MESSAGES_MESSAGES_H

#include "scheduler/stories/stories.h"

peal_status make_messages(const common_input *c, const pass_context *pass, rank_views *views,
                          condition_table *conditions, rank_view *v);

/* ---- ends.c ---- */

peal_status make_ends(const common_input *c, const pass_context *pass, rank_view *v);

/* ---- match_ends.c ---- */

peal_status check_pair(const common_input *c, const pass_context *pass, condition_table *conditions,
                       const end_summary *from, const end_summary *to);
peal_status report_unmatched(const common_input *c, const pass_context *pass, rank_views *views,
                             const end_summary *r, bool outgoing);
/* orphan: an end of the other kind that has no partner, for which one of these may be meant; NULL.
 */
peal_status report_ambiguous(const common_input *c, const pass_context *pass, rank_views *views,
                             const end_summary *r, bool outgoing, int count,
                             const end_summary *orphan);
/* The other end of an explicit message, owned by the peer's view. */
peal_status match_end(const common_input *c, const pass_context *pass, rank_views *views,
                      condition_table *conditions, rank_view *v, const message_end *end,
                      const message_end **peer_end);

/* ---- partner.c ---- */

/* Reports a statement between all ranks that another rank never runs, or under another condition.
 */
peal_status check_partner(const common_input *c, const pass_context *pass,
                          condition_table *conditions, const rank_view *v, const rank_view *other,
                          const peal_statement *s);

/* ---- exchange.c ---- */

/* Whether any task or message of a rank reads an array's halo, under any name that swaps give it.
 */
bool halo_is_read(const common_input *c, const rank_view *v, int array);
peal_status add_exchange(const common_input *c, const pass_context *pass, rank_views *views,
                         condition_table *conditions, rank_view *v, const peal_statement *s);

/* ---- reductions.c ---- */

peal_status add_reduction_messages(const common_input *c, const pass_context *pass,
                                   rank_views *views, condition_table *conditions, rank_view *v,
                                   const peal_statement *s);
peal_status report_uneven(const common_input *c, const pass_context *pass, const peal_statement *s,
                          const peal_reduction *item, const int rank[2], const int64_t count[2]);

/* ---- pieces.c ---- */

rank_message *add_message(const pass_context *pass, rank_view *v, rank_message m);
void add_piece(const common_input *c, const pass_context *pass, rank_message *m, peal_piece piece);

/* ---- message_index.c: needs STAGE_MESSAGES ---- */

/* The end of message m of rank `rank` in its peer's view, an index; -1: none. */
int peer_end_of(const pass_context *pass, rank_view *peer_view, int rank, const rank_message *m);
/* The outgoing messages of a view to a peer, ascending. */
typedef struct sent_message {
    int peer, message;
    int peer_end; /* its other end, in the peer's view; -1: none */
} sent_message;
const sent_message *messages_to(const pass_context *pass, rank_view *v, rank_view *peer,
                                int *count);

#endif
