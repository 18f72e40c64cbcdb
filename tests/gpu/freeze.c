/* The freeze test on GPUs: a spec's steps go on while the CPU is away. Each rank's process puts
 * them onto streams, behind a gate. Then every thread of every rank is stopped, the gate is opened
 * from outside, and only the GPUs and the RDMA adapter, a process of its own, go on. Run by softhca
 * (tests/softhca), with PEAL_TEST_HOSTS=2.
 *
 *   gpu_freeze SPEC|pingpong STEPS doorbell|word stopped|running [PARAM=VALUE ...]
 *
 * pingpong: no spec, but a program that keeps its own loop and stream; two transfers, there and
 * back, a step. It is equal to serial if what rank 0 had in the beginning is with both in the end.
 *
 * doorbell: the streams ring for messages. word: the control; a thread of each rank posts them.
 * Stopped, the first must finish, with both ranks in state T, no context switch and no time on a
 * CPU; the second must not, until they go on again. running: nobody is stopped. Exit code 0: so it
 * was, and what was computed equals mode serial bit for bit; 77: there is no GPU. More steps than a
 * stream holds cannot be enqueued behind a closed gate: jacobi2d's fit up to 100. */
#define _GNU_SOURCE
#include "base/cuda_driver.h"
#include "base/diagnostic.h"
#include "runtime/launch/launch.h"
#include "tests/softhca/still.h"

#include <peal/peal.h>

#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    RANKS = 2,
    BEFORE = 2 /* steps without a gate */,
    SKIPPED = 77,
    BOARD_BYTES = 4096,
    MOST_WORDS = 16
};
static const int64_t stall_ms = 2000, limit_ms = 60000;

/* What all processes and the GPUs share. */
typedef struct board {
    _Atomic uint64_t gate, finished[RANKS]; /* by the streams */
    _Atomic int enqueued[RANKS], equal[RANKS], done[RANKS];
    _Atomic int pid[RANKS];
} board;

typedef struct rank {
    int number;
    const char *spec, *lowering;
    const char *const *set; /* params */
    int set_count;
    int64_t steps;
    board *board;
    CUdeviceptr at; /* the board, as the GPU sees it */
    const peal_cuda_driver *driver;
    CUdevice device;
    peal_session *session;
    CUstream stream;
} rank;

static void nap(long us)
{
    nanosleep(&(struct timespec){.tv_nsec = us * 1000}, NULL);
}

static int64_t now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * INT64_C(1000000) + t.tv_nsec / 1000;
}

static board *open_board(int file)
{
    void *at = mmap(NULL, BOARD_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return at == MAP_FAILED ? NULL : at;
}

/* ---- a rank ---- */

static peal_status make_plan(const rank *r, peal_graph **graph, const char *mode, peal_plan **out)
{
    const peal_spec_desc spec = {.size_bytes = sizeof(spec),
                                 .path = r->spec,
                                 .set = r->set,
                                 .set_count = r->set_count};
    peal_plan_options options = {.size_bytes = sizeof(options), .backend = "cuda"};
    bool is_serial = !strcmp(mode, "serial");
    options.mode = mode;
    options.transport = is_serial ? NULL : "mlx5";
    options.lowering = is_serial ? NULL : r->lowering;
    peal_status status = peal_graph_read_spec(r->session, &spec, graph);
    return status ? status : peal_graph_compile(*graph, r->session, &options, out);
}

static peal_status run_serially(const rank *r, uint64_t *digest)
{
    peal_graph *graph = NULL;
    peal_plan *plan = NULL;
    peal_status status = make_plan(r, &graph, "serial", &plan);
    if (!status)
        status = peal_plan_start(plan, BEFORE + r->steps, NULL);
    if (!status)
        status = peal_plan_wait(plan);
    if (!status)
        status = peal_plan_digest(plan, NULL, digest);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    return status;
}

static CUresult close_gate(rank *r)
{
    CUresult result =
        r->driver->cuMemHostRegister_(r->board, BOARD_BYTES,
                                      CU_MEMHOSTREGISTER_PORTABLE | CU_MEMHOSTREGISTER_DEVICEMAP);
    if (!result)
        result = r->driver->cuMemHostGetDevicePointer_(&r->at, r->board, 0);
    if (!result)
        result = r->driver->cuStreamWaitValue64_(r->stream, r->at + offsetof(board, gate), 1,
                                                 CU_STREAM_WAIT_VALUE_GEQ);
    return result;
}

static CUresult tell_when_done(const rank *r)
{
    const size_t offset = offsetof(board, finished) + (size_t)r->number * sizeof(uint64_t);
    return r->driver->cuStreamWriteValue64_(r->stream, r->at + offset, 1, 0);
}

/* Steps behind the gate; what says on the board that they are done comes behind them. */
static peal_status enqueue(rank *r, peal_plan *plan)
{
    peal_start start = {.size_bytes = sizeof(start)};
    void *event = NULL;
    CUresult result = r->driver->cuStreamCreateWithPriority_(&r->stream, CU_STREAM_NON_BLOCKING, 0);
    if (!result)
        result = close_gate(r);
    start.stream = r->stream;
    peal_status status = result ? PEAL_STATUS_DEVICE : peal_plan_start(plan, r->steps, &start);
    if (!status)
        status = peal_plan_event(plan, &event);
    if (!status)
        result = r->driver->cuStreamWaitEvent_(r->stream, event, 0);
    if (!status && !result)
        result = tell_when_done(r);
    return status ? status : result ? PEAL_STATUS_DEVICE : PEAL_STATUS_OK;
}

/* As an application does that has streams of its own. */
static bool use_gpu(rank *r)
{
    int ordinal = peal_session_local_process(r->session) % r->driver->device_count;
    CUcontext context;
    return !r->driver->cuDeviceGet_(&r->device, ordinal) &&
           !r->driver->cuDevicePrimaryCtxRetain_(&context, r->device) &&
           !r->driver->cuCtxSetCurrent_(context);
}

static void leave_gpu(rank *r)
{
    if (r->stream)
        r->driver->cuStreamDestroy_(r->stream);
    if (r->at) {
        r->driver->cuMemHostUnregister_(r->board);
        r->driver->cuDevicePrimaryCtxRelease_(r->device);
    }
}

static peal_status run_behind_gate(rank *r)
{
    peal_graph *graph = NULL;
    peal_plan *plan = NULL;
    uint64_t digest = 0, serial = 0;
    char text[300];
    peal_status status = run_serially(r, &serial);
    if (!status)
        status = make_plan(r, &graph, "stream", &plan);
    if (!status) {
        peal_plan_describe(plan, text, sizeof(text));
        if (r->number == 0)
            printf("%s\n", text);
        fflush(stdout);
        status = use_gpu(r) ? peal_plan_start(plan, BEFORE, NULL) : PEAL_STATUS_DEVICE;
    }
    if (!status)
        status = peal_plan_wait(plan);
    if (!status)
        status = enqueue(r, plan);
    if (!status) {
        atomic_store(&r->board->enqueued[r->number], 1);
        status = peal_plan_wait(plan);
    }
    if (!status)
        status = peal_plan_digest(plan, NULL, &digest);
    atomic_store(&r->board->equal[r->number], !status && digest == serial);
    atomic_store(&r->board->done[r->number], 1);
    leave_gpu(r);
    peal_plan_destroy(plan);
    peal_graph_destroy(graph);
    return status;
}

/* ---- a rank with a loop of its own ---- */

enum { BALL = 4096 };

static peal_status make_transfers(const rank *r, CUdeviceptr ball, peal_transfer *transfer[2])
{
    peal_status status = PEAL_STATUS_OK;
    for (int way = 0; way < 2 && !status; way++)
        status = peal_transfer_create(r->session, &transfer[way], .from = way, .to = 1 - way,
                                      .data = (void *)(uintptr_t)ball, .bytes = BALL,
                                      .transport = "mlx5", .lowering = r->lowering);
    return status;
}

static peal_status play(const rank *r, peal_transfer *const transfer[2], int64_t rounds)
{
    peal_status status = PEAL_STATUS_OK;
    for (int64_t round = 0; round < rounds && !status; round++)
        for (int way = 0; way < 2 && !status; way++)
            status = way == r->number ? peal_transfer_start(transfer[way], r->stream)
                                      : peal_transfer_wait(transfer[way], r->stream);
    return status;
}

/* Some rounds without a gate, others behind it; a word behind these. */
static peal_status play_behind_gate(rank *r, CUdeviceptr ball)
{
    const peal_cuda_driver *driver = r->driver;
    unsigned char had[BALL], has[BALL] = {0};
    peal_transfer *transfer[2] = {NULL, NULL};
    char text[300];
    for (int i = 0; i < BALL; i++)
        had[i] = (unsigned char)(i * 7 + i / 256);
    CUresult result = driver->cuMemcpyHtoD_(ball, r->number == 0 ? had : has, BALL);
    peal_status status = result ? PEAL_STATUS_DEVICE : make_transfers(r, ball, transfer);
    if (!status) {
        peal_transfer_describe(transfer[0], text, sizeof(text));
        if (r->number == 0)
            printf("%s\n", text);
        fflush(stdout);
        result = driver->cuStreamCreateWithPriority_(&r->stream, CU_STREAM_NON_BLOCKING, 0);
        status = result ? PEAL_STATUS_DEVICE : play(r, transfer, BEFORE);
    }
    for (int i = 0; i < BALL; i++) /* another ball than before */
        had[i] = (unsigned char)(i * 11 + i / 256 + 1);
    if (!status && (driver->cuStreamSynchronize_(r->stream) ||
                    driver->cuMemcpyHtoD_(ball, r->number == 0 ? had : has, BALL) || close_gate(r)))
        status = PEAL_STATUS_DEVICE;
    if (!status)
        status = play(r, transfer, r->steps);
    if (!status && tell_when_done(r))
        status = PEAL_STATUS_DEVICE;
    if (!status)
        atomic_store(&r->board->enqueued[r->number], 1);
    for (int way = 0; way < 2; way++) {
        peal_status ended = peal_transfer_destroy(transfer[way]);
        status = status ? status : ended;
    }
    if (!status && driver->cuMemcpyDtoH_(has, ball, BALL))
        status = PEAL_STATUS_DEVICE;
    atomic_store(&r->board->equal[r->number], !status && !memcmp(had, has, BALL));
    return status;
}

static peal_status keep_own_loop(rank *r)
{
    CUdeviceptr ball = 0;
    peal_status status = use_gpu(r) && !r->driver->cuMemAlloc_(&ball, BALL)
                             ? play_behind_gate(r, ball)
                             : PEAL_STATUS_DEVICE;
    atomic_store(&r->board->done[r->number], 1);
    if (ball)
        r->driver->cuMemFree_(ball);
    leave_gpu(r);
    return status;
}

/* words: from SPEC on. */
static int be_rank(char **words, int count, int file)
{
    const char *reason;
    rank r = {.spec = words[0],
              .steps = strtoll(words[1], NULL, 10),
              .lowering = !strcmp(words[2], "word") ? "network=word" : "network=doorbell",
              .set = (const char *const *)words + 4,
              .set_count = count - 4,
              .board = open_board(file),
              .driver = peal_cuda_open(&reason)};
    peal_session_desc desc = {.size_bytes = sizeof(desc),
                              .deadline_s = 60,
                              .log_level = PEAL_LOG_ERROR,
                              .log = stderr};
    if (!r.board || !r.driver)
        return SKIPPED;
    peal_status status = peal_session_create(&desc, &r.session);
    if (status)
        return (int)status;
    r.number = peal_session_process(r.session);
    atomic_store(&r.board->pid[r.number], (int)getpid());
    status = !strcmp(r.spec, "pingpong") ? keep_own_loop(&r) : run_behind_gate(&r);
    if (status)
        peal_session_print_diagnostics(r.session, stderr, 20);
    peal_session_destroy(r.session);
    return (int)status;
}

/* ---- the conductor ---- */

static int launch(char **argv, int argc, int file)
{
    char program[4096], number[16], *words[MOST_WORDS] = {program, (char *)"rank", number};
    ssize_t length = readlink("/proc/self/exe", program, sizeof(program) - 1);
    if (length < 0)
        return 1;
    program[length] = 0;
    snprintf(number, sizeof(number), "%d", file);
    for (int i = 1; i < argc && i + 3 < MOST_WORDS; i++)
        words[i + 2] = argv[i];
    peal_diagnostics *list = peal_diagnostics_create();
    peal_launch_desc desc = {.processes = RANKS, .program = program, .argv = words};
    int code = 0;
    peal_status status = peal_launch(&desc, list, &code);
    peal_diagnostics_print(list, stderr, 0);
    peal_diagnostics_destroy(list);
    return status ? (int)status : code;
}

static bool all(_Atomic int word[RANKS])
{
    return atomic_load(&word[0]) && atomic_load(&word[1]);
}

static bool all_finished(board *b)
{
    return atomic_load(&b->finished[0]) && atomic_load(&b->finished[1]);
}

/* Until all have come there, or the job has ended. */
static bool await_all(_Atomic int word[RANKS], pid_t job)
{
    const int64_t end = now_us() + limit_ms * 1000;
    siginfo_t ended = {0};
    while (!all(word) && now_us() < end && !ended.si_pid) {
        waitid(P_PID, (id_t)job, &ended, WEXITED | WNOHANG | WNOWAIT);
        nap(1000);
    }
    return all(word);
}

/* Opens the gate; whether all steps are done in time. */
static bool let_go(board *b, int64_t most_ms, int64_t *us)
{
    const int64_t begin = now_us();
    atomic_store(&b->gate, 1);
    while (!all_finished(b) && now_us() < begin + most_ms * 1000)
        ;
    *us = now_us() - begin;
    return all_finished(b);
}

static int conduct(board *b, pid_t job, char **argv, bool stops)
{
    stillness before[RANKS] = {{0}}, after[RANKS] = {{0}};
    const long steps = strtol(argv[2], NULL, 10);
    bool stalls = stops && !strcmp(argv[3], "word"), right = true;
    int64_t us;
    if (!await_all(b->enqueued, job)) {
        printf("%s: NOT ENQUEUED\n", argv[3]);
        return 1;
    }
    nap(300000); /* who waits for the end sleeps by now */
    const pid_t pid[RANKS] = {atomic_load(&b->pid[0]), atomic_load(&b->pid[1])};
    if (stops)
        stop_all(pid, RANKS, before);
    if (atomic_load(&b->gate) || all_finished(b)) {
        printf("%s: NOT VALID: the gate was open before both were stopped\n", argv[3]);
        return 1;
    }
    bool finished = let_go(b, stalls ? stall_ms : limit_ms, &us);
    for (int i = 0; i < RANKS && stops; i++)
        after[i] = look_at(pid[i]);
    printf("%s, %ld steps, %s: %s in %.1f ms, %.1f us a step\n", argv[3], steps,
           stops ? "both ranks stopped" : "running", finished ? "all done" : "not done",
           (double)us * 1e-3, (double)us / (double)steps);
    for (int i = 0; i < RANKS && stops; i++) {
        right &= was_still(i, &before[i], &after[i]);
        kill(pid[i], SIGCONT);
    }
    right &= finished == !stalls && await_all(b->done, job) && all(b->equal);
    printf("  %s, %s: %s\n", stalls ? "once they go on, done" : "done",
           all(b->equal) ? "equal to serial bit for bit" : "NOT EQUAL TO SERIAL",
           right ? "as it must be" : "NOT AS IT MUST BE");
    return !right;
}

int main(int argc, char **argv)
{
    const char *reason = NULL;
    int status = 0;
    if (argc > 6 && !strcmp(argv[1], "rank"))
        return be_rank(argv + 3, argc - 3, atoi(argv[2]));
    if (argc < 5 || argc + 3 > MOST_WORDS ||
        (strcmp(argv[3], "doorbell") != 0 && strcmp(argv[3], "word") != 0))
        return 2;
    if (!peal_cuda_open(&reason)) {
        printf("skipped: %s\n", reason);
        return SKIPPED;
    }
    int file = memfd_create("gpu-freeze", 0);
    board *b = file >= 0 && !ftruncate(file, BOARD_BYTES) ? open_board(file) : NULL;
    if (!b)
        return 1;
    pid_t job = fork();
    if (job == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        _exit(launch(argv, argc, file));
    }
    int code = job < 0 ? 1 : conduct(b, job, argv, !strcmp(argv[4], "stopped"));
    for (int i = 0; i < RANKS && code; i++)
        if (atomic_load(&b->pid[i]) > 0)
            kill(atomic_load(&b->pid[i]), SIGKILL);
    if (job > 0)
        waitpid(job, &status, 0);
    return code ? code : status != 0;
}
