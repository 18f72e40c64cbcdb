/* The folder of a repeated run's files, and the table of what they are. For one thread. */
#define _GNU_SOURCE
#include "base/redirect.h"

#include "base/sha256.h"

#include <dirent.h>
#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct peal_redirect {
    char *folder;
    peal_redirected *file;
    int count, capacity;
};

peal_redirect *peal_redirect_create(void)
{
    const char *base = getenv("TMPDIR");
    peal_redirect *redirect = calloc(1, sizeof(*redirect));

    if (!redirect)
        return NULL;
    if (asprintf(&redirect->folder, "%s/peal-verify-XXXXXX", base && *base ? base : "/tmp") < 0)
        redirect->folder = NULL;
    if (redirect->folder && mkdtemp(redirect->folder))
        return redirect;
    int error = errno;
    free(redirect->folder);
    free(redirect);
    errno = error;
    return NULL;
}

static void forget(peal_redirected *file)
{
    free(file->path);
    free(file->name);
}

void peal_redirect_clear(peal_redirect *redirect)
{
    DIR *list = opendir(redirect->folder);

    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list))
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            unlinkat(dirfd(list), entry->d_name, 0);
    if (list)
        closedir(list);
    for (int i = 0; i < redirect->count; i++)
        forget(&redirect->file[i]);
    redirect->count = 0;
}

void peal_redirect_destroy(peal_redirect *redirect)
{
    if (!redirect)
        return;
    peal_redirect_clear(redirect);
    rmdir(redirect->folder);
    free(redirect->file);
    free(redirect->folder);
    free(redirect);
}

void peal_redirect_path(const peal_redirect *redirect, const char *path, char place[PATH_MAX])
{
    unsigned char digest[PEAL_SHA256_BYTES];
    char text[PEAL_SHA256_TEXT];
    peal_sha256 hash;

    peal_sha256_init(&hash);
    peal_sha256_add(&hash, path, strlen(path));
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, text);
    snprintf(place, PATH_MAX, "%s/%s", redirect->folder, text);
}

/* What is there already is in the table; what is not yet may be added more than once. */
int peal_redirect_add(peal_redirect *redirect, const char *path, const char *name, int statement)
{
    char place[PATH_MAX];

    peal_redirect_path(redirect, path, place);
    if (access(place, F_OK) == 0)
        return 0;
    if (redirect->count == redirect->capacity) {
        int capacity = 2 * redirect->capacity + 16;
        peal_redirected *more = realloc(redirect->file, (size_t)capacity * sizeof(*more));
        if (!more)
            return ENOMEM;
        redirect->file = more;
        redirect->capacity = capacity;
    }
    peal_redirected file = {strdup(path), strdup(name), statement};
    if (!file.path || !file.name) {
        forget(&file);
        return ENOMEM;
    }
    redirect->file[redirect->count++] = file;
    return 0;
}

static int by_name(const void *left, const void *right)
{
    const peal_redirected *a = left, *b = right;
    int order = strcmp(a->name, b->name);
    return order ? order : strcmp(a->path, b->path);
}

const peal_redirected *peal_redirect_list(peal_redirect *redirect, int *count)
{
    int kept = 0;

    if (redirect->count > 0)
        qsort(redirect->file, (size_t)redirect->count, sizeof(*redirect->file), by_name);
    for (int i = 0; i < redirect->count; i++) {
        bool again = kept > 0 && by_name(&redirect->file[kept - 1], &redirect->file[i]) == 0;
        if (again)
            forget(&redirect->file[i]);
        else
            redirect->file[kept++] = redirect->file[i];
    }
    *count = redirect->count = kept;
    return redirect->file;
}
