/* Ranks of several hosts save one file: whether these hosts see one folder. Process 0 makes a new
 * file in it, for which the first process of each other host looks. Of hosts that do not share it
 * none would find the parts of the others. */
#define _GNU_SOURCE
#include "base/array_file.h"
#include "base/places.h"
#include "runtime/plan/plan.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of process 0: in this folder. */
typedef struct made_file {
    int folder, descriptor;
} made_file;

typedef struct folder_check {
    const peal_plan *plan;
    bool makes; /* else it looks */
    char name[PEAL_NEW_FILE_NAME];
    made_file *made; /* by folder */
    int made_count;
} folder_check;

/* Where something is compared process 0 reads all files, also what one rank alone has saved. */
static bool needs_folder(const peal_plan *plan, const peal_statement *s)
{
    if (s->kind != PEAL_STATEMENT_SAVE || !peal_file_may_happen(plan->data, s))
        return false;
    return plan->options.verify || plan->options.verify_ranks ||
           (plan->data->arrays[s->u.file.array].kind == PEAL_ARRAY_FIELD &&
            !peal_file_is_of_rank(s->u.file.file));
}

static peal_status make(folder_check *check, const peal_statement *s, peal_target *target)
{
    int descriptor, error = 0;
    if (faccessat(target->folder, check->name, F_OK, 0) == 0) /* for a statement before */
        return PEAL_STATUS_OK;
    error = peal_target_create(target, check->name, &descriptor);
    if (error)
        return peal_plan_report_output(check->plan, s, error);
    check->made[check->made_count++] = (made_file){target->folder, descriptor};
    target->folder = -1; /* until the file is removed */
    return PEAL_STATUS_OK;
}

static peal_status look(const folder_check *check, const peal_statement *s,
                        const peal_target *target)
{
    const peal_session *session = check->plan->session;
    char first[PEAL_PROCESS_TEXT];
    if (faccessat(target->folder, check->name, F_OK, 0) == 0)
        return PEAL_STATUS_OK;
    return peal_report(session->diagnostics, PEAL_E_FOLDER_NOT_SHARED, s->source,
                       "save to a folder that all hosts share; or {rank} in the name makes it a "
                       "file of each rank",
                       "`save` of '%s': `%s` on %s is not the folder that %s sees",
                       check->plan->data->arrays[s->u.file.array].name, target->folder_path,
                       peal_control_node(session->control, session->identity.process),
                       peal_control_name(session->control, 0, first));
}

static peal_status check_statement(folder_check *check, const peal_statement *s)
{
    const peal_plan *plan = check->plan;
    peal_target target;
    char path[PATH_MAX];
    bool is_complete = peal_file_path(plan->data, s, path);
    if (!path[0])
        return PEAL_STATUS_OK;
    int error = peal_plan_open_target(peal_array_file_root(plan->data, plan->options.allow_outside),
                                      path, is_complete, &target);
    if (error)
        return peal_plan_report_output(plan, s, error);
    peal_status status = target.is_device ? PEAL_STATUS_OK
                         : check->makes   ? make(check, s, &target)
                                          : look(check, s, &target);
    peal_target_close(&target);
    return status;
}

static peal_status check_body(folder_check *check, const peal_body *body)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < body->count && !status; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_REPEAT)
            status = check_body(check, &s->u.loop.body);
        else if (needs_folder(check->plan, s))
            status = check_statement(check, s);
    }
    return status;
}

static peal_status check_all(folder_check *check)
{
    const peal_graph_data *graph = check->plan->data;
    const peal_body *bodies[] = {&graph->setup, &graph->step.body, &graph->finish};
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < 3 && !status; i++)
        status = check_body(check, bodies[i]);
    return status;
}

static peal_status make_all(folder_check *check)
{
    size_t most = (size_t)check->plan->data->statement_count + 1;
    check->made = malloc(most * sizeof(*check->made));
    if (!check->made)
        return peal_report(check->plan->session->diagnostics, PEAL_E_OUT_OF_MEMORY, PEAL_NO_SOURCE,
                           NULL, "no memory for the folders of %zu statements", most);
    peal_new_file_name(check->name, "hosts");
    check->makes = true;
    return check_all(check);
}

static void remove_made(folder_check *check)
{
    for (int i = 0; i < check->made_count; i++) {
        unlinkat(check->made[i].folder, check->name, 0);
        close(check->made[i].descriptor);
        close(check->made[i].folder);
    }
    free(check->made);
}

peal_status peal_plan_check_folders(const peal_plan *plan)
{
    peal_session *session = plan->session;
    folder_check check = {.plan = plan};
    int from = peal_diagnostics_count(session->diagnostics);
    peal_status status = PEAL_STATUS_OK;
    if (!peal_session_spans_hosts(session) || plan->machine.processes == 1)
        return PEAL_STATUS_OK;
    if (session->identity.process == 0)
        status = make_all(&check);
    if (status)
        check.name[0] = 0;
    peal_status told = peal_control_broadcast(session->control, 0, check.name, sizeof(check.name));
    if (!status && !told && check.name[0] && peal_session_is_first(session))
        status = check_all(&check);
    status = peal_session_agree(session, status ? status : told, from);
    remove_made(&check);
    return status;
}
