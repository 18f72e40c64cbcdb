/* How a process notices that its launcher is gone. */
#ifndef PEAL_RUNTIME_BOOTSTRAP_PARENT_H
#define PEAL_RUNTIME_BOOTSTRAP_PARENT_H

#include <stdbool.h>

typedef struct peal_parent {
    int watch; /* for poll: readable once the launcher is gone; -1: the kernel cannot tell */
    int pidfd, gone;
} peal_parent;

/* Watches the process that has started this one, and the other end of `channel` (-1: none). What
 * has happened already is told, too. */
void peal_parent_open(int channel, peal_parent *out);
/* The launcher was found to be gone by other means. Any thread. */
void peal_parent_lose(peal_parent *parent);
void peal_parent_close(peal_parent *parent);
bool peal_parent_is_gone(const peal_parent *parent);

#endif
