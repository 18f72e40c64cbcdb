/* Opens libcuda, NVRTC and nvJitLink by name and looks up what base/peal_cuda_driver.h lists. */
#include "base/cuda_driver.h"

#if PEAL_HAVE_CUDA
#include <dlfcn.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#define TEXT_(name) #name
#define TEXT(name)  TEXT_(name)

static struct {
    pthread_once_t once;
    peal_cuda_driver driver;
    const peal_cuda_driver *usable;
    char reason[320];
} cuda = {.once = PTHREAD_ONCE_INIT};

static struct {
    pthread_once_t once;
    peal_nvrtc table;
    const peal_nvrtc *usable;
    char reason[320];
} nvrtc = {.once = PTHREAD_ONCE_INIT};

static struct {
    pthread_once_t once;
    peal_jitlink table;
    const peal_jitlink *usable;
    char reason[320];
} jitlink = {.once = PTHREAD_ONCE_INIT};

/* POSIX: a pointer from dlsym converts to a function's. */
static bool look_up(void *library, const char *name, void *out, const char **missing)
{
    void *symbol = dlsym(library, name);
    memcpy(out, &symbol, sizeof(symbol));
    if (!symbol && !*missing)
        *missing = name;
    return symbol != NULL;
}

const char *peal_cuda_error(CUresult result, char text[160])
{
    const char *name = NULL, *words = NULL;
    if (cuda.driver.cuGetErrorName_)
        cuda.driver.cuGetErrorName_(result, &name);
    if (cuda.driver.cuGetErrorString_)
        cuda.driver.cuGetErrorString_(result, &words);
    snprintf(text, 160, "%s (%d): %s", name ? name : "CUDA error", (int)result,
             words ? words : "no description");
    return text;
}

static void open_driver(void)
{
    const char *missing = NULL;
    char text[160];
    void *library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!library) {
        snprintf(cuda.reason, sizeof(cuda.reason), "no NVIDIA driver: %s", dlerror());
        return;
    }
#define LOOK_UP(name) look_up(library, TEXT(name), &cuda.driver.name##_, &missing);
    PEAL_CUDA_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    if (missing) {
        snprintf(cuda.reason, sizeof(cuda.reason),
                 "the NVIDIA driver is too old: it has no %s (CUDA 12.4 or later is needed)",
                 missing);
        return;
    }
    CUresult result = cuda.driver.cuInit_(0);
    if (!result)
        result = cuda.driver.cuDriverGetVersion_(&cuda.driver.version);
    if (!result)
        result = cuda.driver.cuDeviceGetCount_(&cuda.driver.device_count);
    if (result)
        snprintf(cuda.reason, sizeof(cuda.reason), "the NVIDIA driver does not start: %s",
                 peal_cuda_error(result, text));
    else if (cuda.driver.device_count < 1)
        snprintf(cuda.reason, sizeof(cuda.reason), "the NVIDIA driver sees no GPU");
    else
        cuda.usable = &cuda.driver;
}

const peal_cuda_driver *peal_cuda_open(const char **reason)
{
    pthread_once(&cuda.once, open_driver);
    if (reason)
        *reason = cuda.usable ? NULL : cuda.reason;
    return cuda.usable;
}

/* The library of CUDA's toolkit that is found first. */
static void *open_library(const char *name)
{
    static const char *const places[] = {
        "%s.13",
        "%s.12",
        "%s",
        "/usr/local/cuda/lib64/%s",
        "/usr/local/cuda/targets/x86_64-linux/lib/%s",
    };
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        char path[128];
        snprintf(path, sizeof(path), places[i], name);
        void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (library)
            return library;
    }
    return NULL;
}

static void open_nvrtc(void)
{
    const char *missing = NULL;
    void *library = open_library("libnvrtc.so");
    if (!library) {
        snprintf(nvrtc.reason, sizeof(nvrtc.reason),
                 "no NVRTC: libnvrtc.so is neither on the library path nor in /usr/local/cuda");
        return;
    }
#define LOOK_UP(name) look_up(library, TEXT(name), &nvrtc.table.name##_, &missing);
    PEAL_NVRTC_FUNCTIONS(LOOK_UP)
#undef LOOK_UP
    if (missing)
        snprintf(nvrtc.reason, sizeof(nvrtc.reason), "NVRTC is too old: it has no %s", missing);
    else if (nvrtc.table.nvrtcVersion_(&nvrtc.table.major, &nvrtc.table.minor))
        snprintf(nvrtc.reason, sizeof(nvrtc.reason), "NVRTC does not start");
    else
        nvrtc.usable = &nvrtc.table;
}

const peal_nvrtc *peal_nvrtc_open(const char **reason)
{
    pthread_once(&nvrtc.once, open_nvrtc);
    if (reason)
        *reason = nvrtc.usable ? NULL : nvrtc.reason;
    return nvrtc.usable;
}

static void open_jitlink(void)
{
    const char *missing = NULL;
    peal_jitlink *table = &jitlink.table;
    const struct {
        const char *name;
        void *member;
    } functions[] = {
        {"nvJitLinkCreate", &table->create},
        {"nvJitLinkDestroy", &table->destroy},
        {"nvJitLinkAddData", &table->add_data},
        {"nvJitLinkComplete", &table->complete},
        {"nvJitLinkGetLinkedCubinSize", &table->cubin_size},
        {"nvJitLinkGetLinkedCubin", &table->cubin},
        {"nvJitLinkGetErrorLogSize", &table->error_log_size},
        {"nvJitLinkGetErrorLog", &table->error_log},
        {"nvJitLinkGetInfoLogSize", &table->info_log_size},
        {"nvJitLinkGetInfoLog", &table->info_log},
        {"nvJitLinkGetLinkedPtxSize", &table->ptx_size},
        {"nvJitLinkGetLinkedPtx", &table->ptx},
        {"nvJitLinkVersion", &table->version_of},
    };
    void *library = open_library("libnvJitLink.so");
    if (!library) {
        snprintf(jitlink.reason, sizeof(jitlink.reason),
                 "no nvJitLink: libnvJitLink.so is neither on the library path nor in "
                 "/usr/local/cuda");
        return;
    }
    for (size_t i = 0; i < sizeof(functions) / sizeof(functions[0]); i++)
        look_up(library, functions[i].name, functions[i].member, &missing);
    if (missing)
        snprintf(jitlink.reason, sizeof(jitlink.reason), "nvJitLink is too old: it has no %s",
                 missing);
    else if (table->version_of(&table->major, &table->minor))
        snprintf(jitlink.reason, sizeof(jitlink.reason), "nvJitLink does not start");
    else
        jitlink.usable = table;
}

const peal_jitlink *peal_jitlink_open(const char **reason)
{
    pthread_once(&jitlink.once, open_jitlink);
    if (reason)
        *reason = jitlink.usable ? NULL : jitlink.reason;
    return jitlink.usable;
}
#else
typedef int peal_cuda_is_off;
#endif
