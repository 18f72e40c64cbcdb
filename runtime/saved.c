/* Files of `save`, for a verification: serial saves into a folder of its own, and at the end what
 * the run has saved is compared with what is there, byte by byte. A file's name there is the run's
 * with '/' and '%' written as in addresses of pages. */
#define _GNU_SOURCE
#include "runtime/saved.h"
#include "runtime/session.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* '%' of a name stays one: nobody expands it but us. */
static void put(FILE *out, char c, bool braces)
{
    if (c == '/')
        fputs("%2F", out);
    else if (c == '%')
        fputs("%25", out);
    else
        fprintf(out, braces && (c == '{' || c == '}') ? "%c%c" : "%c", c, c);
}

/* A text param within braces may hold a '/': it is expanded here. Others stay. NULL: no such. */
static const char *text_of(const peal_graph_data *graph, const char *name, size_t length)
{
    for (int i = 0; i < graph->param_count; i++)
        if (graph->params[i].value.kind == PEAL_TEXT && strlen(graph->params[i].name) == length &&
            memcmp(graph->params[i].name, name, length) == 0)
            return graph->params[i].value.u.text;
    return NULL;
}

char *peal_saved_name(const peal_graph_data *graph, const char *folder, const char *file)
{
    char *name = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&name, &bytes);

    if (!out)
        return NULL;
    for (const char *at = folder; *at; at++) {
        if (*at == '{' || *at == '}')
            fputc(*at, out);
        fputc(*at, out);
    }
    fputc('/', out);
    for (const char *at = file; *at; at++) {
        const char *end = *at == '{' && at[1] != '{' ? strchr(at, '}') : NULL;
        const char *text = end ? text_of(graph, at + 1, (size_t)(end - at - 1)) : NULL;
        if (text) {
            for (; *text; text++)
                put(out, *text, true);
            at = end;
        } else
            put(out, *at, false);
    }
    return fclose(out) == 0 ? name : NULL;
}

char *peal_saved_open(void)
{
    const char *base = getenv("TMPDIR");
    char *folder = NULL;

    if (asprintf(&folder, "%s/peal-verify-XXXXXX", base && *base ? base : "/tmp") < 0)
        return NULL;
    if (!mkdtemp(folder)) {
        free(folder);
        return NULL;
    }
    return folder;
}

static bool is_entry(const struct dirent *entry)
{
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

void peal_saved_close(char *folder)
{
    DIR *list = folder ? opendir(folder) : NULL;

    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list))
        if (is_entry(entry))
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    if (folder)
        rmdir(folder);
    free(folder);
}

static void decode(const char *entry, char *name, size_t bytes)
{
    size_t used = 0;

    for (; *entry && used + 1 < bytes; entry++) {
        bool slash = strncmp(entry, "%2F", 3) == 0, percent = strncmp(entry, "%25", 3) == 0;
        name[used++] = slash ? '/' : *entry;
        entry += slash || percent ? 2 : 0;
    }
    name[used] = 0;
}

/* The first byte that differs, or the end of the shorter one; -1: none. */
static int64_t first_difference(FILE *mine, FILE *serial)
{
    static const size_t chunk = 1 << 16;
    unsigned char *a = malloc(2 * chunk), *b = a ? a + chunk : NULL;
    int64_t place = 0;

    while (a) {
        size_t have = fread(a, 1, chunk, mine), want = fread(b, 1, chunk, serial);
        size_t both = have < want ? have : want, i = 0;
        while (i < both && a[i] == b[i])
            i++;
        place += (int64_t)i;
        if (i < both || have != want)
            break;
        if (have == 0) {
            place = -1;
            break;
        }
    }
    free(a);
    return a ? place : 0;
}

static peal_status compare_file(const peal_graph_data *graph, const char *folder, const char *entry,
                                peal_diagnostics *diagnostics)
{
    char name[PATH_MAX], path[2 * PATH_MAX], other[2 * PATH_MAX];
    const char *base = graph->folder && *graph->folder ? graph->folder : ".";
    peal_status status = PEAL_STATUS_OK;

    decode(entry, name, sizeof(name));
    snprintf(path, sizeof(path), "%s%s%s", *name == '/' ? "" : base, *name == '/' ? "" : "/", name);
    snprintf(other, sizeof(other), "%s/%s", folder, entry);
    FILE *mine = fopen(path, "re"), *serial = fopen(other, "re");
    if (!mine)
        status =
            peal_report(diagnostics, PEAL_E360, PEAL_NO_SOURCE, NULL,
                        "serial saves `%s`, which cannot be read now: %s", name, strerror(errno));
    int64_t place = mine && serial ? first_difference(mine, serial) : -1;
    if (place >= 0)
        status = peal_report(diagnostics, PEAL_E360, PEAL_NO_SOURCE, NULL,
                             "the file `%s` differs from the one that serial saves, from byte "
                             "%" PRId64 " on",
                             name, place);
    if (mine)
        fclose(mine);
    if (serial)
        fclose(serial);
    return status;
}

peal_status peal_saved_compare(const peal_graph_data *graph, const char *folder, int *count,
                               peal_diagnostics *diagnostics)
{
    struct dirent **entry = NULL;
    peal_status status = PEAL_STATUS_OK;
    int found = folder ? scandir(folder, &entry, NULL, alphasort) : 0;

    *count = 0;
    for (int i = 0; i < found; i++) {
        if (is_entry(entry[i]) && !status) {
            status = compare_file(graph, folder, entry[i]->d_name, diagnostics);
            ++*count;
        }
        free(entry[i]);
    }
    free(entry);
    return status;
}
