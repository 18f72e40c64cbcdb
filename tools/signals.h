/* SIGINT and SIGTERM end a job in an orderly way. */
#ifndef PEAL_TOOLS_SIGNALS_H
#define PEAL_TOOLS_SIGNALS_H

#include <peal/session.h>

/* Blocks both signals in this and all later threads and waits for them in a thread of its own: the
 * first aborts the session that is watched (without one: exits), a second one exits at once. */
void signals_catch(void);
/* The session to abort; NULL: none. */
void signals_watch(peal_session *session);

#endif
