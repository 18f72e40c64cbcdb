/* Runs another program to its end: a compiler. Nothing of it outlives this process or the limit. */
#ifndef PEAL_BASE_PROGRAM_H
#define PEAL_BASE_PROGRAM_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

typedef struct peal_program {
    const char *const *argv;       /* ends with NULL; argv[0] is looked up in PATH */
    char *const *environment;      /* ends with NULL */
    const char *output, *errors;   /* files that its streams are written to; NULL: nowhere */
    int64_t deadline_ns;           /* longest time without progress; 0: none */
    const _Atomic int *abort_word; /* ends it once it is not 0; may be NULL */
} peal_program;

typedef enum peal_program_end {
    PEAL_PROGRAM_EXITED,   /* *code is its exit code */
    PEAL_PROGRAM_SIGNALED, /* *code is the signal */
    PEAL_PROGRAM_REFUSED,  /* it did not start: *code is an errno */
    PEAL_PROGRAM_STUCK,    /* no progress for the deadline, or far too much of it: it was killed */
    PEAL_PROGRAM_ABORTED   /* the abort word was set: it was killed */
} peal_program_end;

/* Progress is processor time of the program and of all that it starts; ten times the deadline (and
 * 10 s) of it is more than any compiler takes. When the calling thread or this process dies, by
 * whatever signal, all of it is killed. */
peal_program_end peal_program_run(const peal_program *program, int *code);

/* A descriptor that is readable once the process has ended, closed on exec; -1: not to be had. */
int peal_pidfd_open(pid_t pid);

#endif
