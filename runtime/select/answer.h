/* What `peal tune` has found, kept in the user's cache folder: a small YAML file an answer, named
 * by the hash of all that the answer depends on. A file that is damaged, or about something else,
 * is as good as none. */
#ifndef PEAL_RUNTIME_SELECT_ANSWER_H
#define PEAL_RUNTIME_SELECT_ANSWER_H

#include "base/arena.h"
#include "base/sha256.h"
#include "runtime/plan/plan.h"
#include "scheduler/modes/candidates.h"

typedef struct peal_answer {
    peal_mode mode;
    int threads;                        /* of a process; 0: as many as there are */
    char lowering[PEAL_LOWERING_BYTES]; /* words of `--lower` */
    double step_s;                      /* the median */
    int rounds;
    char date[24];    /* "2026-11-22T07:40:12Z" */
    char name[64];    /* of the graph, for readers */
    char machine[96]; /* for readers */
} peal_answer;

/* The hash of what an answer to "how does this plan run fastest" depends on: the graph with its
 * params, its kernels and what they include, ranks and processes, threads, paths between devices,
 * the processor or the GPU and its driver, peal's version. Once the processes have been compared.
 * False: an include is computed, or a kernel file cannot be read, so that nobody can tell. */
bool peal_answer_key(const peal_plan *plan, char key[PEAL_SHA256_TEXT]);

/* The file of a key, in the arena; NULL: there is no folder (reported as a warning,
 * PEAL_E_KERNELS_NOT_CACHED). given: as in peal_plan_options. */
const char *peal_answer_path(const char *given, const char *key, peal_arena *arena,
                             peal_diagnostics *diagnostics);

/* False: there is no file, and reason is "", or it is no answer to the key, and reason says so. */
bool peal_answer_load(const char *path, const char *key, peal_answer *out, char *reason,
                      size_t reason_bytes);
/* Whole or not at all. comment: lines that begin with #, or "". */
bool peal_answer_keep(const char *path, const char *key, const peal_answer *answer,
                      const char *comment);
/* Removes one; all of the folder that `given` means, and how many there were. */
bool peal_answer_forget(const char *path);
int peal_answer_forget_all(const char *given, peal_diagnostics *diagnostics);

#endif
