/* Finds what kernel files include, without a preprocessor: conditions are not evaluated, so it may
 * find more than is used, never less. Where it cannot read a line, or compilers differ, it says
 * that there may be more. */
#define _GNU_SOURCE
#include "base/cache.h"
#include "base/kernel_source.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_FILES = 512 };

typedef struct finder {
    const peal_kernel_files *files;
    peal_arena *arena;
    const char *path[MOST_FILES], *text[MOST_FILES], *from[MOST_FILES];
    int count;
    bool unknown;
    int error; /* of a file that may be there */
} finder;

static bool add_file(finder *f, const char *from, const char *path)
{
    size_t bytes = 0;

    for (int i = 0; i < f->count; i++)
        if (strcmp(f->path[i], path) == 0)
            return true;
    char *text = peal_file_read(path, &bytes);
    if (!text) {
        f->error = peal_is_lack_of_means(errno) ? errno : f->error;
        return false;
    }
    f->unknown |= f->count == MOST_FILES || memchr(text, 0, bytes);
    if (f->count < MOST_FILES) {
        f->path[f->count] = path;
        f->from[f->count] = from;
        f->text[f->count++] = peal_arena_copy_bytes(f->arena, text, bytes);
    }
    free(text);
    return true;
}

/* As the compiler looks: beside the including file, then in the folders of the kernel files. */
static void add_included(finder *f, const char *from, const char *name)
{
    const char *slash = strrchr(from, '/');
    int length = slash ? (int)(slash - from) + 1 : 0;

    if (*name == '/') {
        add_file(f, from, name);
        return;
    }
    if (add_file(f, from, peal_arena_print(f->arena, "%.*s%s", length, from, name)))
        return;
    for (int i = 0; i < f->files->count; i++)
        if (add_file(f, from, peal_arena_print(f->arena, "%s/%s", f->files->folder[i], name)))
            return;
}

/* ---- lines, as a preprocessor has them ---- */

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t\v\f");
}

/* Behind the `#`, or what stands for it; NULL: the line is no directive. */
static const char *directive_of(const char *line)
{
    const char *at = skip_blanks(line);
    if (*at == '#')
        return skip_blanks(at + 1);
    return at[0] == '%' && at[1] == ':' ? skip_blanks(at + 2) : NULL;
}

/* Trigraphs, of which compilers think differently: a `#` and a backslash. */
static bool is_unclear(const char *text)
{
    return strstr(text, "?\?=") || strstr(text, "?\?/");
}

/* Joins lines that end with a backslash. */
static char *join_lines(finder *f, const char *text)
{
    char *joined = peal_arena_allocate(f->arena, strlen(text) + 1), *to = joined;
    const char *at = strncmp(text, "\xef\xbb\xbf", 3) == 0 ? text + 3 : text;

    while (*at) {
        const char *end = *at == '\\' ? skip_blanks(at + 1) : at;
        end += *end == '\r' && end[1] == '\n';
        if (*at == '\\' && *end == '\n') {
            /* gcc and clang join these, too */
            f->unknown |= skip_blanks(at + 1) > at + 1 && directive_of(end + 1);
            at = end + 1;
            continue;
        }
        f->unknown |= *at == '\r' && at[1] != '\n'; /* a line's end to clang */
        if (*at != '\r')
            *to++ = *at;
        at++;
    }
    *to = 0;
    return joined;
}

/* In `1'000` of C++. */
static bool is_separator(const char *text, const char *end)
{
    const char *begin = end;
    while (begin > text && (isalnum((unsigned char)begin[-1]) || strchr("_'.", begin[-1])))
        begin--;
    return begin < end && isdigit((unsigned char)*begin);
}

/* Whether the line ends within <...> of an include. */
static bool is_in_name(const char *line, char *end)
{
    const char kept = *end;
    *end = 0;
    const char *at = directive_of(line);
    at = at && strncmp(at, "include", 7) == 0 ? strchr(at, '<') : NULL;
    bool within = at && !strchr(at, '>');
    *end = kept;
    return within;
}

/* Behind the text or letter that begins at `at`, within its line. */
static const char *skip_literal(const char *at)
{
    const char quote = *at++;
    while (*at && *at != quote && *at != '\n')
        at += *at == '\\' && at[1] && at[1] != '\n' ? 2 : 1;
    return at + (*at == quote);
}

/* A blank for each comment, in place. */
static void remove_comments(finder *f, char *text)
{
    char *to = text, *line = text;

    for (const char *at = text; *at;) {
        if (at[0] == '/' && at[1] == '*' && !is_in_name(line, to)) {
            const char *end = strstr(at + 2, "*/");
            at = end ? end + 2 : at + strlen(at);
            *to++ = ' ';
        } else if (at[0] == '/' && at[1] == '/')
            at += strcspn(at, "\n");
        else if (*at == '"' || (*at == '\'' && !is_separator(text, to))) {
            f->unknown |= *at == '"' && to > text && to[-1] == 'R'; /* it may have lines */
            const char *end = skip_literal(at);
            while (at < end)
                *to++ = *at++;
        } else {
            *to++ = *at;
            line = *at++ == '\n' ? to : line;
        }
    }
    *to = 0;
}

/* ---- directives ---- */

static bool is_word(const char *at, size_t length, const char *word)
{
    return strlen(word) == length && strncmp(at, word, length) == 0;
}

/* That include nothing: also a line's number, and a `#` alone. */
static bool is_harmless(const char *at, size_t length)
{
    static const char *const words[] = {"define", "undef",   "if",       "ifdef",  "ifndef",
                                        "elif",   "elifdef", "elifndef", "else",   "endif",
                                        "error",  "warning", "line",     "pragma", "ident"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (is_word(at, length, words[i]))
            return true;
    return isdigit((unsigned char)*at) || *at == '\n' || !*at;
}

static void read_directive(finder *f, const char *path, const char *at)
{
    size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz_");

    if (!is_word(at, length, "include") && !is_word(at, length, "import")) {
        f->unknown |= !is_harmless(at, length);
        return;
    }
    at = skip_blanks(at + length);
    const char close = *at == '"' ? '"' : *at == '<' ? '>' : '\n';
    size_t bytes = close == '\n' ? 0 : strcspn(at + 1, close == '"' ? "\"\n" : ">\n");
    if (close != '\n' && at[1 + bytes] == close)
        add_included(f, path, peal_arena_copy_bytes(f->arena, at + 1, bytes));
    else
        f->unknown = true;
}

/* One `#include` after the other; what neither names a file is computed. */
static void scan(finder *f, const char *path, const char *text)
{
    char *lines = join_lines(f, text);

    f->unknown |= is_unclear(text);
    remove_comments(f, lines);
    for (const char *line = lines; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = directive_of(line);
        if (at)
            read_directive(f, path, at);
    }
}

static finder *find(const peal_kernel_files *files, peal_arena *arena)
{
    finder *f = PEAL_ARENA_NEW(arena, finder);

    f->files = files;
    f->arena = arena;
    for (int i = 0; i < files->count; i++)
        scan(f, files->file[i].path, files->file[i].text);
    for (int i = 0; i < f->count; i++) /* grows while it runs */
        scan(f, f->path[i], f->text[i]);
    return f;
}

int peal_kernel_files_find(const peal_kernel_files *files, peal_arena *arena,
                           const peal_kernel_file **out, bool *known)
{
    const finder *f = find(files, arena);
    peal_kernel_file *found = PEAL_ARENA_ARRAY(arena, peal_kernel_file, f->count + 1);
    for (int i = 0; i < f->count; i++)
        found[i] = (peal_kernel_file){f->path[i], f->text[i]};
    *out = found;
    *known = !f->unknown;
    errno = f->error;
    return f->error ? -1 : f->count;
}

peal_status peal_kernel_files_check_included(const peal_kernel_files *files, peal_arena *arena,
                                             peal_diagnostics *diagnostics)
{
    const finder *f = find(files, arena);
    peal_status status = PEAL_STATUS_OK;

    for (int i = 0; i < f->count; i++) {
        peal_status one =
            peal_kernel_file_check(files->root, f->path[i], f->from[i], files->source, diagnostics);
        status = status ? status : one;
    }
    if (f->error && !status)
        return peal_report(diagnostics, PEAL_E_SYSTEM_CALL_FAILED, files->source, NULL,
                           "cannot read a file that the kernel files include: %s",
                           strerror(f->error));
    if (f->unknown && files->root && !status)
        return peal_report(
            diagnostics, PEAL_E_INCLUDED_FILE_OUTSIDE, files->source,
            "name the file itself, or allow any with --allow-outside",
            "the kernel files include a file by a macro, or in a way that is not "
            "followed: for a GPU, nobody can tell whether it is in the spec's folder");
    return status;
}

const char *peal_kernel_files_included(const peal_kernel_files *files, peal_arena *arena)
{
    const peal_kernel_file *found;
    char *all = NULL;
    size_t bytes = 0;
    bool known;
    int count = peal_kernel_files_find(files, arena, &found, &known);

    if (!known || count < 0)
        return NULL;
    FILE *out = open_memstream(&all, &bytes);
    if (!out)
        peal_arena_fail(arena, BUFSIZ);
    for (int i = 0; i < count; i++)
        fprintf(out, "\n%s\n%s", found[i].path, found[i].text);
    fclose(out);
    const char *copy = peal_arena_copy_text(arena, all);
    free(all);
    return copy;
}
