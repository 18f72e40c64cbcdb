/* The back-off of a wait for a word that another thread, process or device stores: spin while the
 * other side is likely to run, then yield, then sleep for growing times. Nobody wakes a sleeper,
 * since who stores the word does not know who waits: sleeps are short against a time slice.
 *
 *     peal_backoff backoff = {.spins = 4000, .yields = 4000, .sleep_ns = 50000};
 *     while (!is_reached(word))
 *         peal_backoff_wait(&backoff);
 *
 * The caller looks at the word, at the abort word and, now and then, at the clock between rounds.
 */
#ifndef PEAL_BASE_BACKOFF_H
#define PEAL_BASE_BACKOFF_H

#include <stdbool.h>
#include <stdint.h>

typedef struct peal_backoff {
    int spins, yields; /* rounds that are left of each */
    int64_t sleep_ns;  /* of the next sleep */
    int64_t most_ns;   /* sleeps grow until they are this long; 0: they don't grow */
    int growth;        /* by this part each time: 4 by a quarter, 1 to twice as long; 0: as 1 */
} peal_backoff;

/* Tells the processor that this is a spin loop. */
static inline void peal_cpu_relax(void)
{
#if defined(__x86_64__) || defined(__i386__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

/* Whether the next round sleeps. */
static inline bool peal_backoff_sleeps(const peal_backoff *backoff)
{
    return backoff->spins <= 0 && backoff->yields <= 0;
}

/* For words that other processes of this host store, most often within microseconds. */
static inline peal_backoff peal_backoff_of_processes(void)
{
    return (peal_backoff){.spins = 4000, .yields = 4000, .sleep_ns = 50000};
}

/* One round. */
void peal_backoff_wait(peal_backoff *backoff);

#endif
