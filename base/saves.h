/* The files that the ranks of a job save together: each writes its part of a new file, and whoever
 * has written the last part moves it to its name.
 *
 * The ranks count what they have saved on a board: in memory that the processes of a host share;
 * those of other hosts ask the process that has it. A rank saves in the order of the program, so
 * the new files of a name get whole, and are moved, in that order too. */
#ifndef PEAL_BASE_SAVES_H
#define PEAL_BASE_SAVES_H

#include "base/new_file.h"
#include "base/originals.h"
#include "base/redirect.h"
#include "base/saves_board.h"

#include <stdatomic.h>

typedef struct peal_saves peal_saves;

/* How a process gets at the board of its job; it must stay until destroy. */
typedef struct peal_saves_access {
    void *board; /* NULL: it asks */
    bool (*ask)(void *user, const peal_saves_question *question,
                peal_saves_answer *answer); /* any thread; false: the job has failed */
    void *user;
    /* Processes of several hosts write to the files: a part is on the disk before it is told, and
     * those of others are looked for there. */
    bool over_hosts;
} peal_saves_access;

/* This process's side. NULL: all ranks are in this process. abort_word: non-zero once the job has
 * failed; may be NULL. NULL: no memory. */
peal_saves *peal_saves_create(const peal_graph_data *graph, int ranks,
                              const peal_saves_access *access, const _Atomic int *abort_word);
/* What has not become whole is left to the processes whose ranks are still to come; it is removed
 * if the job has failed. NULL is fine. */
void peal_saves_destroy(peal_saves *saves);

/* Whether the board can be asked: before ranks rely on it. */
bool peal_saves_reach(peal_saves *saves);
/* Waits a while for ranks that are many files behind, lest new files fill the disk. For a rank with
 * a thread of its own. */
void peal_saves_pace(peal_saves *saves, int statement, int rank);
/* The name of the new file that `rank` writes next for statement `statement`. alone: no other rank
 * writes to it. */
void peal_saves_name(peal_saves *saves, int statement, int rank, bool alone,
                     char name[PEAL_NEW_FILE_NAME]);
/* The rank has written its part of the `size` bytes: moves the file if it was the last one, else
 * keeps it open until it is moved. Takes the descriptor. 0 or an errno; ESTALE: what others have
 * written was removed; ECANCELED: another rank's part could not be written, or its process ends. */
int peal_saves_arrive(peal_saves *saves, int statement, int rank, bool alone,
                      const peal_target *target, const char *name, int descriptor, int64_t size);
/* The rank could not write its part: the file will never be whole, and is removed. Takes the
 * descriptor. */
void peal_saves_fail(peal_saves *saves, const peal_target *target, const char *name,
                     int descriptor);
/* After ECANCELED: the abort word, set by whoever knows the cause, which is waited for; 0: nobody
 * sets it within a second. */
int peal_saves_await_cause(const peal_saves *saves);
/* What the rank's load of this path (links resolved) reads: the file with its own part, where
 * others are not ready yet; else the original; -1: what is there under the name is it. 0 or an
 * errno. */
int peal_saves_open(peal_saves *saves, int rank, const char *path, int *descriptor);
/* Before the first save. originals: loads read them until they have been saved; NULL: there are
 * none. redirect: all files are saved there, and loaded from there once they have been; NULL: they
 * are saved under their names. Both must stay until destroy. */
void peal_saves_divert(peal_saves *saves, const peal_originals *originals, peal_redirect *redirect);
/* NULL: files are saved under their names. */
peal_redirect *peal_saves_redirect(const peal_saves *saves);
/* Removes what killed processes have left in the target's folder, once a folder. */
void peal_saves_clean(peal_saves *saves, const peal_target *target);

#endif
