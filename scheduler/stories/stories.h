/* Stories of what the checks find: which ranks, which statements, in which step. Told once a source
 * position; slow, and only where something is wrong. */
#ifndef PEAL_SCHEDULER_STORIES_STORIES_H
#define PEAL_SCHEDULER_STORIES_STORIES_H

#include "scheduler/view/compilation.h"

/* The first step in which a statement happens on a rank, as a peal_story_event has it. */
int64_t story_step(const common_input *c, const peal_statement *s, int rank);

/* An end of a message without partner: what its peer has instead. */
void tell_unmatched(const common_input *c, const pass_context *pass, rank_views *views,
                    const end_summary *r, bool outgoing, peal_story *out);
/* Ends that could be matched with the same one. */
void tell_ambiguous(const common_input *c, const pass_context *pass, rank_views *views,
                    const end_summary *r, bool outgoing, peal_story *out);
/* Whether they are of one statement, which names the rank more than once. */
bool names_a_rank_twice(const pass_context *pass, rank_views *views, const end_summary *r,
                        bool outgoing);
/* Send and receive, and what differs: "type", "size", "loop", "condition" or "count". */
typedef enum pair_difference {
    DIFFERS_IN_TYPE,
    DIFFERS_IN_SIZE,
    DIFFERS_IN_LOOP,
    DIFFERS_IN_CONDITION,
    DIFFERS_IN_COUNT
} pair_difference;
void tell_pair(const common_input *c, const end_summary *send, const end_summary *recv,
               pair_difference how, peal_story *out);
/* A statement of all ranks that another rank never runs. */
void tell_absent(const common_input *c, const rank_view *v, const rank_view *other,
                 const peal_statement *s, peal_story *out);
/* A statement of all ranks that two of them do in different iterations. */
void tell_apart(const common_input *c, const peal_statement *s, const int rank[2], peal_story *out);
/* A vector that two ranks reduce, of another length on each. */
void tell_uneven(const common_input *c, const peal_statement *s, const peal_reduction *item,
                 const int rank[2], const int64_t count[2], peal_story *out);
/* One more rank of a cycle: it is at message `at` of its view, which `send`, a later one of its
 * peer's, would fill; in this step, or -1: the first of each. */
void tell_wait(const common_input *c, const rank_view *v, const rank_message *at,
               const rank_message *send, int64_t step, peal_story *out);
/* Closes the circle of waits. */
void tell_cycle(peal_story *out);

/* Two tiles of a task that touch one point of what the task writes. */
void tell_collision(const common_input *c, const rank_view *v, const peal_schedule_task *t,
                    const peal_access *a, const peal_reach *reach, int count, peal_story *out);
/* What a task reads and writes of one array, and where these meet. */
void tell_overlap(const common_input *c, const rank_view *v, const peal_schedule_task *t,
                  const peal_access *reader, const peal_box *read, const peal_access *writer,
                  const peal_box *written, peal_story *out);
/* A footprint beyond what is stored. */
void tell_reach(const common_input *c, const rank_view *v, const peal_schedule_task *t,
                const peal_access *a, const peal_box *visited, const peal_box *range,
                peal_story *out);

#endif
