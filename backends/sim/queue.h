/* Events in the order of their times, those of one time in the order in which they were added.
 *
 * Ranks that are alike do alike things at one time, so there are far fewer times than events: a
 * heap has the times, a list the events of each, and a table finds the list of a time. */
#ifndef PEAL_BACKENDS_SIM_QUEUE_H
#define PEAL_BACKENDS_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sim_entry {
    int32_t rank;
    int32_t what;
    uint32_t next; /* in the list, or of those that are free: index plus one; 0: none */
} sim_entry;

typedef struct sim_moment {
    double time_s;
    uint32_t first, last; /* of its entries, plus one; first 0: all taken */
    uint32_t next_free;
} sim_moment;

typedef struct sim_event_queue {
    double now_s;
    sim_entry *entry;
    size_t entry_count, entry_capacity;
    uint32_t free_entry;
    sim_moment *moment;
    size_t moment_count, moment_capacity;
    uint32_t free_moment;
    uint32_t *heap; /* moments, the earliest first */
    size_t heap_count, heap_capacity;
    uint32_t *table; /* moments by time, plus one; 0: none */
    size_t table_capacity, table_count;
} sim_event_queue;

/* time_s is at least now_s. False: out of memory. */
bool sim_queue_push(sim_event_queue *queue, double time_s, int rank, int what);
/* The earliest, whose time is now_s then. False: there is none. */
bool sim_queue_pop(sim_event_queue *queue, int *rank, int *what);
size_t sim_queue_bytes(const sim_event_queue *queue);
void sim_queue_release(sim_event_queue *queue);

#endif
