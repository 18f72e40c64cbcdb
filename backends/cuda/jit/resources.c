/* Compiles units, linked with device code of the application, and reads what ptxas says about each
 * kernel: registers, spills, stack and shared memory from its messages, launch bounds from the PTX.
 */
#define _GNU_SOURCE
#include "backends/cuda/jit/resources.h"

#include "backends/cuda/jit/source_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 256 };

/* The task of "peal_task_3_self_sending": the first one that has entry 3. */
static const char *task_of(const peal_cuda_source *source, const char *kernel)
{
    int index = -1;

    if (sscanf(kernel, "peal_task_%d", &index) != 1 || index < 0 || index >= source->entry_count)
        return NULL;
    return source->entry[index].task->name;
}

static peal_cuda_resource *add_kernel(peal_cuda_resource_list *list, const char *unit,
                                      const char *name)
{
    if (list->count == list->room) {
        int room = 2 * list->room + 16;
        peal_cuda_resource *more = PEAL_ARENA_ARRAY(list->arena, peal_cuda_resource, room);
        if (list->count > 0)
            memcpy(more, list->kernel, (size_t)list->count * sizeof(*more));
        list->kernel = more;
        list->room = room;
    }
    peal_cuda_resource *added = &list->kernel[list->count++];
    *added = (peal_cuda_resource){.unit = unit,
                                  .kernel = name,
                                  .task = task_of(list->source, name),
                                  .rank = -1};
    return added;
}

/* The number before the first `words` in a line; 0: there is none. */
static int number_before(const char *line, const char *words)
{
    const char *end = strchrnul(line, '\n'), *found = strstr(line, words);

    if (!found || found > end)
        return 0;
    while (found > line && found[-1] == ' ')
        found--;
    while (found > line && found[-1] >= '0' && found[-1] <= '9')
        found--;
    return atoi(found);
}

/* In PTX `maxntid` and `minnctapersm` are between an entry's head and its body. */
static void read_bounds(const char *ptx, peal_cuda_resource *kernel)
{
    char head[MOST_NAME + 16];

    snprintf(head, sizeof(head), ".entry %s(", kernel->kernel);
    const char *at = strstr(ptx, head);
    const char *body = at ? strstr(at, "\n{") : NULL;
    const char *threads = at ? strstr(at, ".maxntid ") : NULL;
    const char *blocks = at ? strstr(at, ".minnctapersm ") : NULL;
    int axis[3] = {1024, 1, 1};

    if (body && threads && threads < body)
        sscanf(threads, ".maxntid %d, %d, %d", &axis[0], &axis[1], &axis[2]);
    kernel->threads = axis[0] * axis[1] * axis[2];
    if (body && blocks && blocks < body)
        kernel->least_blocks = atoi(blocks + strlen(".minnctapersm "));
}

/* ptxas prints "Compiling entry function 'NAME'"; "Function properties for NAME" with a line of
 * stack and spills, also for functions that are called; and "Used N registers, ...". */
static void read_messages(peal_cuda_resource_list *list, const char *unit, const char *log)
{
    static const char begin[] = "Compiling entry function '";
    peal_cuda_resource *kernel = NULL;
    int stack = 0;

    for (const char *line = log; line && *line; line = strchr(line, '\n')) {
        line += *line == '\n';
        const char *end = strchrnul(line, '\n'), *name = strstr(line, begin);
        if (name && name < end) {
            name += sizeof(begin) - 1;
            kernel = add_kernel(list, unit,
                                peal_arena_copy_bytes(list->arena, name, strcspn(name, "'\n")));
        } else if (kernel) {
            kernel->spill_store_bytes += number_before(line, "bytes spill stores");
            kernel->spill_load_bytes += number_before(line, "bytes spill loads");
            kernel->local_bytes += number_before(line, "bytes stack frame");
            stack = number_before(line, "bytes cumulative stack size");
            kernel->local_bytes = stack > 0 ? stack : kernel->local_bytes;
            int registers = number_before(line, "registers");
            kernel->registers = registers > 0 ? registers : kernel->registers;
            int shared = number_before(line, "bytes smem");
            kernel->shared_bytes = shared > 0 ? shared : kernel->shared_bytes;
        }
        if (!*end)
            break;
        line = end;
    }
}

/* Dynamic shared memory of a launch of the kernel, which the text says (shapes.c). */
static int given_to(const char *text)
{
    static const char words[] = "\nPEAL_SHARED_ROOM_(peal_stage_, ";
    const char *found = strstr(text, words);

    return found ? atoi(found + sizeof(words) - 1) : 0;
}

static void find_blocks(const peal_cuda_sm *sm, peal_cuda_resource *kernel)
{
    const peal_cuda_block_needs needs = {.threads = kernel->threads,
                                         .registers = kernel->registers,
                                         .shared_bytes = kernel->shared_bytes};

    kernel->budget = peal_cuda_sm_budget(kernel->threads, kernel->least_blocks);
    kernel->blocks = peal_cuda_sm_blocks(sm, &needs, &kernel->limit);
}

peal_status peal_cuda_resources_add(peal_cuda_resource_list *list, const char *unit,
                                    const char *text)
{
    peal_cuda_compile_request request =
        peal_cuda_source_request(list->source, text, list->sm->architecture);
    peal_cuda_compile_result compiled;
    int first = list->count;

    request.verbose = true;
    peal_status status = peal_cuda_source_compile(list->source, &request, &compiled);

    if (status)
        return status;
    read_messages(list, unit, compiled.image);
    for (int i = first, k = list->count - 1; i < k; i++, k--) { /* ptxas begins with the last */
        peal_cuda_resource other = list->kernel[i];
        list->kernel[i] = list->kernel[k];
        list->kernel[k] = other;
    }
    for (int i = first; i < list->count && !status; i++) {
        read_bounds(compiled.image + strlen(compiled.image) + 1, &list->kernel[i]);
        list->kernel[i].shared_bytes += given_to(text);
        find_blocks(list->sm, &list->kernel[i]);
        if (list->kernel[i].registers == 0)
            status = peal_report(list->source->desc.diagnostics, PEAL_E_NVRTC_FAILED,
                                 (peal_source){0}, "an NVRTC from 12.4 on does",
                                 "NVRTC does not say what `%s` takes", list->kernel[i].kernel);
    }
    return status;
}
