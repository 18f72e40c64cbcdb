/* The freeze test: communication goes on while the CPU is away. Two ranks put all steps of a halo
 * exchange into a list of operations, as a stream would hold them: steps of a stencil, stores that
 * ring doorbells, waits for flags. Then every thread of both is stopped, a gate is opened from
 * outside, and only who executes the lists (a process that stands in for the device) and the
 * adapter, a process of its own, go on. Run by softhca.
 *
 *   freeze doorbell|word STEPS [running]
 *
 * doorbell: messages are written ahead, the list rings for them. word: the control; the list stores
 * trigger words, and a thread of the rank posts. Stopped, the first must finish, with both ranks in
 * state T, no context switch and no time on a CPU; the second must not, until they go on again.
 * running: nobody is stopped. Exit code 0: so it was, and all bits are right. */
#define _GNU_SOURCE
#include "runtime/network/network.h"
#include "tests/softhca/still.h"

#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RANKS = 2,
    PUTS = 2,
    NX = 64,
    NY = 8,
    ROW_BYTES = NX * 4,
    SLOTS = 2,
    STALL_MS = 1000,
    LIMIT_MS = 30000
};
static const uint64_t quantum = UINT64_C(1) << 61; /* words wrap after 8 messages */

typedef enum kind { STEP, STORE, WAIT, END } kind;
typedef struct operation {
    kind kind;
    peal_network_store store; /* STORE; of a WAIT, the word and its value */
    uint32_t step;
} operation;

/* What all processes share. */
typedef struct board {
    _Atomic uint64_t gate, finished[RANKS];
    _Atomic int enqueued[RANKS], done[RANKS], detached[RANKS];
    _Atomic uint64_t wrong[RANKS];
} board;

/* What a rank's processes and the adapter share. */
typedef struct memory {
    _Atomic uint64_t flag[PUTS], trigger[PUTS];
    uint32_t out[PUTS][SLOTS][NX], in[PUTS][SLOTS][NX];
    uint32_t field[2][NY][NX];
} memory;

typedef struct rank {
    int number, socket;
    uint32_t steps;
    bool by_word;
    board *board;
    memory *m;
    peal_put out[PUTS], in[PUTS];
    peal_pair pair;
    const peal_network_ops *engine;
    peal_network *network;
    peal_network_plan *plan;
} rank;

static void *share(size_t bytes)
{
    void *at = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (at == MAP_FAILED)
        abort();
    return at;
}

static void nap(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int64_t now_ms(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

static bool all(_Atomic int word[RANKS])
{
    return atomic_load(&word[0]) && atomic_load(&word[1]);
}

/* ---- what is computed: integers, of which any wrong one spreads ---- */

static uint32_t first_value(uint32_t row, uint32_t x)
{
    uint32_t v = row * 2246822519U + x * 3266489917U + 12345U;
    return v ^ v >> 13;
}

static uint32_t mix(uint32_t up, uint32_t down, uint32_t left, uint32_t right, uint32_t here,
                    uint32_t step)
{
    uint32_t v =
        up * 2654435761U + (down ^ (left << 7 | left >> 25)) + right * 40503U + here + step;
    return v ^ v >> 15;
}

/* One step of rows; above and below: the rows beyond them. */
static void relax(const uint32_t *from, uint32_t *to, uint32_t rows, const uint32_t *above,
                  const uint32_t *below, uint32_t step)
{
    for (uint32_t y = 0; y < rows; y++)
        for (uint32_t x = 0; x < NX; x++)
            to[y * NX + x] = mix(y ? from[(y - 1) * NX + x] : above[x],
                                 y + 1 < rows ? from[(y + 1) * NX + x] : below[x],
                                 from[y * NX + (x + NX - 1) % NX], from[y * NX + (x + 1) % NX],
                                 from[y * NX + x], step);
}

static uint64_t count_wrong(const rank *r)
{
    static uint32_t all[2][RANKS * NY][NX];
    for (uint32_t y = 0; y < RANKS * NY; y++)
        for (uint32_t x = 0; x < NX; x++)
            all[0][y][x] = first_value(y, x);
    for (uint32_t s = 1; s <= r->steps; s++) {
        uint32_t(*from)[NX] = all[(s - 1) % 2];
        relax(from[0], all[s % 2][0], RANKS * NY, from[RANKS * NY - 1], from[0], s);
    }
    uint64_t wrong = 0;
    for (uint32_t y = 0; y < NY; y++)
        for (uint32_t x = 0; x < NX; x++)
            wrong += r->m->field[r->steps % 2][y][x] !=
                     all[r->steps % 2][(uint32_t)r->number * NY + y][x];
    return wrong;
}

/* ---- a list, and who executes it ---- */

/* Put 0 is the first row, which lies below the other's last one; put 1 the last row. */
static void step(memory *m, uint32_t s)
{
    relax(m->field[(s - 1) % 2][0], m->field[s % 2][0], NY, m->in[1][(s - 1) % SLOTS],
          m->in[0][(s - 1) % SLOTS], s);
    memcpy(m->out[0][s % SLOTS], m->field[s % 2][0], ROW_BYTES);
    memcpy(m->out[1][s % SLOTS], m->field[s % 2][NY - 1], ROW_BYTES);
}

static void store(const peal_network_store *what)
{
    atomic_thread_fence(memory_order_seq_cst);
    if (what->bytes == 4)
        __atomic_store_n((uint32_t *)what->at, (uint32_t)what->value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint64_t *)what->at, what->value, __ATOMIC_RELEASE);
}

/* The other end may be one message ahead. */
static bool has_come(const peal_network_store *word)
{
    uint64_t is = __atomic_load_n((uint64_t *)word->at, __ATOMIC_ACQUIRE);
    return is == word->value || is == word->value + quantum;
}

_Noreturn static void execute(const rank *r, const operation *list)
{
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    while (!atomic_load(&r->board->gate))
        sched_yield();
    for (; list->kind != END; list++) {
        if (list->kind == STEP)
            step(r->m, list->step);
        else if (list->kind == STORE)
            store(&list->store);
        while (list->kind == WAIT && !has_come(&list->store))
            sched_yield();
    }
    atomic_store(&r->board->finished[r->number], 1);
    _exit(0);
}

/* Everything of all steps; NULL: the engine has no room for so many messages. */
static operation *enqueue(rank *r)
{
    operation *list = share(sizeof(*list) * (r->steps * (1 + 3 * PUTS) + 1UL)), *o = list;
    for (int i = 0; i < PUTS && !r->by_word; i++)
        if (!r->engine->ahead(r->plan, 0, i, r->steps))
            return NULL;
    for (uint32_t s = 1; s <= r->steps; s++) {
        *o++ = (operation){.kind = STEP, .step = s};
        for (int i = 0; i < PUTS; i++) {
            peal_network_store ring[PEAL_NETWORK_STORES] = {
                {(void *)&r->m->trigger[i], s * quantum, sizeof(uint64_t)}};
            int count = r->by_word ? 1 : r->engine->stores(r->plan, 0, i, s, ring);
            for (int k = 0; k < count; k++)
                *o++ = (operation){.kind = STORE, .store = ring[k]};
        }
        for (int i = 0; i < PUTS; i++)
            *o++ = (operation){.kind = WAIT,
                               .store = {(void *)&r->m->flag[i], s * quantum, sizeof(uint64_t)}};
    }
    o->kind = END;
    return list;
}

/* ---- a rank ---- */

static peal_status connect_to(void *user, int process, int *stream)
{
    (void)process;
    *stream = ((rank *)user)->socket;
    return PEAL_STATUS_OK;
}

static peal_status read_from(void *user, int process, int stream, void *data, size_t bytes)
{
    (void)user;
    (void)process;
    for (size_t have = 0; have < bytes;) {
        ssize_t now = recv(stream, (char *)data + have, bytes - have, 0);
        if (now <= 0)
            return PEAL_STATUS_PEER_LOST;
        have += (size_t)now;
    }
    return PEAL_STATUS_OK;
}

static void fail(void *user, peal_status status, const char *message)
{
    fprintf(stderr, "rank %d: %s (%d)\n", ((rank *)user)->number, message, (int)status);
    _exit(1);
}

static void make_puts(rank *r)
{
    for (int i = 0; i < PUTS; i++) {
        peal_put put = {.word = i,
                        .slot_bytes = ROW_BYTES,
                        .bytes = ROW_BYTES,
                        .slots = SLOTS,
                        .quantum = quantum};
        r->out[i] = r->in[i] = put;
        r->out[i].first_slot = (unsigned char *)r->m->out[i][0];
        r->in[i].first_slot = (unsigned char *)r->m->in[i][0];
        r->in[i].at = &r->m->flag[i];
    }
    r->pair = (peal_pair){
        .process = !r->number, .out = r->out, .in = r->in, .out_count = PUTS, .in_count = PUTS};
    uint32_t first = (uint32_t)r->number * NY, rows = RANKS * NY;
    for (uint32_t x = 0; x < NX; x++) {
        for (uint32_t y = 0; y < NY; y++)
            r->m->field[0][y][x] = first_value(first + y, x);
        r->m->in[0][0][x] = first_value((first + NY) % rows, x);
        r->m->in[1][0][x] = first_value((first + rows - 1) % rows, x);
    }
}

/* The control's: posts what trigger words say, also the last ones, which are stored before the end.
 */
static void *post(void *argument)
{
    const rank *r = argument;
    uint64_t sent[PUTS] = {0};
    for (bool ends = false; !ends;) {
        ends = atomic_load(&r->board->finished[r->number]);
        for (int i = 0; i < PUTS; i++) {
            uint64_t value = atomic_load_explicit(&r->m->trigger[i], memory_order_acquire);
            if (value != sent[i])
                r->engine->due(r->plan, 0, i, sent[i] = value);
        }
        r->engine->progress(r->network);
        sched_yield();
    }
    return NULL;
}

static int run_rank(rank *r)
{
    peal_network_site site = {.size = sizeof(site),
                              .process = r->number,
                              .processes = RANKS,
                              .user = r,
                              .connect = connect_to,
                              .read = read_from,
                              .fail = fail};
    peal_network_doorbell bell;
    pthread_t thread;
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    r->m = share(sizeof(*r->m));
    make_puts(r);
    if (r->engine->open(&site, NULL, &r->network) ||
        r->engine->attach(r->network, 1, &r->pair, 1, NULL, &r->plan) ||
        r->engine->doorbell(r->plan, 0, 0, &bell))
        return 1;
    if ((uint64_t)bell.ahead < r->steps ||
        r->engine->ahead(r->plan, 0, 0, (uint64_t)bell.ahead + 1)) {
        fprintf(stderr, "rank %d: %lld messages can be ahead\n", r->number, (long long)bell.ahead);
        return 1;
    }
    operation *list = enqueue(r);
    if (!list || (r->by_word && pthread_create(&thread, NULL, post, r)))
        return 1;
    pid_t device = fork();
    if (device == 0)
        execute(r, list);
    atomic_store(&r->board->enqueued[r->number], 1);
    while (!atomic_load(&r->board->finished[r->number]))
        nap(1000);
    if (r->by_word)
        pthread_join(thread, NULL);
    waitpid(device, NULL, 0);
    atomic_store(&r->board->wrong[r->number], count_wrong(r));
    atomic_store(&r->board->done[r->number], 1);
    while (!r->engine->settle(r->network) || !all(r->board->done))
        sched_yield();
    r->engine->detach(r->plan);
    atomic_store(&r->board->detached[r->number], 1);
    while (!all(r->board->detached))
        nap(1000);
    r->engine->close(r->network);
    return 0;
}

/* ---- the conductor ---- */

static bool all_finished(board *b)
{
    return atomic_load(&b->finished[0]) && atomic_load(&b->finished[1]);
}

static bool await_all(_Atomic int word[RANKS], int64_t limit_ms)
{
    int64_t end = now_ms() + limit_ms;
    while (!all(word) && now_ms() < end)
        nap(500);
    return all(word);
}

/* Opens the gate; whether all steps are done in time. */
static bool let_go(board *b, int64_t limit_ms, double *us)
{
    struct timespec begin, end;
    int64_t until = now_ms() + limit_ms;
    clock_gettime(CLOCK_MONOTONIC, &begin);
    atomic_store(&b->gate, 1);
    while (!all_finished(b) && now_ms() < until)
        sched_yield();
    clock_gettime(CLOCK_MONOTONIC, &end);
    *us = (double)(end.tv_sec - begin.tv_sec) * 1e6 + (double)(end.tv_nsec - begin.tv_nsec) * 1e-3;
    return all_finished(b);
}

static int conduct(board *b, const pid_t pid[RANKS], const char *mode, long steps, bool stops)
{
    stillness before[RANKS] = {{0}}, after[RANKS];
    bool stalls = stops && !strcmp(mode, "word"), right = true;
    double us;
    if (!await_all(b->enqueued, LIMIT_MS)) {
        printf("%s: NOT ENQUEUED\n", mode);
        return 1;
    }
    nap(100000); /* who waits for the end sleeps by now */
    if (stops)
        stop_all(pid, RANKS, before);
    if (atomic_load(&b->gate) || atomic_load(&b->finished[0]) || atomic_load(&b->finished[1])) {
        printf("%s: NOT VALID: the gate was open before both were stopped\n", mode);
        return 1;
    }
    bool finished = let_go(b, stalls ? STALL_MS : LIMIT_MS, &us);
    for (int i = 0; i < RANKS; i++)
        after[i] = look_at(pid[i]);
    printf("%s, %ld steps, %s: ", mode, steps, stops ? "both ranks stopped" : "running");
    if (finished)
        printf("all done in %.1f ms, %.1f us a step\n", us * 1e-3, us / (double)steps);
    else
        printf("not done in %.1f ms\n", us * 1e-3);
    for (int i = 0; i < RANKS && stops; i++) {
        right &= was_still(i, &before[i], &after[i]);
        kill(pid[i], SIGCONT);
    }
    right &= finished == !stalls && await_all(b->done, LIMIT_MS);
    right &= b->wrong[0] == 0 && b->wrong[1] == 0;
    printf("  %s, %lu wrong words: %s\n", stalls ? "once they go on, done" : "done",
           b->wrong[0] + b->wrong[1], right ? "as it must be" : "NOT AS IT MUST BE");
    return !right;
}

int main(int argc, char **argv)
{
    const char *reason = peal_network_mlx5_refuses();
    int ends[RANKS];
    pid_t pid[RANKS];
    if (argc < 3 || (strcmp(argv[1], "doorbell") != 0 && strcmp(argv[1], "word") != 0))
        return 2;
    if (reason) {
        printf("skipped: %s\n", reason);
        return 77;
    }
    board *b = share(sizeof(*b));
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends))
        return 1;
    long steps = strtol(argv[2], NULL, 10);
    for (int i = 0; i < RANKS; i++) {
        pid[i] = fork();
        if (pid[i])
            continue;
        close(ends[!i]);
        rank r = {.number = i,
                  .socket = ends[i],
                  .steps = (uint32_t)steps,
                  .by_word = !strcmp(argv[1], "word"),
                  .board = b,
                  .engine = &peal_network_mlx5};
        _exit(run_rank(&r));
    }
    close(ends[0]);
    close(ends[1]);
    int code = conduct(b, pid, argv[1], steps, argc < 4);
    for (int i = 0; i < RANKS; i++) {
        int status = 0;
        if (code)
            kill(pid[i], SIGKILL);
        waitpid(pid[i], &status, 0);
        code |= status != 0;
    }
    return code;
}
