/* Whether a file is only its user's to change: what is run must not be somebody else's. */
#ifndef PEAL_BASE_TRUST_H
#define PEAL_BASE_TRUST_H

#include <stdbool.h>
#include <stddef.h>

struct stat;

/* Why a file should not be run, in words; NULL: it may. real: where it lies, all links followed;
 * info: what it is, of the file that is open where it is read later. It belongs to another user
 * than this one, root, or who called sudo; or everybody can write it, or a folder on its path (but
 * for those like /tmp, where nobody can rename what is another's). */
const char *peal_distrust_file(const char *real, const struct stat *info, char *words,
                               size_t bytes);
/* The same of what path leads to now; what cannot be looked at may not be run. */
const char *peal_distrust(const char *path, char *words, size_t bytes);
/* Whether a file, all links followed, lies in folder. */
bool peal_path_is_inside(const char *folder, const char *real);

#endif
