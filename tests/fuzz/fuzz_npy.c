/* Fuzzes what reads .npy files: the header, a vector, and `load` of a field's part by one rank of
 * two. Whatever the bytes: no crash, no read past the file, a refusal has a number, and what a
 * header promises the file has. */
#include "base/array_file.h"
#include "base/box.h"
#include "base/npy.h"
#include "dsl/dsl.h"
#include "scheduler/scheduler.h"
#include "tests/fuzz/file.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void require(bool holds)
{
    if (!holds)
        abort();
}

/* A refusal is reported, and what is accepted is not. */
static void check_told(peal_status status, const peal_diagnostics *list)
{
    require((status != PEAL_STATUS_OK) == (peal_diagnostics_errors(list) > 0));
}

static void read_header(int fd, const char *path, size_t size)
{
    peal_diagnostics *list = peal_diagnostics_create();
    peal_npy npy;
    peal_status status = peal_npy_read_header(fd, path, (peal_source){0}, &npy, list);
    check_told(status, list);
    if (!status) {
        require(npy.bytes >= 0 && npy.data_offset > 0);
        require((uint64_t)npy.data_offset + (uint64_t)npy.bytes <= size);
        require(npy.count * (int64_t)peal_type_bytes(npy.type) == npy.bytes);
    }
    peal_diagnostics_destroy(list);
}

static void read_vector(const char *path, peal_type type)
{
    peal_diagnostics *list = peal_diagnostics_create();
    int64_t count = 0;
    void *values = NULL;
    peal_status status = peal_npy_read_vector(path, (peal_source){0}, type, &count, &values, list);
    check_told(status, list);
    if (!status && count > 0) { /* all of it is there */
        volatile unsigned char last =
            ((unsigned char *)values)[count * (int64_t)peal_type_bytes(type) - 1];
        (void)last;
    }
    if (!status)
        free(values);
    peal_diagnostics_destroy(list);
}

/* `load` of a field of 6 x 4 points, by rank 1 of 2. */
static void load_part(const char *path, int fd)
{
    char text[400];
    static const peal_machine machine = {.ranks = 2, .processes = 2, .workers = 1};
    peal_diagnostics *list = peal_diagnostics_create();
    peal_graph *graph = NULL;
    const peal_graph_data *resolved = NULL;
    peal_compilation *compilation = NULL;
    const peal_schedule *schedule = NULL;
    int length =
        snprintf(text, sizeof(text),
                 "peal: 1\ntopology: {dims: [1, 2]}\nfields: {u: {size: [6, 4], halo: 1}}\n"
                 "setup: [{load: u, file: \"/proc/self/fd/%d\"}]\n"
                 "repeat: 1\nstep: [{exchange: u}]\n",
                 fd);
    (void)path;
    require(!peal_graph_read_memory("fuzz.yaml", text, (size_t)length, NULL, 0, list, &graph) &&
            !peal_graph_resolve(graph, list, &resolved) &&
            !peal_compilation_create(resolved, &machine, PEAL_MODE_SYNC, list, &compilation) &&
            !peal_compilation_schedule(compilation, 1, &schedule));
    for (int i = 0; i < schedule->task_count; i++) {
        const peal_schedule_task *task = &schedule->task[i];
        if (task->kind != PEAL_TASK_LOAD)
            continue;
        const peal_schedule_array *array = &schedule->array[task->array];
        size_t bytes = (size_t)peal_box_points(&array->layout.stored) * sizeof(double);
        unsigned char *memory = calloc(1, bytes);
        const peal_array_file request = {.schedule = schedule,
                                         .step = PEAL_NO_STEP,
                                         .task = task,
                                         .first = memory,
                                         .diagnostics = list};
        int before = peal_diagnostics_errors(list);
        peal_status status = peal_array_file_load(&request);
        require((status != PEAL_STATUS_OK) == (peal_diagnostics_errors(list) > before));
        free(memory);
    }
    peal_compilation_destroy(compilation);
    peal_graph_destroy(graph);
    peal_diagnostics_destroy(list);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char path[32];
    int fd = fuzz_file_open(data, size, path);
    read_header(fd, path, size);
    for (int type = 0; type < PEAL_TYPE_COUNT; type++)
        read_vector(path, (peal_type)type);
    load_part(path, fd);
    close(fd);
    return 0;
}
