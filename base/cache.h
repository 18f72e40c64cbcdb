/* The cache of compiled kernels: one file an entry, named by the hash of all that it was made from,
 * with a hash of its name and contents at its end. */
#ifndef PEAL_BASE_CACHE_H
#define PEAL_BASE_CACHE_H

#include "base/arena.h"
#include "base/diagnostic.h"

#include <stdatomic.h>

/* The folder of the cache, made if need be, or NULL (reported as a warning,
 * PEAL_E_KERNELS_NOT_CACHED): then nothing is kept. given NULL: $PEAL_CACHE, else by XDG rules. */
const char *peal_cache_open(const char *given, peal_arena *arena, peal_diagnostics *diagnostics);
/* Whether the entry is there and has the contents that were stored. */
bool peal_cache_check(const char *path);
/* What was stored, without the trailer, malloc'ed; NULL: not there, or not what was stored. */
char *peal_cache_load(const char *path, size_t *bytes);
/* Keeps these bytes under the name path: whole or not at all, whoever else does the same. False
 * after a warning (PEAL_E_KERNELS_NOT_CACHED): they could not be kept. */
bool peal_cache_keep(const void *data, size_t bytes, const char *path,
                     peal_diagnostics *diagnostics);
/* Waits while another process or thread makes this entry, so that few compile what many need: look
 * for the entry again, and release the claim once it is kept. -1: nobody can tell, or the other one
 * takes more than the deadline (0, or longer: 20 s) or is stopped, and the entry may be made all
 * the same; or the abort word (may be NULL) is set, and nobody needs it any more. */
int peal_cache_claim(const char *path, int64_t deadline_ns, const _Atomic int *abort_word);
void peal_cache_release(int claim);
/* The whole file, with a NUL behind; malloc'ed. NULL: it cannot be read; errno says why, 0: it is
 * not a file. */
char *peal_file_read(const char *path, size_t *bytes);
/* The same of a file that is open; it is closed. */
char *peal_descriptor_read(int descriptor, size_t *bytes);
/* Whether an errno of a file says nothing of the file: memory, descriptors or room are missing, or
 * the disk fails. */
bool peal_is_lack_of_means(int error);

#endif
