/* The control half of the software adapter, second part: the commands of the kernel's verbs
 * interface, as <rdma/ib_user_verbs.h> and <rdma/mlx5-abi.h> have them. */
#define _GNU_SOURCE
#include "device.h"

#include <errno.h>
#include <infiniband/verbs.h>
#include <rdma/ib_user_verbs.h>
#include <rdma/mlx5-abi.h>
#include <sched.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Of the data half, until a queue that is destroyed is at rest: there may be none. */
enum { MOST_TURNS = 1 << 20 };

/* A command's words behind its header, and where its answer goes. */
typedef struct command {
    hca_context *context;
    hca_world *world;
    const void *in;
    void *out;
    size_t out_bytes;
} command;

/* What the provider has behind the common words. */
static const void *own_part(const command *c, size_t common_bytes)
{
    return (const char *)c->in + common_bytes;
}

static void answer_both(const command *c, const void *common, size_t common_bytes, const void *own,
                        size_t own_bytes)
{
    unsigned char all[256] = {0};
    memcpy(all, common, common_bytes);
    if (own)
        memcpy(all + common_bytes, own, own_bytes);
    size_t bytes = common_bytes + own_bytes;
    memset(c->out, 0, c->out_bytes);
    memcpy(c->out, all, bytes < c->out_bytes ? bytes : c->out_bytes);
}

static void answer(const command *c, const void *from, size_t bytes)
{
    answer_both(c, from, bytes, NULL, 0);
}

/* ---- the device ---- */

static int get_context(const command *c)
{
    const struct mlx5_ib_alloc_ucontext_req_v2 *asked =
        own_part(c, sizeof(struct ib_uverbs_get_context));
    struct ib_uverbs_get_context_resp told = {.num_comp_vectors = 1};
    struct mlx5_ib_alloc_ucontext_resp own = {.qp_tab_size = 1 << 18,
                                              .bf_reg_size = HCA_REGISTER_BYTES,
                                              .tot_bfregs = asked->total_num_bfregs,
                                              .cache_line_size = 64,
                                              .max_sq_desc_sz = 1024,
                                              .max_rq_desc_sz = 512,
                                              .max_send_wqebb = 32768,
                                              .max_recv_wr = 32768,
                                              .max_srq_recv_wr = 32768,
                                              .num_ports = 1,
                                              .response_length = sizeof(own),
                                              .log_uar_size = 12,
                                              .num_uars_per_page = 1};
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends))
        return errno;
    told.async_fd = (uint32_t)ends[0];
    hca_tell_events_at(ends[0]);
    c->context->events = ends[1];
    c->context->registers = asked->total_num_bfregs;
    answer_both(c, &told, sizeof(told), &own, sizeof(own));
    hca_begin_thread();
    return 0;
}

static int query_device(const command *c)
{
    struct ib_uverbs_query_device_resp told = {.max_mr_size = ~0ULL,
                                               .vendor_id = 0x15b3,
                                               .vendor_part_id = 0x1021,
                                               .max_qp = HCA_QUEUES,
                                               .max_qp_wr = 32768,
                                               .max_sge = 30,
                                               .max_cq = HCA_RINGS,
                                               .max_cqe = 1 << 20,
                                               .max_mr = HCA_REGIONS,
                                               .max_pd = 64,
                                               .max_qp_rd_atom = 16,
                                               .max_qp_init_rd_atom = 16,
                                               .atomic_cap = IBV_ATOMIC_HCA,
                                               .max_pkeys = 1,
                                               .phys_port_cnt = 1};
    answer(c, &told, sizeof(told));
    return 0;
}

static int query_port(const command *c)
{
    const struct ib_uverbs_query_port *asked = c->in;
    if (asked->port_num != 1)
        return EINVAL;
    const uint64_t most = c->world->form.most_bytes;
    struct ib_uverbs_query_port_resp told = {.max_msg_sz = most ? (uint32_t)most : 1U << 30,
                                             .gid_tbl_len = 1,
                                             .pkey_tbl_len = 1,
                                             .lid = 1,
                                             .state = IBV_PORT_ACTIVE,
                                             .max_mtu = IBV_MTU_4096,
                                             .active_mtu = IBV_MTU_4096,
                                             .active_width = 2,
                                             .active_speed = 32,
                                             .phys_state = 5,
                                             .link_layer = IBV_LINK_LAYER_INFINIBAND};
    answer(c, &told, sizeof(told));
    return 0;
}

static int alloc_domain(const command *c)
{
    struct ib_uverbs_alloc_pd_resp told = {1};
    struct mlx5_ib_alloc_pd_resp own = {7};
    answer_both(c, &told, sizeof(told), &own, sizeof(own));
    return 0;
}

/* ---- memory ---- */

/* A free place of a table, whose entries begin with `used`; -1: there is none. */
static int take(void *table, size_t entry_bytes, int count)
{
    for (int i = 0; i < count; i++) {
        _Atomic uint32_t *used = (void *)((char *)table + (size_t)i * entry_bytes);
        uint32_t is_free = HCA_FREE;
        if (atomic_compare_exchange_strong(used, &is_free, HCA_TAKEN))
            return i;
    }
    return -1;
}

static int register_memory(const command *c)
{
    const struct ib_uverbs_reg_mr *asked = c->in;
    if (atomic_fetch_add(&c->world->registered, 1) + 1 == c->world->form.refuses)
        return ENOMEM;
    int i = take(c->world->region, sizeof(hca_region), HCA_REGIONS);
    if (i < 0)
        return ENOMEM;
    hca_region *region = &c->world->region[i];
    region->generation++;
    region->pid = getpid();
    region->access = asked->access_flags;
    region->address = asked->start;
    region->bytes = asked->length;
    atomic_store(&region->used, HCA_USED);
    uint32_t key = (uint32_t)(i + 1) << 8 | (region->generation & 0xff);
    struct ib_uverbs_reg_mr_resp told = {(uint32_t)i, key, key};
    answer(c, &told, sizeof(told));
    return 0;
}

/* When this returns the data half does nothing more with it. */
static void close_object(_Atomic uint32_t *used)
{
    uint32_t is_closing = HCA_CLOSING; /* else it is free, or somebody else's by now */
    atomic_store(used, HCA_CLOSING);
    for (int i = 0; i < MOST_TURNS && atomic_load(used) == HCA_CLOSING; i++)
        sched_yield();
    atomic_compare_exchange_strong(used, &is_closing, HCA_FREE);
}

static int deregister_memory(const command *c)
{
    const struct ib_uverbs_dereg_mr *asked = c->in;
    atomic_store(&c->world->region[asked->mr_handle % HCA_REGIONS].used, HCA_FREE);
    return 0;
}

/* ---- completion rings ---- */

static int create_ring(const command *c)
{
    const struct ib_uverbs_create_cq *asked = c->in;
    const struct mlx5_ib_create_cq *own = own_part(c, sizeof(*asked));
    int i = take(c->world->ring, sizeof(hca_ring), HCA_RINGS);
    if (i < 0)
        return ENOMEM;
    hca_ring *ring = &c->world->ring[i];
    ring->generation++;
    ring->pid = getpid();
    ring->entries = 1;
    while (ring->entries < asked->cqe)
        ring->entries *= 2;
    ring->buffer = own->buf_addr;
    ring->record = own->db_addr;
    ring->produced = 0;
    atomic_store(&ring->used, HCA_USED);
    struct ib_uverbs_create_cq_resp told = {.cq_handle = (uint32_t)i, .cqe = ring->entries - 1};
    struct mlx5_ib_create_cq_resp number = {.cqn = 0x10 + (uint32_t)i};
    answer_both(c, &told, sizeof(told), &number, sizeof(number));
    return 0;
}

static int destroy_ring(const command *c)
{
    const struct ib_uverbs_destroy_cq *asked = c->in;
    struct ib_uverbs_destroy_cq_resp told = {0};
    atomic_store(&c->world->ring[asked->cq_handle % HCA_RINGS].used, HCA_FREE);
    answer(c, &told, sizeof(told));
    return 0;
}

/* ---- queues ---- */

static bool is_taken(const command *c, uint32_t page, uint32_t offset)
{
    for (int i = 0; i < HCA_QUEUES; i++) {
        const hca_queue *q = &c->world->queue[i];
        if (atomic_load(&q->used) == HCA_USED && q->page == page && q->offset == offset)
            return true;
    }
    return false;
}

/* The number of a register that no other queue has; 0: there is none left. libmlx5 knows the first
 * two of each page. */
static uint32_t take_register(const command *c, hca_queue *q)
{
    uint32_t pages = c->context->registers / HCA_REGISTERS;
    for (uint32_t i = 2; i < 2 * pages && i / 2 < HCA_REGISTERS_A_CONTEXT; i++) {
        uint32_t page = c->context->page[i / 2];
        uint32_t offset = HCA_REGISTER_FIRST + i % 2 * HCA_REGISTER_BYTES;
        if (is_taken(c, page, offset))
            continue;
        q->page = page;
        q->offset = offset;
        return i / 2 * HCA_REGISTERS + i % 2;
    }
    return 0;
}

static int create_queue(const command *c)
{
    const struct ib_uverbs_create_qp *asked = c->in;
    const struct mlx5_ib_create_qp *own = own_part(c, sizeof(*asked));
    int i = take(c->world->queue, sizeof(hca_queue), HCA_QUEUES);
    if (i < 0)
        return ENOMEM;
    hca_queue *q = &c->world->queue[i];
    uint64_t receives = (uint64_t)own->rq_wqe_count << own->rq_wqe_shift;
    q->generation++;
    q->pid = getpid();
    q->number = HCA_QUEUE_NUMBER + (uint32_t)i + (q->generation % 1024) * HCA_QUEUES * 4;
    q->ring = (int)asked->send_cq_handle;
    q->entries = own->sq_wqe_count;
    q->buffer = own->buf_addr + (receives + 63) / 64 * 64;
    q->record = own->db_addr;
    q->executed = q->rung = q->first_waiting = q->waiting = 0;
    q->peer = q->timeout = q->retries = q->access = q->mtu = 0;
    q->first_sent = q->first_taken = 0;
    q->tried_ns = 0;
    q->is_resent = false;
    atomic_store(&q->state, IBV_QPS_RESET);
    uint32_t at = take_register(c, q);
    if (!at) {
        atomic_store(&q->used, HCA_FREE);
        return ENOMEM;
    }
    atomic_store(&q->used, HCA_USED);
    struct ib_uverbs_create_qp_resp told = {.qp_handle = (uint32_t)i,
                                            .qpn = q->number,
                                            .max_send_wr = asked->max_send_wr,
                                            .max_recv_wr = asked->max_recv_wr,
                                            .max_send_sge = asked->max_send_sge,
                                            .max_recv_sge = asked->max_recv_sge,
                                            .max_inline_data = asked->max_inline_data};
    struct mlx5_ib_create_qp_resp where = {.bfreg_index = at};
    answer_both(c, &told, sizeof(told), &where, sizeof(where));
    return 0;
}

/* What a queue that is connected must be told with each state, as the standard has it; -1: it
 * cannot be brought from the one to the other. */
static int64_t needed_between(uint32_t from, uint32_t to)
{
    if (to == IBV_QPS_ERR || to == IBV_QPS_RESET)
        return IBV_QP_STATE;
    if (from == IBV_QPS_RESET && to == IBV_QPS_INIT)
        return IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS;
    if (from == IBV_QPS_INIT && to == IBV_QPS_RTR)
        return IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
               IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER;
    if (from == IBV_QPS_RTR && to == IBV_QPS_RTS)
        return IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN |
               IBV_QP_MAX_QP_RD_ATOMIC;
    return -1;
}

static int modify_queue(const command *c)
{
    const struct ib_uverbs_modify_qp *asked = c->in;
    hca_queue *q = &c->world->queue[asked->qp_handle % HCA_QUEUES];
    int64_t needed = needed_between(atomic_load(&q->state), asked->qp_state);
    if (needed < 0 || (asked->attr_mask & needed) != needed)
        return EINVAL;
    if (asked->qp_state == IBV_QPS_INIT && asked->port_num != 1)
        return EINVAL;
    if (asked->qp_state == IBV_QPS_RTR &&
        (asked->path_mtu < IBV_MTU_256 || asked->path_mtu > IBV_MTU_4096))
        return EINVAL;
    if (asked->attr_mask & IBV_QP_ACCESS_FLAGS)
        q->access = asked->qp_access_flags;
    if (asked->attr_mask & IBV_QP_DEST_QPN)
        q->peer = asked->dest_qp_num;
    if (asked->attr_mask & IBV_QP_PATH_MTU)
        q->mtu = asked->path_mtu;
    if (asked->attr_mask & IBV_QP_RQ_PSN)
        q->first_taken = asked->rq_psn;
    if (asked->attr_mask & IBV_QP_SQ_PSN)
        q->first_sent = asked->sq_psn;
    if (asked->attr_mask & IBV_QP_TIMEOUT)
        q->timeout = asked->timeout;
    if (asked->attr_mask & IBV_QP_RETRY_CNT)
        q->retries = asked->retry_cnt;
    atomic_store(&q->state, asked->qp_state);
    return 0;
}

static int query_queue(const command *c)
{
    const struct ib_uverbs_query_qp *asked = c->in;
    struct ib_uverbs_query_qp_resp told = {
        .qp_state = (uint8_t)atomic_load(&c->world->queue[asked->qp_handle % HCA_QUEUES].state)};
    answer(c, &told, sizeof(told));
    return 0;
}

static int destroy_queue(const command *c)
{
    const struct ib_uverbs_destroy_qp *asked = c->in;
    struct ib_uverbs_destroy_qp_resp told = {0};
    hca_queue *q = &c->world->queue[asked->qp_handle % HCA_QUEUES];
    bool has_more = q->executed != q->rung || q->waiting; /* not what nobody answers to */
    if (atomic_load(&q->state) == IBV_QPS_RTS && has_more && !q->tried_ns &&
        !atomic_load(&c->world->is_down))
        hca_wrong(c->world, "queue %#x was closed with entries in flight", q->number);
    close_object(&q->used);
    answer(c, &told, sizeof(told));
    return 0;
}

static int run(uint32_t number, const command *c)
{
    switch (number) {
    case IB_USER_VERBS_CMD_GET_CONTEXT:
        return get_context(c);
    case IB_USER_VERBS_CMD_QUERY_DEVICE:
        return query_device(c);
    case IB_USER_VERBS_CMD_QUERY_PORT:
        return query_port(c);
    case IB_USER_VERBS_CMD_ALLOC_PD:
        return alloc_domain(c);
    case IB_USER_VERBS_CMD_DEALLOC_PD:
        return 0;
    case IB_USER_VERBS_CMD_REG_MR:
        return register_memory(c);
    case IB_USER_VERBS_CMD_DEREG_MR:
        return deregister_memory(c);
    case IB_USER_VERBS_CMD_CREATE_CQ:
        return create_ring(c);
    case IB_USER_VERBS_CMD_DESTROY_CQ:
        return destroy_ring(c);
    case IB_USER_VERBS_CMD_CREATE_QP:
        return create_queue(c);
    case IB_USER_VERBS_CMD_MODIFY_QP:
        return modify_queue(c);
    case IB_USER_VERBS_CMD_QUERY_QP:
        return query_queue(c);
    case IB_USER_VERBS_CMD_DESTROY_QP:
        return destroy_queue(c);
    default:
        return EOPNOTSUPP;
    }
}

ssize_t hca_command(hca_world *world, hca_context *context, const void *words, size_t bytes)
{
    struct ib_uverbs_cmd_hdr head;
    uint64_t to = 0;
    memcpy(&head, words, sizeof(head));
    if (head.command & IB_USER_VERBS_CMD_FLAG_EXTENDED) {
        errno = EOPNOTSUPP;
        return -1;
    }
    if (bytes >= sizeof(head) + sizeof(to)) /* most begin with it */
        memcpy(&to, (const char *)words + sizeof(head), sizeof(to));
    command c = {.context = context,
                 .world = world,
                 .in = (const char *)words + sizeof(head),
                 .out = (void *)(uintptr_t)to,
                 .out_bytes = head.out_words * 4UL};
    int error = run(head.command, &c);
    if (error) {
        errno = error;
        return -1;
    }
    return (ssize_t)bytes;
}
