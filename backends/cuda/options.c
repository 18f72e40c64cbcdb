/* Reads the words that force how ops are enqueued: "signal=memop,copy=engine,lanes=2". */
#include "backends/cuda/options.h"

#include "backends/cuda/fused/dispatchers/dispatcher.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool is_word(const char *text, size_t length, const char *word)
{
    return strlen(word) == length && !strncmp(text, word, length);
}

/* One `key=value`. */
static bool apply(const char *text, size_t length, peal_cuda_options *out)
{
    const char *equals = memchr(text, '=', length);
    if (!equals)
        return false;
    size_t key = (size_t)(equals - text), rest = length - key - 1;
    const char *value = equals + 1;
    long number = strtol(value, NULL, 10);

    if (is_word(text, key, "signal") && is_word(value, rest, "fused"))
        out->signal = PEAL_CUDA_SIGNAL_FUSED;
    else if (is_word(text, key, "signal") && is_word(value, rest, "kernel"))
        out->signal = PEAL_CUDA_SIGNAL_KERNEL;
    else if (is_word(text, key, "signal") && is_word(value, rest, "memop"))
        out->signal = PEAL_CUDA_SIGNAL_MEMOP;
    else if (is_word(text, key, "copy") && is_word(value, rest, "kernel"))
        out->copy = PEAL_CUDA_COPY_KERNEL;
    else if (is_word(text, key, "copy") && is_word(value, rest, "engine"))
        out->copy = PEAL_CUDA_COPY_ENGINE;
    else if (is_word(text, key, "until") && is_word(value, rest, "unroll"))
        out->until = PEAL_CUDA_UNTIL_UNROLL;
    else if (is_word(text, key, "until") && is_word(value, rest, "while"))
        out->until = PEAL_CUDA_UNTIL_WHILE;
    else if (is_word(text, key, "order") && peal_cuda_dispatcher_find(value, rest))
        out->dispatcher = peal_cuda_dispatcher_find(value, rest);
    else if (is_word(text, key, "lanes") && number >= 1 && number <= PEAL_CUDA_LANES)
        out->lanes = (int)number;
    else if (is_word(text, key, "plain") && number >= 0)
        out->plain_points = number;
    else if (is_word(text, key, "blocks") && number >= 1 && number <= 64)
        out->blocks = (int)number;
    else if (is_word(text, key, "steps") && number >= 1 && number <= 1024)
        out->steps = (int)number;
    else if (is_word(text, key, "tile") && number >= 1)
        return true; /* the scheduler has heeded it: peal_lowering_tile */
    else
        return false;
    return true;
}

bool peal_cuda_options_parse(const char *text, peal_cuda_options *out)
{
    if (!out->dispatcher)
        out->dispatcher = peal_cuda_dispatcher_default();
    while (text && *text) {
        size_t length = strcspn(text, ",");
        if (!apply(text, length, out))
            return false;
        text += length + (text[length] == ',');
    }
    return true;
}

peal_cuda_fused_text peal_cuda_options_fused_text(const char *text)
{
    peal_cuda_options options = {0};

    if (!peal_cuda_options_parse(text, &options)) /* reported when the plan is made */
        options.dispatcher = peal_cuda_dispatcher_default();
    return (peal_cuda_fused_text){.device_header = options.dispatcher->device_header};
}
