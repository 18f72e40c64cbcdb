/* The end of the command where there is no memory. */
#ifndef PEAL_TOOLS_MEMORY_H
#define PEAL_TOOLS_MEMORY_H

#include "base/arena.h"

#include <stddef.h>

/* Says that `wanted` bytes cannot be had, and ends the process with the environment's status. */
_Noreturn void command_end_without_memory(size_t wanted);

/* For the rest of a function: an allocation from the arena that cannot be met ends the process. */
#define COMMAND_ARENA_GUARD(arena)                                                                 \
    PEAL_ARENA_GUARD(arena, command_end_without_memory(peal_arena_wanted(arena)))

#endif
