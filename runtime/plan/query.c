/* What can be asked of a plan: where arrays are, what it has done, how it runs. */
#include "base/handle.h"
#include "peal_config.h"
#include "runtime/plan/plan.h"

#include <peal/peal.h>
#include <string.h>

void peal_plan_ranks(const peal_plan *plan, int *first, int *end)
{
    bool known = peal_is_plan(plan, __func__);
    if (first)
        *first = known ? plan->binding.first : 0;
    if (end)
        *end = known ? plan->binding.first + plan->binding.count : 0;
}

void peal_plan_statistics_get(const peal_plan *plan, peal_plan_statistics *out)
{
    if (!peal_argument_check(out, "where the statistics go", __func__))
        return;
    *out = (peal_plan_statistics){0};
    if (!peal_is_plan(plan, __func__))
        return;
    *out = (peal_plan_statistics){
        .seconds = plan->seconds,
        .steps_done = plan->steps_done,
        .stopped = plan->stopped,
        .memory_bytes = peal_binding_bytes(&plan->binding),
        .cpu_seconds = plan->cpu_seconds,
    };
}

int64_t peal_plan_replayed(const peal_plan *plan)
{
    const peal_backend_plan *run = peal_plan_runner(plan);
    return run && plan->backend->replayed ? plan->backend->replayed(run) : 0;
}

int64_t peal_plan_progress(const peal_plan *plan)
{
    peal_backend_plan *run = peal_is_plan(plan, __func__) ? peal_plan_runner(plan) : NULL;
    return run ? plan->backend->progress(run) : 0;
}

const char *peal_plan_backend(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) ? plan->backend->name : "";
}

const char *peal_plan_choice(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) && plan->choice[0] ? plan->choice : NULL;
}

peal_mode peal_plan_mode(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) ? plan->mode : PEAL_MODE_COUNT;
}

int peal_plan_rank_count(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) ? plan->machine.ranks : -1;
}

int peal_plan_workers(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) ? plan->machine.workers : -1;
}

void peal_plan_dims(const peal_plan *plan, int dims[PEAL_RANK_AXES])
{
    if (!peal_argument_check(dims, "where the layout goes", __func__))
        return;
    memset(dims, 0, PEAL_RANK_AXES * sizeof(*dims));
    if (peal_is_plan(plan, __func__))
        peal_compilation_dims(plan->compilation, dims);
}

const char *peal_plan_transport(const peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return "";
    if (plan->machine.processes == 1)
        return peal_transport_name(PEAL_TRANSPORT_SELF);
    static const char *const mixed[][PEAL_PATH_COUNT] = {
        {"tcp", "p2p:vmm+tcp", "p2p:ipc+tcp", "shm+tcp"},
        {"ucx", "p2p:vmm+ucx", "p2p:ipc+ucx", "shm+ucx"},
        {"verbs", "p2p:vmm+verbs", "p2p:ipc+verbs", "shm+verbs"},
        {"mlx5", "p2p:vmm+mlx5", "p2p:ipc+mlx5", "shm+mlx5"}};
    const peal_machine *machine = &plan->machine;
    bool is_named = peal_transport_is_network(machine->network);
    const char *const *words = mixed[is_named ? machine->network - PEAL_TRANSPORT_TCP : 0];
    int hosts = peal_machine_hosts(machine);
    if (hosts == machine->processes)
        return words[PEAL_PATH_NONE];
    if (machine->accelerator)
        return hosts > 1 ? words[machine->path] : peal_path_name(machine->path);
    return hosts > 1 ? words[PEAL_PATH_STAGED] : peal_transport_name(PEAL_TRANSPORT_SHM);
}

uint64_t peal_plan_hash(const peal_plan *plan)
{
    return peal_is_plan(plan, __func__) ? plan->hash : 0;
}

static int64_t steps_left(const peal_plan *plan)
{
    return plan->stopped || plan->steps_asked >= plan->repeat ? 0
                                                              : plan->repeat - plan->steps_asked;
}

int64_t peal_plan_steps_left(const peal_plan *plan)
{
    if (!peal_is_plan(plan, __func__))
        return -1;
    return steps_left(plan);
}

peal_status peal_plan_whole_steps(const peal_plan *plan, int64_t least, int64_t *before,
                                  int64_t *steps)
{
    peal_session *session = plan->session;
    int64_t first = 0, each = 1, count[2] = {0, least};
    const peal_backend_plan *run = peal_plan_runner(plan);
    peal_status status = PEAL_STATUS_OK;

    if (run && plan->backend->repeats)
        each = plan->backend->repeats(run, &first);
    int64_t into = plan->steps_asked - first;
    int64_t whole = (least + each - 1) / each * each;
    int64_t gap = into < 0 ? -into : (each - into % each) % each;
    if (gap + whole <= steps_left(plan)) {
        count[0] = gap;
        count[1] = whole;
    }
    if (peal_session_processes(session) > 1)
        status = peal_control_broadcast(session->control, 0, count, sizeof(count));
    *before = count[0];
    *steps = count[1];
    return status;
}

/* What is said behind a transport's name: who posts its messages, where that is not always a thread
 * of the host. */
static const char *who_posts(const peal_plan *plan, peal_transport_kind kind)
{
    if (!plan->machine.accelerator || kind != PEAL_TRANSPORT_MLX5)
        return "";
    return plan->rings && plan->posts ? " (rung for by streams, some posted by a thread)"
           : plan->rings              ? " (rung for by streams)"
                                      : " (posted by a thread)";
}

void peal_plan_describe(const peal_plan *plan, char *text, size_t bytes)
{
    int dims[PEAL_RANK_AXES];
    char paths[128] = "", device[120] = "";
    if (!text || !bytes)
        return;
    *text = 0;
    if (!peal_is_plan(plan, __func__))
        return;
    peal_plan_dims(plan, dims);
    for (int k = 0; k < PEAL_TRANSPORT_COUNT; k++)
        if (plan->transports >> k & 1) {
            size_t used = strlen(paths);
            snprintf(paths + used, sizeof(paths) - used, "%s%s%s", used ? "+" : "",
                     k == PEAL_TRANSPORT_P2P ? peal_path_name(plan->machine.path)
                                             : peal_transport_name((peal_transport_kind)k),
                     who_posts(plan, (peal_transport_kind)k));
        }
    if (plan->machine.accelerator) {
        snprintf(device, sizeof(device), " on ");
        plan->backend->describe(plan->session->device, device + 4, sizeof(device) - 4);
    }
    snprintf(
        text, bytes,
        "%s %s%s, %d rank%s (%d x %d x %d) in %d process%s, %d worker%s a rank, messages by %s, "
        "plan %016llx%s%s%s",
        plan->backend->name, peal_mode_name(plan->mode), device, plan->machine.ranks,
        plan->machine.ranks == 1 ? "" : "s", dims[0], dims[1], dims[2], plan->machine.processes,
        plan->machine.processes == 1 ? "" : "es", plan->machine.workers,
        plan->machine.workers == 1 ? "" : "s", paths[0] ? paths : "none",
        (unsigned long long)plan->hash, plan->note[0] ? " (" : "", plan->note,
        plan->note[0] ? ")" : "");
}

const char *peal_version(void)
{
    return PEAL_VERSION;
}
