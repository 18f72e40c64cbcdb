/* Messages of the UCX engine: active messages, whose header says which put they are. Short ones
 * bring their bytes along, long ones are fetched into their slots. */
#include "runtime/network/ucx.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- sending ---- */

static void send_one(ucx_sending *sending, uint64_t value);

static void end_sending(ucx_sending *sending, ucs_status_t status)
{
    if (sending->plan->is_dead)
        return;
    if (status != UCS_OK)
        ucx_lose(sending->link, status);
    else if (sending->is_owed) {
        sending->is_owed = false;
        send_one(sending, sending->owed);
    }
}

static void has_left(void *request, ucs_status_t status, void *user)
{
    ucx_sending *sending = user;
    peal_network *network = sending->plan->network;
    network->library->ucp_request_free(request);
    sending->is_busy = false;
    sending->plan->busy--;
    network->busy--;
    end_sending(sending, status);
}

static void send_one(ucx_sending *sending, uint64_t value)
{
    peal_network *network = sending->plan->network;
    const peal_put *put = sending->put;
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                       UCP_OP_ATTR_FIELD_USER_DATA |
                                                       UCP_OP_ATTR_FIELD_MEMORY_TYPE,
                                       .cb.send = has_left,
                                       .user_data = sending,
                                       .memory_type = UCS_MEMORY_TYPE_HOST};
    if (sending->link->is_broken)
        return;
    sending->head.frame.value = value;
    const void *bytes = put->bytes ? peal_put_slot(put, value) : NULL;
    ucs_status_ptr_t request =
        network->library->ucp_am_send_nbx(sending->link->endpoint, UCX_MESSAGE, &sending->head,
                                          sizeof(sending->head), bytes, (size_t)put->bytes, &param);
    network->has_sent = true;
    if (UCS_PTR_IS_PTR(request)) {
        sending->is_busy = true;
        sending->plan->busy++;
        network->busy++;
    } else
        end_sending(sending, UCS_PTR_STATUS(request));
}

/* What the slot, or the credit, has sent before may still be UCX's. */
static void send_next(ucx_sending *sending, uint64_t value)
{
    if (!sending->is_busy) {
        send_one(sending, value);
        return;
    }
    sending->is_owed = true;
    sending->owed = value;
}

void ucx_due(peal_network_plan *plan, int pair, int number, uint64_t value)
{
    const peal_put *put = &plan->pair[pair].out[number];
    ucx_sending *sending = plan->sending[pair][number];
    uint64_t *sent = &plan->sent[pair][number], behind = value - *sent;
    if (behind % put->quantum || behind / put->quantum > (uint64_t)put->slots + 1) {
        ucx_fail(plan->network, PEAL_STATUS_INTERNAL, "a message is due that no slot is for");
        return;
    }
    uint64_t next = put->credit ? value : *sent + put->quantum; /* of credits the last says all */
    for (; next != value + put->quantum; next += put->quantum)
        send_next(&sending[ucx_place(put, next)], next);
    *sent = value;
}

/* ---- receiving ---- */

static void refuse(ucx_link *link, const peal_put_frame *frame, const char *what, uint64_t is,
                   uint64_t expected)
{
    char text[UCX_TEXT_BYTES];
    snprintf(text, sizeof(text),
             "a message from process %d (plan %" PRIu32 ", put %" PRIu32 ") has %s %" PRIu64
             ", expected %" PRIu64,
             link->process, frame->plan, frame->put, what, is, expected);
    link->is_broken = true;
    ucx_fail(link->network, PEAL_STATUS_INTERNAL, text);
}

static peal_network_plan *find_plan(const peal_network *network, const ucx_link *link,
                                    uint32_t number, int *pair)
{
    peal_network_plan *plan = network->plan;
    while (plan && plan->number != number)
        plan = plan->next;
    for (*pair = 0; plan && *pair < plan->count; ++*pair)
        if (plan->link[*pair] == link)
            return plan;
    return NULL;
}

/* Its bytes are in the slot: the word may be seen once those before it are. */
static void arrive(peal_network_plan *plan, int pair, int number, uint64_t value)
{
    const peal_put *put = &plan->pair[pair].in[number];
    ucx_arrival *arrival = &plan->arrival[pair][number];
    if (put->credit)
        arrival->received = value;
    else {
        uint64_t next = arrival->received + put->quantum;
        arrival->has_come[ucx_place(put, value)] = true;
        for (; arrival->has_come[ucx_place(put, next)]; next += put->quantum)
            arrival->has_come[ucx_place(put, next)] = false;
        arrival->received = next - put->quantum;
    }
    atomic_store_explicit(put->at, arrival->received, memory_order_release);
}

static void has_been_fetched(void *request, ucs_status_t status, size_t bytes, void *user)
{
    ucx_fetch *fetch = user;
    peal_network *network = fetch->plan->network;
    (void)bytes;
    network->library->ucp_request_free(request);
    fetch->plan->busy--;
    network->busy--;
    if (fetch->plan->is_dead)
        ; /* its slots and words are gone */
    else if (status == UCS_OK)
        arrive(fetch->plan, fetch->pair, fetch->put, fetch->value);
    else
        ucx_lose(fetch->link, status);
    free(fetch);
}

static ucs_status_t fetch(const ucx_fetch *what, const peal_put *put, void *description)
{
    peal_network *network = what->plan->network;
    ucx_fetch *own = malloc(sizeof(*own));
    if (!own) {
        ucx_fail(network, PEAL_STATUS_ENVIRONMENT, "no memory for a message that comes");
        return UCS_ERR_NO_MEMORY;
    }
    *own = *what;
    const ucp_request_param_t param = {.op_attr_mask = UCP_OP_ATTR_FIELD_CALLBACK |
                                                       UCP_OP_ATTR_FIELD_USER_DATA |
                                                       UCP_OP_ATTR_FIELD_MEMORY_TYPE |
                                                       UCP_OP_ATTR_FLAG_NO_IMM_CMPL,
                                       .cb.recv_am = has_been_fetched,
                                       .user_data = own,
                                       .memory_type = UCS_MEMORY_TYPE_HOST};
    void *slot = put->bytes ? peal_put_slot(put, what->value) : NULL;
    ucs_status_ptr_t request =
        network->library->ucp_am_recv_data_nbx(network->worker, description, slot,
                                               (size_t)put->bytes, &param);
    if (!UCS_PTR_IS_PTR(request)) {
        ucx_lose(what->link, UCS_PTR_STATUS(request));
        free(own);
        return UCS_OK;
    }
    what->plan->busy++;
    network->busy++;
    return UCS_OK;
}

/* Whether a message may come now. */
static bool is_expected(const ucx_fetch *what, const peal_put_frame *frame, uint64_t bytes)
{
    const peal_pair *pair = &what->plan->pair[what->pair];
    if (frame->put >= (uint32_t)pair->in_count) {
        refuse(what->link, frame, "the number", frame->put, (uint64_t)pair->in_count);
        return false;
    }
    const peal_put *put = &pair->in[frame->put];
    uint64_t size = frame->bytes != (uint64_t)put->bytes ? frame->bytes : bytes;
    if (size != (uint64_t)put->bytes) {
        refuse(what->link, frame, "a size of", size, (uint64_t)put->bytes);
        return false;
    }
    const ucx_arrival *arrival = &what->plan->arrival[what->pair][frame->put];
    uint64_t step = frame->value - arrival->received;
    if (put->credit && step > UINT64_MAX / 2) /* late: a later one has said it */
        return false;
    uint64_t most = ((uint64_t)put->slots + (put->credit ? 1 : 0)) * put->quantum;
    bool has_come = !put->credit && arrival->has_come[ucx_place(put, frame->value)];
    if (step == 0 || step > most || step % put->quantum || has_come) {
        refuse(what->link, frame, "the value", frame->value, arrival->received + put->quantum);
        return false;
    }
    return true;
}

ucs_status_t ucx_take(void *user, const void *header, size_t header_bytes, void *data, size_t bytes,
                      const ucp_am_recv_param_t *param)
{
    peal_network *network = user;
    ucx_head head;
    if (header_bytes != sizeof(head))
        return UCS_OK; /* from nobody of this job */
    memcpy(&head, header, sizeof(head));
    ucx_link *link =
        head.from < (uint32_t)network->site->processes ? network->link[head.from] : NULL;
    if (!link || head.token != link->own_token || link->is_broken)
        return UCS_OK;
    ucx_fetch what = {.link = link, .put = (int)head.frame.put, .value = head.frame.value};
    what.plan = find_plan(network, link, head.frame.plan, &what.pair);
    if (!what.plan || !is_expected(&what, &head.frame, bytes))
        return UCS_OK; /* of a plan that has ended here, or of none */
    const peal_put *put = &what.plan->pair[what.pair].in[what.put];
    if (param->recv_attr & UCP_AM_RECV_ATTR_FLAG_RNDV)
        return fetch(&what, put, data);
    if (bytes)
        memcpy(peal_put_slot(put, what.value), data, bytes);
    arrive(what.plan, what.pair, what.put, what.value);
    return UCS_OK;
}
