/* Compiles the units of a plan, loads them, and finds the function that runs each task. */
#define _GNU_SOURCE
#include "backends/cuda/jit/kernels.h"

#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/gpu/gpu.h"
#include "backends/cuda/jit/source_compile.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

/* Parameters of a kernel have 32764 bytes from Volta and CUDA 12.1 on (beside small ones, more than
 * 4096 cost nothing that could be measured); both compilers lay the record out alike. */
_Static_assert(sizeof(peal_launch) <= 32764 && sizeof(peal_launch) % 8 == 0, "peal_launch");
_Static_assert(sizeof(peal_device_piece) == 112, "peal_device_piece");
_Static_assert(sizeof(peal_device_control) == 72, "peal_device_control");

struct peal_cuda_kernels {
    peal_arena *arena;
    peal_cuda_source *source;
    const peal_cuda_driver *driver;
    CUmodule module, communication_free, round, bundle, fused[2];
    const char *fused_text; /* of the first slot */
    const char *bundle_text;
    int architecture;
    bool dry;
    peal_cuda_task_kernel **task; /* by hosted rank and task; no functions: none */
    CUfunction builtin[PEAL_CUDA_BUILTIN_COUNT];
    CUdeviceptr given_up;
};

enum { PTX_ARCHITECTURE = 90 };

/* ---- loading ---- */

static peal_status refused(const peal_cuda_kernels *kernels, const char *what, CUresult result)
{
    char text[160];
    return peal_report(kernels->source->desc.diagnostics, PEAL_E_GPU_KERNELS_NOT_LOADED,
                       (peal_source){0}, "is the driver older than the CUDA toolkit?",
                       "cannot load %s: %s", what, peal_cuda_error(result, text));
}

/* If the driver refuses an image that comes from the cache, the text is compiled anew, once. */
static peal_status load_module(const peal_cuda_kernels *kernels, const char *text, int architecture,
                               CUmodule *out)
{
    peal_cuda_compile_request request =
        peal_cuda_source_request(kernels->source, text, architecture);
    CUresult result = CUDA_SUCCESS;

    for (int attempt = 0; attempt < 2; attempt++) {
        peal_cuda_compile_result compiled;
        request.driver = kernels->driver->version;
        request.anew = attempt > 0;
        peal_status status = peal_cuda_source_compile(kernels->source, &request, &compiled);
        if (status)
            return status;
        result = kernels->driver->cuModuleLoadData_(out, compiled.image);
        if (!result)
            return PEAL_STATUS_OK;
        *out = NULL;
        if (!compiled.was_cached)
            break;
    }
    return refused(kernels, "the compiled kernels", result);
}

static peal_status find_function(const peal_cuda_kernels *kernels, CUmodule module,
                                 const char *name, CUfunction *out)
{
    CUresult result = kernels->driver->cuModuleGetFunction_(out, module, name);
    return result ? refused(kernels, name, result) : PEAL_STATUS_OK;
}

/* Resident blocks an SM, and registers of a thread. */
static peal_status describe_function(const peal_cuda_kernels *kernels, CUfunction function,
                                     const char *what, int threads, int *blocks, int *registers)
{
    const peal_cuda_driver *driver = kernels->driver;
    CUresult result = driver->cuFuncGetAttribute_(registers, CU_FUNC_ATTRIBUTE_NUM_REGS, function);

    if (!result)
        result = driver->cuOccupancyMaxActiveBlocksPerMultiprocessor_(blocks, function, threads, 0);
    return result ? refused(kernels, what, result) : PEAL_STATUS_OK;
}

/* Communication-free kernels are in a unit of their own, which not all modes load. */
static peal_status find_variants(const peal_cuda_kernels *kernels, int entry,
                                 peal_cuda_task_kernel *out)
{
    const peal_cuda_entry *source = &kernels->source->entry[entry];
    CUfunction *const function[PEAL_CUDA_SHAPED] = {
        [PEAL_CUDA_FULL] = &out->full,
        [PEAL_CUDA_NO_REDUCTION] = &out->no_reduction,
        [PEAL_CUDA_SELF_SENDING] = &out->self_sending,
        [PEAL_CUDA_SELF_SENDING_NO_REDUCTION] = &out->self_sending_no_reduction,
        [PEAL_CUDA_COMMUNICATION_FREE] = &out->communication_free,
        [PEAL_CUDA_COMMUNICATION_FREE_NO_REDUCTION] = &out->communication_free_no_reduction,
    };
    peal_status status = PEAL_STATUS_OK;

    for (int v = 0; v < PEAL_CUDA_SHAPED && !status; v++) {
        bool apart = v >= PEAL_CUDA_COMMUNICATION_FREE;
        if (!source->text[v] || (apart && !kernels->communication_free))
            continue;
        status = find_function(kernels, apart ? kernels->communication_free : kernels->module,
                               peal_arena_print(kernels->arena, "peal_task_%d%s", entry,
                                                peal_cuda_variant_suffix((peal_cuda_variant)v)),
                               function[v]);
        if (v % 2 == 0) /* unless there is one, which follows */
            *function[v + 1] = *function[v];
    }
    return status;
}

static peal_status bind_task(const peal_cuda_kernels *kernels, const peal_cuda_task_entry *entry,
                             peal_cuda_task_kernel *out)
{
    const peal_cuda_entry *source = &kernels->source->entry[entry->entry];
    int threads = entry->threads[0] * entry->threads[1] * entry->threads[2];

    memcpy(out->threads, entry->threads, sizeof(out->threads));
    out->element = entry->elements->array;
    out->element_count = entry->elements->count;
    out->device_arguments = entry->device_arguments;
    out->number = peal_cuda_fused_number(entry->entry, PEAL_CUDA_FUSED_FULL);
    out->shapes = source->text[PEAL_CUDA_SHAPED] != NULL;
    out->deepens = source->text[PEAL_CUDA_DEEP] != NULL;
    out->light = source->is_light;
    out->own_points = source->own_points;
    peal_status status = find_variants(kernels, entry->entry, out);
    if (!status)
        status = describe_function(kernels, out->full, source->task->name, threads,
                                   &out->full_blocks, &out->full_registers);
    if (!status)
        status = describe_function(kernels, out->no_reduction, source->task->name, threads,
                                   &out->no_reduction_blocks, &out->no_reduction_registers);
    return status;
}

static peal_status bind_all(peal_cuda_kernels *kernels)
{
    const peal_backend_desc *desc = &kernels->source->desc;
    peal_status status = PEAL_STATUS_OK;
    size_t bytes = 0;

    for (int i = 0; i < PEAL_CUDA_BUILTIN_COUNT && !status; i++)
        status = find_function(kernels, kernels->module,
                               peal_cuda_builtin_name((peal_cuda_builtin)i), &kernels->builtin[i]);
    CUresult result = status
                          ? CUDA_SUCCESS
                          : kernels->driver->cuModuleGetGlobal_(&kernels->given_up, &bytes,
                                                                kernels->module, "peal_given_up");
    if (result)
        status = refused(kernels, "peal_given_up", result);
    kernels->task = PEAL_ARENA_ARRAY(kernels->arena, peal_cuda_task_kernel *, desc->rank_count);
    for (int r = 0; r < desc->rank_count && !status; r++) {
        int count = desc->rank[r].schedule->task_count;
        kernels->task[r] = PEAL_ARENA_ARRAY(kernels->arena, peal_cuda_task_kernel, count + 1);
        for (int t = 0; t < count && !status; t++)
            if (kernels->source->task[r][t].entry >= 0)
                status = bind_task(kernels, &kernels->source->task[r][t], &kernels->task[r][t]);
    }
    return status;
}

static peal_status no_memory(const peal_backend_desc *desc)
{
    return peal_report(desc->diagnostics, PEAL_E_OUT_OF_MEMORY, (peal_source){0}, NULL,
                       "no memory for kernels");
}

/* A unit that is compiled beside another one. */
typedef struct side_unit {
    peal_cuda_compile_request request;
    peal_cuda_compile_result compiled;
    pthread_t thread;
    bool runs;
} side_unit;

static void *compile_beside(void *user)
{
    side_unit *side = user;
    PEAL_ARENA_GUARD(side->request.arena, return NULL);
    peal_cuda_compile(&side->request, &side->compiled);
    return NULL;
}

static void begin_beside(const peal_cuda_kernels *kernels, const char *text, side_unit *side)
{
    side->request = peal_cuda_source_request(kernels->source, text, kernels->architecture);
    side->request.driver = kernels->driver->version;
    side->request.arena = peal_arena_create();
    side->request.diagnostics = peal_diagnostics_create();
    side->runs = side->request.arena && side->request.diagnostics &&
                 !pthread_create(&side->thread, NULL, compile_beside, side);
}

/* Whether it could be compiled and loaded. If not, who does it again says why. */
static bool end_beside(const peal_cuda_kernels *kernels, side_unit *side, CUmodule *out)
{
    if (side->runs)
        pthread_join(side->thread, NULL);
    const char *image = side->runs ? side->compiled.image : NULL;
    bool is_loaded = image && !kernels->driver->cuModuleLoadData_(out, image);
    *out = is_loaded ? *out : NULL;
    peal_diagnostics_destroy(side->request.diagnostics);
    peal_arena_destroy(side->request.arena);
    return is_loaded;
}

/* With a guard of its own: a thread of the caller's may be running. */
static peal_status load_main_unit(peal_cuda_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    return load_module(kernels, kernels->source->text, kernels->architecture, &kernels->module);
}

static peal_status load_units(peal_cuda_kernels *kernels)
{
    const peal_cuda_source *source = kernels->source;
    side_unit side = {.runs = false};

    if (!source->communication_free)
        return load_main_unit(kernels);
    begin_beside(kernels, source->communication_free, &side);
    peal_status status = load_main_unit(kernels);
    if (end_beside(kernels, &side, &kernels->communication_free) || status)
        return status;
    return load_module(kernels, source->communication_free, kernels->architecture,
                       &kernels->communication_free);
}

static peal_status try_to_make(const peal_backend_desc *desc,
                               const peal_cuda_fused_text *fused_text, peal_cuda_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(desc));
    return peal_cuda_source_create(desc, fused_text, kernels->arena, &kernels->source);
}

peal_status peal_cuda_kernels_create(const peal_backend_desc *desc,
                                     const peal_cuda_fused_text *fused_text,
                                     const peal_device *device, peal_cuda_kernels **out)
{
    peal_cuda_kernels *kernels = calloc(1, sizeof(*kernels));

    if (!kernels || !(kernels->arena = peal_arena_create())) {
        free(kernels);
        return no_memory(desc);
    }
    kernels->driver = device->driver;
    kernels->architecture = 10 * device->major + device->minor;
    kernels->dry = device->dry;
    peal_status status = try_to_make(desc, fused_text, kernels);
    if (status) {
        peal_cuda_kernels_destroy(kernels);
        return status;
    }
    *out = kernels;
    return PEAL_STATUS_OK;
}

bool peal_cuda_kernels_are_missing(const peal_cuda_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return false);
    peal_cuda_compile_request request =
        peal_cuda_source_request(kernels->source, kernels->source->text, kernels->architecture);
    request.driver = kernels->driver->version;
    return peal_cuda_is_missing(&request);
}

peal_status peal_cuda_kernels_load(peal_cuda_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    peal_status status = kernels->dry ? PEAL_STATUS_OK : load_units(kernels);
    return status ? status : bind_all(kernels);
}

static peal_status compile_unit(const peal_cuda_kernels *kernels, const char *text,
                                int driver_version, bool many)
{
    peal_cuda_compile_result compiled;
    peal_cuda_compile_request request =
        peal_cuda_source_request(kernels->source, text, kernels->architecture);

    request.driver = driver_version;
    request.many = many;
    return peal_cuda_source_compile(kernels->source, &request, &compiled);
}

peal_status peal_cuda_kernels_compile(const peal_cuda_kernels *kernels)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    const peal_cuda_source *source = kernels->source;
    const int version = kernels->driver->version;
    peal_status status = compile_unit(kernels, source->text, version, true);

    if (!status && source->communication_free)
        status = compile_unit(kernels, source->communication_free, version, true);
    return status;
}

void peal_cuda_kernels_destroy(peal_cuda_kernels *kernels)
{
    if (!kernels)
        return;
    if (kernels->round)
        kernels->driver->cuModuleUnload_(kernels->round);
    if (kernels->bundle)
        kernels->driver->cuModuleUnload_(kernels->bundle);
    for (int slot = 0; slot < 2; slot++)
        if (kernels->fused[slot])
            kernels->driver->cuModuleUnload_(kernels->fused[slot]);
    if (kernels->communication_free)
        kernels->driver->cuModuleUnload_(kernels->communication_free);
    if (kernels->module)
        kernels->driver->cuModuleUnload_(kernels->module);
    peal_arena_destroy(kernels->arena);
    free(kernels);
}

const peal_cuda_task_kernel *peal_cuda_kernels_task(const peal_cuda_kernels *kernels,
                                                    const peal_schedule *schedule,
                                                    const peal_schedule_task *task)
{
    const peal_backend_desc *desc = &kernels->source->desc;

    for (int r = 0; r < desc->rank_count; r++)
        if (desc->rank[r].schedule == schedule) {
            const peal_cuda_task_kernel *found = &kernels->task[r][task - schedule->task];
            return found->full ? found : NULL;
        }
    return NULL;
}

CUfunction peal_cuda_kernels_builtin(const peal_cuda_kernels *kernels, peal_cuda_builtin which)
{
    return kernels->builtin[which];
}

peal_status peal_cuda_kernels_round(peal_cuda_kernels *kernels, CUfunction *out, CUresult *result)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    peal_cuda_compile_result compiled;
    peal_cuda_compile_request request =
        peal_cuda_source_request(kernels->source, "#include <peal/round.h>\n",
                                 kernels->architecture);

    if (kernels->dry)
        return find_function(kernels, NULL, "peal_round", out);
    request.driver = kernels->driver->version;
    request.links = false;
    peal_status status = peal_cuda_source_compile(kernels->source, &request, &compiled);

    if (status)
        return status;
    *result = kernels->driver->cuModuleLoadData_(&kernels->round, compiled.image);
    if (*result)
        kernels->round = NULL;
    else
        *result = kernels->driver->cuModuleGetFunction_(out, kernels->round, "peal_round");
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_kernels_fused(peal_cuda_kernels *kernels, int slot,
                                    const peal_cuda_fused_calls *calls, CUfunction *out)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    const char *text = peal_cuda_fused_unit_print(kernels->source, calls, kernels->arena);
    bool same = slot == 1 && strcmp(text, kernels->fused_text) == 0;
    CUmodule *module = &kernels->fused[same ? 0 : slot];

    if (slot == 0)
        kernels->fused_text = text;
    if (!same && *module) /* of a recording that did not fit */
        kernels->driver->cuModuleUnload_(*module);
    if (!same)
        *module = NULL;
    peal_status status = same || kernels->dry
                             ? PEAL_STATUS_OK
                             : load_module(kernels, text, kernels->architecture, module);
    return status ? status : find_function(kernels, *module, "peal_fused_kernel", out);
}

const char *peal_cuda_kernels_recorded_text(const peal_cuda_kernels *kernels)
{
    return kernels->fused_text ? kernels->fused_text : kernels->bundle_text;
}

peal_status peal_cuda_kernels_compile_recorded(const peal_cuda_kernels *kernels, int driver_version,
                                               bool many)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    return compile_unit(kernels, peal_cuda_kernels_recorded_text(kernels), driver_version, many);
}

peal_status peal_cuda_kernels_bundle(peal_cuda_kernels *kernels, const peal_cuda_fused_calls *calls,
                                     CUfunction *out)
{
    PEAL_ARENA_GUARD(kernels->arena, return no_memory(&kernels->source->desc));
    kernels->bundle_text = peal_cuda_bundle_unit_print(kernels->source, calls, kernels->arena);
    peal_status status = kernels->dry ? PEAL_STATUS_OK
                                      : load_module(kernels, kernels->bundle_text,
                                                    kernels->architecture, &kernels->bundle);
    return status ? status : find_function(kernels, kernels->bundle, "peal_bundle", out);
}

CUdeviceptr peal_cuda_kernels_given_up(const peal_cuda_kernels *kernels)
{
    return kernels->given_up;
}

peal_status peal_cuda_kernels_source(const peal_backend_desc *desc, peal_arena *arena,
                                     const char **out)
{
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, NULL, arena, &source);

    if (!status)
        *out = source->text;
    return status;
}

peal_status peal_cuda_kernels_communication_free_source(const peal_backend_desc *desc,
                                                        peal_arena *arena, const char **out)
{
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, NULL, arena, &source);

    if (!status)
        *out = source->communication_free;
    return status;
}

static peal_status compile_ptx(const peal_cuda_source *source, const char *text, const char **out)
{
    peal_cuda_compile_request request = peal_cuda_source_request(source, text, PTX_ARCHITECTURE);
    peal_cuda_compile_result compiled;

    request.ptx = true;
    peal_status status = peal_cuda_source_compile(source, &request, &compiled);
    if (!status)
        *out = compiled.image;
    return status;
}

peal_status peal_cuda_kernels_ptx(const peal_backend_desc *desc, peal_arena *arena,
                                  const char **out, const char **communication_free)
{
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, NULL, arena, &source);

    *communication_free = NULL;
    if (!status)
        status = compile_ptx(source, source->text, out);
    if (!status && source->communication_free)
        status = compile_ptx(source, source->communication_free, communication_free);
    return status;
}
