/* A folder of its own for what a repeated run saves, so that the files of the first run stay. A
 * file there is called by a hash: the path of the first run's may be longer than a name. */
#ifndef PEAL_BASE_REDIRECT_H
#define PEAL_BASE_REDIRECT_H

#include <limits.h>

typedef struct peal_redirect peal_redirect;

/* A file that was saved. */
typedef struct peal_redirected {
    char *path; /* of the first run's, links resolved */
    char *name; /* as the spec writes it */
    int statement;
} peal_redirected;

/* In TMPDIR, else /tmp. NULL: errno says why. */
peal_redirect *peal_redirect_create(void);
/* Removes it with all that is in it. NULL is fine. */
void peal_redirect_destroy(peal_redirect *redirect);
/* Empties it. */
void peal_redirect_clear(peal_redirect *redirect);
/* Where `path` is saved. */
void peal_redirect_path(const peal_redirect *redirect, const char *path, char place[PATH_MAX]);
/* A statement is about to save something there. 0 or an errno. */
int peal_redirect_add(peal_redirect *redirect, const char *path, const char *name, int statement);
/* What was, by name, each once. */
const peal_redirected *peal_redirect_list(peal_redirect *redirect, int *count);

#endif
