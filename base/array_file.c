/* `load` and `save`: each rank reads and writes its own points of a global .npy array.
 *
 * Every rank may create the file: all write the same header and set the same size, none truncates,
 * so their order does not matter. */
#define _GNU_SOURCE
#include "base/array_file.h"

#include "base/box.h"
#include "base/npy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

typedef struct file_job {
    const peal_array_file *request;
    const peal_schedule_task *task;
    const peal_schedule_array *array;
    unsigned char *first; /* address of the first stored point */
    const char *path;
    peal_arena *arena; /* of this call */
    int fd;
    int64_t data; /* offset of the data */
} file_job;

static int axis_count(const file_job *job)
{
    int count = job->array->layout.part.axis_count;
    return count > 0 ? count : 1;
}

static peal_status failed(const file_job *job, const char *what, int error)
{
    return peal_report(job->request->diagnostics, PEAL_E210, job->task->source,
                       "check the folder, its permissions and the room on the disk",
                       "cannot %s `%s`: %s", what, job->path, error ? strerror(error) : "it ended");
}

static peal_status no_memory(const file_job *job)
{
    return peal_report(job->request->diagnostics, PEAL_E146, job->task->source, NULL,
                       "no memory for the name of a file");
}

static peal_status open_job(file_job *job, const peal_array_file *request)
{
    const peal_schedule *schedule = request->schedule;
    const peal_schedule_task *task = request->task;
    const peal_graph_data *graph = schedule->graph;
    const char *name = NULL;

    *job = (file_job){.request = request,
                      .task = task,
                      .array = &schedule->array[task->array],
                      .first = request->first,
                      .arena = peal_arena_create(),
                      .fd = -1};
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
                                              job->arena, &name, request->diagnostics);
    job->path = name;
    if (!status && *name != '/' && graph->folder && strcmp(graph->folder, ".") != 0)
        job->path = peal_arena_print(job->arena, "%s/%s", graph->folder, name);
    return status;
}

static peal_status close_job(file_job *job, peal_status status)
{
    if (job->fd >= 0 && close(job->fd) != 0 && !status)
        status = failed(job, "finish", errno);
    peal_arena_destroy(job->arena);
    return status;
}

/* One run along x: pread or pwrite until all is done. */
static peal_status transfer(const file_job *job, bool save, unsigned char *at, int64_t bytes,
                            int64_t offset)
{
    while (bytes > 0) {
        ssize_t done = save ? pwrite(job->fd, at, (size_t)bytes, offset)
                            : pread(job->fd, at, (size_t)bytes, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return failed(job, save ? "write" : "read", done < 0 ? errno : 0);
        at += done;
        bytes -= done;
        offset += done;
    }
    return PEAL_STATUS_OK;
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

peal_status peal_array_file_load(const peal_array_file *request)
{
    const peal_schedule_task *task = request->task;
    file_job job;
    peal_npy npy;

    peal_status status = open_job(&job, request);
    if (status)
        return close_job(&job, status);
    job.fd = open(job.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not hold us */
    if (job.fd < 0)
        return close_job(&job, failed(&job, "open", errno));
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

peal_status peal_array_file_save(const peal_array_file *request)
{
    const peal_schedule_task *task = request->task;
    char header[PEAL_NPY_HEADER_BYTES];
    file_job job;
    int64_t bytes;

    peal_status status = open_job(&job, request);
    if (status)
        return close_job(&job, status);
    job.fd = open(job.path, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    if (job.fd < 0)
        return close_job(&job, failed(&job, "create", errno));
    job.data =
        (int64_t)peal_npy_make_header(job.array->type, axis_count(&job), task->file_shape, header);
    bytes = (int64_t)peal_type_bytes(job.array->type);
    for (int k = 0; k < axis_count(&job); k++)
        bytes *= task->file_shape[k];
    status = transfer(&job, true, (unsigned char *)header, job.data, 0);
    if (!status && ftruncate(job.fd, job.data + bytes) != 0)
        status = failed(&job, "size", errno);
    if (!status)
        status = transfer_box(&job, true);
    return close_job(&job, status);
}
