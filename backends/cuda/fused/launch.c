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

    for (int r = 0; r < plan->rank_count; r++) {
        int items = plan->fused[0].rank[r].plain * plan->fused[0].turns;
        most = items > most ? items : most;
    }
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
    int turns; /* of so many steps */
} section;

static section plain_section(const peal_cuda_fused_kernel *kernel, const peal_cuda_fused *fused)
{
    return (section){fused->at_step, 0, fused->plain, kernel->steps, kernel->turns};
}

static section fast_section(const peal_cuda_fused_kernel *kernel, const peal_cuda_fused *fused)
{
    return (section){fused->fast_at, fused->plain, fused->fast_end - fused->plain, kernel->steps,
                     kernel->turns};
}

/* Steps [from, end) of a section, which may be of several rounds. */
static peal_fused_span span_of(const section *s, int64_t from, int64_t end)
{
    int64_t items = (end / s->steps - from / s->steps) * s->count + s->at[end % s->steps] -
                    s->at[from % s->steps];

    return (peal_fused_span){.items = (unsigned)items,
                             .first = (unsigned short)(s->first + s->at[from % s->steps]),
                             .begin = (unsigned short)s->first,
                             .end = (unsigned short)(s->first + s->count),
                             .asks = 1,
                             .turn = (unsigned char)(from / s->steps % s->turns)};
}

/* Of steps [from, end) the fast section has [*first, *last): plain steps come before, to where it
 * can begin, and behind, as many as there have to be. */
static void find_fast(const peal_cuda_fused_kernel *kernel, int64_t from, int64_t end,
                      int64_t *first, int64_t *last)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    int64_t steps = kernel->steps;

    *first = from;
    *last = end;
    if (!fused->fast_at)
        *first = end;
    while (*first < end && fused->fast_at[*first % steps] < 0)
        ++*first;
    while (*last > *first &&
           (fused->fast_at[*last % steps] < 0 || end - *last < fused->fast_pending[*last % steps]))
        --*last;
}

int64_t peal_cuda_fused_choose_from(const peal_cuda_plan *plan, int slot, int64_t from,
                                    int64_t period, int64_t steps)
{
    const peal_cuda_fused_kernel *kernel = &plan->fused[slot];
    int64_t best = from, most = 0;

    for (int64_t at = from % period; at < kernel->steps && kernel->rank[0].fast_at; at += period) {
        int64_t first, last;
        find_fast(kernel, at, at + steps, &first, &last);
        if (last - first > most || (last - first == most && at == from)) {
            most = last - first;
            best = at;
        }
    }
    return best;
}

/* The spans of a launch that is being put together. */
typedef struct spans {
    peal_fused_span of[PEAL_FUSED_SPANS];
    int count;
} spans;

_Static_assert(3 * (int)PEAL_CUDA_PARTS <= (int)PEAL_FUSED_SPANS, "spans of the parts of a launch");

static void add_span(spans *s, peal_fused_span span)
{
    if (span.items > 0)
        s->of[s->count++] = span;
}

static void add_steps(const peal_cuda_fused_kernel *kernel, int64_t from, int64_t end, spans *out)
{
    const peal_cuda_fused *fused = &kernel->rank[0];
    section plain = plain_section(kernel, fused), fast = fast_section(kernel, fused);
    int64_t first, last;

    find_fast(kernel, from, end, &first, &last);
    if (first == last) {
        add_span(out, span_of(&plain, from, end));
        return;
    }
    add_span(out, span_of(&plain, from, first));
    add_span(out, span_of(&fast, first, last));
    add_span(out, span_of(&plain, last, end));
}

static void add_section(const peal_cuda_fused *fused, int number, spans *out)
{
    int begin = fused->section[number], end = fused->section[number + 1];

    add_span(out, (peal_fused_span){.items = (unsigned)(end - begin),
                                    .first = (unsigned short)begin,
                                    .begin = (unsigned short)begin,
                                    .end = (unsigned short)end});
}

/* Puts them into the parameter, and says behind the last that there are no more. */
static void set_spans(peal_cuda_fused_kernel *kernel, const spans *s)
{
    kernel->parameter[0].span = s->count > 0 ? s->of[0] : (peal_fused_span){.items = 0};
    kernel->more_count = s->count > 0 ? s->count - 1 : 0;
    memcpy(kernel->more, s->of + 1, (size_t)kernel->more_count * sizeof(s->of[0]));
    if (kernel->more_count < PEAL_FUSED_SPANS - 1)
        kernel->more[kernel->more_count].items = 0;
}

/* Work items of the spans that were launched last. */
static unsigned items_of(const peal_cuda_fused_kernel *kernel, int rank)
{
    unsigned items = kernel->parameter[rank].span.items;

    for (int i = 0; i < kernel->more_count; i++)
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
            (peal_fused_span){.items = (unsigned)rounds * items, .end = items, .asks = 1};
    }
    return launch(plan, kernel);
}

CUresult peal_cuda_fused_launch_nothing(peal_cuda_plan *plan, int slot)
{
    peal_cuda_fused_kernel *kernel = &plan->fused[slot];

    for (int r = 0; r < plan->rank_count; r++)
        kernel->parameter[r].span = (peal_fused_span){.items = 0};
    kernel->more_count = 0;
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

CUresult peal_cuda_fused_start_parts(peal_cuda_plan *plan, int slot, const peal_cuda_part *part,
                                     int count)
{
    peal_cuda_fused_kernel *kernel = &plan->fused[slot];
    spans all = {.count = 0};

    for (int i = 0; i < count && plan->rank_count == 1; i++)
        if (part[i].section >= 0)
            add_section(&kernel->rank[0], part[i].section, &all);
        else
            add_steps(kernel, part[i].from, part[i].from + part[i].steps, &all);
    if (plan->rank_count == 1)
        set_spans(kernel, &all);
    for (int r = 0; r < plan->rank_count && plan->rank_count > 1; r++) {
        section plain = plain_section(kernel, &kernel->rank[r]);
        kernel->parameter[r].span = span_of(&plain, part->from, part->from + part->steps);
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
