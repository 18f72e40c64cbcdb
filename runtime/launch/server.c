/* The PMIx server of a job whose processes all run on this host.
 *
 * The library does nearly all: with every participant local, a fence is complete once it gets here.
 * Connections use the loopback interface; the private directory is gone at the end. */
#define _GNU_SOURCE
#include "runtime/launch/internal.h"

#include <errno.h>
#include <ftw.h>
#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <unistd.h>

extern char **environ;

struct peal_launch_server {
    int processes;
    pmix_nspace_t namespace;
    char folder[256];
    char hostname[256];
    bool has_folder, is_running;
};

/* What PMIx_Abort said: callbacks come from the library's thread and know no server. */
static struct {
    pthread_mutex_t lock;
    int event; /* eventfd; -1: no server */
    bool aborted;
    int process, code;
    char message[PEAL_LAUNCH_MESSAGE];
} job = {.lock = PTHREAD_MUTEX_INITIALIZER, .event = -1};

static pmix_status_t on_connected(const pmix_proc_t *process, void *object, pmix_info_t info[],
                                  size_t info_count, pmix_op_cbfunc_t done, void *user)
{
    (void)process, (void)object, (void)info, (void)info_count, (void)done, (void)user;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_finalized(const pmix_proc_t *process, void *object, pmix_op_cbfunc_t done,
                                  void *user)
{
    (void)process, (void)object, (void)done, (void)user;
    return PMIX_OPERATION_SUCCEEDED;
}

static pmix_status_t on_abort(const pmix_proc_t *process, void *object, int code,
                              const char message[], pmix_proc_t procs[], size_t proc_count,
                              pmix_op_cbfunc_t done, void *user)
{
    uint64_t one = 1;
    (void)object, (void)procs, (void)proc_count, (void)done, (void)user;
    pthread_mutex_lock(&job.lock);
    if (!job.aborted) {
        job.aborted = true;
        job.process = (int)process->rank;
        job.code = code;
        snprintf(job.message, sizeof(job.message), "%s", message ? message : "");
        if (job.event >= 0 && write(job.event, &one, sizeof(one)) < 0)
            job.aborted = true; /* the loop looks again when the process ends */
    }
    pthread_mutex_unlock(&job.lock);
    return PMIX_OPERATION_SUCCEEDED;
}

/* All participants are here, so what they contributed is all there is. */
static pmix_status_t on_fence(const pmix_proc_t procs[], size_t proc_count,
                              const pmix_info_t info[], size_t info_count, char *data, size_t bytes,
                              pmix_modex_cbfunc_t done, void *user)
{
    (void)procs, (void)proc_count, (void)info, (void)info_count;
    if (done)
        done(PMIX_SUCCESS, data, bytes, user, NULL, NULL);
    return PMIX_SUCCESS;
}

/* Asked for data of a process elsewhere: there is none. */
static pmix_status_t on_modex(const pmix_proc_t *process, const pmix_info_t info[],
                              size_t info_count, pmix_modex_cbfunc_t done, void *user)
{
    (void)process, (void)info, (void)info_count, (void)done, (void)user;
    return PMIX_ERR_NOT_FOUND;
}

static pmix_server_module_t module = {
    .client_connected2 = on_connected,
    .client_finalized = on_finalized,
    .abort = on_abort,
    .fence_nb = on_fence,
    .direct_modex = on_modex,
};

/* Waits for the library's callback of a request. */
typedef struct answer {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool done;
    pmix_status_t status;
} answer;

static void on_answer(pmix_status_t status, void *user)
{
    answer *reply = user;
    pthread_mutex_lock(&reply->lock);
    reply->status = status;
    reply->done = true;
    pthread_cond_signal(&reply->changed);
    pthread_mutex_unlock(&reply->lock);
}

static pmix_status_t await(answer *reply, pmix_status_t requested)
{
    if (requested == PMIX_OPERATION_SUCCEEDED)
        return PMIX_SUCCESS;
    if (requested != PMIX_SUCCESS)
        return requested;
    pthread_mutex_lock(&reply->lock);
    while (!reply->done)
        pthread_cond_wait(&reply->changed, &reply->lock);
    pthread_mutex_unlock(&reply->lock);
    return reply->status;
}

#define ANSWER_INIT                                                                                \
    {                                                                                              \
        PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER, false, PMIX_SUCCESS                   \
    }

static void load_number(pmix_info_t *info, const char *key, uint32_t value)
{
    PMIX_INFO_LOAD(info, key, &value, PMIX_UINT32);
}

/* What every process may ask about process `rank`. */
static void load_process(pmix_info_t *info, const peal_launch_server *server, int rank)
{
    enum { COUNT = 7 };
    pmix_data_array_t array;
    pmix_info_t *item;
    pmix_rank_t number = (pmix_rank_t)rank;
    uint16_t local = (uint16_t)rank;
    PMIX_INFO_CREATE(item, COUNT);
    PMIX_INFO_LOAD(&item[0], PMIX_RANK, &number, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&item[1], PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&item[2], PMIX_NODE_RANK, &local, PMIX_UINT16);
    PMIX_INFO_LOAD(&item[3], PMIX_GLOBAL_RANK, &number, PMIX_PROC_RANK);
    PMIX_INFO_LOAD(&item[4], PMIX_HOSTNAME, server->hostname, PMIX_STRING);
    load_number(&item[5], PMIX_NODEID, 0);
    load_number(&item[6], PMIX_APPNUM, 0);
    array.type = PMIX_INFO;
    array.size = COUNT;
    array.array = item;
    PMIX_INFO_LOAD(info, PMIX_PROC_DATA, &array, PMIX_DATA_ARRAY);
    PMIX_INFO_FREE(item, COUNT);
}

/* "0,1,2": malloc'ed. */
static char *list_ranks(int processes)
{
    size_t bytes = (size_t)processes * 12 + 1, at = 0;
    char *text = malloc(bytes);
    for (int p = 0; text && p < processes; p++)
        at += (size_t)snprintf(text + at, bytes - at, "%s%d", p ? "," : "", p);
    return text;
}

static pmix_status_t register_job(peal_launch_server *server)
{
    enum { JOB_COUNT = 9 };
    size_t count = JOB_COUNT + (size_t)server->processes;
    uint32_t processes = (uint32_t)server->processes;
    char *ranks = list_ranks(server->processes), *nodes = NULL, *map = NULL;
    answer reply = ANSWER_INIT;
    pmix_info_t *info;
    pmix_status_t status = PMIX_ERR_NOMEM;
    if (!ranks || (status = PMIx_generate_regex(server->hostname, &nodes)) != PMIX_SUCCESS ||
        (status = PMIx_generate_ppn(ranks, &map)) != PMIX_SUCCESS)
        goto free_texts;
    PMIX_INFO_CREATE(info, count);
    PMIX_INFO_LOAD(&info[0], PMIX_NODE_MAP, nodes, PMIX_REGEX);
    PMIX_INFO_LOAD(&info[1], PMIX_PROC_MAP, map, PMIX_REGEX);
    load_number(&info[2], PMIX_JOB_SIZE, processes);
    load_number(&info[3], PMIX_UNIV_SIZE, processes);
    load_number(&info[4], PMIX_MAX_PROCS, processes);
    load_number(&info[5], PMIX_LOCAL_SIZE, processes);
    load_number(&info[6], PMIX_NUM_NODES, 1);
    PMIX_INFO_LOAD(&info[7], PMIX_LOCAL_PEERS, ranks, PMIX_STRING);
    PMIX_INFO_LOAD(&info[8], PMIX_JOBID, server->namespace, PMIX_STRING);
    for (int p = 0; p < server->processes; p++)
        load_process(&info[JOB_COUNT + p], server, p);
    status = await(&reply, PMIx_server_register_nspace(server->namespace, server->processes, info,
                                                       count, on_answer, &reply));
    PMIX_INFO_FREE(info, count);
free_texts:
    free(ranks);
    free(nodes);
    free(map);
    return status;
}

static pmix_status_t register_processes(peal_launch_server *server)
{
    pmix_status_t status = PMIX_SUCCESS;
    for (int p = 0; p < server->processes && status == PMIX_SUCCESS; p++) {
        pmix_proc_t process;
        answer reply = ANSWER_INIT;
        PMIX_LOAD_PROCID(&process, server->namespace, (pmix_rank_t)p);
        status = await(&reply, PMIx_server_register_client(&process, geteuid(), getegid(), NULL,
                                                           on_answer, &reply));
    }
    return status;
}

static bool is_of_launcher(const char *variable)
{
    return !strncmp(variable, "PMIX_", 5) || !strncmp(variable, "PMI_", 4);
}

/* An outer launcher's variables would be taken for ours, by the library and by the processes. */
static void scrub_environment(void)
{
    for (char **at = environ; at && *at;) {
        size_t length = strcspn(*at, "=");
        char *name = is_of_launcher(*at) ? strndup(*at, length) : NULL;
        if (name && !unsetenv(name))
            at = environ;
        else
            at++;
        free(name);
    }
}

static bool make_folder(peal_launch_server *server)
{
    const char *parent = getenv("TMPDIR");
    snprintf(server->folder, sizeof(server->folder), "%s/peal-XXXXXX",
             parent && *parent ? parent : "/tmp");
    server->has_folder = mkdtemp(server->folder) != NULL;
    return server->has_folder;
}

static pmix_status_t start(peal_launch_server *server)
{
    pmix_info_t info[3];
    bool off = false;
    memset(info, 0, sizeof(info));
    /* Job data by messages instead of mapped files: nothing on disk that a kill could leave. */
    setenv("PMIX_MCA_gds", "hash", 1);
    PMIX_INFO_LOAD(&info[0], PMIX_SERVER_TMPDIR, server->folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_SYSTEM_TMPDIR, server->folder, PMIX_STRING);
    PMIX_INFO_LOAD(&info[2], PMIX_SERVER_TOOL_SUPPORT, &off, PMIX_BOOL);
    pmix_status_t status = PMIx_server_init(&module, info, 3);
    for (int i = 0; i < 3; i++)
        PMIX_INFO_DESTRUCT(&info[i]);
    if (status != PMIX_SUCCESS)
        return status;
    server->is_running = true;
    status = register_job(server);
    return status == PMIX_SUCCESS ? register_processes(server) : status;
}

peal_status peal_launch_server_open(int processes, peal_diagnostics *diagnostics,
                                    peal_launch_server **out)
{
    uint64_t random = 0;
    peal_source nowhere = {0};
    peal_launch_server *server = calloc(1, sizeof(*server));
    if (!server)
        return peal_report(diagnostics, PEAL_E302, nowhere, NULL, "out of memory for the launcher");
    server->processes = processes;
    scrub_environment();
    if (gethostname(server->hostname, sizeof(server->hostname) - 1))
        snprintf(server->hostname, sizeof(server->hostname), "localhost");
    if (getrandom(&random, sizeof(random), 0) != (ssize_t)sizeof(random))
        random = (uint64_t)getpid();
    snprintf(server->namespace, sizeof(server->namespace), "peal-%d-%016llx", (int)getpid(),
             (unsigned long long)random);
    job.aborted = false;
    job.event = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (job.event < 0 || !make_folder(server)) {
        int error = errno;
        peal_status status =
            peal_report(diagnostics, PEAL_E331, nowhere,
                        "set TMPDIR to a folder that can be written",
                        "cannot make a private folder %s: %s", server->folder, strerror(error));
        peal_launch_server_close(server);
        return status;
    }
    pmix_status_t result = start(server);
    if (result != PMIX_SUCCESS) {
        peal_status status = peal_report(diagnostics, PEAL_E331, nowhere, NULL, "libpmix: %s",
                                         PMIx_Error_string(result));
        peal_launch_server_close(server);
        return status;
    }
    /* Usually empty: then it goes now, and even a kill of the launcher leaves nothing. */
    server->has_folder = rmdir(server->folder) != 0;
    *out = server;
    return PEAL_STATUS_OK;
}

void peal_launch_environment_free(char **environment)
{
    for (char **at = environment; at && *at; at++)
        free(*at);
    free(environment);
}

char **peal_launch_server_environment(peal_launch_server *server, int process)
{
    size_t count = 0, kept = 0;
    pmix_proc_t me;
    while (environ[count])
        count++;
    char **environment = calloc(count + 1, sizeof(*environment));
    for (size_t i = 0; environment && i < count; i++) {
        if (is_of_launcher(environ[i]))
            continue;
        environment[kept] = strdup(environ[i]);
        if (!environment[kept++]) {
            peal_launch_environment_free(environment);
            return NULL;
        }
    }
    if (!environment)
        return NULL;
    PMIX_LOAD_PROCID(&me, server->namespace, (pmix_rank_t)process);
    if (PMIx_server_setup_fork(&me, &environment) != PMIX_SUCCESS) {
        peal_launch_environment_free(environment);
        return NULL;
    }
    return environment;
}

int peal_launch_server_event(const peal_launch_server *server)
{
    (void)server;
    return job.event;
}

bool peal_launch_server_aborted(peal_launch_server *server, int *process, int *code,
                                char message[PEAL_LAUNCH_MESSAGE])
{
    (void)server;
    pthread_mutex_lock(&job.lock);
    bool aborted = job.aborted;
    *process = job.process;
    *code = job.code;
    snprintf(message, PEAL_LAUNCH_MESSAGE, "%s", job.message);
    pthread_mutex_unlock(&job.lock);
    return aborted;
}

static int remove_entry(const char *path, const struct stat *state, int type, struct FTW *place)
{
    (void)state, (void)type, (void)place;
    return remove(path);
}

void peal_launch_server_close(peal_launch_server *server)
{
    if (!server)
        return;
    if (server->is_running)
        PMIx_server_finalize();
    pthread_mutex_lock(&job.lock);
    if (job.event >= 0)
        close(job.event);
    job.event = -1;
    pthread_mutex_unlock(&job.lock);
    if (server->has_folder)
        nftw(server->folder, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    free(server);
}
