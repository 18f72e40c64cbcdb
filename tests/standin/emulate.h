/* Where the device's code runs, too: emulate.c has these functions, a stand-in without it only
 * records calls (they are weak). Streams, captures and conditional nodes are streams.c's; a graph
 * here is the list of what was captured, in that order. */
#ifndef PEAL_TESTS_STANDIN_EMULATE_H
#define PEAL_TESTS_STANDIN_EMULATE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define WEAK __attribute__((weak))

typedef struct emulate_call emulate_call;

/* Image: the path of a library, as nvrtc_host.c makes them. */
WEAK void *emulate_module(const void *image);
WEAK void *emulate_function(void *module, const char *name);
WEAK void *emulate_global(void *module, const char *name);

WEAK emulate_call *emulate_kernel(void *function, unsigned blocks, unsigned threads,
                                  void **parameter);
WEAK emulate_call *emulate_word(bool waits, volatile uint64_t *word, uint64_t value);
/* What a copy engine copies: rows of `width` bytes. */
typedef struct emulate_box {
    char *to;
    const char *from;
    size_t width, height, depth, to_row, from_row, to_plane, from_plane;
} emulate_box;
WEAK emulate_call *emulate_copy(emulate_box box);
WEAK emulate_call *emulate_replay(void *graph);
WEAK void emulate_run(const emulate_call *call);
WEAK void emulate_forget(emulate_call *call);

/* What follows is captured: into a graph of its own (NULL), or into one that there is. */
WEAK void emulate_capture(void *graph);
/* clock: by stream, how many nodes come before this one's end; its own stream's count itself. */
enum { EMULATE_STREAMS = 72 };
WEAK void emulate_append(emulate_call *call, int stream, const uint64_t clock[EMULATE_STREAMS]);
/* The captured graph. */
WEAK void *emulate_captured(void);
WEAK void *emulate_graph(void);
/* The body of a graph's WHILE node. */
WEAK void *emulate_body(void *graph);

#endif
