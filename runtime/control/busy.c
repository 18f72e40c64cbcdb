/* What neighbours on several hosts say to each other now and then.
 *
 * A beat, so that a host or network that is gone is noticed: what is not acknowledged for long ends
 * the connection (be_watched), and of what is sent again and again several packets in a row must be
 * lost, unlike of the kernel's own probes. And that somebody is busy: who waits in a collective
 * call for one that has not come waits on. Either is answered, and only then there is another one:
 * a stopped process does not read, and what fills its socket would look like a host that is gone.
 */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"
#include "runtime/control/wire_tcp.h"

#include <linux/sockios.h>
#include <string.h>
#include <sys/ioctl.h>

int64_t peal_busy_interval(const peal_control *control)
{
    const int64_t longest_ns = INT64_C(60000000000); /* poll() takes milliseconds */
    int64_t part = control->deadline_ns / 8;
    if (control->far_listener < 0)
        return 0;
    return part < longest_ns ? part + 1 : longest_ns;
}

static bool tell(const peal_control *control, const peal_link *link, peal_notice_kind kind)
{
    peal_notice notice;
    memset(&notice, 0, sizeof(notice));
    notice.kind = kind;
    notice.process = control->identity.process;
    return link->watch >= 0 && !control->leaving &&
           peal_wire_send_small(link->watch, &notice, sizeof(notice));
}

/* The neighbours but one, unless they were told lately: of several that are busy they hear once. */
static void tell_all(peal_control *control, const peal_link *but, int64_t lately_ns)
{
    int64_t now = peal_clock_ns();
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        if (link == but || link->is_unheard || now - link->busy_ns < lately_ns)
            continue;
        link->busy_ns = link->beat_ns = now;
        link->is_unheard = tell(control, link, PEAL_NOTICE_BUSY);
    }
    pthread_mutex_unlock(&control->lock);
}

/* One that has acknowledged what it has not answered is stopped, its host is there: only the
 * kernel's probes tell when that is gone, and it takes them longer to be sure. */
static void be_patient(peal_link *link)
{
    int unacknowledged = 1;
    link->is_patient = !ioctl(link->watch, SIOCOUTQ, &unacknowledged) && !unacknowledged;
    if (link->is_patient)
        peal_wire_be_watched(link->watch, PEAL_PATIENT_MS);
}

static void beat(const peal_control *control, peal_link *link, int64_t now)
{
    if (!link->is_far || link->watch < 0 || now - link->beat_ns < PEAL_BEAT_NS)
        return;
    link->beat_ns = now;
    if (!link->is_unheard)
        link->is_unheard = tell(control, link, PEAL_NOTICE_BEAT);
    else if (!link->is_patient)
        be_patient(link);
}

void peal_beat(peal_control *control)
{
    int64_t now = peal_clock_ns();
    if (control->far_listener < 0)
        return;
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->link_count; i++)
        beat(control, &control->link[i], now);
    pthread_mutex_unlock(&control->lock);
}

void peal_beat_answer(peal_control *control, const peal_link *from)
{
    pthread_mutex_lock(&control->lock);
    tell(control, from, PEAL_NOTICE_HEARD);
    pthread_mutex_unlock(&control->lock);
}

void peal_beat_heard(peal_control *control, peal_link *from)
{
    pthread_mutex_lock(&control->lock);
    from->is_unheard = false;
    if (from->is_patient)
        peal_wire_be_watched(from->watch, PEAL_WATCHED_MS);
    from->is_patient = false;
    pthread_mutex_unlock(&control->lock);
}

void peal_busy_say(peal_control *control)
{
    int64_t interval = peal_busy_interval(control);
    if (interval && atomic_load(&control->busy) > 0 && !atomic_load(&control->waits))
        tell_all(control, NULL, interval);
}

/* At once: the last of many hops must not wait for a turn of each. */
void peal_busy_hear(peal_control *control, peal_link *from)
{
    atomic_store(&control->busy_heard_ns, peal_clock_ns());
    peal_beat_answer(control, from);
    tell_all(control, from, peal_busy_interval(control) / 2);
}

void peal_control_busy(peal_control *control, bool busy)
{
    atomic_fetch_add(&control->busy, busy ? 1 : -1);
}

bool peal_control_hears_busy(const peal_control *control)
{
    return peal_clock_ns() - atomic_load(&control->busy_heard_ns) < 2 * peal_busy_interval(control);
}
