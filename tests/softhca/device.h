/* The control half of the software adapter: what its two files share. */
#ifndef TESTS_SOFTHCA_DEVICE_H
#define TESTS_SOFTHCA_DEVICE_H

#include "world.h"

#include <stddef.h>

/* The device, opened once. */
typedef struct hca_context {
    bool is_open;
    int events;                             /* where asynchronous events are written to */
    uint32_t registers;                     /* that its library has asked for */
    uint32_t page[HCA_REGISTERS_A_CONTEXT]; /* of the world, by its own number */
} hca_context;

/* What write() to the device says. */
ssize_t hca_command(hca_world *world, hca_context *context, const void *words, size_t bytes);
/* Asynchronous events are read at this end. */
void hca_tell_events_at(int file);
/* step.c: stores to this page of registers are seen one at a time. */
void hca_step_page(hca_world *world, uint32_t page);
/* The data half as a thread of this process, where the world wants that. */
void hca_begin_thread(void);

#endif
