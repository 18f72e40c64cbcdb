/* The ends of explicit messages, of all ranks, in a table: 8 bytes an end, and what ends have in
 * common once. */
#ifndef PEAL_SCHEDULER_CHECK_MESSAGE_MATCH_H
#define PEAL_SCHEDULER_CHECK_MESSAGE_MATCH_H

#include "scheduler/view/compilation.h"

/* What many ends share. */
typedef struct message_kind {
    int64_t tag, count;
    int32_t statement;
    int32_t direction;   /* the sender's, 0 to 26; -1: none */
    peal_term condition; /* of the statement on the end's rank; 0: the same on all ranks */
} message_kind;

typedef struct packed_end {
    int32_t peer;
    int32_t kind;
} packed_end;

typedef struct end_list {
    packed_end *item;
    int64_t count, capacity;
    int64_t *start; /* by rank, and the end */
} end_list;

typedef struct end_table {
    const common_input *c;
    const pass_context *pass;
    rank_views *views;
    condition_table *conditions;
    end_list sends, recvs; /* by the rank whose end it is */
    end_list turned;       /* receives by their sender, while they are matched */
    message_kind *kind;
    int kind_count, kind_capacity, last_kind;
    int *bucket; /* hash table: 1 + number of a kind, 0: free */
    size_t bucket_count;
    size_t most_bytes;
} end_table;

/* Memory is malloc'ed; false: there is none. */
bool end_table_init(end_table *r, peal_compilation *c);
void end_table_finish(end_table *r);

/* Writes down the ends of a rank; ranks come in ascending order. */
peal_status end_table_add_rank(end_table *r, int rank, const rank_view *v);
/* Compares what each rank sends with what others receive from it; reports what does not match. True
 * in *late_send: some send stands below its receive; which ones is noted in the common input's
 * leads. */
peal_status end_table_match(end_table *r, bool *late_send);

/* After a match without complaint: the statement of the send that a rank's receive waits for. */
int end_table_send_of(const end_table *r, int rank, const packed_end *recv);
/* progress.c: after a match without complaint, whether no cycle of waits can be; false: perhaps. */
bool end_table_shows_no_cycle(const end_table *r);

/* For matches that need no ranks: one end, packed, and a comparison of what somebody sends with
 * what is received from it; both lists get sorted. */
bool pack_end(end_table *r, const message_end *end, packed_end *out);
peal_status match_packed_ends(end_table *r, int sender, packed_end *send, int64_t sends,
                              packed_end *recv, int64_t recvs, bool *late_send);

#endif
