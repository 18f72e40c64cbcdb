/* libmlx5, opened at run time, and the memory that its queues lie in. */
#define _GNU_SOURCE
#include "runtime/network/mlx5.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

enum { PAGE_BYTES = 4096, PAGES = MLX5_ARENA_BYTES / PAGE_BYTES };
enum { FREE, BEGINS, GOES_ON };

static mlx5_library library;

static void open_library(void)
{
    static char reason[VERBS_TEXT_BYTES];
    void *handle = dlopen("libmlx5.so.1", RTLD_NOW | RTLD_LOCAL);
    library.reason = reason;
    if (!handle) {
        snprintf(reason, sizeof(reason), "%s", dlerror());
        return;
    }
    *(void **)(void *)&library.mlx5dv_is_supported = dlsym(handle, "mlx5dv_is_supported");
    *(void **)(void *)&library.mlx5dv_init_obj = dlsym(handle, "mlx5dv_init_obj");
    *(void **)(void *)&library.mlx5dv_set_context_attr = dlsym(handle, "mlx5dv_set_context_attr");
    if (library.mlx5dv_is_supported && library.mlx5dv_init_obj && library.mlx5dv_set_context_attr)
        library.reason = NULL;
    else
        snprintf(reason, sizeof(reason), "libmlx5.so.1 lacks a function: it is too old");
}

const mlx5_library *mlx5_get(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    pthread_once(&once, open_library);
    return &library;
}

/* ---- the arena ---- */

mlx5_arena *mlx5_arena_open(void)
{
    mlx5_arena *arena = calloc(1, sizeof(*arena));
    unsigned char *taken = calloc(PAGES, 1);
    int file = memfd_create("peal-rings", MFD_CLOEXEC);
    void *at = MAP_FAILED;
    if (file >= 0 && !ftruncate(file, MLX5_ARENA_BYTES))
        at = mmap(NULL, MLX5_ARENA_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, file,
                  0);
    if (file >= 0)
        close(file);
    if (!arena || !taken || at == MAP_FAILED) {
        if (at != MAP_FAILED)
            munmap(at, MLX5_ARENA_BYTES);
        free(arena);
        free(taken);
        return NULL;
    }
    arena->at = at;
    arena->taken = taken;
    pthread_mutex_init(&arena->lock, NULL);
    return arena;
}

void mlx5_arena_close(mlx5_arena *arena)
{
    if (!arena)
        return;
    munmap(arena->at, MLX5_ARENA_BYTES);
    pthread_mutex_destroy(&arena->lock);
    free(arena->taken);
    free(arena);
}

/* The first run of free pages that is long enough; as libmlx5 expects it, its contents are
 * anything. */
static void *take(size_t bytes, void *user)
{
    mlx5_arena *arena = user;
    int pages = (int)((bytes + PAGE_BYTES - 1) / PAGE_BYTES), length = 0, end = 0;
    void *at = NULL;
    pthread_mutex_lock(&arena->lock);
    for (; end < PAGES && length < pages; end++)
        length = arena->taken[end] == FREE ? length + 1 : 0;
    if (pages > 0 && length == pages) {
        for (int i = end - pages; i < end; i++)
            arena->taken[i] = i == end - pages ? BEGINS : GOES_ON;
        at = arena->at + (size_t)(end - pages) * PAGE_BYTES;
    }
    pthread_mutex_unlock(&arena->lock);
    return at;
}

static void give_back(void *at, void *user)
{
    mlx5_arena *arena = user;
    size_t page = (size_t)((unsigned char *)at - arena->at) / PAGE_BYTES;
    pthread_mutex_lock(&arena->lock);
    do
        arena->taken[page++] = FREE;
    while (page < PAGES && arena->taken[page] == GOES_ON);
    pthread_mutex_unlock(&arena->lock);
}

bool mlx5_arena_serves(mlx5_arena *arena, struct ibv_context *context)
{
    struct mlx5dv_ctx_allocators by = {take, give_back, arena};
    return !mlx5_get()->mlx5dv_set_context_attr(context, MLX5DV_CTX_ATTR_BUF_ALLOCATORS, &by);
}
