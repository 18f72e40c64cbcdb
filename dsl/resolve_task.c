/* Tasks: box, tile, accesses, reductions, arguments. */
#include "base/expression.h"
#include "dsl/resolve.h"

#include <string.h>

typedef enum array_use { ARRAY_READ = 1, ARRAY_WRITTEN = 2, ARRAY_REDUCED = 4 } array_use;

typedef struct task_parse {
    peal_parser *parser;
    const peal_task_desc *desc;
    peal_source source;
    peal_access access[PEAL_CALL_VIEWS];
    int access_count;
    struct {
        int array;
        unsigned uses; /* bits of array_use */
    } seen[PEAL_CALL_VIEWS + PEAL_CALL_PARTIALS];
    int seen_count;
} task_parse;

/* An array stands once in a task; or once under `read` and once under `write` or `update`, if no
 * tile writes what any tile reads (PEAL_E_TILES_COLLIDE). */
static bool note_name(task_parse *t, int array, array_use use, const char *name, peal_source source)
{
    for (int i = 0; i < t->seen_count; i++)
        if (t->seen[i].array == array) {
            if (t->seen[i].uses == ARRAY_READ && use == ARRAY_WRITTEN) {
                t->seen[i].uses |= (unsigned)use;
                return true;
            }
            peal_parser_report(t->parser, PEAL_E_DUPLICATE_ARRAY, name, source,
                               use == ARRAY_READ      ? "let one footprint hold all that is read"
                               : use == ARRAY_REDUCED ? "reduce into a buffer of its own"
                                                      : "list what is both read and written under "
                                                        "`update`",
                               "`%s` stands twice in task `%s`", name,
                               t->desc->name ? t->desc->name : "");
            return false;
        }
    if (t->seen_count < PEAL_CALL_VIEWS + PEAL_CALL_PARTIALS) {
        t->seen[t->seen_count].array = array;
        t->seen[t->seen_count++].uses = (unsigned)use;
    }
    return true;
}

static bool has_box(const peal_array *array)
{
    return array->kind == PEAL_ARRAY_FIELD || array->points.kind != PEAL_POINTS_ONE;
}

static bool resolve_inside(task_parse *t, const peal_access_desc *desc, peal_source source,
                           peal_access *out)
{
    bool of_ghosts = t->desc->box.ghost;
    out->footprint = PEAL_FOOTPRINT_INSIDE;
    if (of_ghosts && t->parser->arrays[out->array].kind == PEAL_ARRAY_FIELD)
        return true;
    peal_parser_report(t->parser, PEAL_E_CONFLICTING_KEYS, desc->name, source,
                       "`inside` is next to the points that a task visits: "
                       "box: {u: {ghost: [-1, 0]}}, read: {u: inside}",
                       of_ghosts ? "`inside` of `%s`, which is a buffer"
                                 : "`inside` of `%s` in a task that visits no ghost box",
                       desc->name);
    return false;
}

static bool resolve_footprint(task_parse *t, const peal_access_desc *desc, peal_source source,
                              peal_access *out)
{
    const peal_array *array = &t->parser->arrays[out->array];
    out->footprint = has_box(array) ? PEAL_FOOTPRINT_TILE : PEAL_FOOTPRINT_WHOLE;
    if (desc->whole)
        out->footprint = PEAL_FOOTPRINT_WHOLE;
    if (desc->tile)
        out->footprint = PEAL_FOOTPRINT_TILE;
    if (desc->per_tile) {
        out->footprint = PEAL_FOOTPRINT_PER_TILE;
        out->per_tile = peal_parse_expression(t->parser, desc->per_tile, source, PEAL_ALLOW_STATIC);
        return out->per_tile && peal_require_integer(t->parser, out->per_tile, "per_tile");
    }
    if (desc->box) {
        out->footprint = PEAL_FOOTPRINT_RANGES;
        return peal_parse_ranges(t->parser, desc->box, source, PEAL_ALLOW_STATIC, array->axis_count,
                                 &out->ranges);
    }
    if (desc->inside)
        return resolve_inside(t, desc, source, out);
    if (!desc->grow && !desc->star)
        return true;
    out->footprint = desc->grow ? PEAL_FOOTPRINT_GROW : PEAL_FOOTPRINT_STAR;
    if (out->mode == PEAL_WRITE_ACCESS) {
        peal_parser_report(t->parser, PEAL_E_CONFLICTING_KEYS, desc->name, source,
                           "grow and star widen only what is read; a tile writes its points",
                           "`%s` is only written", desc->name);
        return false;
    }
    return peal_parse_amount(t->parser, desc->grow ? desc->grow : desc->star, source,
                             PEAL_ALLOW_STATIC, array->axis_count, &out->amount);
}

static void resolve_access(task_parse *t, const peal_access_desc *desc, peal_access_mode mode)
{
    peal_source source = desc->source.line > 0 ? desc->source : t->source;
    peal_access out = {.mode = mode,
                       .source = peal_graph_place(t->parser->graph, desc->name, source)};
    static const char *const whats[] = {"`read`", "`update`", "`write`"};
    int forms = (desc->grow != NULL) + (desc->star != NULL) + (desc->box != NULL) +
                (desc->per_tile != NULL) + desc->whole + desc->tile + desc->inside;
    out.array = peal_resolve_array_name(t->parser, desc->name, source, whats[mode]);
    if (out.array < 0 ||
        !note_name(t, out.array, mode == PEAL_READ_ACCESS ? ARRAY_READ : ARRAY_WRITTEN, desc->name,
                   source))
        return;
    if (forms > 1) {
        peal_parser_report(t->parser, PEAL_E_CONFLICTING_KEYS, desc->name, source, NULL,
                           "an access is one of tile, grow, star, whole, inside, per_tile, ranges");
        return;
    }
    if (!resolve_footprint(t, desc, source, &out))
        return;
    out.stale_is_meant = desc->stale_ok;
    if (desc->stale_ok &&
        (mode == PEAL_WRITE_ACCESS || t->parser->arrays[out.array].kind != PEAL_ARRAY_FIELD)) {
        peal_parser_report(t->parser, PEAL_E_CONFLICTING_KEYS, desc->name, source,
                           "`stale: ok` is said of a field that is read",
                           mode == PEAL_WRITE_ACCESS ? "`%s` is only written"
                                                     : "`%s` is a buffer, which has no halo",
                           desc->name);
        return;
    }
    if (t->access_count == PEAL_CALL_VIEWS) {
        peal_parser_report(t->parser, PEAL_E_TOO_MANY_ACCESSES, desc->name, source,
                           "split the task", "a task has at most %d accesses", PEAL_CALL_VIEWS);
        return;
    }
    t->access[t->access_count++] = out;
}

/* The members of u(*), up to the first mistake, one by one. */
static void resolve_members(task_parse *t, const peal_access_desc *desc, peal_access_mode mode)
{
    peal_members members =
        peal_members_of(t->parser, desc->name, desc->source.line > 0 ? desc->source : t->source);
    int failures = t->parser->failures;
    for (int i = 0; i < members.count && t->parser->failures == failures; i++) {
        peal_access_desc one = *desc;
        one.name = peal_member_name(t->parser, &members, i);
        one.source = members.source;
        resolve_access(t, &one, mode);
    }
}

static void resolve_accesses(task_parse *t)
{
    const peal_access_desc *lists[] = {t->desc->read, t->desc->update, t->desc->write};
    for (int mode = 0; mode < 3; mode++)
        for (int i = 0; i < PEAL_CALL_VIEWS && lists[mode][i].name; i++)
            resolve_members(t, &lists[mode][i], (peal_access_mode)mode);
}

static bool resolve_reduction(peal_parser *parser, const char *name, const char *combine,
                              peal_source place, bool of_task, peal_reduction *out)
{
    static const char *const combines[] = {"sum", "min", "max"};
    int array = peal_resolve_array_name(parser, name, place, "`reduce`");
    int index =
        peal_parse_word(parser, combine ? combine : "", place, "way to combine", combines, 3);
    if (array < 0 || index < 0)
        return false;
    const peal_array *a = &parser->arrays[array];
    if (of_task ? !peal_is_one_element(parser, a) : a->kind == PEAL_ARRAY_FIELD) {
        peal_parser_report(parser, PEAL_E_WRONG_ARRAY_KIND, name, place,
                           of_task ? "declare one: buffers: {d2: {}}"
                                   : "let a task reduce it into a buffer: reduce: {d2: sum}",
                           of_task ? "`%s` is not a buffer of one element"
                                   : "`%s` is a field; buffers are reduced over ranks",
                           a->name);
        return false;
    }
    *out = (peal_reduction){.array = array,
                            .combine = (peal_combine)index,
                            .source = peal_graph_place(parser->graph, name, place)};
    return true;
}

int peal_resolve_reductions(peal_parser *parser, const peal_reduce_desc *desc, peal_source source,
                            bool of_task, peal_reduction *out)
{
    int count = 0;
    for (int i = 0; i < PEAL_CALL_PARTIALS && desc[i].name; i++) {
        peal_members members = peal_members_of(parser, desc[i].name,
                                               desc[i].source.line > 0 ? desc[i].source : source);
        int failures = parser->failures;
        for (int m = 0; m < members.count && parser->failures == failures; m++) {
            const char *name = peal_member_name(parser, &members, m);
            if (count == PEAL_CALL_PARTIALS)
                peal_parser_report(parser, PEAL_E_TOO_MANY_ACCESSES, name, members.source, NULL,
                                   "at most %d buffers are reduced at once", PEAL_CALL_PARTIALS);
            else
                count += resolve_reduction(parser, name, desc[i].combine, members.source, of_task,
                                           &out[count]);
        }
    }
    return count;
}

/* As it stands in the spec: the text knows its place. */
static const char *name_of_reduction(const task_parse *t, int array)
{
    const char *name = t->parser->arrays[array].name;
    for (int i = 0; i < PEAL_CALL_PARTIALS && t->desc->reduce[i].name; i++)
        if (!strcmp(t->desc->reduce[i].name, name))
            return t->desc->reduce[i].name;
    return name;
}

static void resolve_reductions(task_parse *t, peal_task_statement *out)
{
    peal_reduction list[PEAL_CALL_PARTIALS];
    int count = peal_resolve_reductions(t->parser, t->desc->reduce, t->source, true, list);
    for (int i = 0; i < count; i++)
        note_name(t, list[i].array, ARRAY_REDUCED, name_of_reduction(t, list[i].array),
                  list[i].source);
    peal_reduction *own = PEAL_ARENA_ARRAY(t->parser->graph->arena, peal_reduction, count);
    if (count > 0)
        memcpy(own, list, (size_t)count * sizeof(*own));
    out->reduction = own;
    out->reduction_count = count;
}

static void resolve_arguments(task_parse *t, peal_task_statement *out)
{
    const peal_expr **list =
        PEAL_ARENA_ARRAY(t->parser->graph->arena, const peal_expr *, PEAL_CALL_ARGUMENTS);
    for (int i = 0; i < PEAL_CALL_ARGUMENTS && t->desc->args[i]; i++) {
        const peal_expr *expr =
            peal_parse_expression(t->parser, t->desc->args[i], t->source, PEAL_ALLOW_ALL);
        if (expr && peal_require_number(t->parser, expr, "an argument"))
            list[out->argument_count++] = expr;
    }
    out->argument = list;
}

/* A number is the extent along x, as in a list of one item. */
static void resolve_tile(task_parse *t, peal_task_statement *out)
{
    const char *text = t->desc->tile;
    if (!text)
        return;
    out->tile_given = true;
    if (!strcmp(text, "whole")) {
        out->tile_whole = true;
        return;
    }
    peal_expr const *extent[PEAL_AXES] = {0};
    int count = peal_parse_axes(t->parser, text, t->source, PEAL_ALLOW_UNIFORM, PEAL_AXES, NULL,
                                "a tile's extent", extent);
    bool is_list = strchr(text, '[') != NULL;
    for (int k = 0; k < count && (is_list || k == 0); k++)
        out->tile[k] = extent[k];
}

static void resolve_kernel(task_parse *t, peal_task_statement *out)
{
    const peal_task_desc *desc = t->desc;
    const char *kernel = desc->kernel ? desc->kernel : desc->name;
    int functions =
        (desc->function != NULL) + (desc->cuda_function != NULL) + (desc->enqueue != NULL);
    out->function = desc->function;
    out->cuda_function = desc->cuda_function;
    out->enqueue = desc->enqueue;
    out->user = desc->user;
    out->cuda_threads = desc->cuda_threads ? desc->cuda_threads : 256;
    if (out->cuda_threads < 1 || out->cuda_threads > 1024)
        peal_parser_report(t->parser, PEAL_E_VALUE_OUT_OF_RANGE, NULL, t->source,
                           "1 to 1024; 0: 256", "a block of %d threads", desc->cuda_threads);
    if (functions > 0) {
        if (desc->kernel || functions > 1)
            peal_parser_report(t->parser, PEAL_E_CONFLICTING_KEYS, desc->kernel, t->source, NULL,
                               "a task has a kernel or a function, not both");
        return;
    }
    out->kernel = kernel;
    if (kernel && !peal_is_name(kernel))
        peal_parser_report(t->parser, PEAL_E_INVALID_NAME, kernel, t->source,
                           "kernels are C functions: PEAL_KERNEL(relax)(...)",
                           "`%s` cannot be the name of a kernel", kernel);
    else if (kernel && t->parser->graph->kernels.count == 0 && !t->parser->lacks_kernels) {
        t->parser->lacks_kernels = true;
        peal_parser_report(t->parser, PEAL_E_INCOMPLETE_DEFINITION, kernel, t->source,
                           "name the C file that defines it: kernels: file.c",
                           "there are no kernels for task `%s`", desc->name ? desc->name : kernel);
    }
}

void peal_resolve_task(peal_parser *parser, const peal_task_desc *desc, peal_statement *out)
{
    task_parse t = {.parser = parser, .desc = desc, .source = desc->source};
    peal_task_statement *task = &out->u.task;
    peal_arena *arena = parser->graph->arena;
    if (!desc->name || !*desc->name)
        peal_parser_report(parser, PEAL_E_INCOMPLETE_DEFINITION, desc->name, t.source, NULL,
                           "a task without a name");
    resolve_kernel(&t, task);
    peal_resolve_points(parser, &desc->box, t.source, PEAL_ALLOW_ALL, false, &task->box);
    resolve_tile(&t, task);
    resolve_accesses(&t);
    resolve_reductions(&t, task);
    resolve_arguments(&t, task);
    task->independent = desc->independent;
    peal_access *access = PEAL_ARENA_ARRAY(arena, peal_access, t.access_count);
    if (t.access_count > 0)
        memcpy(access, t.access, (size_t)t.access_count * sizeof(*access));
    task->access = access;
    task->access_count = t.access_count;
    if (!out->name)
        out->name = desc->name ? desc->name : "task";
}
