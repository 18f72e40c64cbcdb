/* Finds what kernel files include, without a preprocessor: conditions are not evaluated, so it may
 * find more than is used, never less. */
#define _GNU_SOURCE
#include "base/cache.h"
#include "base/kernel_source.h"

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
    if (f->count == MOST_FILES)
        f->unknown = true;
    else {
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

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

/* One `#include` after the other; what neither names a file is computed. */
static void scan(finder *f, const char *path, const char *text)
{
    for (const char *line = text; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *at = skip_blanks(line);
        if (*at != '#')
            continue;
        at = skip_blanks(at + 1);
        if (strncmp(at, "include", 7) != 0)
            continue;
        at = skip_blanks(at + 7);
        const char *end = *at == '"' ? strchr(at + 1, '"') : *at == '<' ? strchr(at, '>') : NULL;
        if (end)
            add_included(f, path, peal_arena_copy_bytes(f->arena, at + 1, (size_t)(end - at - 1)));
        else
            f->unknown = true;
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
        return peal_report(diagnostics, PEAL_E302, files->source, NULL,
                           "cannot read a file that the kernel files include: %s",
                           strerror(f->error));
    if (f->unknown && files->root && !status)
        return peal_report(diagnostics, PEAL_E231, files->source,
                           "name the file itself, or allow any with --allow-outside",
                           "the kernel files include a file by a macro: for a GPU, nobody can tell "
                           "whether it is in the spec's folder");
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
