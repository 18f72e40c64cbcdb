/* Files that are loaded and saved, kept open. Their names may hold what only the run knows: what is
 * there under any such name is taken. */
#define _GNU_SOURCE
#include "base/originals.h"

#include "base/array_file.h"
#include "base/places.h"

#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct original {
    char *path;
    int first; /* as it was before the runs */
    int now;   /* before this run; -1: it was not there */
} original;

struct peal_originals {
    int count;
    original file[];
};

/* Paths of files that are there, links resolved. */
typedef struct path_list {
    const peal_graph_data *graph;
    const char *root;
    peal_statement_kind kind;
    peal_arena *arena;
    char **path;
    int count, capacity;
    glob_t found; /* freed when there is no memory, too */
    peal_status status;
    peal_diagnostics *diagnostics;
} path_list;

static peal_status no_memory(peal_diagnostics *diagnostics)
{
    return peal_report(diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for the names of the files that are loaded and saved");
}

static peal_status cannot_keep(peal_diagnostics *diagnostics, const char *path, int error)
{
    return peal_report(diagnostics, PEAL_E_FILE_NOT_COMPARABLE, (peal_source){0},
                       "are there too many open files (ulimit -n)?",
                       "cannot keep `%s` open, which is loaded and saved: %s", path,
                       strerror(error));
}

static const char *escape(peal_arena *arena, const char *text)
{
    char *out = PEAL_ARENA_ARRAY(arena, char, 2 * strlen(text) + 1), *at = out;
    for (; *text; text++) {
        if (strchr("*?[]\\", *text))
            *at++ = '\\';
        *at++ = *text;
    }
    *at = 0;
    return out;
}

/* Of what stands in braces: a text, or some number. */
static const char *pattern_of(const path_list *list, const char *name, size_t length)
{
    for (int i = 0; i < list->graph->param_count; i++) {
        const peal_param *param = &list->graph->params[i];
        if (param->value.kind == PEAL_TEXT && strlen(param->name) == length &&
            memcmp(param->name, name, length) == 0)
            return escape(list->arena, param->value.u.text);
    }
    return "*";
}

/* For glob(3). */
static const char *make_pattern(const path_list *list, const char *file)
{
    const peal_graph_data *graph = list->graph;
    const char *result = "";
    while (*file) {
        const char *piece = "", *end = strchr(file, '}');
        size_t length = strcspn(file, "{}");
        bool is_brace = (*file == '{' || *file == '}') && file[1] == *file;
        if (length > 0) {
            piece = escape(list->arena, peal_arena_copy_bytes(list->arena, file, length));
            file += length;
        } else if (is_brace || *file == '}' || !end) {
            piece = peal_arena_copy_bytes(list->arena, file, 1);
            file += is_brace ? 2 : 1;
        } else {
            piece = pattern_of(list, file + 1, (size_t)(end - file - 1));
            file = end + 1;
        }
        result = peal_arena_print(list->arena, "%s%s", result, piece);
    }
    if (*result == '/' || !graph->folder || !*graph->folder)
        return result;
    return peal_arena_print(list->arena, "%s/%s", escape(list->arena, graph->folder), result);
}

static void add_path(path_list *list, const char *path)
{
    char resolved[PATH_MAX + NAME_MAX + 2];
    peal_target target;
    if (peal_target_find(list->root, path, &target) != 0)
        return; /* no run opens it */
    peal_target_path(&target, resolved, sizeof(resolved));
    peal_target_close(&target);
    PEAL_ARENA_ROOM(list->arena, list->path, list->count, list->capacity);
    list->path[list->count++] = peal_arena_copy_text(list->arena, resolved);
}

static void add_statement(path_list *list, const peal_statement *s)
{
    if (s->kind != list->kind || !peal_file_may_happen(list->graph, s))
        return;
    int error = glob(make_pattern(list, s->u.file.file), GLOB_NOSORT, NULL, &list->found);
    if (error == GLOB_NOSPACE)
        list->status = no_memory(list->diagnostics);
    for (size_t i = 0; !error && i < list->found.gl_pathc; i++)
        add_path(list, list->found.gl_pathv[i]);
    globfree(&list->found);
    list->found = (glob_t){0};
}

static void add_body(path_list *list, const peal_body *body)
{
    for (int i = 0; i < body->count; i++)
        if (body->statement[i]->kind == PEAL_STATEMENT_REPEAT)
            add_body(list, &body->statement[i]->u.loop.body);
        else
            add_statement(list, body->statement[i]);
}

static int by_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

static void list_paths(path_list *list)
{
    const peal_body *bodies[] = {&list->graph->setup, &list->graph->step.body,
                                 &list->graph->finish};
    for (int i = 0; i < 3; i++)
        add_body(list, bodies[i]);
    if (list->count > 0)
        qsort(list->path, (size_t)list->count, sizeof(*list->path), by_name);
}

static int open_to_read(const char *path)
{
    return open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY);
}

static bool is_regular(const char *path)
{
    struct stat info;
    return lstat(path, &info) == 0 && S_ISREG(info.st_mode);
}

/* Takes the descriptor. */
static peal_status add_original(peal_originals *out, const char *path, int descriptor,
                                peal_diagnostics *diagnostics)
{
    if (descriptor < 0)
        return cannot_keep(diagnostics, path, errno);
    original *file = &out->file[out->count++];
    *file = (original){strdup(path), descriptor, open_to_read(path)};
    return file->path ? PEAL_STATUS_OK : no_memory(diagnostics);
}

static peal_originals *make_room(int count)
{
    return calloc(1, sizeof(peal_originals) + (size_t)count * sizeof(original));
}

/* What both lists have. */
static peal_status keep_common(const path_list *loaded, const path_list *saved,
                               peal_originals **out)
{
    peal_diagnostics *diagnostics = loaded->diagnostics;
    peal_status status = PEAL_STATUS_OK;
    const char *last = "";
    for (int i = 0, k = 0; i < loaded->count && k < saved->count && !status;) {
        const char *path = loaded->path[i];
        int order = strcmp(path, saved->path[k]);
        i += order <= 0;
        k += order > 0;
        if (order != 0 || !strcmp(path, last) || !is_regular(path))
            continue;
        last = path;
        if (!*out && !(*out = make_room(loaded->count)))
            return no_memory(diagnostics);
        int file = open_to_read(path);
        if (file < 0 && (errno == ENOENT || errno == EACCES))
            continue; /* a load will say so */
        status = add_original(*out, path, file, diagnostics);
    }
    return status;
}

static peal_status find_files(path_list *loaded, path_list *saved, peal_originals **out)
{
    PEAL_ARENA_GUARD(loaded->arena, globfree(&loaded->found); globfree(&saved->found);
                     return no_memory(loaded->diagnostics));
    list_paths(loaded);
    if (loaded->count > 0)
        list_paths(saved);
    peal_status status = loaded->status ? loaded->status : saved->status;
    return status ? status : keep_common(loaded, saved, out);
}

peal_status peal_originals_create(const peal_graph_data *graph, bool allow_outside,
                                  peal_diagnostics *diagnostics, peal_originals **out)
{
    peal_originals *made = NULL;
    path_list loaded = {.graph = graph,
                        .root = peal_array_file_root(graph, allow_outside),
                        .kind = PEAL_STATEMENT_LOAD,
                        .arena = peal_arena_create(),
                        .diagnostics = diagnostics};
    path_list saved = loaded;
    saved.kind = PEAL_STATEMENT_SAVE;
    peal_status status = loaded.arena ? find_files(&loaded, &saved, &made) : no_memory(diagnostics);
    peal_arena_destroy(loaded.arena);
    if (status)
        peal_originals_destroy(made);
    *out = status ? NULL : made;
    return status;
}

peal_status peal_originals_copy(const peal_originals *from, peal_diagnostics *diagnostics,
                                peal_originals **out)
{
    peal_originals *made = make_room(from->count);
    peal_status status = made ? PEAL_STATUS_OK : no_memory(diagnostics);
    for (int i = 0; i < from->count && !status; i++)
        status = add_original(made, from->file[i].path,
                              fcntl(from->file[i].first, F_DUPFD_CLOEXEC, 0), diagnostics);
    if (status)
        peal_originals_destroy(made);
    else
        *out = made;
    return status;
}

static void close_now(original *file)
{
    if (file->now >= 0)
        close(file->now);
}

void peal_originals_destroy(peal_originals *originals)
{
    for (int i = 0; originals && i < originals->count; i++) {
        close_now(&originals->file[i]);
        close(originals->file[i].first);
        free(originals->file[i].path);
    }
    free(originals);
}

void peal_originals_begin(peal_originals *originals)
{
    for (int i = 0; originals && i < originals->count; i++) {
        close_now(&originals->file[i]);
        originals->file[i].now = open_to_read(originals->file[i].path);
    }
}

/* Since `now` is open, no new file has its number. */
static bool is_replaced(const original *file)
{
    struct stat before, there;
    if (stat(file->path, &there) != 0)
        return file->now >= 0; /* removed */
    return file->now < 0 || fstat(file->now, &before) != 0 || before.st_ino != there.st_ino ||
           before.st_dev != there.st_dev;
}

int peal_originals_open(const peal_originals *originals, const char *path, bool again,
                        int *descriptor)
{
    *descriptor = -1;
    for (int i = 0; originals && i < originals->count; i++) {
        const original *file = &originals->file[i];
        if (strcmp(file->path, path) != 0 || (!again && is_replaced(file)))
            continue;
        *descriptor = fcntl(file->first, F_DUPFD_CLOEXEC, 0);
        return *descriptor < 0 ? errno : 0;
    }
    return 0;
}
