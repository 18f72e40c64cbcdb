/* Whether a file is only its user's to change: what is run must not be somebody else's. */
#ifndef PEAL_BASE_TRUST_H
#define PEAL_BASE_TRUST_H

#include <stdbool.h>
#include <stddef.h>

/* Why a file should not be run, in words; NULL: it may. It belongs to another user than this one,
 * root, or who called sudo; or everybody can write it, or a folder on its path (but for those like
 * /tmp, where nobody can rename what is another's). What cannot be looked at is not judged. */
const char *peal_distrust(const char *path, char *words, size_t bytes);
/* Whether path lies in folder, links followed. What does not exist does. */
bool peal_path_is_inside(const char *folder, const char *path);

#endif
