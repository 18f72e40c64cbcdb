/* Who has written a part of a file, and who moves it. No locks between processes: counters, on the
 * board.
 *
 * Behind its data a new file has a byte for each rank that has written to it: the last one to come
 * sees whether it is this very file that all have written to. (Where a process was killed, another
 * job may take a file for one that was left, and remove it.) */
#define _GNU_SOURCE
#include "base/saves.h"
#include "base/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

enum { MOST_AHEAD = 8, MOST_OPEN = 64, MOST_FOLDERS = 16, PAUSE_NS = 2000000 };

/* A file that a rank here has written to and that has not been moved yet, as far as is known. The
 * descriptor's lock says that it is in use. */
typedef struct pending_file {
    int statement;
    uint64_t count;
    int descriptor; /* -1: there were too many */
    char *path, *target;
} pending_file;

struct peal_saves {
    peal_saves_access access;
    int64_t bytes; /* of the board */
    void *own;     /* a board that is freed with us */
    const _Atomic int *abort_word;
    const peal_originals *originals;
    peal_redirect *redirect;
    int ranks;
    int *index;              /* by statement: its number among the saves; -1: none */
    _Atomic uint64_t *alone; /* by statement: files that one rank writes alone */
    _Atomic uint64_t *moved; /* by save: how many have been, as far as is known */
    _Atomic uint64_t
        *done;             /* by save and rank: the parts that ranks of this process have written */
    _Atomic uint64_t job;  /* 0: not asked yet */
    pthread_mutex_t mutex; /* of what follows: ranks here are threads */
    pending_file *pending;
    size_t pending_count, pending_room;
    int open_count;
    char *folder[MOST_FOLDERS]; /* that were cleaned */
    int folder_count;
};

/* What cannot be asked any more has failed. */
static peal_saves_answer ask(const peal_saves *saves, peal_saves_what what, int save, int rank,
                             uint64_t value)
{
    const peal_saves_question question = {.what = (uint32_t)what,
                                          .save = save,
                                          .rank = rank,
                                          .value = value};
    const peal_saves_access *access = &saves->access;
    peal_saves_answer answer;
    if (access->board)
        return peal_saves_tell(access->board, saves->bytes, saves->ranks, &question);
    if (!access->ask(access->user, &question, &answer))
        answer = (peal_saves_answer){.failed = 1};
    return answer;
}

peal_saves *peal_saves_create(const peal_graph_data *graph, int ranks,
                              const peal_saves_access *access, const _Atomic int *abort_word)
{
    size_t statements = (size_t)graph->statement_count + 1;
    size_t count = (size_t)peal_saves_count(graph, NULL) + 1;
    peal_saves *saves = calloc(1, sizeof(*saves));
    if (!saves)
        return NULL;
    saves->ranks = ranks;
    saves->bytes = peal_saves_bytes(graph, ranks);
    saves->abort_word = abort_word;
    saves->index = malloc(statements * sizeof(*saves->index));
    saves->alone = calloc(statements, sizeof(*saves->alone));
    saves->moved = calloc(count, sizeof(*saves->moved));
    saves->done = calloc(count * (size_t)ranks, sizeof(*saves->done));
    if (access)
        saves->access = *access;
    else
        saves->access.board = saves->own = calloc(1, (size_t)saves->bytes);
    pthread_mutex_init(&saves->mutex, NULL);
    if (!saves->index || !saves->alone || !saves->moved || !saves->done ||
        (!access && !saves->own)) {
        peal_saves_destroy(saves);
        return NULL;
    }
    for (size_t i = 0; i < statements; i++)
        saves->index[i] = -1;
    peal_saves_count(graph, saves->index);
    return saves;
}

/* How many parts of a statement's files the rank has written. */
static _Atomic uint64_t *done_by(const peal_saves *saves, int statement, int rank)
{
    return &saves->done[(size_t)saves->index[statement] * (size_t)saves->ranks + (size_t)rank];
}

/* Whether so many of a statement's files have been moved. */
static bool is_moved(const peal_saves *saves, int statement, uint64_t count)
{
    int save = saves->index[statement];
    if (atomic_load(&saves->moved[save]) >= count)
        return true;
    uint64_t moved = ask(saves, PEAL_SAVES_LOOK, save, 0, 0).value;
    atomic_store(&saves->moved[save], moved);
    return moved >= count;
}

static bool has_failed(const peal_saves *saves)
{
    return ask(saves, PEAL_SAVES_LOOK, 0, 0, 0).failed;
}

static bool has_part(const peal_saves *saves, int rank, const pending_file *file)
{
    return atomic_load(done_by(saves, file->statement, rank)) >= file->count;
}

static void close_file(peal_saves *saves, pending_file *file)
{
    if (file->descriptor < 0)
        return;
    close(file->descriptor);
    file->descriptor = -1;
    saves->open_count--;
}

/* Forgets what has been moved. */
static void prune(peal_saves *saves)
{
    size_t kept = 0;
    for (size_t i = 0; i < saves->pending_count; i++) {
        pending_file *file = &saves->pending[i];
        if (!is_moved(saves, file->statement, file->count)) {
            saves->pending[kept++] = *file;
            continue;
        }
        close_file(saves, file);
        free(file->path);
        free(file->target);
    }
    saves->pending_count = kept;
}

static bool is_aborted(const peal_saves *saves)
{
    return saves->abort_word && atomic_load(saves->abort_word);
}

/* Whether nobody will come any more who makes what is left here whole. */
static bool is_lost(const peal_saves *saves)
{
    return saves->own || is_aborted(saves) || has_failed(saves);
}

void peal_saves_destroy(peal_saves *saves)
{
    if (!saves)
        return;
    prune(saves);
    bool removes = saves->pending_count > 0 && is_lost(saves);
    /* Another rank may still be writing: it must not take what is left for the whole. */
    if (removes)
        ask(saves, PEAL_SAVES_FAILED, 0, 0, 0);
    for (size_t i = 0; i < saves->pending_count; i++) {
        if (removes)
            unlink(saves->pending[i].path);
        close_file(saves, &saves->pending[i]);
        free(saves->pending[i].path);
        free(saves->pending[i].target);
    }
    for (int i = 0; i < saves->folder_count; i++)
        free(saves->folder[i]);
    pthread_mutex_destroy(&saves->mutex);
    free(saves->pending);
    free(saves->own);
    free(saves->index);
    free((void *)saves->alone);
    free((void *)saves->moved);
    free((void *)saves->done);
    free(saves);
}

static uint64_t job_of(peal_saves *saves)
{
    uint64_t job = atomic_load(&saves->job), number = 0;
    if (job)
        return job;
    if (getrandom(&number, sizeof(number), GRND_NONBLOCK) != (ssize_t)sizeof(number))
        number = (uint64_t)getpid() << 32 ^ (uint64_t)(uintptr_t)saves;
    job = ask(saves, PEAL_SAVES_NAME, 0, 0, number | 1).value;
    atomic_store(&saves->job, job);
    return job;
}

bool peal_saves_reach(peal_saves *saves)
{
    return job_of(saves) != 0;
}

/* No longer than a second: what the others wait for may be behind this save, on this very thread.
 */
void peal_saves_pace(peal_saves *saves, int statement, int rank)
{
    const int64_t longest_ns = INT64_C(1000000000);
    uint64_t done = atomic_load(done_by(saves, statement, rank));
    int64_t until_ns = peal_clock_ns() + longest_ns;
    while (done >= MOST_AHEAD && !is_aborted(saves) && !has_failed(saves) &&
           peal_clock_ns() < until_ns) {
        if (is_moved(saves, statement, done - MOST_AHEAD + 1))
            return;
        peal_clock_sleep(PAUSE_NS);
    }
}

void peal_saves_name(peal_saves *saves, int statement, int rank, bool alone,
                     char name[PEAL_NEW_FILE_NAME])
{
    unsigned long long job = job_of(saves), count;
    if (alone) {
        count = atomic_fetch_add(&saves->alone[statement], 1);
        snprintf(name, PEAL_NEW_FILE_NAME, "%s%016llx-%d-r%d-%llu", PEAL_NEW_FILE_PREFIX, job,
                 statement, rank, count);
        return;
    }
    count = atomic_load(done_by(saves, statement, rank));
    snprintf(name, PEAL_NEW_FILE_NAME, "%s%016llx-%d-%llu", PEAL_NEW_FILE_PREFIX, job, statement,
             count);
}

static char *join(const peal_target *target, const char *name)
{
    char *path = NULL;
    bool is_root = !strcmp(target->folder_path, "/");
    return asprintf(&path, "%s/%s", is_root ? "" : target->folder_path, name) < 0 ? NULL : path;
}

static bool grow(peal_saves *saves)
{
    if (saves->pending_count < saves->pending_room)
        return true;
    size_t room = saves->pending_room * 2 + 16;
    pending_file *more = realloc(saves->pending, room * sizeof(*more));
    if (!more)
        return false;
    saves->pending = more;
    saves->pending_room = room;
    return true;
}

/* Until the file has been moved: the lock of one descriptor is enough. */
static int remember(peal_saves *saves, pending_file file)
{
    bool known = false, kept = false;
    pthread_mutex_lock(&saves->mutex);
    prune(saves);
    for (size_t i = 0; i < saves->pending_count && !known; i++)
        known =
            saves->pending[i].statement == file.statement && saves->pending[i].count == file.count;
    if (!known && file.path && file.target && grow(saves)) {
        for (size_t i = 0; i < saves->pending_count && saves->open_count >= MOST_OPEN; i++)
            close_file(saves, &saves->pending[i]);
        saves->pending[saves->pending_count++] = file;
        saves->open_count++;
        kept = true;
    }
    pthread_mutex_unlock(&saves->mutex);
    if (kept)
        return 0;
    close(file.descriptor);
    free(file.path);
    free(file.target);
    return known ? 0 : ENOMEM;
}

void peal_saves_fail(peal_saves *saves, const peal_target *target, const char *name, int descriptor)
{
    ask(saves, PEAL_SAVES_FAILED, 0, 0, 0);
    unlinkat(target->folder, name, 0);
    if (descriptor >= 0)
        close(descriptor);
}

static int wait_for_others(peal_saves *saves, const peal_target *target, const char *name,
                           pending_file file)
{
    int error = remember(saves, file);
    if (error)
        peal_saves_fail(saves, target, name, -1);
    return error;
}

/* Whether all ranks have left their byte. */
static int check_marks(const peal_saves *saves, int descriptor, int64_t size)
{
    char mark[256];
    int error = 0;
    for (int at = 0, count; at < saves->ranks && !error; at += count) {
        count = saves->ranks - at < (int)sizeof(mark) ? saves->ranks - at : (int)sizeof(mark);
        error = peal_read_all(descriptor, mark, (size_t)count, size + at);
        if (error < 0 || (!error && memchr(mark, 0, (size_t)count)))
            error = ESTALE;
    }
    return error;
}

/* Of what other hosts have written a descriptor may see nothing that was opened before. */
static int check_marks_anew(const peal_saves *saves, const peal_target *target, const char *name,
                            int64_t size)
{
    int file = openat(target->folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (file < 0)
        return errno == ENOENT ? ESTALE : errno;
    /* A network's file system may still have the page of our own mark, as it was then. */
    posix_fadvise(file, 0, 0, POSIX_FADV_DONTNEED);
    int error = check_marks(saves, file, size);
    close(file);
    return error;
}

static int move_file(peal_saves *saves, const peal_target *target, const char *name, int descriptor,
                     int64_t size)
{
    int error = 0;
    while (!error && ftruncate(descriptor, size) != 0)
        error = errno == EINTR ? 0 : errno;
    if (!error)
        error = peal_target_commit(target, name, descriptor);
    if (error)
        peal_saves_fail(saves, target, name, descriptor);
    else
        close(descriptor);
    return error;
}

int peal_saves_arrive(peal_saves *saves, int statement, int rank, bool alone,
                      const peal_target *target, const char *name, int descriptor, int64_t size)
{
    if (alone)
        return move_file(saves, target, name, descriptor, size);
    int save = saves->index[statement];
    int error = peal_write_all(descriptor, "\1", 1, size + rank);
    if (!error && saves->access.over_hosts)
        error = peal_sync(descriptor);
    if (error) {
        peal_saves_fail(saves, target, name, descriptor);
        return error;
    }
    uint64_t count = atomic_fetch_add(done_by(saves, statement, rank), 1) + 1;
    const peal_saves_answer answer = ask(saves, PEAL_SAVES_PART, save, rank, count);
    if (answer.failed) {
        peal_saves_fail(saves, target, name, descriptor);
        return ECANCELED;
    }
    if (!answer.is_last)
        return wait_for_others(saves, target, name,
                               (pending_file){.statement = statement,
                                              .count = count,
                                              .descriptor = descriptor,
                                              .path = join(target, name),
                                              .target = join(target, target->name)});
    error = saves->access.over_hosts ? check_marks_anew(saves, target, name, size)
                                     : check_marks(saves, descriptor, size);
    if (error)
        peal_saves_fail(saves, target, name, descriptor);
    else
        error = move_file(saves, target, name, descriptor, size);
    if (!error)
        ask(saves, PEAL_SAVES_MOVED, save, rank, count);
    return error;
}

int peal_saves_await_cause(const peal_saves *saves)
{
    for (int i = 0; i < 500 && saves->abort_word && !is_aborted(saves); i++)
        peal_clock_sleep(PAUSE_NS);
    return saves->abort_word ? atomic_load(saves->abort_word) : 0;
}

void peal_saves_divert(peal_saves *saves, const peal_originals *originals, peal_redirect *redirect)
{
    saves->originals = originals;
    saves->redirect = redirect;
}

peal_redirect *peal_saves_redirect(const peal_saves *saves)
{
    return saves ? saves->redirect : NULL;
}

/* Not one that another rank here has begun alone: what this rank has saved before is in its place.
 */
static int open_pending(peal_saves *saves, int rank, const char *path)
{
    int descriptor = -1;
    pthread_mutex_lock(&saves->mutex);
    prune(saves);
    for (size_t i = saves->pending_count; i-- > 0 && descriptor < 0;)
        if (has_part(saves, rank, &saves->pending[i]) && !strcmp(saves->pending[i].target, path))
            descriptor = open(saves->pending[i].path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    pthread_mutex_unlock(&saves->mutex);
    return descriptor;
}

/* What has been saved in the place of the path's file. */
static int open_redirected(peal_saves *saves, int rank, const char *path, int *descriptor)
{
    char place[PATH_MAX], resolved[PATH_MAX + NAME_MAX + 2];
    peal_target target;
    peal_redirect_path(saves->redirect, path, place);
    int error = peal_target_find(NULL, place, &target);
    if (error)
        return error;
    peal_target_path(&target, resolved, sizeof(resolved));
    *descriptor = open_pending(saves, rank, resolved);
    if (*descriptor < 0)
        *descriptor = openat(target.folder, target.name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    error = *descriptor < 0 && errno != ENOENT ? errno : 0;
    peal_target_close(&target);
    return error;
}

int peal_saves_open(peal_saves *saves, int rank, const char *path, int *descriptor)
{
    int error = 0;
    *descriptor = -1;
    if (saves->redirect)
        error = open_redirected(saves, rank, path, descriptor);
    else
        *descriptor = open_pending(saves, rank, path);
    if (error || *descriptor >= 0)
        return error;
    return peal_originals_open(saves->originals, path, saves->redirect != NULL, descriptor);
}

void peal_saves_clean(peal_saves *saves, const peal_target *target)
{
    char ours[PEAL_NEW_FILE_NAME];
    bool known = false;
    pthread_mutex_lock(&saves->mutex);
    for (int i = 0; i < saves->folder_count && !known; i++)
        known = !strcmp(saves->folder[i], target->folder_path);
    if (!known && saves->folder_count < MOST_FOLDERS) {
        char *copy = strdup(target->folder_path);
        if (copy)
            saves->folder[saves->folder_count++] = copy;
    }
    pthread_mutex_unlock(&saves->mutex);
    if (known)
        return;
    snprintf(ours, sizeof(ours), "%s%016llx-", PEAL_NEW_FILE_PREFIX,
             (unsigned long long)job_of(saves));
    peal_target_clean(target, ours);
}
