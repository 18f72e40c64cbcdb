/* How these programs come to be several processes: a launcher (mpirun, srun) starts them and PMIx
 * tells peal so; or, with `--processes N`, the program starts them itself and lends peal an
 * allgather through memory that all of them map, as an MPI program would lend MPI_Allgather. */
#ifndef SAMPLES_EMBED_CUDA_JOB_CUH
#define SAMPLES_EMBED_CUDA_JOB_CUH

#include <cuda_runtime.h>
#include <peal/bootstrap.h>
#include <peal/session.h>

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

enum { JOB_PROCESSES = 64, JOB_BYTES = 4096 };

struct job_shared {
    pthread_barrier_t barrier;
    unsigned char bytes[JOB_PROCESSES][JOB_BYTES];
};

struct job {
    int process = 0, processes = 0; /* processes 0: not started here */
    job_shared *shared = nullptr;
    peal_session *session = nullptr;
};

/* In pieces, so that any number of bytes fits. */
inline int job_allgather(void *user, const void *mine, size_t bytes, void *all)
{
    job *j = (job *)user;
    for (size_t at = 0; at < bytes; at += JOB_BYTES) {
        size_t now = bytes - at < (size_t)JOB_BYTES ? bytes - at : (size_t)JOB_BYTES;
        memcpy(j->shared->bytes[j->process], (const unsigned char *)mine + at, now);
        pthread_barrier_wait(&j->shared->barrier);
        for (int p = 0; p < j->processes; p++)
            memcpy((unsigned char *)all + (size_t)p * bytes + at, j->shared->bytes[p], now);
        pthread_barrier_wait(&j->shared->barrier);
    }
    return 0;
}

/* Before anything of CUDA: a process that has used it must not fork. Returns in the children; the
 * parent ends with the first failure among them. */
inline void job_fork(job *j, int processes)
{
    j->processes = processes;
    void *memory = mmap(nullptr, sizeof(job_shared), PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED || processes < 1 || processes > JOB_PROCESSES) {
        fprintf(stderr, "cannot start %d processes\n", processes);
        exit(4);
    }
    j->shared = (job_shared *)memory;
    pthread_barrierattr_t attributes;
    pthread_barrierattr_init(&attributes);
    pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
    pthread_barrier_init(&j->shared->barrier, &attributes, (unsigned)processes);
    for (int p = 0; p < processes; p++)
        if (fork() == 0) {
            j->process = p;
            return;
        }
    int worst = 0, state = 0;
    while (wait(&state) > 0) {
        int code = WIFEXITED(state) ? WEXITSTATUS(state) : 8;
        worst = worst ? worst : code;
    }
    exit(worst);
}

/* Joins the job and takes this process's GPU: process p of P on a host takes GPU p * GPUs / P, as
 * peal does, so that streams and memory of the runtime API are of the GPU that peal uses. */
inline peal_status job_join(job *j)
{
    peal_bootstrap_callbacks callbacks = {};
    callbacks.size_bytes = sizeof(callbacks);
    callbacks.process = j->process;
    callbacks.processes = j->processes;
    callbacks.allgather = job_allgather;
    callbacks.user = j;
    peal_session_desc desc = {};
    desc.size_bytes = sizeof(desc);
    desc.bootstrap = j->processes > 0 ? &callbacks : nullptr;
    desc.log_level = PEAL_LOG_ERROR;
    desc.log = stderr;
    peal_status status = peal_session_create(&desc, &j->session);
    if (status != PEAL_STATUS_OK)
        return status;
    j->process = peal_session_process(j->session);
    j->processes = peal_session_processes(j->session);
    int devices = 0;
    if (cudaGetDeviceCount(&devices) != cudaSuccess || devices < 1) {
        fprintf(stderr, "there is no GPU here\n");
        return PEAL_STATUS_ENVIRONMENT;
    }
    int local = peal_session_local_process(j->session);
    int locals = peal_session_local_processes(j->session);
    return cudaSetDevice(local * devices / locals) == cudaSuccess ? PEAL_STATUS_OK
                                                                  : PEAL_STATUS_DEVICE;
}

/* The value of `--name VALUE`; words that begin with no dash are left to the program. */
inline const char *job_option(int argc, char **argv, const char *name, const char *otherwise)
{
    for (int i = 1; i + 1 < argc; i++)
        if (!strcmp(argv[i], name))
            return argv[i + 1];
    return otherwise;
}

#define CUDA(call)                                                                                 \
    do {                                                                                           \
        cudaError_t error_ = (call);                                                               \
        if (error_ != cudaSuccess) {                                                               \
            fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call,                          \
                    cudaGetErrorString(error_));                                                   \
            return PEAL_STATUS_DEVICE;                                                             \
        }                                                                                          \
    } while (0)
#define PEAL(call)                                                                                 \
    do {                                                                                           \
        peal_status status_ = (call);                                                              \
        if (status_ != PEAL_STATUS_OK)                                                             \
            return status_;                                                                        \
    } while (0)

#endif
