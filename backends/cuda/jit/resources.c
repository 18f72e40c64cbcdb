/* Has the units of a plan compiled, and linked with device code of the application, with what ptxas
 * says about each kernel, and reads that: registers, spills, stack and shared memory from its
 * messages, launch bounds from the PTX. */
#define _GNU_SOURCE
#include "backends/cuda/jit/resources.h"

#include "backends/cuda/codegen/source.h"
#include "backends/cuda/dry_plan.h"
#include "backends/cuda/jit/compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_NAME = 256 };

typedef struct resource_list {
    const peal_cuda_source *source;
    const peal_cuda_sm *sm;
    peal_arena *arena;
    peal_cuda_resource *kernel;
    int count, room;
} resource_list;

/* "peal_plain_full_3": entry 3's. */
static const char *task_of(const peal_cuda_source *source, const char *kernel)
{
    const char *number = strrchr(kernel, '_');
    char *end = NULL;
    long index = number ? strtol(number + 1, &end, 10) : -1;

    if (!number || end == number + 1 || *end || index < 0 || index >= source->entry_count)
        return NULL;
    return source->entry[index].task->name;
}

static peal_cuda_resource *add_kernel(resource_list *list, const char *unit, const char *name)
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

/* The number in front of the first `words` in a line; 0: there is none. */
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

/* `maxntid` and `minnctapersm` stand between an entry's head and its body. */
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

/* ptxas: "Compiling entry function 'NAME'", "Function properties for NAME" with a line of stack and
 * spills, which functions that are called have, too, and "Used N registers, ...". */
static void read_messages(resource_list *list, const char *unit, const char *log)
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

/* Shared memory that a launch gives the kernel, which the text says (shapes.c). */
static int given_to(const char *text)
{
    static const char words[] = "\nPEAL_SHARED_ROOM_(peal_stage_, ";
    const char *found = strstr(text, words);

    return found ? atoi(found + sizeof(words) - 1) : 0;
}

static peal_status add_unit(resource_list *list, const char *unit, const char *text)
{
    peal_cuda_compile_result compiled;
    int first = list->count;
    peal_status status =
        peal_cuda_source_compile(list->source, text, list->sm->architecture, &compiled);

    if (status)
        return status;
    read_messages(list, unit, compiled.image);
    for (int i = first, k = list->count - 1; i < k; i++, k--) { /* ptxas begins with the last */
        peal_cuda_resource other = list->kernel[i];
        list->kernel[i] = list->kernel[k];
        list->kernel[k] = other;
    }
    for (int i = first; i < list->count; i++) {
        peal_cuda_resource *kernel = &list->kernel[i];
        read_bounds(compiled.image + strlen(compiled.image) + 1, kernel);
        kernel->shared_bytes += given_to(text);
        kernel->budget = peal_cuda_sm_budget(kernel->threads, kernel->least_blocks);
        const peal_cuda_block_needs needs = {.threads = kernel->threads,
                                             .registers = kernel->registers,
                                             .shared_bytes = kernel->shared_bytes};
        kernel->blocks = peal_cuda_sm_blocks(list->sm, &needs, &kernel->limit);
        if (kernel->registers == 0)
            status = peal_report(list->source->desc->diagnostics, PEAL_E_NVRTC_FAILED,
                                 (peal_source){0}, "an NVRTC from 12.4 on does",
                                 "NVRTC does not say what `%s` takes", kernel->kernel);
    }
    return status;
}

/* With the shapes that the rank's launches have; without, where mode fused cannot run them. */
static peal_status fused_of(const resource_list *list, int index, const char **out)
{
    peal_backend_desc desc = *list->source->desc;
    peal_diagnostics *own = peal_diagnostics_create(), *given = desc.diagnostics;
    bool refused = false;

    if (!own)
        return peal_report(given, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL, "no memory");
    desc.diagnostics = own;
    peal_status status =
        peal_cuda_dry_plan_fused(&desc, index, list->sm->architecture, list->arena, out);
    for (int i = 0; i < peal_diagnostics_count(own) && status; i++)
        refused |= peal_diagnostics_at(own, i)->code == PEAL_E_GRAPH_MODE_NOT_APPLICABLE;
    for (int i = 0; i < peal_diagnostics_count(own) && status && !refused; i++) {
        const peal_diagnostic *d = peal_diagnostics_at(own, i);
        peal_report(given, d->code, d->source, d->hint, "%s", d->message);
    }
    peal_diagnostics_destroy(own);
    if (refused)
        *out = peal_cuda_translation_units_close(list->source, "", 0, list->arena);
    return refused ? PEAL_STATUS_OK : status;
}

/* The persistent kernel, by rank: as it is compiled where each has a GPU. Ranks whose launches have
 * the same shapes have the same; the dispatcher is without shapes and tasks. */
static peal_status add_fused(resource_list *list)
{
    const peal_backend_desc *desc = list->source->desc;
    const char **known = PEAL_ARENA_ARRAY(list->arena, const char *, desc->rank_count);
    peal_status status = PEAL_STATUS_OK;

    for (int r = 0; r < desc->rank_count && !status; r++) {
        int same = 0, first = list->count;
        status = fused_of(list, r, &known[r]);
        while (!status && strcmp(known[same], known[r]) != 0)
            same++;
        if (!status && same == r)
            status = add_unit(list, "fused", known[r]);
        for (int i = first; i < list->count; i++)
            list->kernel[i].rank = desc->rank[r].schedule->rank;
    }
    if (status)
        return status;
    return add_unit(list, "dispatcher",
                    peal_arena_print(list->arena, "#define PEAL_FUSED_ALONE 1\n%s",
                                     peal_cuda_translation_units_close(list->source, "", 0,
                                                                       list->arena)));
}

peal_status peal_cuda_kernels_resources(const peal_backend_desc *desc, int architecture,
                                        peal_arena *arena, peal_cuda_resources *out)
{
    resource_list list = {.sm = peal_cuda_sm_find(architecture), .arena = arena};
    const char *reason = NULL;
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, arena, &source);

    list.source = source;
    if (!status)
        status = add_unit(&list, "full", source->text);
    if (!status && source->plain && desc->mode != PEAL_MODE_SERIAL)
        status = add_unit(&list, "plain", source->plain);
    if (!status && source->fused)
        status = add_fused(&list);
    if (status)
        return status;
    const peal_nvrtc *nvrtc = peal_nvrtc_open(&reason);
    *out = (peal_cuda_resources){.architecture = architecture,
                                 .nvrtc_major = nvrtc->major,
                                 .nvrtc_minor = nvrtc->minor,
                                 .kernel = list.kernel,
                                 .count = list.count};
    return PEAL_STATUS_OK;
}
