/* What runs when a kernel ends the program, or copies it. */
#define _GNU_SOURCE
#include "tools/guard.h"
#include "tools/output.h"

#include "runtime/session/session.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <unistd.h>

static peal_session *member; /* NULL: no run is under way */
static pid_t member_pid;
static pthread_key_t main_thread;

static void leave(const char *what)
{
    if (!member || getpid() != member_pid)
        return;
    peal_diagnostics *list = peal_diagnostics_create();
    peal_report(list, PEAL_E_PROCESS_EXITED_IN_RUN, (peal_source){0},
                "kernels return; they don't end the program",
                "process %d left before the job was finished (a kernel called %s?)",
                peal_session_process(member), what);
    fflush(stdout);
    if (list && peal_session_tells_of_exit(member))
        peal_diagnostics_print(list, stderr, 0);
    fflush(stderr);
    _exit(PEAL_STATUS_PEER_LOST);
}

/* At exit(): the command itself returns from main only when no run is under way. */
static void on_exit_call(void)
{
    leave("exit");
}

static void on_quick_exit_call(void)
{
    leave("quick_exit");
}

/* When the main thread ends without the process. */
static void on_thread_end(void *value)
{
    (void)value;
    leave("pthread_exit");
}

static _Thread_local pid_t forking;

static void before_fork(void)
{
    forking = getpid();
}

/* In a forked copy: its waits give up, and it dies when the thread that has forked it ends. */
static void on_fork(void)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != forking) /* it ended before the line above */
        _exit(PEAL_STATUS_PEER_LOST);
    if (!member)
        return;
    peal_control_disown(member->control);
    atomic_store(peal_session_abort_word(member), PEAL_STATUS_PEER_LOST);
}

void guard_begin(peal_session *session)
{
    member = session;
    member_pid = getpid();
    atexit(on_exit_call);
    (void)at_quick_exit(on_quick_exit_call);
    pthread_atfork(before_fork, NULL, on_fork);
    if (pthread_key_create(&main_thread, on_thread_end) == 0)
        pthread_setspecific(main_thread, &member);
}

void guard_end(void)
{
    if (getpid() != member_pid)
        _exit(PEAL_STATUS_PEER_LOST);
    member = NULL;
}
