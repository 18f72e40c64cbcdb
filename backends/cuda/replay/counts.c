/* Where a recording counts its steps. All launches before a count are waited for, and it cuts deep
 * rounds in two; so it comes behind steps that do more than others, as far as there are some: at
 * their reductions all is waited for as well. */
#include "backends/cuda/lower/emit.h"
#include "backends/cuda/replay/replay.h"

void peal_cuda_counts_place(const uint64_t *operations, int64_t steps, int64_t most, bool *counts)
{
    int64_t counted = 0;

    while (counted + most < steps) {
        int64_t best = counted + most / 2;
        for (int64_t s = best; s < counted + most; s++)
            if (operations[s] >= operations[best])
                best = s;
        counts[best] = true;
        counted = best + 1;
    }
    counts[steps - 1] = true;
}

/* How many operations the rank has in each step from `begin` on; 0 where its walk cannot be made.
 */
static void count_operations(peal_cuda_rank *rank, const peal_walk *begin, int64_t steps,
                             uint64_t *operations)
{
    uint64_t before = 0, all;

    for (int64_t s = 0; s < steps; s++, before = all) {
        if (!peal_cuda_advance_walk_only(rank))
            return;
        all = peal_cuda_ops_since(rank, begin);
        operations[s] = all - before;
    }
}

void peal_cuda_counts_choose(peal_cuda_plan *plan, const peal_walk *begin, int64_t steps)
{
    peal_cuda_graphs *graphs = plan->graphs;
    uint64_t *operations = PEAL_ARENA_ARRAY(plan->arena, uint64_t, steps);

    graphs->counts = PEAL_ARENA_ARRAY(plan->arena, bool, steps);
    peal_cuda_walks_go_to(plan, begin);
    count_operations(&plan->rank[0], &begin[0], steps, operations);
    peal_cuda_counts_place(operations, steps, graphs->report, graphs->counts);
}
