/* Handlers of SEGV, BUS, FPE, ILL, TRAP and ABRT. They use only system calls and memory that exists
 * already, because the crash may have come from within malloc. */
#define _GNU_SOURCE
#include "backends/host/crash.h"

#include "backends/host/execute.h"

#include <poll.h>
#include <semaphore.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { PATIENCE_MS = 2000, NEAR_STACK = 1 << 16 };
/* A size for which malloc takes its lock: larger than what a thread has of its own, smaller than
 * what malloc maps. */
enum { PROBE_BYTES = 5000, PROBE_MS = 5000, PROBE_LOOK_MS = 10 };

_Thread_local host_site host_here __attribute__((tls_model("initial-exec")));

static _Thread_local peal_trial *current __attribute__((tls_model("initial-exec")));

static const int caught[PEAL_CRASH_SIGNALS] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGTRAP, SIGABRT};

/* The handlers that ours have replaced: in peal_crash_install, and in peal_trials_begin. */
static struct sigaction outer[PEAL_CRASH_SIGNALS], inner[PEAL_CRASH_SIGNALS];
static bool installed;
static pthread_mutex_t trials_lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic int trials; /* threads between peal_trials_begin and _end */
static void (*notify_others)(peal_status status, const char *message);
static sem_t crashed;                 /* posted after a crash, and for a probe */
static char message[PEAL_CRASH_TEXT]; /* about the one crash that is reported */
static atomic_flag is_taken = ATOMIC_FLAG_INIT;
static atomic_bool is_told;
static pthread_mutex_t probe_lock = PTHREAD_MUTEX_INITIALIZER;
static sem_t probed;
static const peal_trial *suspect; /* the trial whose crash is probed */

/* ---- words, without the C library's streams ---- */

typedef struct words {
    char *text;
    size_t used, bytes;
} words;

static void add(words *w, const char *text)
{
    for (; *text && w->used + 1 < w->bytes; text++)
        w->text[w->used++] = *text;
    w->text[w->used] = 0;
}

static void add_number(words *w, int64_t number)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;
    uint64_t rest = number < 0 ? 0 - (uint64_t)number : (uint64_t)number;
    digits[at] = 0;
    do
        digits[--at] = (char)('0' + rest % 10);
    while (rest /= 10);
    if (number < 0)
        digits[--at] = '-';
    add(w, digits + at);
}

static void add_address(words *w, uintptr_t address)
{
    char digits[24];
    size_t at = sizeof(digits) - 1;
    digits[at] = 0;
    do
        digits[--at] = "0123456789abcdef"[address % 16];
    while (address /= 16);
    add(w, "0x");
    add(w, digits + at);
}

static uintptr_t stack_pointer(const void *context)
{
    const ucontext_t *c = context;
#if defined(__x86_64__)
    return (uintptr_t)c->uc_mcontext.gregs[REG_RSP];
#elif defined(__aarch64__)
    return (uintptr_t)c->uc_mcontext.sp;
#else
    (void)c;
    return 0;
#endif
}

static void add_cause(words *w, int number, const siginfo_t *info, const void *context)
{
    uintptr_t address = (uintptr_t)info->si_addr, stack = stack_pointer(context);
    bool sent = info->si_code <= 0; /* by kill or raise: there is no address */
    switch (number) {
    case SIGFPE:
        add(w, info->si_code == FPE_INTDIV ? "an integer was divided by zero" : "arithmetic error");
        return;
    case SIGABRT:
        add(w, "abort() was called");
        return;
    case SIGILL:
    case SIGTRAP:
        add(w, "illegal instruction (compilers put one where the behaviour is undefined)");
        return;
    default:
        add(w, number == SIGBUS ? "bus error" : "segmentation fault");
    }
    if (!sent && stack && address + NEAR_STACK > stack && address < stack + NEAR_STACK)
        add(w, ": the stack has overflowed");
    else if (!sent && info->si_code != SI_KERNEL) {
        add(w, " at address ");
        add_address(w, address);
    }
}

void host_site_when(const host_site *site, char *text, size_t bytes)
{
    words w = {text, 0, bytes};
    add(&w, "");
    if (!site->context)
        return;
    const peal_schedule *schedule = site->context->rank->schedule;
    int op = (int)(site->op - site->context->rank->op);
    if (op >= schedule->setup.first && op < schedule->setup.end)
        add(&w, "setup");
    else if (op >= schedule->finish.first && op < schedule->finish.end)
        add(&w, "finish");
    else {
        add(&w, "step ");
        add_number(&w, site->step);
    }
}

static void add_site(words *w, const host_site *site)
{
    const peal_schedule_task *task = site->op->task->source;
    char when[40];
    int axes = task->tiling_count ? task->tiling[0].box.axis_count : 1;
    add(w, " (rank ");
    add_number(w, site->context->rank->schedule->rank);
    add(w, ", tile");
    for (int k = 0; k == 0 || k < axes; k++) {
        add(w, k ? " x [" : " [");
        add_number(w, site->call->tile.lo[k]);
        add(w, ", ");
        add_number(w, site->call->tile.hi[k]);
        add(w, ")");
    }
    host_site_when(site, when, sizeof(when));
    add(w, ", ");
    add(w, when);
    add(w, ")");
}

/* ---- the end of the process ---- */

static void put(const char *text)
{
    size_t left = strlen(text);
    while (left > 0) {
        ssize_t written = write(STDERR_FILENO, text, left);
        if (written <= 0)
            return;
        text += written;
        left -= (size_t)written;
    }
}

/* Prints the message in the form of a diagnostic (base/diagnostic.c). */
static void print(const host_site *site, bool is_trial)
{
    char text[2 * PEAL_CRASH_TEXT];
    words w = {text, 0, sizeof(text)};
    const peal_source *source = &site->op->task->source->source;
    add(&w, source->file ? source->file : "peal");
    add(&w, ":");
    if (source->line > 0) {
        add_number(&w, source->line);
        add(&w, ":");
    }
    if (source->line > 0 && source->column > 0) {
        add_number(&w, source->column);
        add(&w, ":");
    }
    add(&w, " error: ");
    add(&w, message);
    add(&w, is_trial
                ? " [E215]\n    none of its arrays is near: look for a wild pointer, or for "
                  "stores beyond memory of malloc; `peal explain E215` says more\n"
                : " [E215]\n    `peal run --check-footprints` finds what a kernel touches beyond "
                  "its arrays; `peal explain E215` says more\n");
    put(text);
}

/* False: another kernel crashed first. */
static bool print_first(const host_site *site, const char *cause, bool is_trial)
{
    if (atomic_flag_test_and_set(&is_taken))
        return false;
    words w = {message, 0, sizeof(message)};
    add(&w, "task '");
    add(&w, site->op->task->source->name);
    add(&w, "' crashed: ");
    add(&w, cause);
    add_site(&w, site);
    print(site, is_trial);
    atomic_store(&is_told, true);
    return true;
}

static void end(const host_site *site, bool is_trial, const char *cause)
{
    if (!print_first(site, cause, is_trial)) /* the thread that crashed first ends the process */
        for (;;)
            poll(NULL, 0, -1);
    sem_post(&crashed);
    poll(NULL, 0, PATIENCE_MS); /* `await_crash` ends the process before */
    _exit(PEAL_STATUS_SPEC);
}

static void leave(int number)
{
    (void)number;
    _exit(PEAL_STATUS_SPEC);
}

/* Ends the process from a handler: the thread that should do so waits for a lock that nobody
 * releases. */
static void leave_soon(void)
{
    sigset_t set;
    signal(SIGALRM, leave);
    sigemptyset(&set);
    sigaddset(&set, SIGALRM);
    pthread_sigmask(SIG_UNBLOCK, &set, NULL);
    alarm(PATIENCE_MS / 1000);
}

/* Whether the thread that is probed goes on, or a crash is to be reported. */
static bool gets_on(void)
{
    for (int waited = 0; waited < PROBE_MS; waited += PROBE_LOOK_MS) {
        if (sem_trywait(&probed) == 0 || atomic_load(&is_told))
            return true;
        poll(NULL, 0, PROBE_LOOK_MS);
    }
    return false;
}

static void *await_crash(void *unused)
{
    (void)unused;
    while (!atomic_load(&is_told)) {
        if (sem_wait(&crashed) != 0 || atomic_load(&is_told) || gets_on())
            continue;
        leave_soon();
        print_first(suspect->site, suspect->text, true);
    }
    notify_others(PEAL_STATUS_SPEC, message);
    _exit(PEAL_STATUS_SPEC);
}

/* ---- handlers ---- */

/* Does what would have happened without our handlers. */
static void pass_on(const struct sigaction *before, int number, siginfo_t *info, void *context)
{
    if (before->sa_flags & SA_SIGINFO) {
        before->sa_sigaction(number, info, context);
        return;
    }
    if (before->sa_handler == SIG_IGN && info->si_code <= 0)
        return;
    if (before->sa_handler != SIG_DFL && before->sa_handler != SIG_IGN) {
        before->sa_handler(number);
        return;
    }
    /* The instruction runs again and faults again; a signal that was sent is sent again. */
    signal(number, SIG_DFL);
    if (info->si_code <= 0)
        raise(number);
}

static void handle(int number, siginfo_t *info, void *context)
{
    int index = 0;
    peal_trial *trial = current;
    char cause[PEAL_CRASH_TEXT / 2];
    while (index < PEAL_CRASH_SIGNALS - 1 && caught[index] != number)
        index++;
    words w = {cause, 0, sizeof(cause)};
    add_cause(&w, number, info, context);
    if (trial && number == SIGABRT) {
        /* The C library aborts within malloc and keeps its lock, so whatever allocates next would
         * wait for ever. In an application, its own handler decides. */
        if (installed && trial->site->context)
            end(trial->site, true, cause);
    } else if (trial) {
        bool fault = (number == SIGSEGV || number == SIGBUS) && info->si_code > 0;
        if (fault && trial->fault && trial->fault(trial->user, (uintptr_t)info->si_addr))
            return;
        memcpy(trial->text, cause, sizeof(cause));
        trial->signal = number;
        current = NULL;
        siglongjmp(trial->back, 1);
    }
    if (host_here.context && installed)
        end(&host_here, false, cause);
    /* Trials may have replaced the command's handlers, which are the same functions. */
    const struct sigaction *before = atomic_load(&trials) ? &inner[index] : &outer[index];
    if (before->sa_sigaction == handle)
        before = &outer[index];
    pass_on(before, number, info, context);
}

static void set_handlers(struct sigaction before[PEAL_CRASH_SIGNALS])
{
    struct sigaction action = {.sa_sigaction = handle, .sa_flags = SA_SIGINFO | SA_ONSTACK};
    sigemptyset(&action.sa_mask);
    for (int i = 0; i < PEAL_CRASH_SIGNALS; i++)
        sigaction(caught[i], &action, &before[i]);
}

static void set_stack(void *memory, stack_t *before)
{
    const stack_t stack = {.ss_sp = memory, .ss_size = PEAL_CRASH_STACK};
    sigaltstack(&stack, before);
}

void host_crash_stack_begin(void *memory, stack_t *before)
{
    if (installed)
        set_stack(memory, before);
}

void host_crash_stack_end(const stack_t *before)
{
    if (installed)
        sigaltstack(before, NULL);
}

int host_raised_signal(void)
{
    const struct timespec now = {0};
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGTERM);
    int number = installed ? sigtimedwait(&set, NULL, &now) : 0;
    return number > 0 ? number : 0;
}

void peal_crash_install(void (*notify)(peal_status status, const char *message))
{
    static unsigned char stack[PEAL_CRASH_STACK];
    pthread_t thread;
    pthread_attr_t attributes;
    if (installed || sem_init(&crashed, 0, 0) != 0 || sem_init(&probed, 0, 0) != 0)
        return;
    notify_others = notify;
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    installed = pthread_create(&thread, &attributes, await_crash, NULL) == 0;
    pthread_attr_destroy(&attributes);
    if (!installed)
        return;
    set_stack(stack, NULL);
    set_handlers(outer);
}

/* ---- trials ---- */

void peal_trials_begin(void *memory, stack_t *before)
{
    set_stack(memory, before);
    pthread_mutex_lock(&trials_lock);
    if (trials++ == 0)
        set_handlers(inner);
    pthread_mutex_unlock(&trials_lock);
}

void peal_trials_end(const stack_t *before)
{
    pthread_mutex_lock(&trials_lock);
    if (--trials == 0)
        for (int i = 0; i < PEAL_CRASH_SIGNALS; i++)
            sigaction(caught[i], &inner[i], NULL);
    pthread_mutex_unlock(&trials_lock);
    sigaltstack(before, NULL);
}

/* Calls malloc after a crash. A crash within malloc leaves its lock taken, and one elsewhere may
 * have corrupted the heap. If malloc hangs or crashes here, the trial is known to be the cause. */
static void probe(const peal_trial *trial)
{
    if (!installed || !trial->site->context)
        return;
    pthread_mutex_lock(&probe_lock);
    suspect = trial;
    sem_post(&crashed);
    host_here = *trial->site;
    void *volatile memory = malloc(PROBE_BYTES);
    free(memory);
    host_leave();
    sem_post(&probed);
    pthread_mutex_unlock(&probe_lock);
}

bool peal_trial_run(peal_trial *trial, peal_function function, const peal_call *call)
{
    trial->signal = 0;
    trial->text[0] = 0;
    if (sigsetjmp(trial->back, 1) == 0) {
        current = trial;
        if (trial->before)
            trial->before(trial->user);
        function(call);
    }
    current = NULL;
    if (trial->signal != 0)
        probe(trial);
    return trial->signal == 0;
}
