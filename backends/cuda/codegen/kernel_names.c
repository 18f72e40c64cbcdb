/* The names of the kernels that a text defines. */
#include "backends/cuda/codegen/codegen.h"

#include <string.h>

static const char *skip_blanks(const char *at)
{
    return at + strspn(at, " \t");
}

const char **peal_cuda_kernel_names(const char *text, peal_arena *arena, size_t *count)
{
    static const char word[] = "PEAL_KERNEL(";
    size_t most = 0;

    *count = 0;
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word))
        most++;
    const char **names = PEAL_ARENA_ARRAY(arena, const char *, most + 1);
    for (const char *at = strstr(text, word); at; at = strstr(at + 1, word)) {
        const char *name = skip_blanks(at + sizeof(word) - 1);
        names[(*count)++] = peal_arena_copy_bytes(arena, name, strcspn(name, " \t\n)"));
    }
    return names;
}
