/* Kernels that end the program, or copy it, instead of returning. */
#ifndef PEAL_TOOLS_GUARD_H
#define PEAL_TOOLS_GUARD_H

#include <peal/session.h>

/* Until guard_end: exit(), quick_exit() and the end of the calling thread alone end the process
 * with PEAL_E_PROCESS_EXITED_IN_RUN and exit code 5; a copy that a kernel forks takes no part in
 * the job and dies with it. What cannot be caught here (_exit, exec, a signal) the launcher
 * notices: no word that this process leaves. Once in a process. */
void guard_begin(peal_session *session);
/* Does not return in a forked copy. */
void guard_end(void);

#endif
