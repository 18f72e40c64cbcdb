/* calloc, malloc and realloc as the linker's --wrap gives them: the real ones, but for the chosen
 * call. */
#include "tests/starve.h"

#include <stdlib.h>

void *__real_calloc(size_t count, size_t bytes);
void *__real_malloc(size_t bytes);
void *__wrap_malloc(size_t bytes);
void *__real_realloc(void *memory, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void *__wrap_realloc(void *memory, size_t bytes);

static _Thread_local int left, starving;
static _Thread_local bool has_failed;

void starve_at(int functions, int number)
{
    starving = functions;
    left = number;
    if (functions)
        has_failed = false;
}

bool starved(void)
{
    return has_failed;
}

static bool is_refused(int function)
{
    if (!(starving & function))
        return false;
    if (left-- > 0)
        return false;
    starving = 0;
    has_failed = true;
    return true;
}

void *__wrap_calloc(size_t count, size_t bytes)
{
    return is_refused(STARVE_CALLOC) ? NULL : __real_calloc(count, bytes);
}

void *__wrap_malloc(size_t bytes)
{
    return is_refused(STARVE_MALLOC) ? NULL : __real_malloc(bytes);
}

void *__wrap_realloc(void *memory, size_t bytes)
{
    return is_refused(STARVE_REALLOC) ? NULL : __real_realloc(memory, bytes);
}
