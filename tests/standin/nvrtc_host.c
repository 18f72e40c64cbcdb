/* A stand-in for NVRTC that compiles a unit with the host's C++ compiler: the image is the path of
 * a library (emulate.c). EMULATE_INCLUDE: where the device is emulated; without it nothing runs
 * kernels, and nothing is compiled. EMULATE_UNITS: a folder for units, each named by a hash of what
 * it is made of: one that is there is taken, one that another process is compiling is waited for.
 */
#define _GNU_SOURCE
#include <nvrtc.h>

#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { PATH = 400 };

#define FLAGS                                                                                      \
    "-std=c++17 -Og -w -ffp-contract=off -fPIC -shared -pthread " /* of the C++ compiler */

typedef struct unit {
    char *source;
    char **name, **text;
    int count;
    char image[PATH];
    char *log;
} unit;

/* A block's kernel is started by these words, behind the unit's. */
static const char start[] =
    "\n#line 1 \"start\"\n#include <peal/launch.h>\n"
    "typedef void kernel_function(const peal_launch);\n"
    "struct started_ { kernel_function *kernel; const peal_launch *launch; };\n"
    "static void start_one_(const void *a) { const started_ *s = (const started_ *)a; "
    "s->kernel(*s->launch); }\n"
    "extern \"C\" void emulate_start(void *f, unsigned g, unsigned t, const peal_launch *l) "
    "{ started_ s = {(kernel_function *)f, l}; run_grid(g, t, start_one_, &s); }\n";

/* And the one that stays by these. */
static const char start_fused[] =
    "\n#line 1 \"start\"\n"
    "static void start_fused_(const void *a) { peal_fused_kernel(*(const peal_fused_ranks_ *)a); "
    "}\n"
    "extern \"C\" { unsigned emulate_fused_bytes = sizeof(peal_fused_ranks_); "
    "void emulate_start_fused(unsigned g, unsigned t, const peal_fused *f) "
    "{ run_together(g, t, start_fused_, f); } }\n";

static const char *folder(void)
{
    const char *named = getenv("EMULATE_UNITS");
    return named ? named : "/nowhere";
}

static void put(const char *in, const char *name, const char *head, const char *text,
                const char *tail)
{
    char path[PATH + 200];
    snprintf(path, sizeof(path), "%s/%s", in, name);
    char *slash = strrchr(path, '/');
    *slash = '\0';
    mkdir(path, 0777);
    *slash = '/';
    FILE *file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "%s%s%s", head, text, tail);
    fclose(file);
}

static char *read_all(const char *path)
{
    char *text = calloc(1, 1 << 16);
    FILE *file = fopen(path, "r");
    if (file && text)
        text[fread(text, 1, (1 << 16) - 1, file)] = '\0';
    if (file)
        fclose(file);
    return text;
}

nvrtcResult nvrtcVersion(int *major, int *minor)
{
    *major = 13;
    *minor = 0;
    return NVRTC_SUCCESS;
}

const char *nvrtcGetErrorString(nvrtcResult result)
{
    return result ? "the C++ compiler failed" : "no error";
}

nvrtcResult nvrtcCreateProgram(nvrtcProgram *out, const char *source, const char *name, int count,
                               const char *const *text, const char *const *names)
{
    unit *u = calloc(1, sizeof(*u));
    (void)name;
    u->source = strdup(source);
    u->count = count;
    u->name = calloc((size_t)count + 1, sizeof(char *));
    u->text = calloc((size_t)count + 1, sizeof(char *));
    for (int i = 0; i < count; i++) {
        u->name[i] = strdup(names[i]);
        u->text[i] = strdup(text[i]);
    }
    *out = (nvrtcProgram)(void *)u;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcDestroyProgram(nvrtcProgram *program)
{
    unit *u = (unit *)(void *)*program;
    for (int i = 0; i < u->count; i++) {
        free(u->name[i]);
        free(u->text[i]);
    }
    free(u->name);
    free(u->text);
    free(u->source);
    free(u->log);
    free(u);
    return NVRTC_SUCCESS;
}

static void add(uint64_t hash[2], const char *text)
{
    for (; *text; text++)
        for (int k = 0; k < 2; k++) /* FNV-1a, and with another multiplier */
            hash[k] = (hash[k] ^ (unsigned char)*text) * (k ? 0x9e3779b97f4a7c15u : 0x100000001b3u);
}

/* Not by where the sources lie: another copy of them takes the same units. */
static void name_unit(const unit *u, const char *text, const char *include, char *in, size_t room)
{
    uint64_t hash[2] = {0xcbf29ce484222325u, 0xcbf29ce484222325u};
    char path[2 * PATH];

    snprintf(path, sizeof(path), "%s/device.h", include);
    char *device = read_all(path);
    add(hash, device ? device : "");
    free(device);
    add(hash, FLAGS);
    for (int i = 0; i < u->count; i++)
        add(hash, u->text[i]);
    add(hash, text);
    snprintf(in, room, "%s/%016llx%016llx", folder(), (unsigned long long)hash[0],
             (unsigned long long)hash[1]);
}

static nvrtcResult compile_in(unit *u, const char *in, const char *text, const char *compiler)
{
    char command[4 * PATH];

    mkdir(in, 0777);
    for (int i = 0; i < u->count; i++)
        if (!strncmp(u->name[i], "peal/", 5))
            put(in, u->name[i], "", u->text[i], "");
    put(in, "unit.cc", "#include \"device.h\"\n", text, "");
    snprintf(command, sizeof(command), "cd '%s' && %s", in, compiler);
    if (system(command) == 0)
        return NVRTC_SUCCESS;
    snprintf(command, sizeof(command), "%s/log", in);
    u->log = read_all(command);
    return NVRTC_ERROR_COMPILATION;
}

nvrtcResult nvrtcCompileProgram(nvrtcProgram program, int count, const char *const *options)
{
    unit *u = (unit *)(void *)program;
    char in[PATH - 20], lock[PATH], compiler[2 * PATH];
    const char *include = getenv("EMULATE_INCLUDE");
    (void)count, (void)options;

    if (strstr(u->source, "peal/round.h")) { /* which sets the handle of a conditional node */
        strcpy(u->image, "round");
        return NVRTC_SUCCESS;
    }
    if (!include) {
        strcpy(u->image, "nothing");
        return NVRTC_SUCCESS;
    }
    bool stays = strstr(u->source, "#define PEAL_FUSED 1\n") != NULL &&
                 strstr(u->source, "#define PEAL_BUNDLE 1\n") == NULL;
    char *text = calloc(1, strlen(u->source) + sizeof(start) + sizeof(start_fused));
    sprintf(text, "%s%s%s", u->source, start, stays ? start_fused : "");
    snprintf(compiler, sizeof(compiler),
             "env -u LD_LIBRARY_PATH c++ " FLAGS
             "-I . -I '%s' unit.cc -o made.so 2>log && mv made.so unit.so",
             include);
    name_unit(u, text, include, in, sizeof(in));
    snprintf(u->image, sizeof(u->image), "%s/unit.so", in);
    snprintf(lock, sizeof(lock), "%s.lock", in);
    int fd = open(lock, O_RDWR | O_CREAT | O_CLOEXEC, 0666);
    nvrtcResult result = NVRTC_SUCCESS;
    if (fd < 0 || flock(fd, LOCK_EX) != 0)
        result = NVRTC_ERROR_COMPILATION;
    else if (access(u->image, R_OK) != 0)
        result = compile_in(u, in, text, compiler);
    if (fd >= 0)
        close(fd);
    free(text);
    return result;
}

nvrtcResult nvrtcGetProgramLogSize(nvrtcProgram program, size_t *bytes)
{
    const unit *u = (const unit *)(const void *)program;
    *bytes = u->log ? strlen(u->log) + 1 : 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetProgramLog(nvrtcProgram program, char *text)
{
    const unit *u = (const unit *)(const void *)program;
    strcpy(text, u->log ? u->log : "");
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBINSize(nvrtcProgram program, size_t *bytes)
{
    *bytes = strlen(((const unit *)(const void *)program)->image) + 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetCUBIN(nvrtcProgram program, char *image)
{
    strcpy(image, ((const unit *)(const void *)program)->image);
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTXSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetPTX(nvrtcProgram program, char *text)
{
    (void)program;
    *text = '\0';
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLTOIRSize(nvrtcProgram program, size_t *bytes)
{
    (void)program;
    *bytes = 1;
    return NVRTC_SUCCESS;
}

nvrtcResult nvrtcGetLTOIR(nvrtcProgram program, char *code)
{
    (void)program;
    *code = '\0';
    return NVRTC_SUCCESS;
}
