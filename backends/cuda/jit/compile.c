/* Compiles a text by NVRTC, unless the cache has the result.
 *
 * The key of a cache entry is made of the text, all files that it includes, the device's headers,
 * the options, and the versions of NVRTC, driver and peal. An entry begins with the architecture
 * that it is for; if that is another one, the text is compiled anew. */
#define _GNU_SOURCE
#include "backends/cuda/jit/compile.h"

#include "backends/cuda/codegen/codegen.h"
#include "base/cache.h"
#include "base/cuda_driver.h"
#include "base/sha256.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { OWN_OPTIONS = 24, MARK_BYTES = 16, SPLITTING = 13 /* NVRTC that surely can */ };

typedef struct compile_job {
    const peal_cuda_compile_request *request;
    const peal_nvrtc *nvrtc;
    const char **option; /* room for OWN_OPTIONS and a folder of each file */
    int option_count;
    const char **header_name, **header_text; /* what kernels include */
    int header_count;
    const char *entry;     /* of the cache; NULL: none */
    char mark[MARK_BYTES]; /* what an entry begins with */
} compile_job;

static void add_option(compile_job *job, const char *option)
{
    job->option[job->option_count++] = option;
}

static bool is_linked(const peal_cuda_compile_request *request)
{
    return request->links && !request->ptx;
}

static void add_options(compile_job *job)
{
    static const char *const always[] = {
        "--std=c++17",        "-default-device",    "--ftz=false",         "--prec-div=true",
        "--prec-sqrt=true",   "-lineinfo",          "--no-source-include", "--device-int128",
        "-diag-suppress=177", "-diag-suppress=550",
    };
    const peal_cuda_compile_request *request = job->request;

    job->option =
        PEAL_ARENA_ARRAY(request->arena, const char *, OWN_OPTIONS + request->files->count);
    add_option(job, peal_arena_print(request->arena, "--gpu-architecture=%s_%d",
                                     request->ptx ? "compute" : "sm", request->architecture));
    for (size_t i = 0; i < sizeof(always) / sizeof(always[0]); i++)
        add_option(job, always[i]);
    /* --fmad is always said, because its default is true: only what the host contracts may be
     * contracted. */
    if (request->links)
        add_option(job, "--relocatable-device-code=true");
    if (is_linked(request))
        add_option(job, "-dlto");
    if (request->verbose && !is_linked(request))
        add_option(job, "--ptxas-options=-v");
    add_option(job, request->fma ? "--fmad=true" : "--fmad=false");
    for (int i = 0; i < request->files->count; i++)
        add_option(job, peal_arena_print(request->arena, "-I%s", request->files->folder[i]));
}

/* Optimizes in threads, one a core. The code that comes out is the same, but for a note of how it
 * was made, so this is no part of the key. Such threads of several compilers in one process get in
 * each other's way: a persistent kernel, which takes 4 s alone, took 14 s among seven, and 12 s in
 * one thread each (on 32 cores; bench/results/2026-11-29-gpu-tune.txt). */
static void add_threads(compile_job *job)
{
    const peal_cuda_compile_request *request = job->request;
    bool can = !request->verbose && !request->ptx && job->nvrtc->major >= SPLITTING;

    if (can && !is_linked(request) && !request->many)
        add_option(job, "--split-compile=0");
}

static void add_header(compile_job *job, const char *name, const char *text)
{
    job->header_name[job->header_count] = name;
    job->header_text[job->header_count++] = text;
}

static int count_files(const peal_text_file *files)
{
    int count = 0;

    while (files[count].name)
        count++;
    return count;
}

static void add_headers(compile_job *job)
{
    static const char *const same[] = {"peal/call.h", "peal/types.h"};
    int most = count_files(peal_cuda_device_headers) + count_files(peal_cuda_device_libc) +
               (int)(sizeof(same) / sizeof(same[0]));

    job->header_name = PEAL_ARENA_ARRAY(job->request->arena, const char *, most);
    job->header_text = PEAL_ARENA_ARRAY(job->request->arena, const char *, most);
    for (const peal_text_file *h = peal_cuda_device_headers; h->name; h++)
        add_header(job, peal_arena_print(job->request->arena, "peal/%s", h->name), h->text);
    for (const peal_text_file *h = peal_cuda_device_libc; h->name; h++)
        add_header(job, h->name, h->text);
    for (size_t i = 0; i < sizeof(same) / sizeof(same[0]); i++)
        add_header(job, same[i], "#include <peal/kernel.h>\n");
}

/* ---- the cache ---- */

static void add_text(peal_sha256 *hash, const char *text)
{
    peal_sha256_add(hash, text, strlen(text) + 1);
}

static void find_entry(compile_job *job)
{
    const peal_cuda_compile_request *request = job->request;
    const char *included = peal_kernel_files_included(request->files, request->arena);
    unsigned char digest[PEAL_SHA256_BYTES];
    char key[PEAL_SHA256_TEXT];
    peal_sha256 hash;

    snprintf(job->mark, sizeof(job->mark), "sm_%d", request->architecture);
    if ((request->ptx && !request->cache_folder) || !included)
        return;
    const char *folder =
        peal_cache_open(request->cache_folder, request->arena, request->diagnostics);
    if (!folder)
        return;
    peal_sha256_init(&hash);
    add_text(&hash, PEAL_VERSION);
    add_text(&hash, peal_arena_print(request->arena, "nvrtc %d.%d driver %d", job->nvrtc->major,
                                     job->nvrtc->minor, request->driver));
    for (int i = 0; i < job->option_count; i++)
        add_text(&hash, job->option[i]);
    for (int i = 0; i < job->header_count; i++)
        add_text(&hash, job->header_text[i]);
    add_text(&hash, included);
    for (int i = 0; is_linked(request) && i < request->files->code_count; i++)
        peal_sha256_add(&hash, request->files->code[i].data, request->files->code[i].bytes);
    if (is_linked(request))
        add_text(&hash, peal_cuda_link_version(request->arena));
    add_text(&hash, request->source);
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, key);
    job->entry = peal_arena_print(request->arena, "%s/%s.%s", folder, key,
                                  request->verbose ? "words"
                                  : request->ptx   ? "ptx"
                                                   : "cubin");
}

static bool load_entry(const compile_job *job, peal_cuda_compile_result *out)
{
    size_t bytes = 0;
    char *data = job->entry && !job->request->anew ? peal_cache_load(job->entry, &bytes) : NULL;
    bool good = data && bytes > MARK_BYTES && memcmp(data, job->mark, MARK_BYTES) == 0;

    if (good) {
        out->image =
            peal_arena_copy_bytes(job->request->arena, data + MARK_BYTES, bytes - MARK_BYTES);
        out->bytes = bytes - MARK_BYTES;
        out->was_cached = true;
    }
    free(data);
    return good;
}

static void keep_entry(const compile_job *job, const peal_cuda_compile_result *result)
{
    char *data = job->entry ? malloc(MARK_BYTES + result->bytes) : NULL;

    if (!data)
        return;
    memcpy(data, job->mark, MARK_BYTES);
    memcpy(data + MARK_BYTES, result->image, result->bytes);
    peal_cache_keep(data, MARK_BYTES + result->bytes, job->entry, job->request->diagnostics);
    free(data);
}

/* ---- messages of the compiler ---- */

/* Line `number` of a kernel file. */
static const char *line_of(const peal_kernel_files *files, const char *path, int number)
{
    for (int i = 0; i < files->count; i++) {
        const char *line = files->file[i].text;
        if (strcmp(files->file[i].path, path) != 0)
            continue;
        while (line && --number > 0 && (line = strchr(line, '\n')))
            line++;
        return line;
    }
    return NULL;
}

/* Behind a message are the line, indented in another way, and a caret below the column. */
static void find_column(const compile_job *job, const char *shown, peal_compile_error *error)
{
    const char *caret = strchr(shown, '\n');
    const char *line = line_of(job->request->files, error->file, error->line);

    if (!caret || !line)
        return;
    size_t indent = strspn(shown, " \t"), blanks = strspn(caret + 1, " ");
    if (caret[1 + blanks] == '^' && blanks >= indent)
        error->column = (int)(blanks - indent + strspn(line, " \t")) + 1;
}

/* "file(line): error: text" or "file(line): error #20: text" or "catastrophic error". */
static bool read_error(const compile_job *job, const char *line, peal_compile_error *error)
{
    peal_arena *arena = job->request->arena;
    const char *end = strchr(line, '\n');
    const char *text =
        peal_arena_copy_bytes(arena, line, end ? (size_t)(end - line) : strlen(line));
    const char *word = strstr(text, "error");
    const char *bracket = strstr(text, "): ");

    if (!word || !bracket || bracket > word || word - bracket > 20 || !strstr(word, ": "))
        return false;
    const char *open = bracket;
    while (open > text && isdigit((unsigned char)open[-1]))
        open--;
    if (open <= text || open[-1] != '(')
        return false;
    *error =
        (peal_compile_error){.file = peal_arena_copy_bytes(arena, text, (size_t)(open - 1 - text)),
                             .line = atoi(open),
                             .message = strstr(word, ": ") + 2};
    if (end)
        find_column(job, end + 1, error);
    return true;
}

static void read_log(const compile_job *job, const char *log, peal_cuda_compile_result *out)
{
    peal_arena *arena = job->request->arena;
    peal_compile_error *list =
        PEAL_ARENA_ARRAY(arena, peal_compile_error, PEAL_MOST_COMPILE_ERRORS);

    for (const char *line = log; line && out->error_count < PEAL_MOST_COMPILE_ERRORS;) {
        if (read_error(job, line, &list[out->error_count]))
            out->error_count++;
        line = strchr(line, '\n');
        if (line)
            line++;
    }
    if (out->error_count == 0)
        list[out->error_count++].message =
            peal_arena_copy_text(arena, *log ? log : "the compiler failed without a message");
    out->error = list;
}

static peal_status failed(const compile_job *job, nvrtcResult result)
{
    return peal_report(job->request->diagnostics, PEAL_E_NVRTC_FAILED, (peal_source){0},
                       "is the installation of CUDA complete? is there enough memory?",
                       "NVRTC %d.%d failed for %s: %s", job->nvrtc->major, job->nvrtc->minor,
                       job->option[0], job->nvrtc->nvrtcGetErrorString_(result));
}

static peal_status take_image(const compile_job *job, nvrtcProgram program,
                              peal_cuda_compile_result *out)
{
    const peal_nvrtc *nvrtc = job->nvrtc;
    bool ptx = job->request->ptx;
    nvrtcResult result = ptx ? nvrtc->nvrtcGetPTXSize_(program, &out->bytes)
                             : nvrtc->nvrtcGetCUBINSize_(program, &out->bytes);
    char *image = NULL;

    if (!result) {
        image = peal_arena_allocate(job->request->arena, out->bytes + 1);
        result = ptx ? nvrtc->nvrtcGetPTX_(program, image) : nvrtc->nvrtcGetCUBIN_(program, image);
    }
    if (result)
        return failed(job, result);
    out->image = image;
    return PEAL_STATUS_OK;
}

/* The messages of ptxas and, behind their NUL, the PTX. */
static peal_status take_words(const compile_job *job, nvrtcProgram program,
                              peal_cuda_compile_result *out)
{
    const peal_nvrtc *nvrtc = job->nvrtc;
    size_t log = 0, ptx = 0;
    nvrtcResult result = nvrtc->nvrtcGetProgramLogSize_(program, &log);

    if (!result)
        result = nvrtc->nvrtcGetPTXSize_(program, &ptx);
    if (result)
        return failed(job, result);
    char *words = peal_arena_allocate(job->request->arena, log + ptx + 2);
    result = nvrtc->nvrtcGetProgramLog_(program, words);
    size_t begin = strlen(words) + 1;
    if (!result)
        result = nvrtc->nvrtcGetPTX_(program, words + begin);
    if (result)
        return failed(job, result);
    out->image = words;
    out->bytes = begin + strlen(words + begin) + 1;
    return PEAL_STATUS_OK;
}

static peal_status link_image(const compile_job *job, nvrtcProgram program,
                              peal_cuda_compile_result *out)
{
    const peal_nvrtc *nvrtc = job->nvrtc;
    size_t bytes = 0;
    nvrtcResult result = nvrtc->nvrtcGetLTOIRSize_(program, &bytes);
    char *unit = result ? NULL : peal_arena_allocate(job->request->arena, bytes + 1);

    if (unit)
        result = nvrtc->nvrtcGetLTOIR_(program, unit);
    return result ? failed(job, result) : peal_cuda_link(job->request, unit, bytes, out);
}

static peal_status compile_program(const compile_job *job, nvrtcProgram program,
                                   peal_cuda_compile_result *out)
{
    const peal_nvrtc *nvrtc = job->nvrtc;
    size_t bytes = 0;
    nvrtcResult result = nvrtc->nvrtcCompileProgram_(program, job->option_count, job->option);

    if (!result && is_linked(job->request))
        return link_image(job, program, out);
    if (!result)
        return job->request->verbose ? take_words(job, program, out)
                                     : take_image(job, program, out);
    if (result != NVRTC_ERROR_COMPILATION || nvrtc->nvrtcGetProgramLogSize_(program, &bytes))
        return failed(job, result);
    char *log = peal_arena_allocate(job->request->arena, bytes + 1);
    if (nvrtc->nvrtcGetProgramLog_(program, log))
        return failed(job, result);
    read_log(job, log, out);
    return PEAL_STATUS_OK;
}

static peal_status compile_source(const compile_job *job, peal_cuda_compile_result *out)
{
    nvrtcProgram program = NULL;
    nvrtcResult result =
        job->nvrtc->nvrtcCreateProgram_(&program, job->request->source, "<peal>", job->header_count,
                                        job->header_text, job->header_name);
    if (result)
        return failed(job, result);
    peal_status status = compile_program(job, program, out);
    job->nvrtc->nvrtcDestroyProgram_(&program);
    if (!status && out->image)
        keep_entry(job, out);
    return status;
}

/* The guard is for the claim, which others wait for. */
static peal_status compile_claimed(compile_job *job, const _Atomic int *word,
                                   peal_cuda_compile_result *out)
{
    PEAL_ARENA_GUARD(job->request->arena,
                     return peal_report(job->request->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                        (peal_source){0}, NULL, "no memory to compile kernels"));
    if (word && atomic_load(word)) /* who set the word says why */
        return (peal_status)atomic_load(word);
    if (load_entry(job, out))
        return PEAL_STATUS_OK;
    add_threads(job);
    return compile_source(job, out);
}

bool peal_cuda_is_missing(const peal_cuda_compile_request *request)
{
    compile_job *job = PEAL_ARENA_NEW(request->arena, compile_job);
    const char *reason = NULL;

    job->request = request;
    job->nvrtc = peal_nvrtc_open(&reason);
    if (!job->nvrtc)
        return false;
    add_options(job);
    add_headers(job);
    find_entry(job);
    return job->entry && access(job->entry, R_OK) != 0;
}

peal_status peal_cuda_compile(const peal_cuda_compile_request *request,
                              peal_cuda_compile_result *out)
{
    compile_job *job = PEAL_ARENA_NEW(request->arena, compile_job);
    const char *reason = NULL;
    peal_status status = PEAL_STATUS_OK;

    *out = (peal_cuda_compile_result){0};
    job->request = request;
    job->nvrtc = peal_nvrtc_open(&reason);
    if (!job->nvrtc)
        return peal_report(request->diagnostics, PEAL_E_NO_NVRTC, (peal_source){0},
                           "install NVRTC (cuda-nvrtc), or run on the host: --backend host", "%s",
                           reason);
    if (is_linked(request) &&
        (status = peal_cuda_link_open(request->diagnostics)) != PEAL_STATUS_OK)
        return status;
    add_options(job);
    add_headers(job);
    find_entry(job);
    if (load_entry(job, out))
        return PEAL_STATUS_OK;
    const _Atomic int *word = request->abort_word;
    int claim = job->entry ? peal_cache_claim(job->entry, request->deadline_ns, word) : -1;
    status = compile_claimed(job, word, out);
    peal_cache_release(claim);
    return status;
}
