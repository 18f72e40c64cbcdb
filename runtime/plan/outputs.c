/* Before the first step: whether the files that `save` names can be made, and lie where they may.
 * Hours of computing must not end with a folder that isn't there. And what ranks in several
 * processes need to save one file. */
#define _GNU_SOURCE
#include "base/array_file.h"
#include "base/places.h"
#include "runtime/plan/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why a new file cannot be made there; 0: it can. */
static int path_error(const char *root, const char *path, bool is_complete)
{
    peal_target target;
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    int error;

    if (is_complete) {
        error = peal_target_open(root, path, &target);
    } else { /* any name in the folder will do */
        snprintf(folder, sizeof(folder), "%.*s-", slash ? (int)(slash - path) + 1 : 0, path);
        error = peal_target_find(root, folder, &target);
    }
    if (error)
        return error;
    if (!target.is_device && faccessat(target.folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        error =
            target.exists ? ENOTEMPTY : errno; /* a file that may be written, but not replaced */
    peal_target_close(&target);
    return error;
}

static peal_status report(const peal_plan *plan, const peal_statement *s, int error)
{
    const char *file = s->u.file.file;
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    if (error == EINVAL)
        return peal_report(diagnostics, PEAL_E_NOT_A_FILE, s->source, "name a file, new or old",
                           "cannot create `%s`: it is neither a file nor a character device", file);
    if (error == ENOTEMPTY)
        return peal_report(diagnostics, PEAL_E_CANNOT_REPLACE_FILE, s->source,
                           "let the folder be written to, or save to another one",
                           "cannot make a new file beside `%s`: its folder cannot be written",
                           file);
    return peal_report(diagnostics, PEAL_E_LOAD_SAVE_FAILED, s->source,
                       "make the folder before the run; names are relative to the spec's folder",
                       "cannot create `%s`: %s", file, strerror(error));
}

static peal_status check_save(const peal_plan *plan, const peal_statement *s)
{
    const char *root = peal_array_file_root(plan->data, plan->options.allow_outside);
    char path[PATH_MAX];
    bool is_complete = peal_file_path(plan->data, s, path);
    int error = path[0] ? path_error(root, path, is_complete) : 0;
    return error ? report(plan, s, error) : PEAL_STATUS_OK;
}

/* What a load names may come to be while the spec runs. */
static peal_status check_body(const peal_plan *plan, const peal_body *body)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool saves = s->kind == PEAL_STATEMENT_SAVE && peal_file_may_happen(plan->data, s);
        peal_status one = saves                              ? check_save(plan, s)
                          : s->kind == PEAL_STATEMENT_REPEAT ? check_body(plan, &s->u.loop.body)
                                                             : PEAL_STATUS_OK;
        status = status ? status : one;
    }
    return status;
}

peal_status peal_plan_check_outputs(const peal_plan *plan)
{
    const peal_body *bodies[] = {&plan->data->setup, &plan->data->step.body, &plan->data->finish};
    peal_status status = peal_places_check(plan->data, plan->machine.ranks,
                                           plan->options.allow_outside, plan->session->diagnostics);
    for (int i = 0; i < 3 && !status; i++)
        status = check_body(plan, bodies[i]);
    return status;
}

static bool has_kind(const peal_body *body, peal_statement_kind kind)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == kind ||
            (s->kind == PEAL_STATEMENT_REPEAT && has_kind(&s->u.loop.body, kind)))
            return true;
    }
    return false;
}

bool peal_plan_ends_setup(const peal_plan *plan)
{
    const peal_graph_data *graph = plan->data;
    return plan->machine.ranks > 1 && has_kind(&graph->setup, PEAL_STATEMENT_LOAD) &&
           (has_kind(&graph->step.body, PEAL_STATEMENT_SAVE) ||
            has_kind(&graph->finish, PEAL_STATEMENT_SAVE));
}

/* ---- files that ranks in several processes save together ---- */

static bool is_shared(const peal_plan *plan)
{
    return plan->machine.processes > 1 && peal_saves_count(plan->data, NULL) > 0;
}

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

/* Their ranks count in shared memory who has written its part. */
static const peal_statement *first_shared_save(const peal_graph_data *graph, const peal_body *body)
{
    const peal_statement *found = NULL;
    for (int i = 0; i < body->count && !found; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_REPEAT)
            found = first_shared_save(graph, &s->u.loop.body);
        else if (s->kind == PEAL_STATEMENT_SAVE &&
                 graph->arrays[s->u.file.array].kind == PEAL_ARRAY_FIELD)
            found = s;
    }
    return found;
}

static peal_status check_hosts(const peal_plan *plan)
{
    const peal_graph_data *graph = plan->data;
    const peal_body *bodies[] = {&graph->setup, &graph->step.body, &graph->finish};
    const peal_statement *save = NULL;
    if (!peal_session_spans_hosts(plan->session))
        return PEAL_STATUS_OK;
    for (int i = 0; i < 3 && !save; i++)
        save = first_shared_save(graph, bodies[i]);
    return peal_report(plan->session->diagnostics, PEAL_E_NOT_BY_NETWORK,
                       save ? save->source : PEAL_NO_SOURCE,
                       "leave the save away, or start all processes on one host",
                       "`save` of '%s': ranks on several hosts cannot write one file yet",
                       save ? graph->arrays[save->u.file.array].name : "?");
}

peal_status peal_plan_open_saves(peal_plan *plan)
{
    peal_session *session = plan->session;
    peal_status status = open_originals(plan);
    if (status || !is_shared(plan))
        return status;
    status = check_hosts(plan);
    if (status)
        return status;
    plan->saves_key = session->next_key++;
    if (session->identity.process != 0)
        return PEAL_STATUS_OK;
    status = peal_segment_create(peal_saves_bytes(plan->data, plan->machine.ranks), true,
                                 session->diagnostics, &plan->saves_board);
    return status ? status
                  : peal_control_publish(session->control, plan->saves_key,
                                         plan->saves_board.descriptor, plan->saves_board.bytes);
}

peal_status peal_plan_attach_saves(peal_plan *plan)
{
    peal_session *session = plan->session;
    int64_t bytes = peal_saves_bytes(plan->data, plan->machine.ranks);
    peal_status status = PEAL_STATUS_OK;
    int descriptor;
    if (is_shared(plan) && session->identity.process != 0) {
        status = peal_control_fetch(session->control, 0, plan->saves_key, &descriptor, NULL);
        if (!status)
            status =
                peal_segment_import(descriptor, bytes, session->diagnostics, &plan->saves_board);
    }
    if (status)
        return status;
    const peal_saves_access access = {.board = plan->saves_board.base};
    plan->saves = peal_saves_create(plan->data, plan->machine.ranks, access.board ? &access : NULL,
                                    &session->abort_word);
    if (!plan->saves)
        return peal_report(session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE, NULL,
                           "no memory for the counts of saved files");
    peal_saves_divert(plan->saves, plan->originals, NULL);
    return PEAL_STATUS_OK;
}

void peal_plan_close_saves(peal_plan *plan)
{
    peal_saves_destroy(plan->saves);
    plan->saves = NULL;
    peal_originals_destroy(plan->originals);
    plan->originals = NULL;
    if (!plan->saves_board.base)
        return;
    if (plan->session->identity.process == 0)
        peal_control_withdraw(plan->session->control, plan->saves_key);
    peal_segment_destroy(&plan->saves_board);
}
