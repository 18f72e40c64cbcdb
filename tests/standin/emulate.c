/* Kernels of the stand-in's device run on the host, one after the other, where a stream comes to
 * them: device code compiled by the C++ compiler (nvrtc_host.c), a block's threads as fibers
 * (tests/backends/emulated/device.h). It shows that what is put onto streams means what the
 * schedule says, for several processes as well; not what a GPU does: no two kernels of a process
 * run at a time, and memory has one order. */
#define _GNU_SOURCE
#include "tests/standin/emulate.h"

#include "backends/cuda/codegen/device/fused_launch.h"
#include "backends/cuda/codegen/device/launch.h"

#include <dlfcn.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { MOST_ROUNDS = 1000000, WORDS = 5 };

typedef void start_function(void *kernel, unsigned blocks, unsigned threads, const peal_launch *);

typedef void start_fused_function(unsigned blocks, unsigned threads, const peal_fused *);

typedef struct function {
    start_fused_function *start_fused;
    const unsigned *fused_bytes;
    void *kernel; /* NULL: the kernel that goes on with a WHILE node (device/round.h) */
    start_function *start;
} function;

typedef struct node {
    emulate_call *call;
    int stream;
    uint64_t clock[EMULATE_STREAMS];
} node;

typedef struct graph {
    node *node;
    int count, room;
    struct graph *body;
} graph;

struct emulate_call {
    const function *function;
    unsigned blocks, threads;
    peal_launch launch;
    peal_fused *fused;     /* by rank */
    uint64_t words[WORDS]; /* parameters of the kernel that goes on */
    graph *replay;
    emulate_box box;
    volatile uint64_t *word;
    uint64_t value;
    bool waits;
};

static graph *captured;
static bool goes_on;

static void *make(size_t bytes)
{
    void *made = calloc(1, bytes);
    if (!made)
        abort();
    return made;
}

/* ---- modules ---- */

void *emulate_module(const void *image)
{
    static char none;
    if (!strcmp(image, "round"))
        return &none;
    void *library = dlopen(image, RTLD_NOW | RTLD_LOCAL);
    if (!library)
        fprintf(stderr, "emulate: %s\n", dlerror());
    return library;
}

void *emulate_function(void *module, const char *name)
{
    function *f = make(sizeof(*f));
    if (strcmp(name, "peal_round") != 0) {
        f->kernel = dlsym(module, name);
        *(void **)&f->start = dlsym(module, "emulate_start");
        if (!strcmp(name, "peal_fused_kernel"))
            *(void **)&f->start_fused = dlsym(module, "emulate_start_fused");
        f->fused_bytes = dlsym(module, "emulate_fused_bytes");
    }
    return f;
}

void *emulate_global(void *module, const char *name)
{
    return dlsym(module, name);
}

/* ---- calls ---- */

emulate_call *emulate_kernel(void *of, unsigned blocks, unsigned threads, void **parameter)
{
    emulate_call *call = make(sizeof(*call));

    call->function = of;
    call->blocks = blocks;
    call->threads = threads;
    if (call->function->start_fused) {
        call->fused = make(*call->function->fused_bytes);
        memcpy(call->fused, parameter[0], *call->function->fused_bytes);
    } else if (call->function->kernel) {
        memcpy(&call->launch, parameter[0], sizeof(call->launch));
    }
    for (int i = 0; !call->function->kernel && i < WORDS; i++)
        memcpy(&call->words[i], parameter[i], sizeof(call->words[i]));
    return call;
}

emulate_call *emulate_word(bool waits, volatile uint64_t *word, uint64_t value)
{
    emulate_call *call = make(sizeof(*call));

    call->waits = waits;
    call->word = word;
    call->value = value;
    return call;
}

emulate_call *emulate_copy(emulate_box box)
{
    emulate_call *call = make(sizeof(*call));
    call->box = box;
    return call;
}

emulate_call *emulate_replay(void *of)
{
    emulate_call *call = make(sizeof(*call));
    call->replay = of;
    return call;
}

void emulate_forget(emulate_call *call)
{
    free(call->fused);
    free(call);
}

/* As device/round.h says. */
static void go_on(const emulate_call *call)
{
    int64_t *left = (int64_t *)(uintptr_t)call->words[1];
    int64_t more = *left - 1;

    for (int i = 2; i < WORDS; i++)
        if (*(volatile unsigned *)(uintptr_t)call->words[i])
            more = 0;
    *left = more > 0 ? more : 0;
    goes_on = more > 0;
}

static void copy_box(const emulate_box *box)
{
    for (size_t z = 0; z < box->depth; z++)
        for (size_t y = 0; y < box->height; y++)
            memcpy(box->to + z * box->to_plane + y * box->to_row,
                   box->from + z * box->from_plane + y * box->from_row, box->width);
}

static void run_list(const graph *g)
{
    for (int i = 0; i < g->count; i++)
        emulate_run(g->node[i].call);
}

static void run_graph(const graph *g)
{
    goes_on = g->body != NULL;
    for (int round = 0; goes_on && round < MOST_ROUNDS; round++)
        run_list(g->body);
    run_list(g);
}

void emulate_run(const emulate_call *call)
{
    if (call->replay) {
        run_graph(call->replay);
    } else if (call->word && call->waits) {
        while ((int64_t)(__atomic_load_n(call->word, __ATOMIC_ACQUIRE) - call->value) < 0)
            sched_yield();
    } else if (call->word) {
        __atomic_store_n(call->word, call->value, __ATOMIC_RELEASE);
    } else if (call->box.to) {
        copy_box(&call->box);
    } else if (call->function->start_fused) {
        call->function->start_fused(call->blocks, call->threads, call->fused);
    } else if (call->function->kernel) {
        call->function->start(call->function->kernel, call->blocks, call->threads, &call->launch);
    } else {
        go_on(call);
    }
}

/* ---- graphs ---- */

void *emulate_graph(void)
{
    return make(sizeof(graph));
}

void emulate_capture(void *into)
{
    captured = into ? into : emulate_graph();
}

void emulate_append(emulate_call *call, int stream, const uint64_t clock[EMULATE_STREAMS])
{
    if (captured->count == captured->room) {
        captured->room = 2 * captured->room + 64;
        captured->node = realloc(captured->node, (size_t)captured->room * sizeof(node));
        if (!captured->node)
            abort();
    }
    node *added = &captured->node[captured->count++];
    *added = (node){.call = call, .stream = stream};
    memcpy(added->clock, clock, sizeof(added->clock));
}

/* The first node of a stream that has not been taken; -1: none is left. */
static int next_of(const graph *g, const bool *taken, int stream, int from)
{
    for (int i = from; i < g->count; i++)
        if (g->node[i].stream == stream && !taken[i])
            return i;
    return -1;
}

static bool is_free(const graph *g, const int next[EMULATE_STREAMS], const node *n)
{
    for (int s = 0; s < EMULATE_STREAMS; s++)
        if (s != n->stream && next[s] >= 0 && g->node[next[s]].clock[s] <= n->clock[s])
            return false;
    return true;
}

/* Each stream in turn goes as far as it can. */
void *emulate_captured(void)
{
    bool *taken = make((size_t)captured->count + 1);
    node *sorted = make(((size_t)captured->count + 1) * sizeof(*sorted));
    int next[EMULATE_STREAMS], count = 0;

    for (int s = 0; s < EMULATE_STREAMS; s++)
        next[s] = next_of(captured, taken, s, 0);
    for (int s = 0; count < captured->count; s = (s + 1) % EMULATE_STREAMS)
        while (next[s] >= 0 && is_free(captured, next, &captured->node[next[s]])) {
            sorted[count++] = captured->node[next[s]];
            taken[next[s]] = true;
            next[s] = next_of(captured, taken, s, next[s]);
        }
    free(captured->node);
    free(taken);
    captured->node = sorted;
    captured->room = captured->count + 1;
    return captured;
}

void *emulate_body(void *of)
{
    return ((graph *)of)->body = emulate_graph();
}
