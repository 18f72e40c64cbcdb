/* Before the first step: whether the files that `save` names can be made. Hours of computing must
 * not end with a folder that isn't there.
 *
 * Names may hold {step} and the like: what comes before the first of these is looked at. */
#define _GNU_SOURCE
#include "base/expression.h"
#include "runtime/plan.h"

#include <errno.h>
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

/* Why a file in this folder cannot be made; 0: it can. */
static int folder_error(const char *folder)
{
    struct stat info;
    if (stat(folder, &info) != 0)
        return errno;
    if (!S_ISDIR(info.st_mode))
        return ENOTDIR;
    return access(folder, W_OK | X_OK) != 0 ? errno : 0;
}

static int path_error(char *path, bool is_complete)
{
    struct stat info;
    if (is_complete && stat(path, &info) == 0) {
        if (S_ISDIR(info.st_mode))
            return EISDIR;
        return access(path, W_OK) != 0 ? errno : 0;
    }
    char *slash = strrchr(path, '/');
    if (!slash)
        return folder_error(".");
    slash[slash == path] = 0; /* the root keeps its own */
    return folder_error(path);
}

static peal_status check_save(const peal_plan *plan, const peal_statement *save)
{
    const char *file = save->u.file.file, *folder = plan->data->folder;
    char name[PATH_MAX], path[PATH_MAX];
    const peal_scope scope = {.graph = plan->data};
    bool happens = true;
    if (save->when && !peal_expr_boolean(save->when, &scope, true, &happens, NULL) && !happens)
        return PEAL_STATUS_OK;
    bool is_complete = copy_known(file, name, sizeof(name));
    if (*file == '/' || !folder)
        snprintf(path, sizeof(path), "%s", name);
    else if (snprintf(path, sizeof(path), "%s/%s", folder, name) >= (int)sizeof(path))
        return PEAL_STATUS_OK; /* too long: the run will tell */
    int error = path_error(path, is_complete);
    if (!error)
        return PEAL_STATUS_OK;
    return peal_report(plan->session->diagnostics, PEAL_E210, save->source,
                       "make the folder before the run; names are relative to the spec's folder",
                       "cannot create `%s`: %s", file, strerror(error));
}

static peal_status check_body(const peal_plan *plan, const peal_body *body)
{
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        peal_status one = s->kind == PEAL_STATEMENT_SAVE     ? check_save(plan, s)
                          : s->kind == PEAL_STATEMENT_REPEAT ? check_body(plan, &s->u.loop.body)
                                                             : PEAL_STATUS_OK;
        status = status ? status : one;
    }
    return status;
}

peal_status peal_plan_check_outputs(const peal_plan *plan)
{
    const peal_body *bodies[] = {&plan->data->setup, &plan->data->step.body, &plan->data->finish};
    peal_status status = PEAL_STATUS_OK;
    for (int i = 0; i < 3; i++) {
        peal_status one = check_body(plan, bodies[i]);
        status = status ? status : one;
    }
    return status;
}
