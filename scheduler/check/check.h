/* The checks over all ranks. */
#ifndef PEAL_SCHEDULER_CHECK_CHECK_H
#define PEAL_SCHEDULER_CHECK_CHECK_H

#include "scheduler/classes/rank_classes.h"

/* directions.c: whether somebody has a neighbour in the direction of a message. By statement; NULL:
 * there are no such messages. */
typedef struct direction_use {
    bool met;   /* some rank that gets to the statement has one */
    bool ended; /* some has none, though there are several ranks along the axes */
    int rank;   /* the first of those */
} direction_use;
void begin_directions(const common_input *c, const pass_context *pass, direction_use **out);
void note_directions(const common_input *c, const pass_context *pass, const rank_view *v,
                     direction_use *use);
peal_status report_directions(const common_input *c, const pass_context *pass,
                              const direction_use *use);
/* check.c: all of them; reports everything they find. */
peal_status check_all(peal_compilation *c);
/* The same rank by rank; check_all() proves by classes where it can. */
peal_status check_each_rank(peal_compilation *c);
/* partners.c: makes the messages of all ranks, if some may not take part in what others need. */
peal_status check_partners(const common_input *c, rank_views *views);
/* Whether ranks that need each other in an exchange or a reduction take part alike, by
 * a view of each class; false: perhaps not. */
bool classes_take_part_alike(const common_input *c, const rank_classes *classes,
                             rank_view *const *view);
/* expressions.c: what expressions make of loop counters and ranks; once for all ranks. `try_ranks`:
 * their geometry is known to be good. */
peal_status check_values(const common_input *c, const pass_context *pass, rank_views *views,
                         bool try_ranks);
/* set_values.c: PEAL_E_SET_OUT_OF_RANGE for values of `set` that are known and do not fit. */
peal_status check_set_values(const common_input *c, const pass_context *pass, rank_views *views);
/* prints.c: warns of rows that are never printed. */
void warn_of_prints(const common_input *c, const pass_context *pass, rank_views *views);
/* idle_tasks.c: warns of tasks that compute the same again, and of fields that nobody reads. */
void warn_of_idle_tasks(const common_input *c, const pass_context *pass);
/* lost_values.c: warns of what is overwritten before anything reads it. */
void warn_of_lost_values(const common_input *c, const pass_context *pass);
/* file_races.c: that no order of ranks decides what is in a file. */
peal_status check_files(const common_input *c, const pass_context *pass);
/* leads.c: whether a receive may stand above its send, and a loop with messages between them. */
bool leads_may_differ(const common_input *c);
/* The send below a loop whose receive, as a match has noted, stands above it; -1: none. */
int late_send_around(const common_input *c, const peal_statement *loop);
bool has_late_loop(const common_input *c);
/* How far senders may be ahead of receivers, from what a match has noted; reports what has
 * no bound. */
peal_status find_leads(const common_input *c, const pass_context *pass, rank_views *views,
                       condition_table *conditions);
/* deadlock.c: replays one pass of all ranks; a cycle of waits is reported. */
peal_status find_deadlock(const common_input *c, const pass_context *pass, rank_views *views,
                          condition_table *conditions);
/* Whether no cycle can be, by the directions of the messages of all classes' ranks, which match;
 * false: perhaps. */
bool directions_show_no_cycle(const common_input *c, const pass_context *pass,
                              rank_view *const *view, int count);

#endif
