/* How the processes of several hosts know that one which has not come to a collective call is at
 * work: while it is, it says so now and then, and who hears it waits on. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"

#include <string.h>

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

/* The neighbours but one, unless they were told lately: of several that are busy they hear once. A
 * stopped one does not read, and what fills its socket would look like a host that is gone. */
static void tell_all(peal_control *control, const peal_link *but, int64_t lately_ns)
{
    int64_t now = peal_clock_ns();
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->link_count; i++) {
        peal_link *link = &control->link[i];
        if (link == but || link->busy_unheard || now - link->busy_ns < lately_ns)
            continue;
        link->busy_ns = now;
        link->busy_unheard = tell(control, link, PEAL_NOTICE_BUSY);
    }
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
    pthread_mutex_lock(&control->lock);
    tell(control, from, PEAL_NOTICE_HEARD);
    pthread_mutex_unlock(&control->lock);
    tell_all(control, from, peal_busy_interval(control) / 2);
}

void peal_control_busy(peal_control *control, bool busy)
{
    atomic_fetch_add(&control->busy, busy ? 1 : -1);
}
