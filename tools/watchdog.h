/* The one watchdog of the command: it ends what waits for too long, and what lost its launcher. */
#ifndef PEAL_TOOLS_WATCHDOG_H
#define PEAL_TOOLS_WATCHDOG_H

#include <peal/session.h>

#include <stdbool.h>
#include <stdint.h>

/* From here to the end of the process the calling thread, main's, is watched: a phase
 * (base/phase.h) that neither ends within its deadlines nor works ends the process with
 * PEAL_E_COMMAND_STALLED and exit code 6. Once the launcher is gone the session is aborted, and 3 s
 * later the process ended (PEAL_E_LAUNCHER_LOST, 5). Nothing happens if the thread cannot be
 * created. */
void watchdog_start(void);
/* Whether the launcher has ended while this watches. */
bool watchdog_sees_orphan(void);
/* The longest wait; 30 s before it is known. */
void watchdog_deadline(int64_t nanoseconds);
/* The session to abort; NULL: none. */
void watchdog_session(peal_session *session);

#endif
