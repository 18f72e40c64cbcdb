/* Matching over all ranks: both ends are brought together by counting, sorted within a
 * sender and compared.
 *
 * Linear in messages and frugal: there may be millions, but few kinds of them. */
#include "scheduler/check/message_match.h"
#include "scheduler/messages/messages.h"

#include <stdlib.h>
#include <string.h>

bool end_table_init(end_table *r, peal_compilation *c)
{
    size_t ranks = (size_t)c->common.machine.ranks + 1;
    *r = (end_table){.c = &c->common,
                     .pass = &c->pass,
                     .views = &c->views,
                     .conditions = c->conditions,
                     .last_kind = -1};
    r->sends.start = calloc(ranks, sizeof(int64_t));
    r->recvs.start = calloc(ranks, sizeof(int64_t));
    r->most_bytes = 2 * ranks * sizeof(int64_t);
    return r->sends.start && r->recvs.start;
}

void end_table_finish(end_table *r)
{
    free(r->sends.start);
    free(r->recvs.start);
    free(r->sends.item);
    free(r->recvs.item);
    free(r->turned.start);
    free(r->turned.item);
    free(r->kind);
    free(r->bucket);
}

/* ---- Kinds ---- */

static bool same_kind(const message_kind *a, const message_kind *b)
{
    return a->tag == b->tag && a->count == b->count && a->statement == b->statement &&
           a->direction == b->direction && a->condition == b->condition;
}

static size_t bucket_of(const end_table *r, const message_kind *kind)
{
    uint64_t hash = (uint64_t)kind->tag * 0x9e3779b97f4a7c15u;
    hash = (hash ^ (hash >> 29) ^ (uint64_t)kind->count) * 0xbf58476d1ce4e5b9u;
    hash = (hash ^ (uint64_t)kind->condition) * 0xff51afd7ed558ccdu;
    hash = (hash ^ (hash >> 32) ^ (uint64_t)(kind->statement * 32 + kind->direction)) *
           0x94d049bb133111ebu;
    size_t at = (size_t)(hash >> 32) & (r->bucket_count - 1);
    while (r->bucket[at] && !same_kind(&r->kind[r->bucket[at] - 1], kind))
        at = (at + 1) & (r->bucket_count - 1);
    return at;
}

static bool grow_kinds(end_table *r)
{
    int capacity = r->kind_capacity ? 2 * r->kind_capacity : 64;
    size_t buckets = 2 * (size_t)capacity;
    message_kind *kind = realloc(r->kind, (size_t)capacity * sizeof(*kind));
    int *bucket = calloc(buckets, sizeof(*bucket));
    r->kind = kind ? kind : r->kind;
    if (!kind || !bucket) {
        free(bucket);
        return false;
    }
    free(r->bucket);
    r->bucket = bucket;
    r->bucket_count = buckets;
    r->kind_capacity = capacity;
    for (int i = 0; i < r->kind_count; i++)
        bucket[bucket_of(r, &kind[i])] = i + 1;
    return true;
}

/* The number of a kind; -1: no memory. */
static int number_kind(end_table *r, const message_kind *kind)
{
    if (r->kind_count == r->kind_capacity && !grow_kinds(r))
        return -1;
    size_t at = bucket_of(r, kind);
    if (!r->bucket[at]) {
        r->kind[r->kind_count++] = *kind;
        r->bucket[at] = r->kind_count;
    }
    return r->last_kind = r->bucket[at] - 1;
}

bool pack_end(end_table *r, const message_end *end, packed_end *out)
{
    int64_t count = peal_box_points(&end->box);
    int32_t direction = end_direction(end);
    const message_kind *last = r->last_kind >= 0 ? &r->kind[r->last_kind] : NULL;
    *out = (packed_end){end->peer, r->last_kind};
    if (last && last->tag == end->tag && last->count == count &&
        last->statement == end->statement && last->direction == direction &&
        last->condition == end->condition)
        return true; /* as most are, without a look at the table */
    out->kind =
        number_kind(r, &(message_kind){end->tag, count, end->statement, direction, end->condition});
    return out->kind >= 0;
}

/* ---- Ends ---- */

/* Room for so many more; when it must grow, for all ranks if they are like those so far. */
static bool make_room(const end_table *r, end_list *list, int rank, int64_t more)
{
    if (list->count + more <= list->capacity)
        return true;
    int64_t ranks = r->c->machine.ranks, least = list->count + more;
    int64_t likely = rank > 0 ? (list->count / rank + 1) * ranks : more * ranks;
    int64_t capacity = list->count + list->count / 2 + more;
    capacity = likely > least && likely < 4 * least + 1024 * 1024 ? likely : capacity;
    packed_end *grown = realloc(list->item, (size_t)capacity * sizeof(*grown));
    if (!grown)
        return false;
    list->item = grown;
    list->capacity = capacity;
    return true;
}

static peal_status no_memory(const end_table *r, peal_source source)
{
    int64_t ends = r->sends.count + r->recvs.count;
    return peal_report(r->pass->diagnostics, PEAL_E_COMPILE_OUT_OF_MEMORY, source,
                       "check fewer ranks, or where there is more memory",
                       "no memory for the %lld ends of messages so far, which need %lld bytes",
                       (long long)ends, (long long)(3 * ends * (int64_t)sizeof(packed_end)));
}

peal_status end_table_add_rank(end_table *r, int rank, const rank_view *v)
{
    int outgoing = 0;
    for (int i = 0; i < v->end_count; i++)
        outgoing += v->end[i].outgoing;
    bool room = make_room(r, &r->sends, rank, outgoing) &&
                make_room(r, &r->recvs, rank, v->end_count - outgoing);
    for (int i = 0; i < v->end_count; i++) {
        end_list *list = v->end[i].outgoing ? &r->sends : &r->recvs;
        if (!room || !pack_end(r, &v->end[i], &list->item[list->count]))
            return no_memory(r, r->c->statement[v->end[i].statement]->source);
        list->count++;
    }
    r->sends.start[rank + 1] = r->sends.count;
    r->recvs.start[rank + 1] = r->recvs.count;
    return PEAL_STATUS_OK;
}

/* ---- Bringing both ends together ---- */

enum { MOST_COMPARED = 1024 /* ends of a rank, each with each, for a hint */ };

/* The body that an end's statement stands in. */
static int body_of(const end_table *r, const packed_end *e)
{
    return r->c->statement_loop[r->kind[e->kind].statement];
}

/* By what tells messages apart wherever they stand. */
static int order_of_keys(const end_table *r, const packed_end *a, const packed_end *b)
{
    if (a->peer != b->peer)
        return a->peer < b->peer ? -1 : 1;
    const message_kind *x = &r->kind[a->kind], *y = &r->kind[b->kind];
    if (x->tag != y->tag)
        return x->tag < y->tag ? -1 : 1;
    return x->direction < y->direction ? -1 : x->direction > y->direction;
}

/* Messages of two bodies may look alike. */
static int order_of(const end_table *r, const packed_end *a, const packed_end *b)
{
    int order = order_of_keys(r, a, b);
    int x = order ? 0 : body_of(r, a), y = order ? 0 : body_of(r, b);
    return order ? order : x < y ? -1 : x > y;
}

/* By merging halves, long lists; the lists of most ranks are short. */
static void sort_packed_ends(const end_table *r, packed_end *item, int64_t count, packed_end *spare)
{
    if (count > 32) {
        int64_t half = count / 2, a = 0, b = half;
        sort_packed_ends(r, item, half, spare);
        sort_packed_ends(r, item + half, count - half, spare);
        for (int64_t i = 0; i < count; i++)
            spare[i] = b == count || (a < half && order_of(r, &item[a], &item[b]) <= 0) ? item[a++]
                                                                                        : item[b++];
        memcpy(item, spare, (size_t)count * sizeof(*item));
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        packed_end held = item[i];
        int64_t at = i;
        for (; at > 0 && order_of(r, &item[at - 1], &held) > 0; at--)
            item[at] = item[at - 1];
        item[at] = held;
    }
}

static int64_t count_equal_ends(const end_table *r, const packed_end *item, int64_t count)
{
    int64_t n = 1;
    while (n < count && order_of(r, item, item + n) == 0)
        n++;
    return n;
}

static end_summary summary_of(const end_table *r, int sender, const packed_end *e)
{
    const message_kind *kind = &r->kind[e->kind];
    return (end_summary){.tag = kind->tag,
                         .count = kind->count,
                         .from = sender,
                         .to = e->peer,
                         .statement = kind->statement,
                         .direction = kind->direction,
                         .condition = kind->condition};
}

/* Compares a pair: most are like one before. */
static peal_status compare_pair(end_table *r, int sender, const packed_end *send,
                                const packed_end *recv)
{
    end_summary from = summary_of(r, sender, send), to = summary_of(r, sender, recv);
    return check_pair(r->c, r->pass, r->conditions, &from, &to);
}

/* An end without partner: perhaps it has one that stands in another body. */
static peal_status report_single(end_table *r, int sender, const packed_end *single, bool outgoing,
                                 const packed_end *others, int64_t count)
{
    end_summary shown = summary_of(r, sender, single);
    for (int64_t i = 0; i < count; i++)
        if (order_of_keys(r, single, &others[i]) == 0)
            return outgoing ? compare_pair(r, sender, single, &others[i])
                            : compare_pair(r, sender, &others[i], single);
    return report_unmatched(r->c, r->pass, r->views, &shown, outgoing);
}

/* Writes down that a send stands below its receive, if it does. */
static bool note_late(end_table *r, int sender, int send, int recv)
{
    const message_leads *leads = &r->c->leads;
    if (send <= recv)
        return false;
    if (leads->receive_above[send] < 0 || recv < leads->receive_above[send]) {
        leads->receive_above[send] = recv;
        leads->sender[send] = sender;
    }
    return true;
}

/* Where a rank has several equal ends, and the other side fewer: an end of that side, of any rank,
 * that has no partner. */
static bool find_orphan(const end_table *r, int sender, const packed_end *end, int64_t ends,
                        const packed_end *partner, int64_t partners, end_summary *out)
{
    for (int64_t i = 0; i < ends; i++) {
        bool met = false;
        for (int64_t k = 0; k < partners && !met; k++)
            met = order_of_keys(r, &end[i], &partner[k]) == 0;
        *out = summary_of(r, sender, &end[i]);
        if (!met)
            return true;
    }
    return false;
}

peal_status match_packed_ends(end_table *r, int sender, packed_end *send, int64_t sends,
                              packed_end *recv, int64_t recvs, bool *late_send)
{
    peal_status first = PEAL_STATUS_OK, status;
    int64_t longest = sends > recvs ? sends : recvs;
    int good_send = -1, good_recv = -1; /* kinds that were found to fit */
    packed_end *spare = longest > 32 ? malloc((size_t)longest * sizeof(*spare)) : NULL;
    if (longest > 32 && !spare)
        return no_memory(r, (peal_source){0});
    sort_packed_ends(r, send, sends, spare);
    sort_packed_ends(r, recv, recvs, spare);
    free(spare);
    for (int64_t i = 0, j = 0; i < sends || j < recvs;) {
        int order = i == sends ? 1 : j == recvs ? -1 : order_of(r, &send[i], &recv[j]);
        int64_t same_sends = order <= 0 ? count_equal_ends(r, send + i, sends - i) : 0;
        int64_t same_recvs = order >= 0 ? count_equal_ends(r, recv + j, recvs - j) : 0;
        end_summary shown = summary_of(r, sender, order <= 0 ? &send[i] : &recv[j]);
        if (same_sends > 1 || same_recvs > 1) {
            if (same_sends <= 1)
                shown = summary_of(r, sender, &recv[j]);
            bool several = same_sends > 1;
            end_summary orphan;
            bool fewer = several ? same_recvs < same_sends : same_sends < same_recvs;
            fewer = fewer && longest <= MOST_COMPARED &&
                    (several ? find_orphan(r, sender, recv, recvs, send, sends, &orphan)
                             : find_orphan(r, sender, send, sends, recv, recvs, &orphan));
            status =
                report_ambiguous(r->c, r->pass, r->views, &shown, several,
                                 (int)(several ? same_sends : same_recvs), fewer ? &orphan : NULL);
        } else if (order)
            status = report_single(r, sender, order < 0 ? &send[i] : &recv[j], order < 0,
                                   order < 0 ? recv : send, order < 0 ? recvs : sends);
        else if (send[i].kind == good_send && recv[j].kind == good_recv)
            status = PEAL_STATUS_OK;
        else {
            status = compare_pair(r, sender, &send[i], &recv[j]);
            *late_send |= note_late(r, sender, r->kind[send[i].kind].statement,
                                    r->kind[recv[j].kind].statement);
            good_send = status ? -1 : send[i].kind;
            good_recv = recv[j].kind;
        }
        first = first ? first : status;
        i += same_sends;
        j += same_recvs;
    }
    return first;
}

/* Receives in the order of their senders, by counting: packed ends whose peer is the receiver. */
static bool turn_around(const end_table *r, end_list *out)
{
    int ranks = r->c->machine.ranks;
    const end_list *recvs = &r->recvs;
    *out = (end_list){.item = malloc((size_t)(recvs->count + 1) * sizeof(packed_end)),
                      .start = calloc((size_t)ranks + 2, sizeof(int64_t)),
                      .count = recvs->count};
    if (!out->item || !out->start)
        return false;
    int64_t *at = out->start + 1; /* moves to where it belongs while it is filled */
    for (int64_t i = 0; i < recvs->count; i++)
        at[recvs->item[i].peer + 1]++;
    for (int rank = 0; rank < ranks; rank++)
        at[rank + 1] += at[rank];
    for (int rank = 0; rank < ranks; rank++)
        for (int64_t i = recvs->start[rank]; i < recvs->start[rank + 1]; i++)
            out->item[at[recvs->item[i].peer]++] = (packed_end){rank, recvs->item[i].kind};
    return true;
}

/* A rank's part of a list; NULL: nothing. */
static packed_end *ends_of(const end_list *list, int rank, int64_t *count)
{
    int64_t first = list->start[rank];
    *count = list->start[rank + 1] - first;
    return *count ? list->item + first : NULL;
}

peal_status end_table_match(end_table *r, bool *late_send)
{
    peal_status first = PEAL_STATUS_OK;
    r->most_bytes +=
        (size_t)(r->sends.capacity + r->recvs.capacity + r->recvs.count) * sizeof(packed_end) +
        (size_t)(r->c->machine.ranks + 2) * sizeof(int64_t) +
        (size_t)r->kind_capacity * (sizeof(message_kind) + 2 * sizeof(int));
    int ranks = r->sends.count + r->recvs.count ? r->c->machine.ranks : 0;
    if (!turn_around(r, &r->turned)) {
        first = no_memory(r, (peal_source){0});
        ranks = 0;
    }
    for (int rank = 0; rank < ranks; rank++) {
        int64_t sends, receives;
        packed_end *send = ends_of(&r->sends, rank, &sends);
        packed_end *recv = ends_of(&r->turned, rank, &receives);
        peal_status status = match_packed_ends(r, rank, send, sends, recv, receives, late_send);
        first = first ? first : status;
    }
    return first;
}

/* The sends of a rank have been sorted. */
int end_table_send_of(const end_table *r, int rank, const packed_end *recv)
{
    packed_end key = {rank, recv->kind};
    int64_t low = r->sends.start[recv->peer], high = r->sends.start[recv->peer + 1];
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (order_of(r, &r->sends.item[middle], &key) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return r->kind[r->sends.item[low].kind].statement;
}
