/* What ranks in several processes need to save one file: the board on which they count is memory of
 * process 0, which those of its host share, and those of other hosts ask about. */
#include "runtime/plan/plan.h"

#include <stdlib.h>
#include <string.h>

/* Where something will be compared with this run. */
static peal_status open_originals(peal_plan *plan)
{
    peal_session *session = plan->session;
    if (session->originals)
        return peal_originals_copy(session->originals, session->diagnostics, &plan->originals);
    if (!plan->options.verify && !plan->options.verify_ranks)
        return PEAL_STATUS_OK;
    return peal_originals_create(plan->data, plan->options.allow_outside, session->diagnostics,
                                 &plan->originals);
}

/* Contents of constant buffers that the graph might save over: read once, they are kept. */
static peal_status read_constants(peal_session *session, const peal_graph_data *graph, int ranks)
{
    const peal_machine machine = {.ranks = ranks, .processes = session->identity.processes};
    int first, end;
    peal_constant contents;
    peal_status status = PEAL_STATUS_OK;
    peal_machine_ranks(&machine, session->identity.process, &first, &end);
    for (int a = 0; a < graph->array_count; a++)
        for (int r = first; graph->arrays[a].is_constant && graph->arrays[a].file && r < end; r++)
            if (!status)
                status = graph->constant(graph, a, r, ranks, true, &contents);
    return status;
}

peal_status peal_session_keep_files(peal_session *session, const peal_graph_data *graph, int ranks,
                                    bool allow_outside)
{
    int from = peal_diagnostics_count(session->diagnostics);
    peal_originals_destroy(session->originals);
    session->originals = NULL;
    peal_status status =
        peal_originals_create(graph, allow_outside, session->diagnostics, &session->originals);
    if (!status && ranks >= session->identity.processes)
        status = read_constants(session, graph, ranks);
    return peal_session_agree(session, status, from);
}

/* ---- the board ---- */

/* What process 0 answers from, until nobody asks any more. */
typedef struct served_board {
    peal_segment memory;
    int64_t bytes;
    int ranks;
} served_board;

_Static_assert(sizeof(peal_saves_question) == PEAL_QUESTION_WORDS * sizeof(uint64_t) &&
                   sizeof(peal_saves_answer) <= PEAL_QUESTION_WORDS * sizeof(uint64_t),
               "questions and answers travel as words");

static void answer(void *user, const uint64_t question[], uint64_t out[])
{
    served_board *board = user;
    peal_saves_question asked;
    memcpy(&asked, question, sizeof(asked));
    const peal_saves_answer told =
        peal_saves_tell(board->memory.base, board->bytes, board->ranks, &asked);
    memcpy(out, &told, sizeof(told));
}

static void release(void *user)
{
    served_board *board = user;
    peal_segment_destroy(&board->memory);
    free(board);
}

/* Processes of other hosts, and this one. */
static int count_askers(const peal_session *session)
{
    int count = 1;
    for (int p = 0; p < session->identity.processes; p++)
        count += !peal_session_is_near(session, p);
    return count;
}

/* The memory is the board's from here on: it outlives the plan where others still save. */
static peal_status serve(peal_plan *plan)
{
    peal_session *session = plan->session;
    served_board *board = malloc(sizeof(*board));
    if (!board) {
        peal_segment_destroy(&plan->saves_board);
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the counts of saved files");
    }
    *board = (served_board){plan->saves_board, peal_saves_bytes(plan->data, plan->machine.ranks),
                            plan->machine.ranks};
    peal_status status = peal_control_serve(session->control, plan->saves_key,
                                            count_askers(session), answer, release, board);
    if (status) {
        release(board);
        plan->saves_board = (peal_segment){0};
        return status;
    }
    return peal_control_publish(session->control, plan->saves_key, board->memory.descriptor,
                                board->memory.bytes);
}

peal_status peal_plan_open_saves(peal_plan *plan)
{
    peal_session *session = plan->session;
    peal_status status = open_originals(plan);
    if (status || plan->machine.processes == 1 || peal_saves_count(plan->data, NULL) == 0)
        return status;
    plan->saves_key = session->next_key++;
    plan->saves_together = true;
    if (session->identity.process != 0)
        return PEAL_STATUS_OK;
    status = peal_segment_create(peal_saves_bytes(plan->data, plan->machine.ranks), true,
                                 session->diagnostics, &plan->saves_board);
    return status ? status : serve(plan);
}

/* On the thread of a rank that saves. */
static bool ask_process_0(void *user, const peal_saves_question *question,
                          peal_saves_answer *answered)
{
    const peal_plan *plan = user;
    uint64_t words[PEAL_QUESTION_WORDS], out[PEAL_QUESTION_WORDS];
    memcpy(words, question, sizeof(words));
    peal_status status = peal_control_ask(plan->session->control, 0, plan->saves_key, words, out);
    if (status && !peal_session_status(plan->session))
        peal_control_abort(plan->session->control, status,
                           "process 0 does not say which parts of a file have been saved");
    memcpy(answered, out, sizeof(*answered));
    return !status;
}

static peal_status fetch_board(peal_plan *plan)
{
    peal_session *session = plan->session;
    int descriptor;
    peal_status status =
        peal_control_fetch(session->control, 0, plan->saves_key, &descriptor, NULL);
    return status
               ? status
               : peal_segment_import(descriptor, peal_saves_bytes(plan->data, plan->machine.ranks),
                                     session->diagnostics, &plan->saves_board);
}

peal_status peal_plan_attach_saves(peal_plan *plan)
{
    peal_session *session = plan->session;
    peal_status status = PEAL_STATUS_OK;
    if (plan->saves_together && session->identity.process != 0 && peal_session_is_near(session, 0))
        status = fetch_board(plan);
    if (status)
        return status;
    const peal_saves_access access = {.board = plan->saves_board.base,
                                      .ask = ask_process_0,
                                      .user = plan,
                                      .over_hosts = peal_session_spans_hosts(session)};
    plan->saves = peal_saves_create(plan->data, plan->machine.ranks,
                                    plan->saves_together ? &access : NULL, &session->abort_word);
    if (!plan->saves)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the counts of saved files");
    peal_saves_divert(plan->saves, plan->originals, NULL);
    if (plan->saves_together && !plan->saves_board.base && !peal_saves_reach(plan->saves))
        status = peal_session_status(session);
    return status;
}

void peal_plan_close_saves(peal_plan *plan)
{
    peal_control *control = plan->session->control;
    int process = plan->session->identity.process;
    bool has_asked = plan->saves && !peal_session_is_near(plan->session, 0);
    peal_saves_destroy(plan->saves);
    plan->saves = NULL;
    peal_originals_destroy(plan->originals);
    plan->originals = NULL;
    if (process != 0 && plan->saves_board.base)
        peal_segment_destroy(&plan->saves_board);
    plan->saves_board = (peal_segment){0};
    if (!plan->saves_together)
        return;
    plan->saves_together = false;
    if (process == 0)
        peal_control_withdraw(control, plan->saves_key);
    if (process == 0 || has_asked)
        peal_control_ask_no_more(control, 0, plan->saves_key);
}
