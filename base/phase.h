/* What a thread is waiting for, in words, for a watchdog that may have to say it.
 *
 * Code that calls what may block (the file system, a driver, a launcher) says so before. Only a
 * thread that is watched keeps the words: in an application that embeds peal none is, and entering
 * a phase does nothing. */
#ifndef PEAL_BASE_PHASE_H
#define PEAL_BASE_PHASE_H

#include <stdbool.h>
#include <stdint.h>

enum { PEAL_PHASE_WORDS = 240 };

typedef struct peal_phase {
    int deadlines; /* it ends within so many deadlines, or works; 0: it may take any time */
    uint64_t number;
    char words[PEAL_PHASE_WORDS];
} peal_phase;

/* Begins a phase, and returns the one that it interrupts. */
peal_phase peal_phase_enter(int deadlines, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Goes back to it. */
void peal_phase_leave(const peal_phase *before);

/* From now on the calling thread is watched, one of a process. */
void peal_phase_watch(void);
/* Where the watched thread is. Any thread. */
peal_phase peal_phase_now(void);

#endif
