/* Has the translation unit compiled, loads it, and says which function runs which task. */
#define _GNU_SOURCE
#include "backends/cuda/jit/kernels.h"

#include "backends/cuda/codegen/device/launch.h"
#include "backends/cuda/codegen/source.h"
#include "backends/cuda/gpu/gpu.h"
#include "backends/cuda/jit/compile.h"

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
    CUmodule module, plain, round, fused[2];
    const char *fused_text; /* of the first slot */
    int architecture;
    bool dry;
    peal_cuda_task_kernel **task; /* by hosted rank and task; no functions: none */
    CUfunction builtin[PEAL_CUDA_BUILTIN_COUNT];
    CUdeviceptr given_up;
};

enum { PTX_ARCHITECTURE = 90 };

/* Errors. */

/* Whether a message about a task's pseudo file says that there is no such kernel. */
static bool is_missing(const char *message)
{
    return strstr(message, "\"peal_kernel_") && strstr(message, "is undefined");
}

static peal_status report_task(const peal_cuda_source *source, peal_cuda_entry *entry,
                               const peal_compile_error *error)
{
    peal_diagnostics *diagnostics = source->desc->diagnostics;

    if (entry->is_reported)
        return PEAL_STATUS_SPEC;
    entry->is_reported = true;
    if (!entry->is_users)
        return peal_report(diagnostics, PEAL_E_INTERNAL, entry->task->source, NULL,
                           "the code of `%s` does not compile: %s", entry->task->name,
                           error->message);
    if (!is_missing(error->message))
        return peal_kernel_report_misfit(diagnostics, source->arena, &source->files, entry->task,
                                         entry->signature, error->message);
    const char *included = peal_kernel_files_included(&source->files, source->arena);
    size_t count = 0;
    const char **names =
        peal_cuda_kernel_names(peal_arena_print(source->arena, "%s%s", source->text,
                                                included ? included : ""),
                               source->arena, &count);
    return peal_kernel_report_missing(diagnostics, source->arena, &source->files, entry->task,
                                      entry->signature, names, count);
}

/* What the compiler says where a kernel asks for more than a GPU has. */
static bool is_beyond_device(const char *message)
{
    static const char *const words[] = {"cannot open source file", "__host__", "in device code",
                                        "dynamic initialization"};
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
        if (strstr(message, words[i]))
            return true;
    return false;
}

/* A function of device code that none of the files has. */
static peal_status report_unlinked(const peal_cuda_source *source, const char *kernel)
{
    for (int i = 0; i < source->entry_count; i++) {
        const peal_cuda_entry *entry = &source->entry[i];
        if (!entry->is_linked || strcmp(entry->task->kernel, kernel) != 0)
            continue;
        return peal_report(source->desc->diagnostics, PEAL_E_NO_SUCH_KERNEL, entry->task->source,
                           peal_arena_print(source->arena,
                                            "is it extern \"C\" __device__ void %s(...), as "
                                            "<peal/block.h> says? `peal plan --emit cuda` prints "
                                            "its declaration",
                                            kernel),
                           "task `%s`: neither a kernel file defines PEAL_KERNEL(%s), nor the "
                           "device code a function `%s`",
                           entry->task->name, kernel, kernel);
    }
    return peal_report(source->desc->diagnostics, PEAL_E_DEVICE_LINK_ERROR,
                       source->graph->kernels_source,
                       "name the file that has it in `kernels:`, too",
                       "the device code calls `%s`, which is nowhere", kernel);
}

/* A file of the user's own, as `#include "..."` says, that is not there. */
static bool is_users_include(const peal_cuda_source *source, const peal_compile_error *error)
{
    const char *name = strstr(error->message, "cannot open source file ");
    for (int i = 0; i < source->files.count && name && error->file; i++)
        if (!strcmp(source->files.file[i].path, error->file) &&
            strstr(source->files.file[i].text, strchr(name, '"')))
            return true;
    return false;
}

static peal_status report_errors(const peal_cuda_source *source,
                                 const peal_cuda_compile_result *result)
{
    peal_status status = peal_compile_errors_unclosed(result->error, result->error_count,
                                                      &source->files, source->desc->diagnostics);
    int count = status ? 0 : peal_compile_errors_sift(result->error, result->error_count);

    for (int i = 0; i < count; i++) {
        const peal_compile_error *error = &result->error[i];
        peal_source place = {.file = error->file, .line = error->line, .column = error->column};
        int index = -1;
        char kernel[128];
        if (error->file && sscanf(error->file, "<link %127[^>]", kernel) == 1)
            status = report_unlinked(source, kernel);
        else if (error->file && sscanf(error->file, "<task %d", &index) == 1 && index >= 0 &&
                 index < source->entry_count)
            status = report_task(source, &source->entry[index], error);
        else if (is_users_include(source, error))
            status =
                peal_report(source->desc->diagnostics, PEAL_E_KERNEL_COMPILE_ERROR, place,
                            "it is looked for beside the file that names it", "%s", error->message);
        else if (is_beyond_device(error->message))
            status = peal_report(source->desc->diagnostics, PEAL_E_KERNEL_NOT_FOR_GPU, place,
                                 "kernels use no library but math", "%s", error->message);
        else
            status = peal_report(source->desc->diagnostics, PEAL_E_KERNEL_COMPILE_ERROR, place,
                                 peal_compile_error_hint(error->message), "%s", error->message);
    }
    return status;
}

static peal_status compile_source(const peal_cuda_source *source, const char *text,
                                  int architecture, bool ptx, int driver, bool anew,
                                  peal_cuda_compile_result *out)
{
    peal_cuda_compile_request request = {.source = text,
                                         .files = &source->files,
                                         .architecture = architecture,
                                         .ptx = ptx,
                                         .fma = source->graph->fma,
                                         .links = peal_cuda_source_links(text),
                                         .place = source->graph->kernels_source,
                                         .driver = driver,
                                         .anew = anew,
                                         .cache_folder = source->desc->cache_folder,
                                         .deadline_ns = source->desc->deadline_ns,
                                         .abort_word = source->desc->abort_word,
                                         .diagnostics = source->desc->diagnostics,
                                         .arena = source->arena};
    peal_status status = peal_cuda_compile(&request, out);

    return status || out->error_count == 0 ? status : report_errors(source, out);
}

peal_status peal_cuda_source_compile(const peal_cuda_source *source, const char *text,
                                     int architecture, peal_cuda_compile_result *out)
{
    peal_cuda_compile_request request = {.source = text,
                                         .files = &source->files,
                                         .architecture = architecture,
                                         .fma = source->graph->fma,
                                         .links = peal_cuda_source_links(text),
                                         .place = source->graph->kernels_source,
                                         .verbose = true,
                                         .cache_folder = source->desc->cache_folder,
                                         .deadline_ns = source->desc->deadline_ns,
                                         .abort_word = source->desc->abort_word,
                                         .diagnostics = source->desc->diagnostics,
                                         .arena = source->arena};
    peal_status status = peal_cuda_compile(&request, out);

    return status || out->error_count == 0 ? status : report_errors(source, out);
}

/* Loading. */

static peal_status refused(const peal_cuda_kernels *kernels, const char *what, CUresult result)
{
    char text[160];
    return peal_report(kernels->source->desc->diagnostics, PEAL_E_GPU_KERNELS_NOT_LOADED,
                       (peal_source){0}, "is the driver older than the CUDA toolkit?",
                       "cannot load %s: %s", what, peal_cuda_error(result, text));
}

/* An image that the driver refuses, of the cache, is compiled anew once. */
static peal_status load_module(const peal_cuda_kernels *kernels, const char *text, int architecture,
                               CUmodule *out)
{
    int version = kernels->driver->version;
    CUresult result = CUDA_SUCCESS;

    for (int attempt = 0; attempt < 2; attempt++) {
        peal_cuda_compile_result compiled;
        peal_status status = compile_source(kernels->source, text, architecture, false, version,
                                            attempt > 0, &compiled);
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

static peal_status describe_function(const peal_cuda_kernels *kernels, const char *name,
                                     int threads, CUfunction *out, int *blocks, int *registers)
{
    const peal_cuda_driver *driver = kernels->driver;
    peal_status status = find_function(kernels, kernels->module, name, out);

    if (status)
        return status;
    CUresult result = driver->cuFuncGetAttribute_(registers, CU_FUNC_ATTRIBUTE_NUM_REGS, *out);
    if (!result)
        result = driver->cuOccupancyMaxActiveBlocksPerMultiprocessor_(blocks, *out, threads, 0);
    return result ? refused(kernels, name, result) : PEAL_STATUS_OK;
}

static peal_status bind_task(const peal_cuda_kernels *kernels, const peal_cuda_task_entry *entry,
                             peal_cuda_task_kernel *out)
{
    peal_arena *arena = kernels->arena;
    const peal_cuda_entry *source = &kernels->source->entry[entry->entry];
    int threads = entry->threads[0] * entry->threads[1] * entry->threads[2];

    memcpy(out->threads, entry->threads, sizeof(out->threads));
    out->element = entry->elements->array;
    out->element_count = entry->elements->count;
    out->device_arguments = entry->device_arguments;
    peal_status status =
        describe_function(kernels, peal_arena_print(arena, "peal_task_%d", entry->entry), threads,
                          &out->full, &out->full_blocks, &out->full_registers);
    out->bare = out->full;
    out->bare_blocks = out->full_blocks;
    out->bare_registers = out->full_registers;
    if (!status && source->bare)
        status = describe_function(kernels, peal_arena_print(arena, "peal_bare_%d", entry->entry),
                                   threads, &out->bare, &out->bare_blocks, &out->bare_registers);
    if (!status && source->own)
        status = find_function(kernels, kernels->module,
                               peal_arena_print(arena, "peal_own_%d", entry->entry), &out->own);
    out->own_bare = out->own;
    if (!status && out->own && source->own_bare)
        status = find_function(kernels, kernels->module,
                               peal_arena_print(arena, "peal_own_bare_%d", entry->entry),
                               &out->own_bare);
    if (!status && kernels->plain && source->plain_full)
        status = find_function(kernels, kernels->plain,
                               peal_arena_print(arena, "peal_plain_full_%d", entry->entry),
                               &out->plain_full);
    if (!status && kernels->plain && source->plain)
        status = find_function(kernels, kernels->plain,
                               peal_arena_print(arena, "peal_plain_%d", entry->entry), &out->plain);
    out->number = peal_cuda_fused_number(entry->entry, PEAL_CUDA_FUSED_FULL);
    out->shapes = source->shaped != NULL;
    out->light = source->is_light;
    return status;
}

static peal_status bind_all(peal_cuda_kernels *kernels)
{
    static const char *const builtins[PEAL_CUDA_BUILTIN_COUNT] = {"peal_copy", "peal_signal",
                                                                  "peal_step", "peal_begin"};
    const peal_backend_desc *desc = kernels->source->desc;
    peal_status status = PEAL_STATUS_OK;
    size_t bytes = 0;

    for (int i = 0; i < PEAL_CUDA_BUILTIN_COUNT && !status; i++)
        status = find_function(kernels, kernels->module, builtins[i], &kernels->builtin[i]);
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

/* `serial` runs tiles as they are: it has no plain kernels. */
static peal_status load_units(peal_cuda_kernels *kernels)
{
    const peal_cuda_source *source = kernels->source;
    peal_status status =
        load_module(kernels, source->text, kernels->architecture, &kernels->module);

    if (!status && source->plain && source->desc->mode != PEAL_MODE_SERIAL)
        status = load_module(kernels, source->plain, kernels->architecture, &kernels->plain);
    return status;
}

peal_status peal_cuda_kernels_create(const peal_backend_desc *desc, const peal_device *device,
                                     peal_cuda_kernels **out)
{
    peal_arena *arena = peal_arena_create();
    peal_cuda_kernels *kernels = arena ? PEAL_ARENA_NEW(arena, peal_cuda_kernels) : NULL;

    if (!kernels)
        peal_memory_end(sizeof(*kernels), 0);
    kernels->arena = arena;
    kernels->driver = device->driver;
    kernels->architecture = 10 * device->major + device->minor;
    kernels->dry = device->dry;
    peal_status status = peal_cuda_source_create(desc, arena, &kernels->source);
    if (!status && !kernels->dry)
        status = load_units(kernels);
    if (!status)
        status = bind_all(kernels);
    if (status) {
        peal_cuda_kernels_destroy(kernels);
        return status;
    }
    *out = kernels;
    return PEAL_STATUS_OK;
}

void peal_cuda_kernels_destroy(peal_cuda_kernels *kernels)
{
    if (!kernels)
        return;
    if (kernels->round)
        kernels->driver->cuModuleUnload_(kernels->round);
    for (int slot = 0; slot < 2; slot++)
        if (kernels->fused[slot])
            kernels->driver->cuModuleUnload_(kernels->fused[slot]);
    if (kernels->plain)
        kernels->driver->cuModuleUnload_(kernels->plain);
    if (kernels->module)
        kernels->driver->cuModuleUnload_(kernels->module);
    peal_arena_destroy(kernels->arena);
}

const peal_cuda_task_kernel *peal_cuda_kernels_task(const peal_cuda_kernels *kernels,
                                                    const peal_schedule *schedule,
                                                    const peal_schedule_task *task)
{
    const peal_backend_desc *desc = kernels->source->desc;

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
    peal_cuda_compile_result compiled;
    peal_status status =
        compile_source(kernels->source, "#include <peal/round.h>\n", kernels->architecture, false,
                       kernels->driver->version, false, &compiled);

    if (status)
        return status;
    *result = kernels->driver->cuModuleLoadData_(&kernels->round, compiled.image);
    if (*result)
        kernels->round = NULL;
    else
        *result = kernels->driver->cuModuleGetFunction_(out, kernels->round, "peal_round");
    return PEAL_STATUS_OK;
}

peal_status peal_cuda_kernels_fused(peal_cuda_kernels *kernels, int slot, const char *shapes,
                                    int shape_count, CUfunction *out)
{
    const char *text =
        peal_cuda_translation_units_close(kernels->source, shapes, shape_count, kernels->arena);
    bool same = slot == 1 && strcmp(text, kernels->fused_text) == 0;
    CUmodule *module = &kernels->fused[same ? 0 : slot];

    if (slot == 0)
        kernels->fused_text = text;
    peal_status status = same || kernels->dry
                             ? PEAL_STATUS_OK
                             : load_module(kernels, text, kernels->architecture, module);
    return status ? status : find_function(kernels, *module, "peal_fused_kernel", out);
}

const char *peal_cuda_kernels_fused_text(const peal_cuda_kernels *kernels)
{
    return kernels->fused_text;
}

CUdeviceptr peal_cuda_kernels_given_up(const peal_cuda_kernels *kernels)
{
    return kernels->given_up;
}

peal_status peal_cuda_kernels_source(const peal_backend_desc *desc, peal_arena *arena,
                                     const char **out)
{
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, arena, &source);

    if (!status)
        *out = source->text;
    return status;
}

peal_status peal_cuda_kernels_communication_free_source(const peal_backend_desc *desc,
                                                        peal_arena *arena, const char **out)
{
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, arena, &source);

    if (!status)
        *out = source->plain;
    return status;
}

peal_status peal_cuda_kernels_ptx(const peal_backend_desc *desc, peal_arena *arena,
                                  const char **out, const char **plain)
{
    peal_cuda_compile_result compiled = {0}, plain_compiled = {0};
    peal_cuda_source *source = NULL;
    peal_status status = peal_cuda_source_create(desc, arena, &source);

    if (!status)
        status = compile_source(source, source->text, PTX_ARCHITECTURE, true, 0, false, &compiled);
    if (!status && source->plain)
        status = compile_source(source, source->plain, PTX_ARCHITECTURE, true, 0, false,
                                &plain_compiled);
    if (!status) {
        *out = compiled.image;
        *plain = plain_compiled.image;
    }
    return status;
}
