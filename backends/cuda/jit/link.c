/* Links a unit that NVRTC has compiled to LTO-IR with the application's device code, by nvJitLink.
 */
#define _GNU_SOURCE
#include "backends/cuda/jit/compile.h"

#include "base/cuda_driver.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_MISSING = 50 };

static const peal_source nowhere;

peal_status peal_cuda_link_open(peal_diagnostics *diagnostics)
{
    const char *reason = NULL;

    if (peal_jitlink_open(&reason))
        return PEAL_STATUS_OK;
    return peal_report(diagnostics, PEAL_E_NO_NVJITLINK, nowhere,
                       "install nvJitLink (libnvjitlink), or write the functions as kernels in C",
                       "%s", reason);
}

const char *peal_cuda_link_version(peal_arena *arena)
{
    const peal_jitlink *link = peal_jitlink_open(NULL);
    return peal_arena_print(arena, "nvJitLink %u.%u", link ? link->major : 0,
                            link ? link->minor : 0);
}

/* "... Unresolved extern function 'relax'", "undefined reference to 'relax' ...": an error of the
 * pseudo file "<link relax>". */
static void read_missing(const peal_cuda_compile_request *request, const char *log,
                         peal_cuda_compile_result *out)
{
    peal_compile_error *list = PEAL_ARENA_ARRAY(request->arena, peal_compile_error, MOST_MISSING);

    out->error = list;
    for (const char *line = log; line && out->error_count < MOST_MISSING;) {
        const char *end = strchr(line, '\n'), *quote = strchr(line, '\'');
        const char *word = strcasestr(line, "unresolved extern");
        word = word ? word : strcasestr(line, "undefined reference");
        if (word && quote && word < quote && (!end || quote < end)) {
            const char *name =
                peal_arena_copy_bytes(request->arena, quote + 1, strcspn(quote + 1, "'\n"));
            list[out->error_count++] = (peal_compile_error){
                .file = peal_arena_print(request->arena, "<link %s>", name),
                .line = 1,
                .message = peal_arena_print(request->arena, "there is no function `%s`", name)};
        }
        line = end ? end + 1 : NULL;
    }
}

/* Reports the first line of the log, or, if it is empty, the error's number. */
static peal_status failed(const peal_cuda_compile_request *request, const peal_jitlink *link,
                          const char *log, const char *what, int result)
{
    const char *line = log + strspn(log, " \t\n");
    int length = (int)strcspn(line, "\n");

    return peal_report(request->diagnostics, PEAL_E_DEVICE_LINK_ERROR, request->spec_source,
                       "made by `nvcc -arch=sm_NN -rdc=true -dlto -fatbin`?",
                       "nvJitLink %u.%u cannot link %s for sm_%d: %.*s", link->major, link->minor,
                       what, request->architecture, length > 0 ? length : 60,
                       length > 0 ? line : peal_arena_print(request->arena, "error %d", result));
}

static const char *log_of(const peal_cuda_compile_request *request, const peal_jitlink *link,
                          void *handle)
{
    size_t bytes = 0;

    if (link->error_log_size(handle, &bytes) || bytes == 0)
        return "";
    char *log = peal_arena_allocate(request->arena, bytes + 1);
    return link->error_log(handle, log) ? "" : log;
}

/* What is taken of a link: the image, ptxas's messages, or PTX. One link makes an image or PTX, so
 * messages and PTX need two. */
typedef enum linked_part { LINKED_IMAGE, LINKED_MESSAGES, LINKED_PTX } linked_part;

static int take_part(const peal_cuda_compile_request *request, const peal_jitlink *link,
                     void *handle, linked_part part, char **out, size_t *bytes)
{
    int (*const size[])(void *, size_t *) = {link->cubin_size, link->info_log_size, link->ptx_size};
    int result = size[part](handle, bytes);

    *out = result ? NULL : peal_arena_allocate(request->arena, *bytes + 1);
    if (result || *bytes == 0)
        return result;
    return part == LINKED_IMAGE      ? link->cubin(handle, *out)
           : part == LINKED_MESSAGES ? link->info_log(handle, *out)
                                     : link->ptx(handle, *out);
}

static peal_status link_with(const peal_cuda_compile_request *request, const peal_jitlink *link,
                             void *handle, const char *unit, size_t bytes, linked_part part,
                             peal_cuda_compile_result *out)
{
    const peal_kernel_files *files = request->files;
    int result = link->add_data(handle, PEAL_JITLINK_LTOIR, unit, bytes, "<peal>");

    if (result)
        return failed(request, link, log_of(request, link, handle), "peal's own code", result);
    for (int i = 0; i < files->code_count; i++) {
        const peal_device_code *code = &files->code[i];
        result = link->add_data(handle, PEAL_JITLINK_ANY, code->data, code->bytes, code->path);
        if (result)
            return failed(request, link, log_of(request, link, handle),
                          peal_arena_print(request->arena, "`%s`", code->path), result);
    }
    result = link->complete(handle);
    if (result) {
        const char *log = log_of(request, link, handle);
        read_missing(request, log, out);
        return out->error_count > 0 ? PEAL_STATUS_OK
                                    : failed(request, link, log, "the device code", result);
    }
    char *taken = NULL;
    result = take_part(request, link, handle, part, &taken, &out->bytes);
    if (result)
        return failed(request, link, "", "the device code", result);
    taken[out->bytes] = '\0';
    out->image = taken;
    return PEAL_STATUS_OK;
}

static peal_status link_part(const peal_cuda_compile_request *request, const char *unit,
                             size_t bytes, linked_part part, peal_cuda_compile_result *out)
{
    /* Code is generated here, so contraction and precision are said again, as for the unit. */
    const char *options[] = {peal_arena_print(request->arena, "-arch=sm_%d", request->architecture),
                             "-lto",
                             "-ftz=0",
                             "-prec-div=1",
                             "-prec-sqrt=1",
                             "-lineinfo",
                             request->fma ? "-fma=1" : "-fma=0",
                             part == LINKED_PTX ? "-ptx" : "-Xptxas=-v"};
    uint32_t count = sizeof(options) / sizeof(options[0]) - (part == LINKED_IMAGE);
    const peal_jitlink *link = peal_jitlink_open(NULL);
    void *handle = NULL;
    int result = link->create(&handle, count, options);

    if (result)
        return failed(request, link, "", "anything", result);
    peal_status status = link_with(request, link, handle, unit, bytes, part, out);
    link->destroy(&handle);
    return status;
}

peal_status peal_cuda_link(const peal_cuda_compile_request *request, const char *unit, size_t bytes,
                           peal_cuda_compile_result *out)
{
    peal_cuda_compile_result ptx = {0};

    if (!request->verbose)
        return link_part(request, unit, bytes, LINKED_IMAGE, out);
    peal_status status = link_part(request, unit, bytes, LINKED_MESSAGES, out);
    if (!status && out->image)
        status = link_part(request, unit, bytes, LINKED_PTX, &ptx);
    if (status || !out->image)
        return status;
    size_t begin = strlen(out->image) + 1, length = strlen(ptx.image) + 1;
    char *words = peal_arena_allocate(request->arena, begin + length);
    memcpy(words, out->image, begin);
    memcpy(words + begin, ptx.image, length);
    out->image = words;
    out->bytes = begin + length;
    return PEAL_STATUS_OK;
}
