/* Memory of a plan that an adapter reaches: words and slots that the other process puts into, and
 * slots that ours come from. Registered as few ranges, by which both ends then name them. */
#include "base/diagnostic.h"
#include "runtime/network/mlx5.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Ranges that are so close are one: they share a page, or lie on pages that follow each other. */
enum { NEAR_BYTES = 4096 };

/* Where a put of the other end goes here. */
typedef struct verbs_target {
    uint64_t word, slot;
    uint32_t word_key, slot_key;
} verbs_target;

static void add(verbs_region *region, int *count, const void *at, uint64_t bytes)
{
    if (bytes)
        region[(*count)++] = (verbs_region){(uintptr_t)at, (uintptr_t)at + bytes, NULL};
}

static uint64_t slots_bytes(const peal_put *put)
{
    return put->bytes ? (uint64_t)put->slot_bytes * (uint64_t)put->slots : 0;
}

static int by_begin(const void *a, const void *b)
{
    const verbs_region *first = a, *second = b;
    return first->begin < second->begin ? -1 : first->begin > second->begin;
}

/* Sorted, with near ones put together; their number. */
static int join(verbs_region *region, int count)
{
    int kept = 0;
    qsort(region, (size_t)count, sizeof(*region), by_begin);
    for (int i = 1; i < count; i++) {
        verbs_region *last = &region[kept];
        if (region[i].begin < last->end + NEAR_BYTES)
            last->end = region[i].end > last->end ? region[i].end : last->end;
        else
            region[++kept] = region[i];
    }
    return count ? kept + 1 : 0;
}

static peal_status list_regions(verbs_end *end, peal_diagnostics *diagnostics)
{
    const peal_pair *pair = end->pair;
    end->region =
        calloc((size_t)pair->out_count + 2 * (size_t)pair->in_count + 1, sizeof(*end->region));
    if (!end->region)
        return verbs_no_memory(diagnostics);
    int count = 0;
    for (int i = 0; i < pair->out_count; i++)
        add(end->region, &count, pair->out[i].first_slot, slots_bytes(&pair->out[i]));
    for (int i = 0; i < pair->in_count; i++) {
        add(end->region, &count, (const void *)pair->in[i].at, sizeof(uint64_t));
        add(end->region, &count, pair->in[i].first_slot, slots_bytes(&pair->in[i]));
    }
    end->region_count = join(end->region, count);
    return PEAL_STATUS_OK;
}

static peal_status register_regions(verbs_end *end, peal_diagnostics *diagnostics)
{
    const peal_network *network = end->link->network;
    for (int i = 0; i < end->region_count; i++) {
        verbs_region *region = &end->region[i];
        size_t bytes = region->end - region->begin;
        region->memory =
            network->library->ibv_reg_mr(network->device.domain, (void *)region->begin, bytes,
                                         IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE);
        if (!region->memory)
            return peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0},
                               "adapters need memory that stays in place: raise `ulimit -l`",
                               "%s: %zu bytes for messages cannot be registered: %s",
                               network->device.name, bytes, strerror(errno));
    }
    return PEAL_STATUS_OK;
}

static const struct ibv_mr *find(const verbs_end *end, const void *at)
{
    for (int i = 0; i < end->region_count; i++)
        if ((uintptr_t)at >= end->region[i].begin && (uintptr_t)at < end->region[i].end)
            return end->region[i].memory;
    return NULL;
}

static void describe(const verbs_end *end, verbs_target *out)
{
    for (int i = 0; i < end->pair->in_count; i++) {
        const peal_put *put = &end->pair->in[i];
        const void *word = (const void *)put->at;
        out[i] = (verbs_target){.word = (uintptr_t)word, .word_key = find(end, word)->rkey};
        if (!put->bytes)
            continue;
        out[i].slot = (uintptr_t)put->first_slot;
        out[i].slot_key = find(end, put->first_slot)->rkey;
    }
}

static void note_targets(verbs_end *end, const verbs_target *target)
{
    for (int i = 0; i < end->pair->out_count; i++) {
        const peal_put *put = &end->pair->out[i];
        end->out[i] = (verbs_put){.word = target[i].word,
                                  .slot = target[i].slot,
                                  .word_key = target[i].word_key,
                                  .slot_key = target[i].slot_key,
                                  .due = put->first,
                                  .sent = put->first};
        if (put->bytes)
            end->out[i].own_key = find(end, put->first_slot)->lkey;
    }
}

/* Of engines with own rings a message is one entry. */
static peal_status check_lengths(const verbs_end *end, peal_diagnostics *diagnostics)
{
    const peal_network *network = end->link->network;
    uint64_t parts = network->has_own_rings ? 1 : VERBS_MOST_PARTS;
    uint64_t most = parts * network->device.at.max_msg_sz;
    for (int i = 0; i < end->pair->out_count; i++)
        if ((uint64_t)end->pair->out[i].bytes > most)
            return peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, "use tcp",
                               "a message of %lld bytes is too long for RDMA adapter %s",
                               (long long)end->pair->out[i].bytes, network->device.name);
    return PEAL_STATUS_OK;
}

/* What one end tells the other: where its puts go, and, if it cannot go on, why. */
typedef struct verbs_roll {
    char reason[VERBS_TEXT_BYTES]; /* empty: it is ready */
    verbs_target target[];
} verbs_roll;

static size_t roll_bytes(int count)
{
    return sizeof(verbs_roll) + (size_t)count * sizeof(verbs_target);
}

static void excuse(verbs_roll *roll, const peal_diagnostics *diagnostics)
{
    int count = peal_diagnostics_count(diagnostics);
    snprintf(roll->reason, sizeof(roll->reason), "%s",
             count ? peal_diagnostics_at(diagnostics, count - 1)->message : "no memory");
}

static peal_status swap_rolls(verbs_end *end, verbs_roll *ours, verbs_roll *theirs,
                              peal_status status, peal_diagnostics *diagnostics)
{
    if (!ours || !theirs) {
        verbs_give_up(end->link);
        return status;
    }
    if (status)
        excuse(ours, diagnostics);
    else
        describe(end, ours->target);
    peal_status swapped = verbs_swap(end->link, ours, roll_bytes(end->pair->in_count), theirs,
                                     roll_bytes(end->pair->out_count));
    status = status ? status : swapped;
    theirs->reason[VERBS_TEXT_BYTES - 1] = 0;
    if (!status && *theirs->reason)
        status = peal_report(diagnostics, PEAL_E_NO_NETWORK_ENGINE, (peal_source){0}, NULL,
                             "process %d: %s", end->link->process, theirs->reason);
    if (!status)
        note_targets(end, theirs->target);
    return status;
}

/* Both have the same lists, so their sizes are known. */
peal_status verbs_enroll(verbs_end *end, peal_status status, peal_diagnostics *diagnostics)
{
    verbs_roll *ours = calloc(1, roll_bytes(end->pair->in_count));
    verbs_roll *theirs = calloc(1, roll_bytes(end->pair->out_count));
    end->out = calloc((size_t)end->pair->out_count + 1, sizeof(*end->out));
    if (!status)
        status = ours && theirs && end->out ? check_lengths(end, diagnostics)
                                            : verbs_no_memory(diagnostics);
    if (!status)
        status = list_regions(end, diagnostics);
    if (!status)
        status = register_regions(end, diagnostics);
    status = swap_rolls(end, ours, theirs, status, diagnostics);
    free(ours);
    free(theirs);
    return status;
}

void verbs_free_end(verbs_end *end)
{
    const verbs_library *library = end->link->network->library;
    mlx5_free_rings(end);
    for (int i = 0; end->region && i < end->region_count; i++)
        if (end->region[i].memory)
            library->ibv_dereg_mr(end->region[i].memory);
    free(end->region);
    free(end->out);
    free(end);
}
