/* Puts generated text together. */
#define _GNU_SOURCE
#include "backends/cuda/codegen/text.h"

#include <stdarg.h>
#include <stdlib.h>

FILE *peal_cuda_text_open(peal_arena *arena, char **text, size_t *bytes)
{
    FILE *out = open_memstream(text, bytes);
    if (!out)
        peal_arena_fail(arena, BUFSIZ);
    return out;
}

const char *peal_cuda_text_close(peal_arena *arena, FILE *out, char **text)
{
    fclose(out);
    const char *copy = peal_arena_copy_text(arena, *text);
    free(*text);
    *text = NULL;
    return copy;
}

void peal_cuda_body_open(FILE *out, const char *signature)
{
    fprintf(out, "%s\n{\n", signature);
}

void peal_cuda_body_close(FILE *out)
{
    fprintf(out, "}\n");
}

void peal_cuda_block_open(FILE *out, const char *head, ...)
{
    va_list arguments;

    fprintf(out, "    ");
    va_start(arguments, head);
    vfprintf(out, head, arguments);
    va_end(arguments);
    fprintf(out, " {\n");
}

void peal_cuda_block_else(FILE *out)
{
    fprintf(out, "    } else {\n");
}

void peal_cuda_block_close(FILE *out)
{
    fprintf(out, "    }\n");
}
