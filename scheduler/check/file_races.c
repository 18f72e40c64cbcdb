/* Files that ranks meet in: one rank saves what another one loads, or saves as well.
 *
 * Serial has an order for that, but nothing orders files between ranks when they run side by side.
 * What is sound all the same:
 * - A field is saved by all ranks together, whose file takes its name when the last one has come.
 *   So it is not there before all loads that stand above it. Behind it each rank finds the points
 *   that it has saved itself: those of fields that are cut alike.
 * - What setup loads is loaded before the steps save anything: all ranks end setup together then.
 * - A name with {rank} in it, or statements of one and the same rank.
 * Names are compared as patterns: counters and ranks are any digits, params have their values,
 * links are followed where they are known before the run; behind {rank}, rank by rank. */
#define _GNU_SOURCE /* realpath */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/geometry/geometry.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { LONGEST_NAME = 1 << 12, MOST_LINKS = 40 };
enum { LINKED_RANKS = 4096 }; /* whose files are looked at for links */

/* What a name is made of, besides characters. */
enum { DIGITS = -1, RANK_DIGITS = -2 };
/* Widths of {rank} in a name, beside numbers of digits. */
enum { NO_WIDTH = -1, SEVERAL_WIDTHS = -2 };

typedef struct file_use {
    const peal_statement *s;
    const void *loop; /* the outermost around it, or NULL */
    int *name;
    int length;
    bool of_rank;  /* {rank} was in the name: each rank writes a file of its own */
    int width;     /* its width; SEVERAL_WIDTHS: links are not followed */
    bool together; /* all ranks write one file */
    bool in_setup;
    bool counted; /* what follows is known */
    int rank[2];  /* the first ranks that do it; -1: none */
    bool linked;  /* the name is where a link leads that one rank's name is */
} file_use;

typedef struct file_walk {
    const common_input *c;
    const pass_context *pass;
    file_use *use;
    int count;
    file_use *linked; /* what links behind {rank} add */
    int linked_count;
} file_walk;

/* ---- names ---- */

static const peal_param *param_of(const peal_graph_data *graph, const char *name)
{
    for (int i = 0; i < graph->param_count; i++)
        if (!strcmp(graph->params[i].name, name))
            return &graph->params[i];
    return NULL;
}

/* The placeholder that begins at text; its end. Of {rank}: also how many digits it has at least. */
static const char *add_placeholder(const common_input *c, const pass_context *pass,
                                   const char *text, int *name, int *length, int *rank_width)
{
    const peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    char word[PEAL_TEMPLATE_NAME_BYTES];
    int width;
    const char *end = peal_template_placeholder(text, word, &width), *value = "";

    if (!end)
        return text + strlen(text); /* refused by others */
    if (!strcmp(word, "rank")) {
        name[(*length)++] = RANK_DIGITS;
        *rank_width = *rank_width == NO_WIDTH || *rank_width == width ? width : SEVERAL_WIDTHS;
    } else if (strcmp(word, "ranks") && !param_of(c->graph, word)) {
        name[(*length)++] = DIGITS;
    } else if (!peal_template_expand(peal_arena_copy_bytes(pass->arena, text, (size_t)(end - text)),
                                     &scope, NULL, (peal_source){0}, pass->arena, &value, NULL)) {
        for (; *value && *length < LONGEST_NAME; value++)
            name[(*length)++] = (unsigned char)*value;
    }
    return end;
}

/* Where {rank} stands in the name; -1: there is none. */
static int find_rank_digits(const file_use *use)
{
    for (int i = 0; i < use->length; i++)
        if (use->name[i] == RANK_DIGITS)
            return i;
    return -1;
}

/* Without what changes nothing in an absolute path: `//`, `.`, and `..` with what is above it. */
static int shorten(int *name, int length)
{
    int kept = 0;
    for (int i = 0, end; i < length; i = end) {
        for (end = i + 1; end < length && name[end] != '/';)
            end++;
        int part = end - i - 1; /* behind its slash */
        bool dot = part > 0 && name[i + 1] == '.';
        if (dot && part == 2 && name[i + 2] == '.')
            while (kept > 0 && name[--kept] != '/')
                ;
        else if (part > 0 && !(dot && part == 1))
            for (int k = i; k < end; k++)
                name[kept++] = name[k];
    }
    return kept;
}

/* The path of a file without links, whether or not it is there: links may lead to what is not there
 * yet. False: a folder is missing, or links lead round. */
static bool real_name(const char *path, char real[PATH_MAX])
{
    char at[PATH_MAX], link[PATH_MAX];
    snprintf(at, sizeof(at), "%s", path);
    for (int hops = 0; hops < MOST_LINKS; hops++) {
        if (realpath(at, real))
            return true;
        ssize_t length = readlink(at, link, sizeof(link) - 1);
        char *slash = strrchr(at, '/');
        if (length < 0) { /* a new file in a folder that is there */
            char *last = slash ? slash + 1 : at;
            snprintf(link, sizeof(link), "%s", last);
            *last = 0;
            if (!realpath(*at ? at : ".", real))
                return false;
            size_t folder = strlen(real);
            return (size_t)snprintf(real + folder, PATH_MAX - folder, "%s%s", folder > 1 ? "/" : "",
                                    link) < PATH_MAX - folder;
        }
        link[length] = 0;
        int before = *link == '/' || !slash ? 0 : (int)(slash + 1 - at);
        if (before + length >= PATH_MAX)
            return false;
        memcpy(at + before, link, (size_t)length + 1);
    }
    return false;
}

/* The part of a name that is known before the run, links followed as far as there are files. */
static void follow_links(file_use *use)
{
    char path[PATH_MAX], real[PATH_MAX];
    int known = 0, folder = 0;
    int *name = use->name;
    while (known < use->length && name[known] > 0 && known < PATH_MAX - 1) {
        path[known] = (char)name[known];
        folder = name[known] == '/' ? known : folder;
        known++;
    }
    bool whole = known == use->length;
    known = whole ? known : folder;
    path[known] = 0;
    if (known == 0)
        return;
    if (whole ? !real_name(path, real) : !realpath(path, real))
        return;
    int more = (int)strlen(real), rest = use->length - known;
    if (more + rest > LONGEST_NAME)
        return;
    memmove(name + more, name + known, (size_t)rest * sizeof(*name));
    for (int i = 0; i < more; i++)
        name[i] = (unsigned char)real[i];
    use->length = more + rest;
}

/* Names stand in the spec's folder. */
static int begin_name(const peal_graph_data *graph, const char *text, int *name)
{
    char real[PATH_MAX];
    int length = 0;
    if (*text != '/' && realpath(graph->folder && *graph->folder ? graph->folder : ".", real))
        for (; real[length] && length < LONGEST_NAME; length++)
            name[length] = (unsigned char)real[length];
    if (*text != '/' && length < LONGEST_NAME)
        name[length++] = '/';
    return length;
}

static void read_name(const common_input *c, const pass_context *pass, const char *text,
                      file_use *use)
{
    int *name = PEAL_ARENA_ARRAY(pass->arena, int, LONGEST_NAME + 1);
    int length = begin_name(c->graph, text, name), width = NO_WIDTH;
    while (*text && length < LONGEST_NAME) {
        bool doubled = (*text == '{' || *text == '}') && text[1] == *text;
        if (*text == '{' && !doubled) {
            text = add_placeholder(c, pass, text, name, &length, &width);
            continue;
        }
        name[length++] = (unsigned char)*text;
        text += doubled ? 2 : 1;
    }
    *use = (file_use){
        .s = use->s, .loop = use->loop, .in_setup = use->in_setup, .name = name, .length = length};
    use->of_rank = find_rank_digits(use) >= 0;
    use->width = width;
    use->length = shorten(name, length);
    follow_links(use);
}

/* The path that a name with {rank} of one width, and no other digits, is on a rank; false: it has
 * others. */
static bool path_on_rank(const file_use *use, int rank, char path[PATH_MAX])
{
    size_t used = 0;
    for (int i = 0; i < use->length && used < PATH_MAX; i++)
        if (use->name[i] == RANK_DIGITS && use->width >= 0)
            used += (size_t)snprintf(path + used, PATH_MAX - used, "%0*d", use->width, rank);
        else if (use->name[i] < 0)
            return false;
        else
            path[used++] = (char)use->name[i];
    if (used >= PATH_MAX)
        return false;
    path[used] = 0;
    return true;
}

static bool is_digit(int token)
{
    return token < 0 || (token >= '0' && token <= '9');
}

/* Digits at this index stand alone: what they are can be told from the name. */
static bool stands_alone(const file_use *use, int i)
{
    return (i == 0 || !is_digit(use->name[i - 1])) &&
           (i + 1 == use->length || !is_digit(use->name[i + 1]));
}

/* Whether equal names are of one rank: both have {rank} at the same index. */
static bool names_tell_rank(const file_use *a, const file_use *b)
{
    int rank = find_rank_digits(a);
    if (rank < 0 || rank != find_rank_digits(b))
        return false;
    for (int i = 0; i <= rank; i++)
        if (a->name[i] != b->name[i] ||
            (a->name[i] < 0 && !(stands_alone(a, i) && stands_alone(b, i))))
            return false;
    return true;
}

/* Whether the patterns have a name in common. now[j]: a's tokens so far and b's first j do; a token
 * that is digits may go on over further ones. */
static bool names_meet(const file_use *a, const file_use *b)
{
    bool before[LONGEST_NAME + 1] = {true}, now[LONGEST_NAME + 1];
    if (a->linked && b->linked) /* without digits that are not known */
        return a->length == b->length &&
               !memcmp(a->name, b->name, (size_t)a->length * sizeof(*a->name));
    for (int i = 0; i < a->length; i++) {
        now[0] = false;
        for (int j = 0; j < b->length; j++) {
            int x = a->name[i], y = b->name[j];
            bool alike = x == y || (x < 0 && is_digit(y)) || (y < 0 && is_digit(x));
            now[j + 1] = alike && (before[j] || (y < 0 && before[j + 1]) || (x < 0 && now[j]));
        }
        memcpy(before, now, (size_t)b->length + 1);
    }
    return before[b->length];
}

/* ---- who does it ---- */

static bool does(const common_input *c, const file_use *use, int rank)
{
    peal_scope scope = {.graph = c->graph, .rank = rank, .ranks = c->machine.ranks};
    int rest = rank;
    for (int k = 0; k < PEAL_RANK_AXES; k++) {
        scope.dims[k] = c->dims[k];
        scope.position[k] = rest % c->dims[k];
        rest /= c->dims[k];
    }
    return condition_known(use->s->when, &scope) != CONDITION_FALSE;
}

/* The first two ranks that may do it. */
static void find_ranks(const common_input *c, file_use *use)
{
    int found = 0;
    if (use->counted)
        return;
    use->counted = true;
    use->rank[0] = use->rank[1] = -1;
    for (int rank = 0; rank < c->machine.ranks && found < 2; rank++)
        if (does(c, use, rank))
            use->rank[found++] = rank;
}

/* A rank's name that is a link, or lies in one, is one more use of where that leads. */
static void follow_rank_links(file_walk *w, const file_use *use)
{
    char path[PATH_MAX], real[PATH_MAX];
    int ranks = w->c->machine.ranks < LINKED_RANKS ? w->c->machine.ranks : LINKED_RANKS;
    for (int rank = 0; use->of_rank && rank < ranks && w->linked_count < LINKED_RANKS; rank++) {
        if (!path_on_rank(use, rank, path))
            return;
        if (!does(w->c, use, rank) || !real_name(path, real) || !strcmp(path, real))
            continue;
        if (!w->linked)
            w->linked = PEAL_ARENA_ARRAY(w->pass->arena, file_use, LINKED_RANKS);
        file_use *more = &w->linked[w->linked_count++];
        *more = (file_use){.s = use->s,
                           .loop = use->loop,
                           .in_setup = use->in_setup,
                           .length = (int)strlen(real),
                           .counted = true,
                           .rank = {rank, -1},
                           .linked = true};
        more->name = PEAL_ARENA_ARRAY(w->pass->arena, int, more->length + 1);
        for (int i = 0; i < more->length; i++)
            more->name[i] = (unsigned char)real[i];
    }
}

/* Whether no two ranks do the one and the other. */
static bool one_rank_does(const common_input *c, file_use *a, file_use *b)
{
    find_ranks(c, a);
    find_ranks(c, b);
    if (a->rank[0] < 0 || b->rank[0] < 0)
        return true;
    return a->rank[1] < 0 && b->rank[1] < 0 && a->rank[0] == b->rank[0];
}

/* ---- in which order ---- */

/* Whether each rank loads no more than it has saved itself. */
static bool is_cut_alike(const common_input *c, const pass_context *pass, const file_use *save,
                         const file_use *load)
{
    const peal_scope scope = {.graph = c->graph, .ranks = c->machine.ranks};
    field_shape one, other;
    const pass_context quiet = {pass->arena, NULL}; /* what is wrong with fields has been said */
    bool known = !shape_of(c, &quiet, &scope, save->s->u.file.array, &one) &&
                 !shape_of(c, &quiet, &scope, load->s->u.file.array, &other);
    return known && one.axis_count == other.axis_count &&
           c->graph->arrays[save->s->u.file.array].components ==
               c->graph->arrays[load->s->u.file.array].components &&
           (one.replicated || !other.replicated) &&
           !memcmp(one.size, other.size, sizeof(one.size)) &&
           !memcmp(one.whole, other.whole, sizeof(one.whole)) &&
           !memcmp(one.align, other.align, sizeof(one.align)) &&
           !memcmp(one.stagger, other.stagger, sizeof(one.stagger)) &&
           !memcmp(one.coarsen, other.coarsen, sizeof(one.coarsen));
}

static bool is_field(const common_input *c, const file_use *use)
{
    return c->graph->arrays[use->s->u.file.array].kind == PEAL_ARRAY_FIELD;
}

/* What makes either order of ranks give the same. Uses lie in the order of the program. */
static bool is_ordered(const common_input *c, const pass_context *pass, const file_use *save,
                       const file_use *other)
{
    if (other->s->kind == PEAL_STATEMENT_LOAD && other->in_setup && !save->in_setup)
        return true; /* setup ends on all ranks before any goes on (runtime/plan/run.c) */
    if (!save->together)
        return false;
    if (other->s->kind == PEAL_STATEMENT_SAVE)
        return other->together;
    if (other < save && !(other->loop && other->loop == save->loop))
        return true;
    return is_field(c, other) && !other->of_rank && is_cut_alike(c, pass, save, other);
}

/* Whether a name that one rank's link leads to is, by its own name, that of the same rank. */
static bool is_of_same_rank(const file_use *linked, const file_use *other)
{
    char path[PATH_MAX];
    if (!linked->linked || !other->of_rank || !path_on_rank(other, linked->rank[0], path) ||
        strlen(path) != (size_t)linked->length)
        return false;
    for (int i = 0; i < linked->length; i++)
        if ((unsigned char)path[i] != linked->name[i])
            return false;
    return true;
}

static const char *verb_of(const file_use *use)
{
    return use->s->kind == PEAL_STATEMENT_SAVE ? "save" : "load";
}

static peal_status report(const common_input *c, const pass_context *pass, file_use *save,
                          file_use *other)
{
    bool loads = other->s->kind == PEAL_STATEMENT_LOAD;
    find_ranks(c, save);
    find_ranks(c, other);
    int rank =
        other->rank[0] == save->rank[0] && other->rank[1] >= 0 ? other->rank[1] : other->rank[0];
    if (save == other)
        return peal_report(pass->diagnostics, PEAL_E_FILE_RACE, save->s->source,
                           "put {rank} into the name, or let one rank save: when: rank == 0",
                           "rank %d and rank %d may both save `%s` as `%s`", save->rank[0],
                           save->rank[1], array_name(c, save->s->u.file.array),
                           save->s->u.file.file);
    const char *hint =
        save->linked || other->linked
            ? "links lead names of two ranks to one file: let each name a file of its own"
        : loads ? "load in `setup`, before all saves of the steps, or on the rank that has saved "
                  "(a name "
                  "with {rank}), or a field that is cut like the saved one, or send what the other "
                  "rank needs"
                : "give each a name of its own, with {rank} for what each rank saves";
    return peal_report(pass->diagnostics, PEAL_E_FILE_RACE, other->s->source, hint,
                       "`%s %s` of `%s` on rank %d may come before or after `save %s` of `%s` on "
                       "rank %d (line %d)",
                       verb_of(other), array_name(c, other->s->u.file.array), other->s->u.file.file,
                       rank, array_name(c, save->s->u.file.array), save->s->u.file.file,
                       save->rank[0], save->s->source.line);
}

/* ---- all of them ---- */

/* loop: the outermost around the body, or NULL. */
static void collect(file_walk *w, const peal_body *body, const void *loop, bool in_setup)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_REPEAT)
            collect(w, &s->u.loop.body, loop ? loop : s, in_setup);
        if (s->kind != PEAL_STATEMENT_LOAD && s->kind != PEAL_STATEMENT_SAVE)
            continue;
        file_use *use = &w->use[w->count++];
        *use = (file_use){.s = s, .loop = loop, .in_setup = in_setup};
        read_name(w->c, w->pass, s->u.file.file, use);
        use->together = is_field(w->c, use) && !use->of_rank;
        follow_rank_links(w, use);
    }
}

static peal_status check_pair_of_files(const common_input *c, const pass_context *pass,
                                       file_use *save, file_use *other)
{
    bool sound = is_ordered(c, pass, save, other) || names_tell_rank(save, other) ||
                 !names_meet(save, other) || one_rank_does(c, save, other) ||
                 is_of_same_rank(save, other) || is_of_same_rank(other, save);
    return sound ? PEAL_STATUS_OK : report(c, pass, save, other);
}

static file_use *use_at(const file_walk *w, int i)
{
    return i < w->count ? &w->use[i] : &w->linked[i - w->count];
}

peal_status check_files(const common_input *c, const pass_context *pass)
{
    const peal_graph_data *graph = c->graph;
    file_walk w = {.c = c, .pass = pass};
    peal_status first = PEAL_STATUS_OK;

    if (c->machine.ranks == 1)
        return PEAL_STATUS_OK;
    w.use = PEAL_ARENA_ARRAY(pass->arena, file_use, graph->statement_count + 1);
    collect(&w, &graph->setup, NULL, true);
    collect(&w, &graph->step.body, &graph->step, false);
    collect(&w, &graph->finish, NULL, false);
    for (int i = 0; i < w.count + w.linked_count; i++)
        for (int k = 0; k < w.count + w.linked_count; k++) {
            file_use *save = use_at(&w, i), *other = use_at(&w, k);
            bool saves = save->s->kind == PEAL_STATEMENT_SAVE;
            bool again = other->s->kind == PEAL_STATEMENT_SAVE && k < i; /* looked at */
            peal_status one =
                saves && !again ? check_pair_of_files(c, pass, save, other) : PEAL_STATUS_OK;
            first = first ? first : one;
        }
    return first;
}
