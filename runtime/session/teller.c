/* Who tells why a job has ended: one process, whose list of diagnostics has the source position and
 * the hint.
 *
 * What all processes find alike, such as a wrong spec, process 0 tells; what one has found, that
 * one. Several may find something before they hear of each other: the first that comes to the board
 * tells. */
#include "runtime/session/session.h"

_Atomic int32_t *peal_session_told(const peal_session *session)
{
    peal_barrier_slot *slots = (peal_barrier_slot *)(void *)session->board.base;
    return slots ? &slots[session->identity.processes].running : NULL;
}

static bool take_turn(peal_session *session)
{
    int32_t nobody = 0, me = session->identity.process + 1;
    _Atomic int32_t *told = session->joined ? peal_session_told(session) : NULL;
    return !told || atomic_compare_exchange_strong(told, &nobody, me) || nobody == me;
}

bool peal_session_tells(peal_session *session)
{
    int finder = -1, me = session->identity.process;
    peal_status status = peal_control_cause(session->control, &finder, NULL, 0);
    if (status == PEAL_STATUS_INTERRUPT || status == PEAL_STATUS_TERMINATED ||
        status == PEAL_STATUS_CLOSED_OUTPUT)
        return me == 0;
    if (session->fails_alike)
        return me == 0;
    if (finder < 0)
        finder = session->failed_first;
    return finder < 0 ? me == 0 : finder == me && take_turn(session);
}

bool peal_session_tells_of_exit(peal_session *session)
{
    return take_turn(session);
}
