/* Before the first step: whether the files that `save` names can be made, and lie where they may.
 * Hours of computing must not end with a folder that isn't there. And what ranks in several
 * processes need to save one file.
 *
 * Names may hold {step} and the like: what comes before the first of these is looked at. */
#define _GNU_SOURCE
#include "base/array_file.h"
#include "runtime/plan.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* The name up to what only a run can tell; true: all of it. {{ and }} stand for braces. */
static bool copy_known(const char *name, char *out, size_t room)
{
    size_t used = 0;
    for (; *name && used + 1 < room; name++) {
        bool twice = name[0] == name[1];
        if (*name == '{' && !twice)
            break;
        if ((*name == '{' || *name == '}') && twice)
            name++;
        out[used++] = *name;
    }
    out[used] = 0;
    return !*name;
}

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
    const char *folder = plan->data->folder, *file = s->u.file.file;
    bool load = s->kind == PEAL_STATEMENT_LOAD;
    peal_diagnostics *diagnostics = plan->session->diagnostics;
    if (error == EXDEV)
        return peal_report(diagnostics, PEAL_E228, s->source,
                           "choose a name in the folder, or allow it with --allow-outside",
                           "`%s` is outside the spec's folder `%s`", file,
                           folder && *folder ? folder : ".");
    if (error == EINVAL)
        return peal_report(diagnostics, PEAL_E229, s->source, "name a file, new or old",
                           "cannot create `%s`: it is neither a file nor a character device", file);
    if (error == ENOTEMPTY)
        return peal_report(diagnostics, PEAL_E227, s->source,
                           "let the folder be written to, or save to another one",
                           "cannot make a new file beside `%s`: its folder cannot be written",
                           file);
    return peal_report(diagnostics, PEAL_E210, s->source,
                       "make the folder before the run; names are relative to the spec's folder",
                       "cannot %s `%s`: %s", load ? "open" : "create", file, strerror(error));
}

/* Files of constant buffers, of every rank. */
static peal_status check_constant(const peal_plan *plan, const peal_array *array)
{
    const char *folder = plan->data->folder && *plan->data->folder ? plan->data->folder : ".";
    peal_arena *arena = peal_arena_create();
    peal_status status = PEAL_STATUS_OK;
    int ranks = strchr(array->file, '{') ? plan->machine.ranks : 1;
    for (int rank = 0; arena && rank < ranks && !status; rank++) {
        const peal_scope scope = {.graph = plan->data, .rank = rank, .ranks = plan->machine.ranks};
        const char *path;
        peal_target target;
        if (peal_template_expand(array->file, &scope, NULL, array->source, arena, &path, NULL))
            break; /* told when it is read */
        if (*path != '/')
            path = peal_arena_print(arena, "%s/%s", folder, path);
        int error = peal_target_find(folder, path, &target);
        if (!error)
            peal_target_close(&target);
        if (error == EXDEV)
            status = peal_report(plan->session->diagnostics, PEAL_E228, array->source,
                                 "choose a name in the folder, or allow it with --allow-outside",
                                 "`%s` is outside the spec's folder `%s`", array->file, folder);
    }
    peal_arena_destroy(arena);
    return status;
}

static peal_status check_file(const peal_plan *plan, const peal_statement *s)
{
    const char *file = s->u.file.file, *folder = plan->data->folder;
    const char *root = peal_array_file_root(plan->data, plan->options.allow_outside);
    char name[PATH_MAX], path[PATH_MAX];
    const peal_scope scope = {.graph = plan->data};
    bool happens = true;
    if (s->when && !peal_expr_boolean(s->when, &scope, true, &happens, NULL) && !happens)
        return PEAL_STATUS_OK;
    bool is_complete = copy_known(file, name, sizeof(name));
    if (*file == '/' || !folder)
        snprintf(path, sizeof(path), "%s", name);
    else if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return PEAL_STATUS_OK; /* too long: the run will tell */
    int error = path_error(root, path, is_complete);
    /* What a load names may come to be while the spec runs. */
    if (!error || (s->kind == PEAL_STATEMENT_LOAD && error != EXDEV))
        return PEAL_STATUS_OK;
    return report(plan, s, error);
}

static peal_status check_body(const peal_plan *plan, const peal_body *body)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        bool file = s->kind == PEAL_STATEMENT_SAVE || s->kind == PEAL_STATEMENT_LOAD;
        peal_status one = file                               ? check_file(plan, s)
                          : s->kind == PEAL_STATEMENT_REPEAT ? check_body(plan, &s->u.loop.body)
                                                             : PEAL_STATUS_OK;
        status = status ? status : one;
    }
    return status;
}

peal_status peal_plan_check_outputs(const peal_plan *plan)
{
    const peal_body *bodies[] = {&plan->data->setup, &plan->data->step.body, &plan->data->finish};
    const char *root = peal_array_file_root(plan->data, plan->options.allow_outside);
    peal_status status = PEAL_STATUS_OK;
    for (int a = 0; a < plan->data->array_count && root; a++) {
        peal_status one = plan->data->arrays[a].file ? check_constant(plan, &plan->data->arrays[a])
                                                     : PEAL_STATUS_OK;
        status = status ? status : one;
    }
    for (int i = 0; i < 3; i++) {
        peal_status one = check_body(plan, bodies[i]);
        status = status ? status : one;
    }
    return status;
}

/* ---- files that ranks in several processes save together ---- */

static bool is_shared(const peal_plan *plan)
{
    return plan->machine.processes > 1 && peal_saves_bytes(plan->data, plan->machine.ranks) > 0;
}

peal_status peal_plan_open_saves(peal_plan *plan)
{
    peal_session *session = plan->session;
    if (!is_shared(plan))
        return PEAL_STATUS_OK;
    plan->saves_key = session->next_key++;
    if (session->identity.process != 0)
        return PEAL_STATUS_OK;
    peal_status status = peal_segment_create(peal_saves_bytes(plan->data, plan->machine.ranks),
                                             true, session->diagnostics, &plan->saves_board);
    return status ? status
                  : peal_control_publish(session->control, plan->saves_key,
                                         plan->saves_board.descriptor);
}

peal_status peal_plan_attach_saves(peal_plan *plan)
{
    peal_session *session = plan->session;
    int64_t bytes = peal_saves_bytes(plan->data, plan->machine.ranks);
    peal_status status = PEAL_STATUS_OK;
    int descriptor;
    if (is_shared(plan) && session->identity.process != 0) {
        status = peal_control_fetch(session->control, 0, plan->saves_key, &descriptor);
        if (!status)
            status =
                peal_segment_import(descriptor, bytes, session->diagnostics, &plan->saves_board);
    }
    if (status)
        return status;
    plan->saves = peal_saves_create(plan->data, plan->machine.ranks, plan->saves_board.base);
    return plan->saves ? PEAL_STATUS_OK
                       : peal_report(session->diagnostics, PEAL_E367, PEAL_NO_SOURCE, NULL,
                                     "no memory for the counts of saved files");
}

void peal_plan_close_saves(peal_plan *plan)
{
    peal_saves_destroy(plan->saves);
    plan->saves = NULL;
    if (!plan->saves_board.base)
        return;
    if (plan->session->identity.process == 0)
        peal_control_withdraw(plan->session->control, plan->saves_key);
    peal_segment_destroy(&plan->saves_board);
}
