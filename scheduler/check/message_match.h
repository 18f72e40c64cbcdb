/* Records of the ends of explicit messages, of all ranks: 8 bytes an end, and what ends have in
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

typedef struct end_record {
    int32_t peer;
    int32_t kind;
} end_record;

typedef struct end_list {
    end_record *item;
    int64_t count, capacity;
    int64_t *start; /* by rank, and the end */
} end_list;

typedef struct message_records {
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
} message_records;

/* Memory is malloc'ed; false: there is none. */
bool records_init(message_records *r, peal_compilation *c);
void records_finish(message_records *r);

/* Writes down the ends of a rank; ranks come in ascending order. */
peal_status records_add_rank(message_records *r, int rank, const rank_view *v);
/* Compares what each rank sends with what others receive from it; reports what does not match. True
 * in *late_send: some send stands below its receive. */
peal_status records_match(message_records *r, bool *late_send);

/* After a match without complaint: the statement of the send that a rank's receive waits for. */
int records_send_of(const message_records *r, int rank, const end_record *recv);
/* progress.c: after a match without complaint, whether no cycle of waits can be; false: perhaps. */
bool records_show_no_cycle(const message_records *r);

/* For matches that need no ranks: a record of one end, and a comparison of what somebody sends with
 * what is received from it; both lists get sorted. */
bool records_make(message_records *r, const message_end *end, end_record *out);
peal_status records_merge(message_records *r, int sender, end_record *send, int64_t sends,
                          end_record *recv, int64_t recvs, bool *late_send);

#endif
