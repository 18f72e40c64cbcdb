/* Kernels that crash: who was where, what is said about it, and calls that survive it.
 *
 * Each thread notes what it runs in `host_here`. The handlers look there: a crash in a kernel is
 * told with its task, tile, rank and step; any other crash is left to whoever handled it before.
 * They are installed by the command for its whole run (peal_crash_install), and by
 * --check-footprints around its own calls (peal_trials_begin); never else, so an application that
 * embeds peal keeps its own. */
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

/* From now on a crash of a kernel is written to standard error, by system calls alone; then `tell`
 * is called by a thread of its own, to end the other processes, and the process ends with
 * PEAL_STATUS_SPEC. Should `tell` not return within two seconds, the process ends without. Called
 * once, by the main thread, before others are there. */
void peal_crash_install(void (*tell)(peal_status status, const char *message));

/* The memory that a thread's handlers run on, PEAL_CRASH_STACK bytes, until the end, which gives
 * the thread the stack back that it had before. They do nothing unless handlers are installed. */
void host_crash_stack_begin(void *memory, stack_t *before);
void host_crash_stack_end(const stack_t *before);

/* SIGINT or SIGTERM, if a kernel has raised it on this thread: the command blocks them and waits on
 * another. 0: none, or handlers are not installed. */
int host_raised_signal(void);

/* ---- calls that survive ---- */

/* How a kernel ended. */
typedef struct peal_trial {
    /* A fault at this address: makes it accessible and returns true, or false: it is a crash.
     * Called in a signal handler. */
    bool (*fault)(void *user, uintptr_t address);
    void *user;
    const host_site *site;          /* of the task; its context may be NULL */
    int signal;                     /* that ended it; 0: it returned */
    char text[PEAL_CRASH_TEXT / 2]; /* "segmentation fault at address 0x10" */
    sigjmp_buf back;
} peal_trial;

/* Handlers of this process and a stack for them on this thread, and back; *before: the thread's own
 * stack for handlers. Several threads may do so at a time. stack: PEAL_CRASH_STACK bytes. */
void peal_trials_begin(void *stack, stack_t *before);
void peal_trials_end(const stack_t *before);

/* Runs function(call) between the two. False: it has crashed. abort() is not survived, since the C
 * library calls it within malloc, whose lock stays taken: it ends the process as any crash of a
 * kernel (peal_crash_install) or, in an application without that, goes to the handler that was
 * there before. Other crashes may have come from within malloc, too: then the process ends within
 * seconds by the command's handlers. An application has none, and its thread waits in malloc for
 * ever. */
bool peal_trial_run(peal_trial *trial, peal_function function, const peal_call *call);

#endif
