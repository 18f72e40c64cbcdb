/* Lays out the work items of a rank in device memory, with partitions, dependencies and tickets. */
#include "backends/cuda/fused/fused.h"

#include <stddef.h>
#include <string.h>

_Static_assert(PEAL_FUSED_RANKS_MOST * sizeof(peal_fused) + sizeof(peal_fused_span) <= 4096 &&
                   sizeof(peal_fused) + (PEAL_FUSED_SPANS - 1) * sizeof(peal_fused_span) <= 4096,
               "a kernel's parameters");

enum { PARTS = PEAL_CUDA_PACKED_PARTS };

void peal_cuda_fused_parts_of(const peal_launch *launch,
                              peal_cuda_packed out[PEAL_CUDA_PACKED_PARTS])
{
    const peal_launch *l = launch;
    const peal_cuda_packed parts[PARTS] = {
        {0, offsetof(peal_launch, base)},
        {offsetof(peal_launch, base), l->list_count > 0 ? sizeof(l->base) : 0},
        {offsetof(peal_launch, list), (size_t)l->list_count * sizeof(l->list[0])},
        {offsetof(peal_launch, box), (size_t)l->box_count * sizeof(l->box[0])},
        {offsetof(peal_launch, wait), (size_t)l->wait_count * sizeof(l->wait[0])},
        {offsetof(peal_launch, write), (size_t)l->write_count * sizeof(l->write[0])},
        {offsetof(peal_launch, remote_store),
         (size_t)l->remote_store_count * sizeof(l->remote_store[0])}};

    memcpy(out, parts, sizeof(parts));
}

/* Each part is as long as the longest of all work items. */
static int find_parts(const peal_cuda_fused *fused, peal_cuda_packed *out)
{
    peal_cuda_packed found[PARTS], parts[PARTS];
    int count = 0;

    for (int r = 0; r < fused->count; r++) {
        peal_cuda_fused_parts_of(&fused->item[r].launch, parts);
        for (int i = 0; i < PARTS; i++)
            if (r == 0 || parts[i].bytes > found[i].bytes)
                found[i] = parts[i];
    }
    for (int i = 0; i < PARTS && fused->count > 0; i++)
        if (found[i].bytes > 0)
            out[count++] = found[i];
    return count;
}

_Static_assert(sizeof(peal_launch_box) % 8 == 0 && sizeof(peal_launch_wait) % 8 == 0 &&
                   sizeof(peal_launch_write) % 8 == 0 &&
                   sizeof(peal_launch_remote_store) % 8 == 0 && sizeof(peal_launch_list) % 8 == 0 &&
                   offsetof(peal_launch, base) % 8 == 0,
               "work items are copied by words of 8 bytes");

/* Offsets in the rank's one piece of device memory. */
typedef struct layout {
    size_t heads, partitions, after, adds, word_index, epochs, arrived, items, tickets, first,
        words, bytes;
} layout;

static size_t take(size_t *end, size_t bytes)
{
    size_t at = (*end + 255) / 256 * 256;
    *end = at + bytes;
    return at;
}

static void pack(const peal_cuda_fused *fused, const peal_cuda_packed *parts, int count, char *out)
{
    for (int r = 0; r < fused->count; r++)
        for (int p = 0; p < count; p++) {
            memcpy(out, (const char *)&fused->item[r].launch + parts[p].from, parts[p].bytes);
            out += parts[p].bytes;
        }
}

/* In the same way, what their words grow by a turn. */
static void pack_growth(const peal_cuda_fused *fused, const peal_cuda_packed *parts, int count,
                        char *out)
{
    for (int r = 0; r < fused->count; r++)
        for (int p = 0; p < count; p++) {
            const uint64_t *growth = fused->item[r].growth;
            if (growth)
                memcpy(out, (const char *)growth + parts[p].from, parts[p].bytes);
            out += parts[p].bytes;
        }
}

static void take_tickets(const peal_cuda_fused *fused, const peal_cuda_tickets *tickets, layout *at)
{
    at->tickets = take(&at->bytes, tickets->count * sizeof(peal_fused_ticket));
    at->first = take(&at->bytes, (size_t)fused->part_count * fused->grid * sizeof(unsigned short));
    at->words = take(&at->bytes, sizeof(peal_fused_words));
}

/* The parameter is that of the first launch. `begun` says that no round has begun. */
static void write_tickets(const peal_cuda_fused *fused, const peal_cuda_tickets *tickets,
                          const layout *at, char *image, peal_fused *f)
{
    memcpy(image + at->tickets, tickets->list, tickets->count * sizeof(peal_fused_ticket));
    memcpy(image + at->first, tickets->first,
           (size_t)fused->part_count * fused->grid * sizeof(unsigned short));
    ((peal_fused_words *)(image + at->words))->begun = f->first;
    f->tickets = (peal_fused_tickets){.list = fused->memory + at->tickets,
                                      .first = fused->memory + at->first,
                                      .words = fused->memory + at->words,
                                      .count = fused->part[0].count,
                                      .item = (unsigned)fused->part[0].item,
                                      .workers = fused->grid};
}

/* What the device keeps of each work item beside its launch, which gets its counters. */
static void write_heads(peal_cuda_fused *fused, const layout *at, peal_fused_head *head)
{
    for (int r = 0; r < fused->count; r++) {
        peal_cuda_work_item *item = &fused->item[r];
        unsigned function =
            item->shape < 0 ? (unsigned)item->number : PEAL_FUSED_SHAPES + (unsigned)item->shape;
        head[r] = (peal_fused_head){function, (unsigned)item->kind, item->blocks, item->alone,
                                    item->back};
        item->launch.arrived =
            fused->memory + at->arrived + (size_t)r * PEAL_FUSED_COUNTERS * sizeof(unsigned);
        if (item->alone)
            item->launch.box[0].waits = item->launch.write_count = 0;
    }
}

peal_status peal_cuda_fused_upload(const peal_cuda_rank *rank, peal_cuda_fused *fused,
                                   const peal_cuda_block_deps *deps,
                                   const peal_cuda_tickets *tickets, peal_fused *f)
{
    peal_cuda_plan *plan = rank->plan;
    peal_cuda_packed parts[PARTS];
    int count = find_parts(fused, parts);
    size_t words = 0, grid = fused->grid, items = (size_t)fused->count;
    layout at = {.bytes = 0};
    char text[160];

    for (int p = 0; p < count; p++)
        words += parts[p].bytes / 8;
    /* Epochs are far apart so that polls of one hold up no other. Where all blocks poll all epochs,
     * they lie side by side. */
    f->epoch_words = 8;
    for (int r = 0; r < fused->count; r++)
        f->epoch_words = fused->item[r].cyclic ? 1 : f->epoch_words;
    at.heads = take(&at.bytes, items * sizeof(peal_fused_head));
    at.partitions = take(&at.bytes, (size_t)fused->kinds * grid * sizeof(peal_fused_partition));
    at.after = take(&at.bytes, (deps->after_count + 1) * sizeof(*deps->after));
    at.adds = take(&at.bytes, (deps->add_count + 1) * sizeof(peal_fused_add));
    at.word_index = take(&at.bytes, words * sizeof(unsigned short));
    at.epochs = take(&at.bytes, grid * f->epoch_words * sizeof(unsigned));
    at.arrived = take(&at.bytes, items * PEAL_FUSED_COUNTERS * sizeof(unsigned));
    bool turns = fused->count > 0 && fused->item[0].growth != NULL;
    at.items = take(&at.bytes, items * words * 8 * (turns ? 2 : 1));
    if (tickets->count > 0)
        take_tickets(fused, tickets, &at);
    CUresult result = plan->driver->cuMemAlloc_(&fused->memory, at.bytes);
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE,
                           NULL, "no device memory for the records of mode fused, %zu bytes: %s",
                           at.bytes, peal_cuda_error(result, text));
    char *image = PEAL_ARENA_ARRAY(plan->arena, char, at.bytes);
    write_heads(fused, &at, (peal_fused_head *)(image + at.heads));
    memcpy(image + at.partitions, deps->partition,
           (size_t)fused->kinds * grid * sizeof(peal_fused_partition));
    memcpy(image + at.after, deps->after, deps->after_count * sizeof(*deps->after));
    if (tickets->count > 0)
        write_tickets(fused, tickets, &at, image, f);
    memcpy(image + at.adds, deps->add, deps->add_count * sizeof(peal_fused_add));
    unsigned short *to = (unsigned short *)(image + at.word_index);
    for (int p = 0; p < count; p++)
        for (size_t i = 0; i < parts[p].bytes / 8; i++)
            *to++ = (unsigned short)(parts[p].from / 8 + i);
    pack(fused, parts, count, image + at.items);
    if (turns)
        pack_growth(fused, parts, count, image + at.items + items * words * 8);
    result = plan->driver->cuMemcpyHtoD_(fused->memory, image, at.bytes);
    /* It returns once it has been staged, and the plan's stream is not ordered behind it: where
     * other jobs have the device meanwhile, the kernel may come first. */
    if (!result)
        result = plan->driver->cuCtxSynchronize_();
    if (result)
        return peal_report(plan->desc.diagnostics, PEAL_E_DRIVER_CALL_FAILED, PEAL_CUDA_NOWHERE,
                           NULL, "cannot copy the records of mode fused to the device: %s",
                           peal_cuda_error(result, text));
    f->heads = fused->memory + at.heads;
    f->items = fused->memory + at.items;
    f->partitions = fused->memory + at.partitions;
    f->after = fused->memory + at.after;
    f->adds = fused->memory + at.adds;
    f->word_index = fused->memory + at.word_index;
    f->epochs = fused->memory + at.epochs;
    f->control = rank->control_device;
    f->stop = rank->stop_word;
    f->item_words = (unsigned)words;
    f->item_count = (unsigned)fused->count;
    f->kind_count = (unsigned)fused->kinds;
    return PEAL_STATUS_OK;
}
