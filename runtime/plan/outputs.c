/* Before the first step: whether the files that `save` names can be made, and lie where they may,
 * on all hosts in the same folder. Hours of computing must not end with a folder that isn't there.
 */
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

int peal_plan_open_target(const char *root, const char *path, bool is_complete, peal_target *target)
{
    char folder[PATH_MAX];
    const char *slash = strrchr(path, '/');
    if (is_complete)
        return peal_target_open(root, path, target);
    snprintf(folder, sizeof(folder), "%.*s-", slash ? (int)(slash - path) + 1 : 0, path);
    return peal_target_find(root, folder, target);
}

/* Why a new file cannot be made there; 0: it can. */
static int path_error(const char *root, const char *path, bool is_complete)
{
    peal_target target;
    int error = peal_plan_open_target(root, path, is_complete, &target);
    if (error)
        return error;
    if (!target.is_device && faccessat(target.folder, ".", W_OK | X_OK, AT_EACCESS) != 0)
        error =
            target.exists ? ENOTEMPTY : errno; /* a file that may be written, but not replaced */
    peal_target_close(&target);
    return error;
}

/* " on NODE", of several hosts. */
static const char *where(const peal_plan *plan, char text[PEAL_PROCESS_TEXT])
{
    const peal_session *session = plan->session;
    text[0] = 0;
    if (peal_session_spans_hosts(session))
        snprintf(text, PEAL_PROCESS_TEXT, " on %s",
                 peal_control_node(session->control, session->identity.process));
    return text;
}

peal_status peal_plan_report_output(const peal_plan *plan, const peal_statement *s, int error)
{
    const char *file = s->u.file.file;
    char host[PEAL_PROCESS_TEXT];
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    if (error == EINVAL)
        return peal_report(diagnostics, PEAL_E_NOT_A_FILE, s->source, "name a file, new or old",
                           "cannot create `%s`%s: it is neither a file nor a character device",
                           file, where(plan, host));
    if (error == ENOTEMPTY)
        return peal_report(diagnostics, PEAL_E_CANNOT_REPLACE_FILE, s->source,
                           "let the folder be written to, or save to another one",
                           "cannot make a new file beside `%s`%s: its folder cannot be written",
                           file, where(plan, host));
    return peal_report(diagnostics, PEAL_E_LOAD_SAVE_FAILED, s->source,
                       "make the folder before the run; names are relative to the spec's folder",
                       "cannot create `%s`%s: %s", file, where(plan, host), strerror(error));
}

static peal_status check_save(const peal_plan *plan, const peal_statement *s)
{
    const char *root = peal_array_file_root(plan->data, plan->options.allow_outside);
    char path[PATH_MAX];
    bool is_complete = peal_file_path(plan->data, s, path);
    int error = path[0] ? path_error(root, path, is_complete) : 0;
    return error ? peal_plan_report_output(plan, s, error) : PEAL_STATUS_OK;
}

/* What a load names may come to be while the spec runs. On hosts but process 0's, what stands under
 * a condition may be saved by ranks of other hosts alone. */
static peal_status check_body(const peal_plan *plan, const peal_body *body)
{
    peal_status status = PEAL_STATUS_OK;
    bool here = peal_session_is_near(plan->session, 0);
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool saves = s->kind == PEAL_STATEMENT_SAVE && peal_file_may_happen(plan->data, s) &&
                     (here || !s->when);
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
