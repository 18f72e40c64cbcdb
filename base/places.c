/* Data files outside of the spec's folder, found before anything runs.
 *
 * Names may hold {step} and the like: what comes before the first of these is looked at. */
#include "base/places.h"

#include "base/array_file.h"
#include "base/expression.h"

#include <errno.h>
#include <string.h>

typedef struct places {
    const peal_graph_data *graph;
    int ranks;
    const char *root;
    peal_diagnostics *diagnostics;
    peal_status first;
} places;

bool peal_file_may_happen(const peal_graph_data *graph, const peal_statement *s)
{
    const peal_scope scope = {.graph = graph};
    bool happens = true;
    bool file = s->kind == PEAL_STATEMENT_SAVE || s->kind == PEAL_STATEMENT_LOAD;
    if (file && s->when && peal_expr_boolean(s->when, &scope, true, &happens, NULL))
        return true;
    return file && happens;
}

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

bool peal_file_is_of_rank(const char *name)
{
    return peal_template_names(name, "rank");
}

bool peal_file_path(const peal_graph_data *graph, const peal_statement *s, char path[PATH_MAX])
{
    char name[PATH_MAX];
    bool is_complete = copy_known(s->u.file.file, name, sizeof(name));
    bool is_relative = *name != '/' && graph->folder && *graph->folder;
    if (snprintf(path, PATH_MAX, "%s%s%s", is_relative ? graph->folder : "", is_relative ? "/" : "",
                 name) >= PATH_MAX)
        path[0] = 0;
    return is_complete;
}

/* False: told. */
static bool look_at(places *p, const char *path, const char *name, peal_source source)
{
    peal_target target;
    int error = peal_target_find(p->root, path, &target);
    if (!error)
        peal_target_close(&target);
    if (error != EXDEV)
        return true;
    peal_status status =
        peal_report(p->diagnostics, PEAL_E_DATA_FILE_OUTSIDE, source,
                    "choose a name in the folder, or allow it with --allow-outside",
                    "`%s` is outside the spec's folder `%s`", name, p->root);
    p->first = p->first ? p->first : status;
    return false;
}

static void look_at_statement(places *p, const peal_statement *s)
{
    char path[PATH_MAX];
    if (!peal_file_may_happen(p->graph, s))
        return;
    if (!peal_file_path(p->graph, s, path) && strlen(path) + 1 < sizeof(path))
        strcat(path, "-"); /* any name in the folder will do */
    if (path[0])
        look_at(p, path, s->u.file.file, s->source);
}

static void look_at_body(places *p, const peal_body *body)
{
    for (int i = 0; i < body->count; i++)
        if (body->statement[i]->kind == PEAL_STATEMENT_REPEAT)
            look_at_body(p, &body->statement[i]->u.loop.body);
        else
            look_at_statement(p, body->statement[i]);
}

static void tell_no_memory(places *p, const peal_array *array)
{
    peal_status status = peal_report(p->diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, array->source,
                                     NULL, "no memory for the name of a file");
    p->first = p->first ? p->first : status;
}

static void look_at_names(places *p, const peal_array *array, peal_arena *arena)
{
    PEAL_ARENA_GUARD(arena, tell_no_memory(p, array); return );
    int ranks = strchr(array->file, '{') ? p->ranks : 1;
    for (int rank = 0; rank < ranks; rank++) {
        const peal_scope scope = {.graph = p->graph, .rank = rank, .ranks = p->ranks};
        const char *path;
        if (peal_template_expand(array->file, &scope, NULL, array->source, arena, &path, NULL))
            break; /* told when it is read */
        if (*path != '/')
            path = peal_arena_print(arena, "%s/%s", p->root, path);
        if (!look_at(p, path, array->file, array->source))
            break;
    }
}

/* Files of a constant buffer, of every rank. */
static void look_at_constant(places *p, const peal_array *array)
{
    peal_arena *arena = peal_arena_create();
    if (arena)
        look_at_names(p, array, arena);
    else
        tell_no_memory(p, array);
    peal_arena_destroy(arena);
}

peal_status peal_places_check(const peal_graph_data *graph, int ranks, bool allow_outside,
                              peal_diagnostics *diagnostics)
{
    const peal_body *bodies[] = {&graph->setup, &graph->step.body, &graph->finish};
    places p = {graph, ranks, peal_array_file_root(graph, allow_outside), diagnostics,
                PEAL_STATUS_OK};
    for (int i = 0; i < graph->array_count && p.root; i++)
        if (graph->arrays[i].file)
            look_at_constant(&p, &graph->arrays[i]);
    for (int i = 0; i < 3 && p.root; i++)
        look_at_body(&p, bodies[i]);
    return p.first;
}
