/* Launches the persistent kernel. How many launches some rounds take is up to the dispatcher. */
#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <string.h>

unsigned peal_cuda_fused_blocks(const peal_cuda_fused *fused)
{
    return fused->blocks;
}

int64_t peal_cuda_fused_rounds_of_epochs(const peal_cuda_plan *plan, int items)
{
    (void)plan;
    return (INT64_C(1) << 30) / items;
}

int64_t peal_cuda_fused_most_rounds(const peal_cuda_plan *plan)
{
    int most = 1;

    for (int r = 0; r < plan->rank_count; r++)
        most = plan->fused[0].rank[r].plain > most ? plan->fused[0].rank[r].plain : most;
    return plan->options.dispatcher->most_rounds(plan, most);
}

int peal_cuda_fused_resident(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel)
{
    const peal_cuda_driver *driver = plan->driver;
    int resident = 0;

    if (driver->cuFuncSetAttribute_(kernel->function,
                                    CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
                                    kernel->stage_bytes) ||
        driver->cuOccupancyMaxActiveBlocksPerMultiprocessor_(&resident, kernel->function,
                                                             PEAL_FUSED_THREADS,
                                                             (size_t)kernel->stage_bytes))
        return 0;
    return resident;
}

/* Enqueues the kernel with the spans in its parameter, and counts their work items. */
static CUresult launch(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel)
{
    void *parameter[] = {kernel->parameter};

    return plan->driver->cuLaunchCooperativeKernel_(kernel->function, kernel->blocks, 1, 1,
                                                    PEAL_FUSED_THREADS, 1, 1,
                                                    (unsigned)kernel->stage_bytes,
                                                    peal_cuda_origin(plan), parameter);
}

/* ---- spans ---- */

/* A section of a list of work items, and where steps of the recording begin in it. */
typedef struct section {
    const int *at;
    int first, count; /* work items */
    int64_t steps;
} section;

static section plain_section(const peal_cuda_fused_kernel *kernel, const peal_cuda_fused *fused)
{
    return (section){fused->at_step, 0, fused->plain, kernel->steps};
}

static section deep_section(const peal_cuda_fused_kernel *kernel, const peal_cuda_fused *fused)
{
    return (section){fused->deep_at, fused->plain, fused->count - fused->plain, kernel->steps};
}

/* Steps [from, end) of a section, which may be of several rounds. */
static peal_fused_span span_of(const section *s, int64_t from, int64_t end)
{
    int64_t items = (end / s->steps - from / s->steps) * s->count + s->at[end % s->steps] -
                    s->at[from % s->steps];

    return (peal_fused_span){.items = (unsigned)items,
                             .first = (unsigned short)(s->first + s->at[from % s->steps]),
                             .begin = (unsigned short)s->first,
                             .end = (unsigned short)(s->first + s->count)};
}

/* The spans of steps [from, end): plain steps to where a deep round can begin, deep rounds, and
 * plain steps, as many as there have to be behind a round. */
static void choose_spans(const peal_cuda_fused_kernel *kernel, int64_t from, int64_t end)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    section plain = plain_section(kernel, fused), deep = deep_section(kernel, fused);
    int64_t first = from, last = end;
    int count = 0;
    peal_fused_span span[PEAL_FUSED_SPANS];

    memset(kernel->more, 0, (PEAL_FUSED_SPANS - 1) * sizeof(kernel->more[0]));
    kernel->parameter[0].span = span_of(&plain, from, end);
    if (!fused->deep_at)
        return;
    while (first < end && deep.at[first % deep.steps] < 0)
        first++;
    while (last > first &&
           (deep.at[last % deep.steps] < 0 || end - last < fused->deep_pending[last % deep.steps]))
        last--;
    if (last == first)
        return;
    const peal_fused_span all[] = {span_of(&plain, from, first), span_of(&deep, first, last),
                                   span_of(&plain, last, end)};
    for (int i = 0; i < PEAL_FUSED_SPANS; i++)
        if (all[i].items > 0)
            span[count++] = all[i];
    if (count == 0)
        return;
    kernel->parameter[0].span = span[0];
    memcpy(kernel->more, span + 1, (size_t)(count - 1) * sizeof(span[0]));
}

/* Work items of the spans that were launched last. */
static unsigned items_of(const peal_cuda_fused_kernel *kernel, int rank)
{
    unsigned items = kernel->parameter[rank].span.items;

    for (int i = 0; i < PEAL_FUSED_SPANS - 1; i++)
        items += kernel->more[i].items; /* none, if there are several ranks */
    return items;
}

/* ---- launches ---- */

CUresult peal_cuda_fused_launch(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                                int64_t rounds)
{
    for (int r = 0; r < plan->rank_count; r++) {
        unsigned short items = (unsigned short)kernel->rank[r].plain;
        kernel->parameter[r].tickets.rounds = (unsigned)rounds;
        kernel->parameter[r].span =
            (peal_fused_span){.items = (unsigned)rounds * items, .end = items};
    }
    return launch(plan, kernel);
}

void peal_cuda_fused_advance(const peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                             int64_t rounds)
{
    /* Should `stop` have ended the launch early, blocks of the next one begin by storing this. */
    for (int r = 0; r < plan->rank_count; r++)
        kernel->parameter[r].first += (unsigned)rounds * (unsigned)kernel->rank[r].plain;
}

CUresult peal_cuda_fused_start_once(peal_cuda_plan *plan, const peal_cuda_fused_kernel *kernel,
                                    int64_t rounds)
{
    CUresult result = peal_cuda_fused_launch(plan, kernel, rounds);

    peal_cuda_fused_advance(plan, kernel, rounds);
    return result;
}

CUresult peal_cuda_fused_start_steps(peal_cuda_plan *plan, int slot, int64_t from, int64_t steps)
{
    const peal_cuda_fused_kernel *kernel = &plan->fused[slot];

    if (plan->rank_count == 1)
        choose_spans(kernel, from, from + steps);
    for (int r = 0; r < plan->rank_count && plan->rank_count > 1; r++) {
        section plain = plain_section(kernel, &kernel->rank[r]);
        kernel->parameter[r].span = span_of(&plain, from, from + steps);
    }
    CUresult result = launch(plan, kernel);
    for (int r = 0; r < plan->rank_count; r++)
        kernel->parameter[r].first += items_of(kernel, r);
    return result;
}

CUresult peal_cuda_fused_start(peal_cuda_plan *plan, int slot, int64_t rounds)
{
    return rounds > 0 ? plan->options.dispatcher->start(plan, &plan->fused[slot], rounds)
                      : CUDA_SUCCESS;
}
