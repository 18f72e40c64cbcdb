/* What a copy of the process that was forked has of its parent's sessions: nothing that others
 * could take for the parent. The kernel closes a socket with the last who has it, so a copy that
 * lives on would hide the parent's death from other hosts. */
#include "runtime/session/network.h"
#include "runtime/session/session.h"

#include <pthread.h>

static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static peal_session *first; /* of those that have come so far as to talk to others */

static void before_fork(void)
{
    pthread_mutex_lock(&mutex);
}

static void after_fork(void)
{
    pthread_mutex_unlock(&mutex);
}

static void in_child(void)
{
    for (peal_session *s = first; s; s = s->next) {
        peal_control_disown(s->control);
        for (int i = 0; i < PEAL_NETWORK_COUNT; i++)
            if (s->network[i].opened)
                s->network[i].engine->disown(s->network[i].opened);
        atomic_store(&s->abort_word, PEAL_STATUS_PEER_LOST); /* what it computes is nobody's */
    }
    first = NULL;
    pthread_mutex_unlock(&mutex);
}

static void watch_forks(void)
{
    pthread_atfork(before_fork, after_fork, in_child);
}

void peal_session_watch_forks(peal_session *session)
{
    pthread_once(&once, watch_forks);
    pthread_mutex_lock(&mutex);
    session->next = first;
    first = session;
    pthread_mutex_unlock(&mutex);
}

void peal_session_forget_forks(const peal_session *session)
{
    pthread_mutex_lock(&mutex);
    for (peal_session **at = &first; *at; at = &(*at)->next)
        if (*at == session) {
            *at = session->next;
            break;
        }
    pthread_mutex_unlock(&mutex);
}
