/* The control half of the software adapter, third part: stores to registers one at a time. Their
 * pages are write-protected. A store faults; what the records say is written down then; the store
 * is stepped over, and the program goes on when the adapter has taken it. So a doorbell before its
 * record, or in two halves, is seen every time, which polling does once in thousands. */
#define _GNU_SOURCE
#include "device.h"

#include <sched.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>

#ifdef __x86_64__

enum { TRAP_FLAG = 0x100, MOST_TURNS = 1 << 20 };

static hca_world *world;
static _Thread_local uint64_t *stepped; /* the word that is being stored to */

static void note_records(uint32_t page)
{
    for (int i = 0; i < HCA_QUEUES; i++) {
        hca_queue *q = &world->queue[i];
        if (atomic_load(&q->used) != HCA_USED || q->page != page)
            continue;
        const uint32_t *record = (const uint32_t *)(uintptr_t)q->record;
        atomic_store(&q->seen, __atomic_load_n(record + 1, __ATOMIC_ACQUIRE));
    }
}

static void on_store(int number, siginfo_t *what, void *where)
{
    ucontext_t *context = where;
    uintptr_t at = (uintptr_t)what->si_addr, first = (uintptr_t)world->page;
    if (at < first || at >= first + sizeof(world->page)) {
        signal(number, SIG_DFL); /* not ours: it comes again */
        return;
    }
    uint32_t page = (uint32_t)((at - first) / HCA_PAGE_BYTES);
    note_records(page);
    stepped = (uint64_t *)(at & ~(uintptr_t)7);
    mprotect(world->page[page], HCA_PAGE_BYTES, PROT_READ | PROT_WRITE);
    context->uc_mcontext.gregs[REG_EFL] |= TRAP_FLAG;
}

static void on_step(int number, siginfo_t *what, void *where)
{
    ucontext_t *context = where;
    (void)number;
    (void)what;
    context->uc_mcontext.gregs[REG_EFL] &= ~(greg_t)TRAP_FLAG;
    if (!stepped)
        return;
    /* Behind the first word of a half may be more of the entry, which the adapter leaves there. */
    bool rings = (uintptr_t)stepped % (HCA_REGISTER_BYTES / 2) == 0;
    for (int i = 0; rings && i < MOST_TURNS && __atomic_load_n(stepped, __ATOMIC_ACQUIRE); i++)
        sched_yield();
    mprotect((void *)((uintptr_t)stepped & ~(uintptr_t)(HCA_PAGE_BYTES - 1)), HCA_PAGE_BYTES,
             PROT_READ);
    stepped = NULL;
}

void hca_step_page(hca_world *of, uint32_t page)
{
    if (!world) {
        struct sigaction act = {.sa_sigaction = on_store, .sa_flags = SA_SIGINFO | SA_NODEFER};
        world = of;
        sigaction(SIGSEGV, &act, NULL);
        act.sa_sigaction = on_step;
        sigaction(SIGTRAP, &act, NULL);
    }
    mprotect(world->page[page], HCA_PAGE_BYTES, PROT_READ);
}

#else

void hca_step_page(hca_world *of, uint32_t page)
{
    (void)of;
    (void)page;
}

#endif
