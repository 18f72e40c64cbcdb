/* Kernels that crash: signal handlers that report which kernel it was, and calls that survive it.
 *
 * Each thread records what it runs in `host_here`, which the handlers read. A crash in a kernel is
 * reported with its task, tile, rank and step; any other crash is passed on to the handler that was
 * there before. The command installs the handlers for its whole run (peal_crash_install), and
 * --check-footprints installs them around its own calls (peal_trials_begin). Nothing else does, so
 * an application that embeds peal keeps its own handlers. */
#ifndef PEAL_HOST_CRASH_H
#define PEAL_HOST_CRASH_H

#include <peal/call.h>
#include <peal/status.h>

#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PEAL_CRASH_SIGNALS = 6,     /* SEGV, BUS, FPE, ILL, TRAP, ABRT */
    PEAL_CRASH_STACK = 1 << 16, /* bytes: handlers need a stack when the kernel's has overflowed */
    PEAL_CRASH_TEXT = 512
};

/* What a thread runs; context NULL: no kernel. */
typedef struct host_site {
    const struct host_context *context;
    const struct host_op *op;
    const peal_call *call;
    int64_t step; /* finished iterations of the outermost loop */
} host_site;

extern _Thread_local host_site host_here __attribute__((tls_model("initial-exec")));

static inline void host_enter(const struct host_context *context, const struct host_op *op,
                              const peal_call *call, int64_t step)
{
    host_here = (host_site){context, op, call, step};
    __atomic_signal_fence(__ATOMIC_SEQ_CST); /* with the handler on this thread */
}

static inline void host_leave(void)
{
    __atomic_signal_fence(__ATOMIC_SEQ_CST);
    host_here.context = NULL;
}

/* "step 3", "setup" or "finish" of what this thread runs; "" if it runs nothing. */
void host_site_when(const host_site *site, char *text, size_t bytes);

/* ---- the command ---- */

/* From now on a crash of a kernel is reported on standard error, by system calls alone. Then
 * another thread calls `notify`, which ends the other processes, and the process ends with
 * PEAL_STATUS_SPEC. If `notify` does not return within two seconds, the process ends anyway. Called
 * once, by the main thread, before it creates others. */
void peal_crash_install(void (*notify)(peal_status status, const char *message));

/* Sets the stack that handlers run on in this thread (PEAL_CRASH_STACK bytes at `memory`), and
 * restores the stack that it had before. They do nothing unless handlers are installed. */
void host_crash_stack_begin(void *memory, stack_t *before);
void host_crash_stack_end(const stack_t *before);

/* SIGINT or SIGTERM, if a kernel has raised it on this thread. (The command blocks these signals
 * and waits for them on another thread.) 0: none, or handlers are not installed. */
int host_raised_signal(void);

/* ---- calls that survive ---- */

/* A call that survives a crash, and how it ended. */
typedef struct peal_trial {
    /* Called in a signal handler, with the address of a fault. True: it has made the address
     * accessible, and the call goes on. False: it is a crash. */
    bool (*fault)(void *user, uintptr_t address);
    void (*before)(void *user); /* called right before the function, at its depth; or NULL */
    void *user;
    const host_site *site;          /* of the task; its context may be NULL */
    int signal;                     /* that ended it; 0: it returned */
    char text[PEAL_CRASH_TEXT / 2]; /* "segmentation fault at address 0x10" */
    sigjmp_buf back;
} peal_trial;

/* Install the process's handlers and a stack for them on this thread (PEAL_CRASH_STACK bytes), and
 * remove them. *before: the stack for handlers that the thread had. Several threads may do so at a
 * time. */
void peal_trials_begin(void *stack, stack_t *before);
void peal_trials_end(const stack_t *before);

/* Runs function(call), between the two calls above. False: it has crashed.
 *
 * abort() is not survived: the C library calls it within malloc and keeps malloc's lock. It ends
 * the process like any crash of a kernel (peal_crash_install); in an application without these
 * handlers it goes to the handler that was there before. Another crash may come from within malloc
 * as well. Then the command's handlers end the process within seconds; in an application, which has
 * none, the thread waits in malloc for ever. */
bool peal_trial_run(peal_trial *trial, peal_function function, const peal_call *call);

#endif
