/* Barriers: how the processes of a job start and finish together: on one host on a board of shared
 * memory, on several by an allgather of the control plane.
 *
 * On the board a process writes its claim and releases its round; the others acquire it. There are
 * two claims a process: nobody can be two rounds ahead of one who still reads, since a round ends
 * only when all have written it. */
#include "runtime/session/network.h"
#include "runtime/session/session.h"

#include "base/backoff.h"
#include "base/clock.h"
#include "base/patience.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* At the clock, while nobody sleeps. */
enum { ROUNDS_A_LOOK = 1000 };

static peal_barrier_slot *slot_of(const peal_session *session, int process)
{
    return (peal_barrier_slot *)(void *)session->board.base + process;
}

void peal_session_running(peal_session *session, bool running)
{
    if (!session->board.base) {
        peal_control_busy(session->control, running);
        return;
    }
    peal_barrier_slot *slot = slot_of(session, session->identity.process);
    atomic_store_explicit(&slot->pid, (int32_t)getpid(), memory_order_relaxed);
    atomic_fetch_add_explicit(&slot->running, running ? 1 : -1, memory_order_release);
}

/* By SIGSTOP or a debugger: it runs no longer, and may never again. */
static bool is_stopped(int32_t pid)
{
    char path[64], line[512], state = 0;
    snprintf(path, sizeof(path), "/proc/%d/stat", (int)pid);
    FILE *file = fopen(path, "re");
    const char *end = file && fgets(line, sizeof(line), file) ? strrchr(line, ')') : NULL;
    if (end)
        sscanf(end + 1, " %c", &state);
    if (file)
        fclose(file);
    return state == 'T' || state == 't'; /* by a signal, by ptrace */
}

bool peal_session_others_run(const peal_session *session)
{
    if (!session->board.base)
        return peal_control_hears_busy(session->control);
    for (int p = 0; p < session->identity.processes; p++) {
        const peal_barrier_slot *slot = slot_of(session, p);
        if (p != session->identity.process && atomic_load(&slot->running) > 0 &&
            !is_stopped(atomic_load(&slot->pid)))
            return true;
    }
    return false;
}

static peal_status report_absence(const peal_session *session, int p, bool stopped)
{
    return peal_report(session->diagnostics, PEAL_E_PROCESS_DID_NOT_CALL, PEAL_NO_SOURCE,
                       stopped ? "continue it (SIGCONT, or in its debugger)"
                               : "do all processes make the same calls in the same order?",
                       "process %d %s within %g s", p,
                       stopped ? "is stopped: it did not come" : "did not come",
                       (double)session->deadline_ns * 1e-9);
}

peal_backoff peal_session_backoff(const peal_session *session)
{
    peal_backoff backoff = peal_backoff_of_processes();
    if (session->identity.local_processes > session->cores)
        backoff.spins = 0;
    return backoff;
}

/* Waits until process p has written this round. The deadline starts anew while p is running. */
static peal_status wait_for(peal_session *session, int p)
{
    peal_barrier_slot *slot = slot_of(session, p);
    peal_barrier_claim *claim = &slot->claim[session->round & 1];
    peal_patience patience = peal_patience_begin(peal_clock_ns(), session->deadline_ns);
    peal_patience next_look = patience;
    peal_backoff backoff = peal_session_backoff(session);
    for (int round = 1;; round++) {
        /* pairs with the release in peal_session_barrier of process p */
        if (atomic_load_explicit(&claim->round, memory_order_acquire) >= session->round)
            return PEAL_STATUS_OK;
        if (peal_session_status(session))
            return peal_session_cause(session);
        peal_session_turn(session); /* others may wait for room in our sockets */
        peal_backoff_wait(&backoff);
        if (round % ROUNDS_A_LOOK != 0 && !peal_backoff_sleeps(&backoff))
            continue;
        int64_t now = peal_clock_ns();
        bool runs = atomic_load_explicit(&slot->running, memory_order_relaxed);
        bool looks = runs && peal_patience_is_over(&next_look, now);
        if (looks)
            next_look = peal_patience_begin(now, session->deadline_ns);
        if (looks && is_stopped(atomic_load_explicit(&slot->pid, memory_order_relaxed)))
            return report_absence(session, p, true);
        if (runs)
            patience = peal_patience_begin(now, session->deadline_ns);
        else if (peal_patience_is_over(&patience, now))
            return report_absence(session, p, false);
    }
}

static bool is_kind(int kind)
{
    return kind >= PEAL_BARRIER_AGREE && kind <= PEAL_BARRIER_TRANSFER;
}

/* Of a kind that is one. */
static const char *kind_name(int kind)
{
    static const char *const name[] = {NULL,
                                       "peal_graph_compile or another collective call",
                                       "peal_plan_start",
                                       "peal_plan_finish",
                                       "peal_plan_verify",
                                       "peal_exchange_destroy",
                                       "peal_transfer_destroy"};
    return name[kind];
}

/* What no process says. */
static peal_status report_overwritten(const peal_session *session, int p)
{
    return peal_report(
        session->diagnostics, PEAL_E_MEMORY_OVERWRITTEN, PEAL_NO_SOURCE,
        "`peal run --check-footprints` finds the kernel that writes beyond its arrays",
        "what process %d says to the others makes no sense: memory that they share was "
        "overwritten",
        p);
}

/* What process p says: in `all`, or on the board. */
static const peal_claim *claim_of(const peal_session *session, const peal_claim *all, int p)
{
    return all ? &all[p] : &slot_of(session, p)->claim[session->round & 1].said;
}

/* Equal in all processes, so that all report the same and return the same. */
static peal_status compare(peal_session *session, const peal_claim *all)
{
    const peal_claim *first = claim_of(session, all, 0);
    for (int p = 0; p < session->identity.processes; p++)
        if (!is_kind(claim_of(session, all, p)->kind))
            return report_overwritten(session, p);
    for (int p = 1; p < session->identity.processes; p++) {
        const peal_claim *other = claim_of(session, all, p);
        if (other->kind != first->kind)
            return peal_report(session->diagnostics, PEAL_E_CALLS_DIFFER, PEAL_NO_SOURCE, NULL,
                               "process 0 calls %s, process %d calls %s", kind_name(first->kind), p,
                               kind_name(other->kind));
        if (other->hash != first->hash)
            return peal_report(session->diagnostics, PEAL_E_CALLS_DIFFER, PEAL_NO_SOURCE,
                               "plans are started in the same order in all processes",
                               "%s: process 0 is at plan %016llx, process %d at plan %016llx",
                               kind_name(first->kind), (unsigned long long)first->hash, p,
                               (unsigned long long)other->hash);
        if (other->count != first->count)
            return peal_report(session->diagnostics, PEAL_E_CALLS_DIFFER, PEAL_NO_SOURCE, NULL,
                               "%s: process 0 has %lld %s, process %d has %lld",
                               kind_name(first->kind), (long long)first->count,
                               first->kind == PEAL_BARRIER_EXCHANGE ? "exchanges" : "steps", p,
                               (long long)other->count);
    }
    return PEAL_STATUS_OK;
}

static peal_status meet_on_board(peal_session *session, const peal_claim *said)
{
    session->round++;
    peal_barrier_claim *mine =
        &slot_of(session, session->identity.process)->claim[session->round & 1];
    mine->said = *said;
    atomic_store_explicit(&mine->round, session->round, memory_order_release);
    peal_status status = PEAL_STATUS_OK;
    for (int p = 0; !status && p < session->identity.processes; p++)
        status = wait_for(session, p);
    return status ? status : compare(session, NULL);
}

static peal_status meet_by_control(peal_session *session, const peal_claim *said)
{
    peal_claim *all = calloc((size_t)session->identity.processes, sizeof(*all));
    if (!all)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory to compare %d processes", session->identity.processes);
    peal_status status = peal_control_allgather(session->control, said, sizeof(*said), all);
    if (status && peal_session_status(session))
        status = peal_session_cause(session);
    if (!status && (status = compare(session, all)) != PEAL_STATUS_OK)
        session->fails_alike = true;
    free(all);
    return status;
}

peal_status peal_session_barrier(peal_session *session, int kind, uint64_t hash, int64_t count)
{
    const peal_claim said = {.hash = hash, .count = count, .kind = kind};
    int from = peal_diagnostics_count(session->diagnostics);
    if (peal_session_status(session))
        return peal_session_cause(session);
    peal_status status =
        session->board.base ? meet_on_board(session, &said) : meet_by_control(session, &said);
    return status ? peal_session_fail(session, status, from) : PEAL_STATUS_OK;
}
