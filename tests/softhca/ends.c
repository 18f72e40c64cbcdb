/* See ends.h. */
#define _POSIX_C_SOURCE 200809L
#include "ends.h"

#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

bool has_device(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    if (list)
        ibv_free_device_list(list);
    if (!count)
        fputs("no RDMA device: is the provider mlx5 installed (ibverbs-providers)?\n", stderr);
    return count > 0;
}

struct ibv_context *open_device(void)
{
    int count = 0;
    struct ibv_device **list = ibv_get_device_list(&count);
    assert_non_null(list);
    assert_int_equal(count, 1);
    struct ibv_context *opened = ibv_open_device(list[0]);
    ibv_free_device_list(list);
    assert_non_null(opened);
    return opened;
}

void open_end(end *e, struct ibv_context *device, void *at, uint64_t bytes, uint32_t inlined)
{
    *e = (end){.device = device ? device : open_device(), .at = at, .bytes = bytes};
    e->domain = ibv_alloc_pd(e->device);
    assert_non_null(e->domain);
    e->memory =
        ibv_reg_mr(e->domain, at, bytes,
                   IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC);
    assert_non_null(e->memory);
    e->ring = ibv_create_cq(e->device, END_RING, NULL, NULL, 0);
    assert_non_null(e->ring);
    struct ibv_qp_init_attr asked = {.send_cq = e->ring,
                                     .recv_cq = e->ring,
                                     .qp_type = IBV_QPT_RC,
                                     .cap = {.max_send_wr = END_DEPTH,
                                             .max_recv_wr = 1,
                                             .max_send_sge = 1,
                                             .max_recv_sge = 1,
                                             .max_inline_data = inlined}};
    e->queue = ibv_create_qp(e->domain, &asked);
    assert_non_null(e->queue);
}

card card_of(const end *e)
{
    return (card){e->queue->qp_num, e->memory->rkey, (uintptr_t)e->at};
}

void connect_end(end *e, const card *other)
{
    connect_again(e, other, 0);
}

void connect_again(end *e, const card *other, uint32_t first_packet)
{
    struct ibv_qp_attr reset = {.qp_state = IBV_QPS_RESET};
    assert_int_equal(ibv_modify_qp(e->queue, &reset, IBV_QP_STATE), 0);
    struct ibv_qp_attr a = {.qp_state = IBV_QPS_INIT,
                            .port_num = 1,
                            .qp_access_flags = IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC};
    assert_int_equal(ibv_modify_qp(e->queue, &a,
                                   IBV_QP_STATE | IBV_QP_PKEY_INDEX | IBV_QP_PORT |
                                       IBV_QP_ACCESS_FLAGS),
                     0);
    a = (struct ibv_qp_attr){.qp_state = IBV_QPS_RTR,
                             .path_mtu = IBV_MTU_4096,
                             .dest_qp_num = other->queue,
                             .rq_psn = first_packet,
                             .max_dest_rd_atomic = 1,
                             .min_rnr_timer = 1,
                             .ah_attr = {.dlid = 1, .port_num = 1}};
    assert_int_equal(ibv_modify_qp(e->queue, &a,
                                   IBV_QP_STATE | IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN |
                                       IBV_QP_RQ_PSN | IBV_QP_MAX_DEST_RD_ATOMIC |
                                       IBV_QP_MIN_RNR_TIMER),
                     0);
    a = (struct ibv_qp_attr){
        .qp_state = IBV_QPS_RTS, .timeout = 10, .retry_cnt = 6, .rnr_retry = 6, .max_rd_atomic = 1};
    assert_int_equal(ibv_modify_qp(e->queue, &a,
                                   IBV_QP_STATE | IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT |
                                       IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC),
                     0);
}

void close_end(end *e)
{
    assert_int_equal(ibv_destroy_qp(e->queue), 0);
    assert_int_equal(ibv_destroy_cq(e->ring), 0);
    assert_int_equal(ibv_dereg_mr(e->memory), 0);
    assert_int_equal(ibv_dealloc_pd(e->domain), 0);
}

int put(end *e, const card *to, uint64_t from, uint64_t there, uint32_t bytes, uint64_t word_at,
        uint64_t word, bool signalled)
{
    struct ibv_sge data = {(uintptr_t)e->at + from, bytes, e->memory->lkey};
    struct ibv_sge flag = {(uintptr_t)&word, sizeof(word), 0};
    struct ibv_send_wr second = {.wr_id = word,
                                 .sg_list = &flag,
                                 .num_sge = 1,
                                 .opcode = IBV_WR_RDMA_WRITE,
                                 .send_flags =
                                     IBV_SEND_INLINE | (signalled ? IBV_SEND_SIGNALED : 0U),
                                 .wr.rdma = {to->at + word_at, to->key}};
    struct ibv_send_wr first = {.wr_id = word,
                                .next = &second,
                                .sg_list = &data,
                                .num_sge = 1,
                                .opcode = IBV_WR_RDMA_WRITE,
                                .wr.rdma = {to->at + there, to->key}};
    struct ibv_send_wr *bad;
    return ibv_post_send(e->queue, bytes ? &first : &second, &bad);
}

int add(end *e, const card *to, uint64_t word_at, uint64_t value, uint64_t back, bool signalled)
{
    struct ibv_sge answer = {(uintptr_t)e->at + back, sizeof(uint64_t), e->memory->lkey};
    struct ibv_send_wr only = {.wr_id = value,
                               .sg_list = &answer,
                               .num_sge = 1,
                               .opcode = IBV_WR_ATOMIC_FETCH_AND_ADD,
                               .send_flags = signalled ? IBV_SEND_SIGNALED : 0U,
                               .wr.atomic = {.remote_addr = to->at + word_at,
                                             .compare_add = value,
                                             .rkey = to->key}};
    struct ibv_send_wr *bad;
    return ibv_post_send(e->queue, &only, &bad);
}

enum ibv_wc_status reap(end *e, uint64_t *id)
{
    struct ibv_wc got;
    int count;
    while ((count = ibv_poll_cq(e->ring, 1, &got)) == 0)
        sched_yield();
    assert_int_equal(count, 1);
    if (id)
        *id = got.wr_id;
    return got.status;
}
