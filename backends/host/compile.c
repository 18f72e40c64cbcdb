/* Compiles a generated source into a shared object: preprocesses it, looks for it in the cache,
 * compiles, loads. Everything is done in a private folder: in the cache, or where there is room.
 *
 * The key of a cache entry is a hash of the preprocessed text, which has the contents of every
 * included file, of the compiler's version, the processor that -march=native means here, the flags,
 * and peal's version. */
#define _GNU_SOURCE
#include "backends/host/compile.h"

#include "backends/host/folder.h"
#include "backends/host/library.h"

#include "base/cache.h"
#include "base/new_file.h"
#include "base/processor.h"
#include "base/program.h"
#include "base/sha256.h"
#include "peal_config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

extern char **environ;

enum { MOST_WORDS = 96 };

static const char *const flags[] = {"-std=gnu11",
                                    "-O3",
                                    "-march=native",
                                    "-fPIC",
                                    "-fdiagnostics-color=never",
                                    "-x",
                                    "c",
                                    "-Werror=implicit-function-declaration",
                                    "-Werror=incompatible-pointer-types",
                                    "-Werror=int-conversion",
                                    "-Wno-unknown-warning-option",
                                    "-Werror=discarded-qualifiers",
                                    NULL};

typedef struct compile_job {
    const host_compile_request *request;
    host_folder folder; /* this process's own */
    const char *compiler[16];
    int compiler_words;
    bool is_gcc;
    bool is_elsewhere; /* the folder is not in the cache, which has no room */
    int claim;         /* on the entry that is being made */
} compile_job;

static const char *in_folder(const compile_job *job, const char *name)
{
    return peal_arena_print(job->request->arena, "%s/%s", job->folder.path, name);
}

static bool write_file(const char *path, const char *text)
{
    FILE *file = fopen(path, "we");
    bool written = file && fputs(text, file) >= 0;
    return file && fclose(file) == 0 && written;
}

/* 0 or an errno. */
static int make_folder(compile_job *job, const char *base, bool is_cache)
{
    int error = host_folder_make(base, is_cache, job->request->arena, &job->folder);

    if (error)
        return error;
    if (mkdir(in_folder(job, "peal"), 0700) != 0)
        return errno;
    for (const peal_text_file *h = peal_kernel_headers; h->name; h++)
        if (!write_file(in_folder(job, peal_arena_print(job->request->arena, "peal/%s", h->name)),
                        h->text))
            return errno ? errno : EIO;
    return write_file(in_folder(job, "kernels.c"), job->request->source) ? 0 : errno ? errno : EIO;
}

/* $CC may have arguments of its own. */
static void find_compiler(compile_job *job)
{
    const char *given = getenv("CC");
    char *copy = peal_arena_copy_text(job->request->arena, given && *given ? given : "cc");
    char *rest = NULL;

    for (char *word = strtok_r(copy, " \t", &rest); word && job->compiler_words < 15;
         word = strtok_r(NULL, " \t", &rest))
        job->compiler[job->compiler_words++] = word;
    if (job->compiler_words == 0)
        job->compiler[job->compiler_words++] = "cc";
}

/* The environment of the compiler: with messages in English, because they are parsed, and with its
 * temporary files in our folder. */
static char **english(const compile_job *job)
{
    peal_arena *arena = job->request->arena;
    int count = 0;
    while (environ[count])
        count++;
    char **copy = PEAL_ARENA_ARRAY(arena, char *, count + 3);
    int kept = 0;
    for (int i = 0; i < count; i++)
        if (strncmp(environ[i], "LC_ALL=", 7) != 0 && strncmp(environ[i], "TMPDIR=", 7) != 0)
            copy[kept++] = environ[i];
    copy[kept++] = peal_arena_print(arena, "TMPDIR=%s", job->folder.path);
    copy[kept] = peal_arena_copy_text(arena, "LC_ALL=C");
    return copy;
}

/* Runs the compiler with these further arguments. Its output goes to files; *exit_code is its exit
 * status. */
static peal_status spawn(const compile_job *job, const char *const *words, int count,
                         const char *output, int *exit_code)
{
    const char *argument[MOST_WORDS + 17];
    const host_compile_request *request = job->request;
    peal_source nowhere = {0};
    int used = 0;

    for (int i = 0; i < job->compiler_words; i++)
        argument[used++] = job->compiler[i];
    for (int i = 0; i < count && i < MOST_WORDS; i++)
        argument[used++] = words[i];
    argument[used] = NULL;
    const peal_program program = {.argv = argument,
                                  .environment = english(job),
                                  .output = output,
                                  .errors = in_folder(job, "errors"),
                                  .deadline_ns = request->deadline_ns,
                                  .abort_word = request->abort_word};
    switch (peal_program_run(&program, exit_code)) {
    case PEAL_PROGRAM_EXITED:
        return PEAL_STATUS_OK;
    case PEAL_PROGRAM_SIGNALED:
        return peal_report(request->diagnostics, PEAL_E_KERNELS_NOT_LOADED, nowhere,
                           "is there enough memory?", "the compiler was ended by signal %d",
                           *exit_code);
    case PEAL_PROGRAM_STUCK:
        return peal_report(request->diagnostics, PEAL_E_COMPILER_STALLED, nowhere,
                           "does it wait for a license, a file system, another host? --deadline "
                           "sets the limit",
                           "the C compiler `%s` has made no progress for %.3g s: it was killed",
                           argument[0], (double)request->deadline_ns * 1e-9);
    case PEAL_PROGRAM_ABORTED: /* whoever has set the abort word reports why */
        return (peal_status)atomic_load(request->abort_word);
    case PEAL_PROGRAM_REFUSED:
        break;
    }
    bool is_ours = peal_is_lack_of_means(*exit_code);
    return peal_report(request->diagnostics,
                       is_ours ? PEAL_E_SYSTEM_CALL_FAILED : PEAL_E_NO_C_COMPILER, nowhere,
                       is_ours ? NULL : "install a C compiler (package gcc), or set CC to one",
                       "cannot run the C compiler `%s`: %s", argument[0], strerror(*exit_code));
}

/* Reads a file that the compiler has written; *text stays NULL if there is no such file. */
static peal_status read_back(const compile_job *job, const char *name, char **text)
{
    *text = peal_file_read(in_folder(job, name), NULL);
    if (*text || !peal_is_lack_of_means(errno))
        return PEAL_STATUS_OK;
    return peal_report(job->request->diagnostics, PEAL_E_SYSTEM_CALL_FAILED, (peal_source){0}, NULL,
                       "cannot read what the compiler has written (%s): %s", name, strerror(errno));
}

static int add_flags(const compile_job *job, const char **words)
{
    const host_compile_request *request = job->request;
    int count = 0;

    for (int i = 0; flags[i]; i++)
        words[count++] = flags[i];
    words[count++] = request->fma ? "-ffp-contract=fast" : "-ffp-contract=off";
    if (job->is_gcc) /* it then reports a mistake at a macro of ours where it is used, as clang does
                      */
        words[count++] = "-ftrack-macro-expansion=0";
    words[count++] = "-I";
    words[count++] = job->folder.path;
    for (int i = 0; i < request->files->count && count < MOST_WORDS - 16; i++) {
        words[count++] = "-iquote";
        words[count++] = request->files->folder[i];
    }
    return count;
}

static peal_status read_errors(const compile_job *job, host_compile_result *out)
{
    char *text;
    peal_status status = read_back(job, "errors", &text);

    if (status)
        return status;
    out->error_count = peal_compile_errors_read(text ? text : "", job->request->arena, &out->error);
    free(text);
    return PEAL_STATUS_OK;
}

/* Hashes a preprocessed text without its line markers: they name files, such as this process's
 * folder, and the same text makes the same code wherever it lies. In a text that may have raw
 * strings, whose lines may look like markers, only the folder's name is left out. */
static void add_text(const compile_job *job, peal_sha256 *hash, const char *text)
{
    const bool may_be_raw = strstr(text, "R\"") != NULL;
    const char *own = job->folder.path;

    for (const char *line = text, *end; *line; line = end) {
        size_t length = strcspn(line, "\n");
        end = line + length + (line[length] == '\n');
        if (strncmp(line, "# ", 2) == 0 && line[2] >= '0' && line[2] <= '9') {
            const char *name = strchr(line, '"');
            if (!may_be_raw || (name && name < end && !strncmp(name + 1, own, strlen(own))))
                continue;
        }
        peal_sha256_add(hash, line, (size_t)(end - line));
    }
}

static void make_key(const compile_job *job, const char *preprocessed, const char *version,
                     char key[PEAL_SHA256_TEXT])
{
    unsigned char digest[PEAL_SHA256_BYTES];
    peal_sha256 hash;

    peal_sha256_init(&hash);
    peal_sha256_add(&hash, PEAL_VERSION, sizeof(PEAL_VERSION));
    peal_sha256_add(&hash, version, strlen(version) + 1);
    for (int i = 0; i < job->compiler_words; i++)
        peal_sha256_add(&hash, job->compiler[i], strlen(job->compiler[i]) + 1);
    for (int i = 0; flags[i]; i++)
        peal_sha256_add(&hash, flags[i], strlen(flags[i]) + 1);
    peal_sha256_add(&hash, job->request->fma ? "f" : "n", 1);
    peal_processor_add(&hash); /* -march=native depends on it */
    add_text(job, &hash, preprocessed);
    peal_sha256_finish(&hash, digest);
    peal_sha256_text(digest, key);
}

/* Checks the files that the source depends on, without headers of the system. The preprocessor
 * writes them as a rule of make, in which a backslash is before blanks and ends of lines. */
static peal_status check_included(const compile_job *job)
{
    const host_compile_request *request = job->request;
    size_t own = strlen(job->folder.path);
    char *rule;
    peal_status status = read_back(job, "included", &rule);
    const char *at = rule ? strstr(rule, ": ") : NULL;

    if (!at) {
        free(rule);
        return status; /* OK: another compiler may write no such file */
    }
    char *name = peal_arena_copy_text(request->arena, at);
    for (at += 2; *at;) {
        size_t length = 0;
        while (*at == ' ' || *at == '\n' || (*at == '\\' && at[1] == '\n'))
            at += *at == '\\' ? 2 : 1;
        for (; *at && *at != ' ' && *at != '\n'; at++) {
            if ((*at == '\\' && strchr(" #\\:", at[1]) && at[1]) || (*at == '$' && at[1] == '$'))
                at++;
            name[length++] = *at;
        }
        name[length] = 0;
        bool known = length == 0 || !strncmp(name, job->folder.path, own);
        peal_status one =
            known ? PEAL_STATUS_OK
                  : peal_kernel_file_check(request->files->root, name, request->files->file[0].path,
                                           request->files->source, request->diagnostics);
        status = status ? status : one;
    }
    free(rule);
    return status;
}

/* Preprocesses the source; the text has line markers, which say where each line is from. */
static peal_status preprocess(const compile_job *job, host_compile_result *out)
{
    const char *words[MOST_WORDS];
    int count = add_flags(job, words), code = 0;

    words[count++] = "-E";
    words[count++] = "-MMD";
    words[count++] = "-MF";
    words[count++] = in_folder(job, "included");
    words[count++] = "-MT";
    words[count++] = "kernels";
    words[count++] = in_folder(job, "kernels.c");
    peal_status status = spawn(job, words, count, in_folder(job, "kernels.i"), &code);
    if (!status && code != 0)
        return read_errors(job, out);
    if (!status)
        status = check_included(job);
    if (!status)
        status = read_back(job, "kernels.i", &out->preprocessed);
    if (!status && !out->preprocessed)
        return peal_report(job->request->diagnostics, PEAL_E_KERNELS_NOT_LOADED, (peal_source){0},
                           NULL, "the C compiler has written no preprocessed text");
    return status;
}

/* Makes kernels.so of one of the folder's files. */
static peal_status compile_file(const compile_job *job, const char *language, const char *name,
                                int *code)
{
    const char *words[MOST_WORDS];
    int count = add_flags(job, words);

    words[count++] = "-Wno-unused-command-line-argument"; /* folders, where all is included */
    words[count++] = "-shared";
    words[count++] = "-o";
    words[count++] = in_folder(job, "kernels.so");
    words[count++] = "-x";
    words[count++] = language;
    words[count++] = in_folder(job, name);
    words[count++] = "-lm";
    return spawn(job, words, count, NULL, code);
}

/* Compiles the source itself, after the compiler has refused the preprocessed text. The reason may
 * be a mistake, whose column is right in the source only. Or the compiler does not know
 * preprocessed text as a language, or it makes errors of warnings that a comment or a macro's name
 * would prevent. The result counts only if the source still reads as it did when it was checked and
 * hashed. */
static peal_status compile_source(const compile_job *job, host_compile_result *out)
{
    static const char changed[] = "what the kernel files include has changed while it was compiled";
    host_compile_result again = {.memory = -1};
    int code = 0;
    peal_status status = compile_file(job, "c", "kernels.c", &code);

    if (status || code != 0)
        return status ? status : read_errors(job, out);
    status = preprocess(job, &again);
    out->error = again.error;
    out->error_count = again.error_count;
    if (!status && !out->error_count && strcmp(again.preprocessed, out->preprocessed) != 0) {
        out->error = PEAL_ARENA_NEW(job->request->arena, peal_compile_error);
        out->error[out->error_count++].message = changed;
    }
    free(again.preprocessed);
    return status;
}

/* Compiles the preprocessed text, which was checked and hashed, since files may change meanwhile.
 * This process loads what it has compiled itself, even if another process makes the entry first. */
static peal_status build(const compile_job *job, const char *entry, host_compile_result *out)
{
    const char *object = in_folder(job, "kernels.so");
    size_t bytes = 0;
    int code = 0;
    peal_status status = compile_file(job, "cpp-output", "kernels.i", &code);

    if (!status && code != 0)
        status = compile_source(job, out);
    if (status || out->error_count > 0)
        return status;
    char *data = peal_file_read(object, &bytes);
    status = host_library_load(job->request, object, data, data ? bytes : 0, out);
    if (!status && entry && data && !job->is_elsewhere)
        peal_cache_keep(data, bytes, entry, job->request->diagnostics);
    free(data);
    return status;
}

/* The library of the entry, if there is one. */
static bool load_entry(const compile_job *job, const char *entry, host_compile_result *out)
{
    size_t bytes = 0;
    char *data = entry ? peal_cache_load(entry, &bytes) : NULL;
    bool loaded =
        data && host_library_load(job->request, entry, data, bytes, out) == PEAL_STATUS_OK;

    out->was_cached = loaded;
    free(data);
    return loaded;
}

/* The compiler's version, in its own words, in the arena. */
static peal_status ask_version(compile_job *job, const char **out)
{
    static const char *const words[] = {"--version"};
    int code = 0;
    char *text = NULL;

    peal_status status = spawn(job, words, 1, in_folder(job, "version"), &code);
    if (!status)
        status = read_back(job, "version", &text);
    *out = peal_arena_copy_text(job->request->arena, text ? text : "");
    free(text);
    job->is_gcc = strstr(*out, "Free Software Foundation") != NULL;
    return status;
}

static peal_status compile_in(compile_job *job, const char *cache, host_compile_result *out)
{
    char key[PEAL_SHA256_TEXT];
    const char *version, *entry = NULL;

    peal_status status = ask_version(job, &version);
    if (!status)
        status = preprocess(job, out);
    if (status || out->error_count > 0)
        return status;
    make_key(job, out->preprocessed, version, key);
    if (cache)
        entry = peal_arena_print(job->request->arena, "%s/%s.so", cache, key);
    const _Atomic int *word = job->request->abort_word;
    job->claim = entry ? peal_cache_claim(entry, job->request->deadline_ns, word) : -1;
    if (word && atomic_load(word)) /* whoever has set the abort word reports why */
        status = (peal_status)atomic_load(word);
    else if (!load_entry(job, entry, out))
        status = build(job, entry, out);
    peal_cache_release(job->claim);
    job->claim = -1;
    return status;
}

/* Whether it failed because the folder has no room. */
static bool is_out_of_room(const compile_job *job, const host_compile_result *out)
{
    for (int i = 0; i < out->error_count; i++)
        if (strstr(out->error[i].message, "No space left on device") ||
            strstr(out->error[i].message, "Disk quota exceeded"))
            return true;
    return out->error_count > 0 && !out->library && host_folder_is_full(&job->folder);
}

/* Compiles in the first folder that has room. */
static peal_status compile_somewhere(compile_job *job, const char *cache, host_compile_result *out)
{
    const host_compile_request *request = job->request;
    const char *temporary = getenv("TMPDIR");
    bool given = temporary && *temporary;
    const char *const bases[] = {cache, given ? temporary : "/tmp", given ? NULL : "/var/tmp",
                                 given ? NULL : "/dev/shm"};
    int error = 0;

    for (size_t i = 0; i < sizeof(bases) / sizeof(bases[0]); i++) {
        if (!bases[i])
            continue;
        int failed = make_folder(job, bases[i], bases[i] == cache);
        error = error ? error : failed;
        if (!failed) {
            peal_status status = compile_in(job, cache, out);
            if (status || !is_out_of_room(job, out))
                return status;
            error = ENOSPC;
            free(out->preprocessed);
            *out = (host_compile_result){.memory = -1};
        }
        host_folder_remove(&job->folder);
        job->is_elsewhere = true;
        if (bases[i] == cache)
            peal_warn(request->diagnostics, PEAL_E_KERNELS_NOT_CACHED, (peal_source){0},
                      "make room, or set PEAL_CACHE to another folder",
                      "kernels cannot be compiled in `%s`: %s", cache, strerror(error));
    }
    return peal_report(request->diagnostics, PEAL_E_SOURCE_NOT_WRITTEN, (peal_source){0},
                       "make room, or set TMPDIR to a folder that can be written",
                       "cannot write the generated source: %s", strerror(error));
}

static peal_status try_to_compile(compile_job *job, const char *cache, host_compile_result *out)
{
    PEAL_ARENA_GUARD(job->request->arena,
                     return peal_report(job->request->diagnostics, PEAL_E_OUT_OF_MEMORY,
                                        (peal_source){0}, NULL,
                                        "no memory to compile the kernels"));
    find_compiler(job);
    return compile_somewhere(job, cache, out);
}

peal_status host_compile(const host_compile_request *request, host_compile_result *out)
{
    compile_job job = {.request = request, .folder = {.descriptor = -1}, .claim = -1};
    peal_size_guard guard;
    const char *cache =
        peal_cache_open(request->cache_folder, request->arena, request->diagnostics);

    *out = (host_compile_result){.memory = -1};
    peal_size_guard_begin(&guard);
    peal_status status = try_to_compile(&job, cache, out);
    peal_size_guard_end(&guard);
    peal_cache_release(job.claim);
    host_folder_remove(&job.folder);
    return status;
}
