/* Posts what a device stores for other hosts, while its plan runs: a thread that looks at the words
 * of outgoing puts (their triggers) and tells the network of those that were raised. It also takes
 * what comes. A device cannot wake it: it looks again at once while something goes on, then less
 * and less often. */
#define _GNU_SOURCE
#include "runtime/bind/poster.h"
#include "base/clock.h"
#include "base/patience.h"
#include "runtime/session/network.h"

#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

static const int64_t spin_ns = 100000, first_sleep_ns = 20000, longest_sleep_ns = 5000000;

enum { IDLE_PARTS = 16 };

struct peal_poster {
    peal_session *session;
    const peal_session_network *network;
    peal_network_plan *plan;
    const peal_pair *pair;
    int count;
    uint64_t **posted; /* by pair and outgoing put: kept from start to start, as the words are */
    pthread_t thread;
    bool runs;
    _Atomic bool stops;
    double cpu_s;
};

peal_poster *peal_poster_create(const peal_session_network *network, peal_network_plan *plan,
                                const peal_pair *pair, int count)
{
    peal_poster *self = calloc(1, sizeof(*self));
    bool fits = self && (self->posted = calloc((size_t)count + 1, sizeof(*self->posted)));
    if (!self)
        return NULL;
    self->session = network->session;
    self->network = network;
    self->plan = plan;
    self->pair = pair;
    for (; fits && self->count < count; self->count++) {
        size_t puts = (size_t)pair[self->count].out_count + 1;
        fits = (self->posted[self->count] = calloc(puts, sizeof(uint64_t)));
        for (int i = 0; fits && i < pair[self->count].out_count; i++)
            self->posted[self->count][i] = pair[self->count].out[i].first;
    }
    if (fits)
        return self;
    peal_poster_destroy(self);
    return NULL;
}

void peal_poster_destroy(peal_poster *self)
{
    if (!self)
        return;
    for (int p = 0; p < self->count; p++)
        free(self->posted[p]);
    free(self->posted);
    free(self);
}

/* Whether something was raised. What a device stores once its job has failed, so that its waits
 * come to an end, stays here. */
static bool post(peal_poster *self)
{
    const peal_network_ops *engine = self->network->engine;
    bool any = false;
    for (int p = 0; p < self->count; p++)
        for (int i = 0; i < self->pair[p].out_count; i++) {
            uint64_t value = atomic_load_explicit(self->pair[p].out[i].at, memory_order_acquire);
            if (value == self->posted[p][i])
                continue;
            if (atomic_load(&self->session->abort_word)) /* set before a device is let go on */
                return false;
            self->posted[p][i] = value;
            engine->due(self->plan, p, i, value);
            any = true;
        }
    if (any && engine->flush)
        engine->flush(self->plan);
    return any;
}

/* Whether something came: the words of incoming puts say so. */
static uint64_t sum_taken(const peal_poster *self)
{
    uint64_t sum = 0;
    for (int p = 0; p < self->count; p++)
        for (int i = 0; i < self->pair[p].in_count; i++)
            sum += atomic_load_explicit(self->pair[p].in[i].at, memory_order_relaxed);
    return sum;
}

/* Two processes a core: who spins takes the time of those that compute. */
static bool may_spin(const peal_session *session)
{
    return session->identity.local_processes * 2 <= session->cores;
}

static void *run(void *argument)
{
    peal_poster *self = argument;
    peal_session *session = self->session;
    int64_t patience_ns = may_spin(session) ? spin_ns : 0, last_ns = peal_clock_ns();
    uint64_t taken = 0;
    prctl(PR_SET_TIMERSLACK, 1000UL);
    while (!atomic_load(&self->stops)) {
        bool any = post(self);
        peal_session_turn(session);
        uint64_t now_taken = sum_taken(self);
        int64_t now = peal_clock_ns();
        if (any || now_taken != taken)
            last_ns = now;
        taken = now_taken;
        int64_t idle_ns = now - last_ns;
        if (idle_ns <= patience_ns)
            continue;
        int64_t sleep_ns = idle_ns / IDLE_PARTS; /* what a message may wait, of a pause so long */
        sleep_ns = sleep_ns > first_sleep_ns ? sleep_ns : first_sleep_ns;
        self->network->engine->sleep(self->network->opened,
                                     sleep_ns < longest_sleep_ns ? sleep_ns : longest_sleep_ns);
    }
    post(self);
    self->cpu_s += (double)peal_clock_thread_cpu_ns() * 1e-9;
    return NULL;
}

peal_status peal_poster_start(peal_poster *self)
{
    if (!self || self->runs)
        return PEAL_STATUS_OK;
    atomic_store(&self->stops, false);
    if (pthread_create(&self->thread, NULL, run, self) != 0)
        return peal_report(self->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "cannot create the thread that posts messages to other hosts");
    self->runs = true;
    return PEAL_STATUS_OK;
}

/* What has been posted leaves by the time that the plan's deadline allows, or longer while others
 * are at work. */
peal_status peal_poster_settle(peal_poster *self, int64_t deadline_ns)
{
    const int64_t slice_ns = 1000000;
    peal_session *session = self->session;
    const peal_session_network *network = self->network;
    peal_patience patience = peal_patience_begin(peal_clock_ns(), deadline_ns);
    for (;;) {
        peal_session_turn(session);
        if (atomic_load(&session->abort_word) || network->engine->settle(network->opened))
            return PEAL_STATUS_OK;
        if (peal_patience_is_over(&patience, peal_clock_ns())) {
            if (!peal_session_others_run(session))
                return peal_report(session->diagnostics, PEAL_E_COLLECTIVE_STALLED, PEAL_NO_SOURCE,
                                   NULL, "messages to other hosts could not be sent within %.3g s",
                                   (double)deadline_ns * 1e-9);
            patience = peal_patience_begin(peal_clock_ns(), deadline_ns);
        }
        network->engine->sleep(network->opened, slice_ns);
    }
}

peal_status peal_poster_end(peal_poster *self, int64_t deadline_ns)
{
    if (!self || !self->runs)
        return PEAL_STATUS_OK;
    atomic_store(&self->stops, true);
    pthread_join(self->thread, NULL);
    self->runs = false;
    return peal_poster_settle(self, deadline_ns);
}

double peal_poster_seconds(const peal_poster *self)
{
    return self ? self->cpu_s : 0;
}
