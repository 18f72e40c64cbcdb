/* A queue of events by time. Events of the same time are in the order in which they were added.
 *
 * Ranks that are alike do the same at the same time, so there are far fewer times than events. A
 * heap has the times, each time has a list of its events, and a hash table finds the list of a
 * time. */
#ifndef PEAL_BACKENDS_SIM_QUEUE_H
#define PEAL_BACKENDS_SIM_QUEUE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct sim_entry {
    int32_t rank;
    int32_t what;
    uint32_t next; /* the next in its list or in the list of free ones: index plus one; 0: none */
} sim_entry;

typedef struct sim_moment {
    double time_s;
    uint32_t first, last; /* of its entries: index plus one; first 0: all have been taken */
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

/* Adds an event; time_s must be at least now_s. False: out of memory. */
bool sim_queue_push(sim_event_queue *queue, double time_s, int rank, int what);
/* Takes the earliest event and sets now_s to its time. False: there is none. */
bool sim_queue_pop(sim_event_queue *queue, int *rank, int *what);
size_t sim_queue_bytes(const sim_event_queue *queue);
void sim_queue_release(sim_event_queue *queue);

#endif
