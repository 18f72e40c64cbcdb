/* The library reports a lack of memory and goes on; the command may end. */
#include "tools/memory.h"

#include <peal/status.h>
#include <stdio.h>
#include <unistd.h>

void command_end_without_memory(size_t wanted)
{
    fprintf(stderr, "peal: error: no memory: %zu more bytes are needed [E146]\n", wanted);
    _exit(PEAL_STATUS_ENVIRONMENT);
}
