/* How the processes of several hosts know that one which has not come to a collective call is at
 * work: while it is, it says so now and then, and who hears it waits on. */
#define _GNU_SOURCE
#include "base/clock.h"
#include "runtime/control/internal.h"

#include <string.h>

int64_t peal_busy_interval(const peal_control *control)
{
    /* What a stopped process does not read stays small also in days. */
    const int64_t longest_ns = INT64_C(60000000000);
    int64_t part = control->deadline_ns / 8;
    if (control->far_listener < 0)
        return 0;
    return part < longest_ns ? part + 1 : longest_ns;
}

/* The neighbours but one, unless they were told lately: of several that are busy they hear once. */
static void tell(peal_control *control, const peal_link *but, int64_t lately_ns)
{
    peal_notice notice;
    memset(&notice, 0, sizeof(notice));
    notice.kind = PEAL_NOTICE_BUSY;
    notice.process = control->identity.process;
    int64_t now = peal_clock_ns();
    pthread_mutex_lock(&control->lock);
    for (int i = 0; i < control->link_count && !control->leaving; i++) {
        peal_link *link = &control->link[i];
        if (link == but || link->watch < 0 || now - link->busy_ns < lately_ns)
            continue;
        link->busy_ns = now;
        peal_wire_send_small(link->watch, &notice, sizeof(notice));
    }
    pthread_mutex_unlock(&control->lock);
}

void peal_busy_say(peal_control *control)
{
    int64_t interval = peal_busy_interval(control);
    if (interval && atomic_load(&control->busy) > 0 && !atomic_load(&control->waits))
        tell(control, NULL, interval);
}

/* At once: the last of many hops must not wait for a turn of each. */
void peal_busy_hear(peal_control *control, const peal_link *from)
{
    atomic_store(&control->busy_heard_ns, peal_clock_ns());
    tell(control, from, peal_busy_interval(control) / 2);
}

void peal_control_busy(peal_control *control, bool busy)
{
    atomic_fetch_add(&control->busy, busy ? 1 : -1);
}
