/* libibverbs, opened at run time. */
#include "runtime/network/mlx5.h"

#include <dlfcn.h>
#include <stdio.h>

static verbs_library library;

static void open_library(void)
{
    static char reason[VERBS_TEXT_BYTES];
    const char *missing = NULL;
    void *handle = dlopen("libibverbs.so.1", RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        snprintf(reason, sizeof(reason), "%s", dlerror());
        library.reason = reason;
        return;
    }
#define VERBS_FIND(name)                                                                           \
    *(void **)(void *)&library.name = dlsym(handle, #name);                                        \
    missing = library.name ? missing : #name;
    VERBS_FUNCTIONS(VERBS_FIND)
#undef VERBS_FIND
    int count = 0;
    struct ibv_device **list = missing ? NULL : library.ibv_get_device_list(&count);
    if (list)
        library.ibv_free_device_list(list);
    if (missing)
        snprintf(reason, sizeof(reason), "libibverbs.so.1 has no %s", missing);
    else if (!count)
        snprintf(reason, sizeof(reason), "libibverbs finds no RDMA adapter here");
    if (missing || !count)
        library.reason = reason;
}

const char *peal_network_verbs_refuses(void)
{
    return verbs_get()->reason;
}

static const char *find_mlx5(void)
{
    int count = 0;
    bool found = false;
    struct ibv_device **list = library.ibv_get_device_list(&count);
    for (int i = 0; list && i < count; i++)
        found |= mlx5_get()->mlx5dv_is_supported(list[i]);
    if (list)
        library.ibv_free_device_list(list);
    return found ? NULL : "none of the RDMA adapters here is an mlx5";
}

const char *peal_network_mlx5_refuses(void)
{
    if (verbs_get()->reason)
        return verbs_get()->reason;
    return mlx5_get()->reason ? mlx5_get()->reason : find_mlx5();
}

const verbs_library *verbs_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return &library;
}
