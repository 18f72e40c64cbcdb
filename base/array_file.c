/* `load` and `save`: each rank reads and writes its own points of a global .npy array.
 *
 * A rank writes to a new file, which gets its name when all ranks have (base/saves.h). All write
 * the same header, so their order does not matter. */
#define _GNU_SOURCE
#include "base/array_file.h"

#include "base/box.h"
#include "base/npy.h"
#include "base/places.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_job {
    const peal_array_file *request;
    const peal_schedule_task *task;
    const peal_schedule_array *array;
    unsigned char *first; /* address of the first stored point */
    const char *name;     /* as the spec writes it */
    const char *path;
    char when[40];            /* " in step 40", or nothing */
    char elsewhere[PATH_MAX]; /* the path of a file that is redirected */
    peal_arena *arena;        /* of this call */
    int fd;
    int64_t data;     /* offset of the data */
    int64_t size;     /* of the file that is saved */
    const char *root; /* folder that it must not leave; NULL: anywhere */
    peal_target target;
} file_job;

static int axis_count(const file_job *job)
{
    int count = job->array->layout.part.axis_count;
    return count > 0 ? count : 1;
}

static peal_status failed(const file_job *job, const char *what, int error)
{
    return peal_report(job->request->diagnostics, PEAL_E_LOAD_SAVE_FAILED, job->task->source,
                       "check the folder, its permissions and the room on the disk",
                       "cannot %s `%s`%s: %s", what, job->path, job->when,
                       error ? strerror(error) : "it ended");
}

static peal_status no_memory(const file_job *job)
{
    return peal_report(job->request->diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, job->task->source,
                       NULL, "no memory for the name of a file");
}

/* Why there is no such file, or none may be. */
static peal_status refused(const file_job *job, const char *what, int error)
{
    const peal_graph_data *graph = job->request->schedule->graph;
    if (error == EXDEV)
        return peal_report(job->request->diagnostics, PEAL_E_DATA_FILE_OUTSIDE, job->task->source,
                           "choose a name in the folder, or allow it with --allow-outside",
                           "`%s`%s is outside the spec's folder `%s`", job->path, job->when,
                           graph->folder && *graph->folder ? graph->folder : ".");
    if (error == EINVAL)
        return peal_report(job->request->diagnostics, PEAL_E_NOT_A_FILE, job->task->source,
                           "name a file, new or old",
                           "cannot %s `%s`%s: it is neither a file nor a character device", what,
                           job->path, job->when);
    return failed(job, what, error);
}

const char *peal_array_file_root(const peal_graph_data *graph, bool allow_outside)
{
    if (allow_outside || !graph->file)
        return NULL;
    return graph->folder && *graph->folder ? graph->folder : ".";
}

static peal_status open_job(file_job *job, const peal_array_file *request)
{
    const peal_schedule *schedule = request->schedule;
    const peal_schedule_task *task = request->task;
    const peal_graph_data *graph = schedule->graph;

    *job = (file_job){.request = request,
                      .task = task,
                      .array = &schedule->array[task->array],
                      .first = request->first,
                      .arena = peal_arena_create(),
                      .root = peal_array_file_root(graph, request->allow_outside),
                      .target = {.folder = -1},
                      .fd = -1};
    if (request->step != PEAL_NO_STEP)
        snprintf(job->when, sizeof(job->when), " in step %lld", (long long)request->step);
    if (!job->arena)
        return no_memory(job);
    PEAL_ARENA_GUARD(job->arena, return no_memory(job));
    int depth = schedule->loop_depth > 0 ? schedule->loop_depth : 1;
    const char **counter = PEAL_ARENA_ARRAY(job->arena, const char *, depth + 1);
    for (int i = 0; i < depth; i++)
        counter[i] = i == 0 ? "step" : "";
    for (int i = 0; i <= schedule->loop_count; i++) {
        const peal_schedule_loop *loop =
            i == schedule->loop_count ? &schedule->outer : &schedule->loop[i];
        if (loop->counter && loop->depth < depth)
            counter[loop->depth] = loop->counter;
    }
    peal_status status = peal_template_expand(task->file, &request->scope, counter, task->source,
                                              job->arena, &job->name, request->diagnostics);
    job->path = job->name;
    if (!status && *job->name != '/' && graph->folder && strcmp(graph->folder, ".") != 0)
        job->path = peal_arena_print(job->arena, "%s/%s", graph->folder, job->name);
    return status;
}

static peal_status close_job(file_job *job, peal_status status)
{
    if (job->fd >= 0 && close(job->fd) != 0 && !status)
        status = failed(job, "finish", errno);
    peal_target_close(&job->target);
    peal_arena_destroy(job->arena);
    return status;
}

static peal_status transfer(const file_job *job, bool save, unsigned char *at, int64_t bytes,
                            int64_t offset)
{
    int error = save ? peal_write_all(job->fd, at, (size_t)bytes, offset)
                     : peal_read_all(job->fd, at, (size_t)bytes, offset);
    return error ? failed(job, save ? "write" : "read", error < 0 ? 0 : error) : PEAL_STATUS_OK;
}

/* My own points that the file has. */
static peal_status transfer_box(const file_job *job, bool save)
{
    const peal_schedule_task *task = job->task;
    const peal_layout *layout = &job->array->layout;
    int64_t bytes = (int64_t)peal_type_bytes(job->array->type);
    peal_box file = {.axis_count = axis_count(job)};
    int64_t step[PEAL_AXES], points = 1, p[PEAL_AXES];
    peal_status status = PEAL_STATUS_OK;

    for (int k = 0; k < PEAL_AXES; k++) {
        int64_t size = task->file_shape[k] > 0 ? task->file_shape[k] : 1;
        file.lo[k] = task->file_lo[k];
        file.hi[k] = task->file_lo[k] + size;
        step[k] = points;
        points *= size;
    }
    peal_box mine = peal_box_intersect(&layout->own, &file);
    if (peal_box_is_empty(&mine))
        return PEAL_STATUS_OK;
    p[0] = mine.lo[0];
    for (p[3] = mine.lo[3]; p[3] < mine.hi[3]; p[3]++)
        for (p[2] = mine.lo[2]; p[2] < mine.hi[2]; p[2]++)
            for (p[1] = mine.lo[1]; p[1] < mine.hi[1] && !status; p[1]++) {
                int64_t in_file = 0, in_memory = 0;
                for (int k = 0; k < PEAL_AXES; k++) {
                    in_file += (p[k] - file.lo[k]) * step[k];
                    in_memory += (p[k] - layout->stored.lo[k]) * layout->stride[k];
                }
                status = transfer(job, save, job->first + in_memory * bytes,
                                  (mine.hi[0] - mine.lo[0]) * bytes, job->data + in_file * bytes);
            }
    return status;
}

/* A file that this job is saving is read from where it is being written: my points are there. What
 * it will save is read as it was before. */
static int open_to_read(file_job *job)
{
    char path[PATH_MAX + NAME_MAX + 2];
    int error = peal_target_find(job->root, job->path, &job->target);
    if (error)
        return error;
    peal_target_path(&job->target, path, sizeof(path));
    if (job->request->saves)
        error = peal_saves_open(job->request->saves, job->request->schedule->rank, path, &job->fd);
    if (!error && job->fd < 0)
        job->fd = openat(job->target.folder, job->target.name,
                         O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    return error ? error : job->fd < 0 ? errno : 0;
}

peal_status peal_array_file_load(const peal_array_file *request)
{
    const peal_schedule_task *task = request->task;
    file_job job;
    peal_npy npy;

    peal_status status = open_job(&job, request);
    int error = status ? 0 : open_to_read(&job);
    if (error)
        status = refused(&job, "open", error);
    if (!status)
        status = peal_npy_read_header(job.fd, job.path, task->source, &npy, request->diagnostics);
    if (!status)
        status = peal_npy_check(&npy, job.path, task->source, job.array->type, axis_count(&job),
                                task->file_shape, request->diagnostics);
    if (!status) {
        job.data = npy.data_offset;
        status = transfer_box(&job, false);
    }
    return close_job(&job, status);
}

/* The header, and my part. */
static peal_status write_part(file_job *job)
{
    const peal_schedule_task *task = job->task;
    char header[PEAL_NPY_HEADER_BYTES];
    int64_t bytes = (int64_t)peal_type_bytes(job->array->type);

    job->data =
        (int64_t)peal_npy_make_header(job->array->type, axis_count(job), task->file_shape, header);
    for (int k = 0; k < axis_count(job); k++)
        bytes *= task->file_shape[k];
    peal_status status = transfer(job, true, (unsigned char *)header, job->data, 0);
    job->size = job->data + bytes;
    return status ? status : transfer_box(job, true);
}

/* A name with {rank} is a file of this rank alone; so is a buffer's. */
static bool is_alone(const file_job *job)
{
    return job->request->schedule->graph->arrays[job->task->array].kind != PEAL_ARRAY_FIELD ||
           peal_file_is_of_rank(job->task->file);
}

/* Who could not write its part says why. */
static peal_status canceled(const file_job *job)
{
    int cause = peal_saves_await_cause(job->request->saves);
    if (cause)
        return (peal_status)cause;
    return peal_report(job->request->diagnostics, PEAL_E_LOAD_SAVE_FAILED, job->task->source,
                       "see what the other processes say",
                       "`%s` is not saved%s: another rank could not write its part", job->path,
                       job->when);
}

static peal_status save_new(file_job *job)
{
    peal_saves *saves = job->request->saves;
    char name[PEAL_NEW_FILE_NAME];
    int statement = job->task->statement, rank = job->request->schedule->rank;
    bool alone = is_alone(job);

    if (!alone && job->request->has_thread)
        peal_saves_pace(saves, statement, rank);
    peal_saves_clean(saves, &job->target);
    peal_saves_name(saves, statement, rank, alone, name);
    int error = peal_target_create(&job->target, name, &job->fd);
    if (error == EACCES || error == EPERM || error == EROFS)
        return peal_report(job->request->diagnostics, PEAL_E_CANNOT_REPLACE_FILE, job->task->source,
                           "let the folder be written to, or save to another one",
                           "cannot make a new file beside `%s`%s: %s", job->path, job->when,
                           strerror(error));
    if (error)
        return failed(job, "create", error);
    peal_status status = write_part(job);
    int file = job->fd;
    job->fd = -1;
    if (status) {
        peal_saves_fail(saves, &job->target, name, file);
        return status;
    }
    error = peal_saves_arrive(saves, statement, rank, alone, &job->target, name, file, job->size);
    if (error == ECANCELED)
        return canceled(job);
    return error ? failed(job, "keep", error) : PEAL_STATUS_OK;
}

static peal_status save_device(file_job *job)
{
    job->fd = openat(job->target.folder, job->target.name, O_RDWR | O_CLOEXEC | O_NOFOLLOW);
    return job->fd < 0 ? failed(job, "open", errno) : write_part(job);
}

/* Where the file is saved in a repeated run. Devices have nothing to compare later. */
static int open_elsewhere(file_job *job, bool *skipped)
{
    char path[PATH_MAX + NAME_MAX + 2];
    peal_redirect *redirect = peal_saves_redirect(job->request->saves);
    struct stat info;
    int error = peal_target_find(job->root, job->path, &job->target);
    if (error)
        return error;
    peal_target_path(&job->target, path, sizeof(path));
    *skipped = fstatat(job->target.folder, job->target.name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
               !S_ISREG(info.st_mode);
    peal_target_close(&job->target);
    if (*skipped)
        return 0;
    if (job->request->schedule->rank == 0 || is_alone(job)) /* all others save it with rank 0 */
        error = peal_redirect_add(redirect, path, job->name, job->task->statement);
    peal_redirect_path(redirect, path, job->elsewhere);
    job->path = job->elsewhere;
    return error ? error : peal_target_open(NULL, job->path, &job->target);
}

peal_status peal_array_file_save(const peal_array_file *request)
{
    bool skipped = false;
    peal_size_guard guard;
    file_job job;

    peal_status status = open_job(&job, request);
    if (status)
        return close_job(&job, status);
    int error = peal_saves_redirect(request->saves)
                    ? open_elsewhere(&job, &skipped)
                    : peal_target_open(job.root, job.path, &job.target);
    if (error)
        return close_job(&job, refused(&job, "create", error));
    if (skipped)
        return close_job(&job, PEAL_STATUS_OK);
    peal_size_guard_begin(&guard);
    status = job.target.is_device ? save_device(&job) : save_new(&job);
    peal_size_guard_end(&guard);
    return close_job(&job, status);
}
