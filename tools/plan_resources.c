/* `peal plan --resources`: registers, memory and occupancy of a plan's kernels on a GPU. */
#include "tools/plan_resources.h"
#include "tools/memory.h"

#include "peal_config.h"
#if PEAL_HAVE_CUDA
#include "backends/cuda/plan_resources.h"
#endif

#include <stdio.h>
#include <string.h>

#if PEAL_HAVE_CUDA

/* The longest name of a kernel. */
static int name_width(const peal_cuda_resources *all)
{
    size_t width = strlen("kernel");

    for (int i = 0; i < all->count; i++)
        if (strlen(all->kernel[i].kernel) > width)
            width = strlen(all->kernel[i].kernel);
    return (int)width;
}

static void print_text(const peal_cuda_resources *all, peal_mode mode)
{
    const peal_cuda_resource *fused = NULL, *alone = NULL;
    int width = name_width(all);

    printf("mode %s on sm_%d, by NVRTC %d.%d\n", peal_mode_name(mode), all->architecture,
           all->nvrtc_major, all->nvrtc_minor);
    printf("  %-18s %-*s %-20s %7s %9s %6s %13s %6s %7s %9s\n", "unit", width, "kernel", "task",
           "threads", "registers", "budget", "spilled bytes", "local", "shared", "blocks/SM");
    for (int i = 0; i < all->count; i++) {
        const peal_cuda_resource *k = &all->kernel[i];
        char rank[32];
        snprintf(rank, sizeof(rank), k->rank < 0 ? "-" : "of rank %d", k->rank);
        printf("  %-18s %-*s %-20s %7d %9d %6d %13d %6d %7d %9d  (%s)\n", k->unit, width, k->kernel,
               k->task ? k->task : rank, k->threads, k->registers, k->budget,
               k->spill_store_bytes + k->spill_load_bytes, k->local_bytes, k->shared_bytes,
               k->blocks, k->limit);
        if (!strcmp(k->kernel, "peal_fused_kernel"))
            *(!strcmp(k->unit, "fused") ? &fused : &alone) = k;
    }
    if (fused && alone)
        printf(
            "  the dispatcher alone takes %d of the %d registers and %d of the %d bytes of shared "
            "memory; %d blocks of %d threads an SM leave %d registers\n",
            alone->registers, fused->registers, alone->shared_bytes, fused->shared_bytes,
            fused->least_blocks, fused->threads, fused->budget);
}

static json_t *json_kernel(const peal_cuda_resource *k)
{
    json_t *object = json_pack("{s:s,s:s,s:i,s:i,s:i,s:i}", "unit", k->unit, "kernel", k->kernel,
                               "threads", k->threads, "registers", k->registers, "register_budget",
                               k->budget, "least_blocks", k->least_blocks);
    json_object_set_new(object, "task", k->task ? json_string(k->task) : json_null());
    json_object_set_new(object, "rank", k->rank >= 0 ? json_integer(k->rank) : json_null());
    json_object_set_new(object, "spill_store_bytes", json_integer(k->spill_store_bytes));
    json_object_set_new(object, "spill_load_bytes", json_integer(k->spill_load_bytes));
    json_object_set_new(object, "local_bytes", json_integer(k->local_bytes));
    json_object_set_new(object, "shared_bytes", json_integer(k->shared_bytes));
    json_object_set_new(object, "blocks_per_sm", json_integer(k->blocks));
    json_object_set_new(object, "limited_by", json_string(k->limit));
    return object;
}

static void append_json(const peal_cuda_resources *all, peal_mode mode, json_t *list)
{
    json_t *object = json_object(), *kernels = json_array();
    char name[32];

    snprintf(name, sizeof(name), "sm_%d", all->architecture);
    for (int i = 0; i < all->count; i++)
        json_array_append_new(kernels, json_kernel(&all->kernel[i]));
    json_object_set_new(object, "mode", json_string(peal_mode_name(mode)));
    json_object_set_new(object, "architecture", json_string(name));
    json_object_set_new(object, "kernels", kernels);
    json_array_append_new(list, object);
}

/* Of all modes it is passed over. */
static peal_status report_too_old(const peal_options *options, peal_mode mode, int architecture,
                                  peal_diagnostics *diagnostics)
{
    const char *hint = "--mode graph runs there",
               *words = "mode %s cannot run on sm_%d: its kernel needs compute capability 8.0";
    if (options->mode != MODE_ALL)
        return peal_report(diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, (peal_source){0}, hint,
                           words, peal_mode_name(mode), architecture);
    peal_warn(diagnostics, PEAL_E_GRAPH_MODE_NOT_APPLICABLE, (peal_source){0}, hint, words,
              peal_mode_name(mode), architecture);
    return PEAL_STATUS_OK;
}

peal_status plan_resources(const peal_options *options, const peal_backend_desc *desc, json_t *list)
{
    int architecture =
        options->architecture ? options->architecture : peal_cuda_default_architecture();
    peal_arena *arena = peal_arena_create();
    peal_cuda_resources all;
    peal_status status = PEAL_STATUS_OK;

    if (!arena)
        return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                           "no memory");
    COMMAND_ARENA_GUARD(arena);
    if (!peal_cuda_sm_find(architecture))
        status = peal_report(desc->diagnostics, PEAL_E_INVALID_OPTION_VALUE, (peal_source){0},
                             "such as sm_80, sm_90 or sm_100", "--arch: sm_%d is not known",
                             architecture);
    bool compiles = peal_cuda_mode_compiles(desc->mode, architecture);
    if (!status && !compiles)
        status = report_too_old(options, desc->mode, architecture, desc->diagnostics);
    if (!status && compiles)
        status = peal_cuda_plan_resources(desc, architecture, arena, &all);
    if (!status && compiles && list)
        append_json(&all, desc->mode, list);
    else if (!status && compiles)
        print_text(&all, desc->mode);
    peal_arena_destroy(arena);
    return status;
}

#else

peal_status plan_resources(const peal_options *options, const peal_backend_desc *desc, json_t *list)
{
    (void)options, (void)list;
    return peal_report(desc->diagnostics, PEAL_E_NOT_IN_THIS_BUILD, (peal_source){0},
                       "build peal where CUDA's headers are",
                       "this peal was built without GPUs: it has no kernels for them");
}

#endif
