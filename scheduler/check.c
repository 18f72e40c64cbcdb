/* The checks over all ranks: sizes, boxes, tiles and messages.
 *
 * Where ranks fall into classes, one of each is analysed, and what it sends is compared with what
 * the classes of its neighbours receive. If that finds nothing wrong, no rank has anything wrong.
 *
 * Else each rank is looked at, which is linear in ranks and messages, and frugal: a rank's view is
 * thrown away once its message ends have been written down as records; the records of both ends are
 * then brought together by counting and compared. Ranks are replayed to find a deadlock only if
 * some receive stands above its send: otherwise every receive waits for an earlier statement. */
#include "scheduler/classes.h"

#include <stdlib.h>
#include <string.h>

enum { KEPT_RANKS = 32 /* views of so many ranks are kept: schedules will want them */ };

typedef struct record_list {
    message_record *item;
    int64_t count, capacity;
} record_list;

typedef struct checker {
    peal_compilation *c;
    record_list sends, recvs; /* by sender; by receiver */
    int64_t *reduced; /* by hidden array: elements that every rank must have; -1: not seen */
    int *reduced_by;  /* the rank that had them */
    size_t most_bytes;
    peal_diagnostics *diagnostics; /* what is found by class is reported by rank */
} checker;

static bool add_record(record_list *list, message_record record)
{
    if (list->count == list->capacity) {
        int64_t capacity = list->capacity ? list->capacity * 3 / 2 : 256;
        message_record *grown = realloc(list->item, (size_t)capacity * sizeof(*grown));
        if (!grown)
            return false;
        list->item = grown;
        list->capacity = capacity;
    }
    list->item[list->count++] = record;
    return true;
}

static peal_status note_messages(checker *k, const rank_view *v)
{
    for (int i = 0; i < v->end_count; i++)
        if (!add_record(v->end[i].outgoing ? &k->sends : &k->recvs, record_of(v, &v->end[i])))
            return peal_report(k->c->diagnostics, PEAL_E146, v->end[i].source,
                               "check fewer ranks at a time", "no memory for %lld messages",
                               (long long)(k->sends.count + k->recvs.count));
    return PEAL_STATUS_OK;
}

/* Vectors that all ranks reduce have the same count everywhere. (Rows are compared when messages
 * are made.) */
static peal_status compare_reductions(checker *k, const rank_view *v)
{
    peal_compilation *c = k->c;
    for (int i = 0; i < c->hidden_count; i++) {
        const peal_statement *s = c->statement[c->hidden[i].statement];
        if (s->kind != PEAL_STATEMENT_REDUCE || s->u.reduce.along >= 0)
            continue;
        const peal_reduction *item = &s->u.reduce.item[c->hidden[i].item];
        int64_t count = v->layout[item->array].stored.hi[0];
        if (k->reduced[i] < 0) {
            k->reduced[i] = count;
            k->reduced_by[i] = v->rank;
        } else if (k->reduced[i] != count)
            return peal_report(c->diagnostics, PEAL_E135, item->source,
                               "give the buffer the same count on all ranks",
                               "`%s` has %lld elements on rank %d and %lld on rank %d",
                               array_name(c, item->array), (long long)k->reduced[i],
                               k->reduced_by[i], (long long)count, v->rank);
    }
    return PEAL_STATUS_OK;
}

static void begin_reductions(checker *k)
{
    k->reduced = PEAL_ARENA_ARRAY(k->c->arena, int64_t, k->c->hidden_count + 1);
    k->reduced_by = PEAL_ARENA_ARRAY(k->c->arena, int, k->c->hidden_count + 1);
    for (int i = 0; i < k->c->hidden_count; i++)
        k->reduced[i] = -1;
}

static peal_status check_rank(checker *k, int rank)
{
    peal_compilation *c = k->c;
    bool keep = c->view[rank] || c->machine.ranks <= KEPT_RANKS;
    peal_arena *kept = c->arena, *scratch = keep ? NULL : peal_arena_create();
    if (scratch)
        c->arena = scratch;
    c->analysed_count++;
    rank_view *v = view_at(c, rank, 2);
    peal_status status = v ? note_messages(k, v) : c->view[rank]->status;
    if (v && !status)
        status = compare_reductions(k, v);
    if (v && !status &&
        rank == c->machine.ranks / 2) /* one in the middle has all neighbours there are */
        warn_of_halos(c, v);
    if (scratch) {
        size_t bytes = peal_arena_bytes(scratch);
        k->most_bytes = bytes > k->most_bytes ? bytes : k->most_bytes;
        c->view[rank] = NULL;
        c->arena = kept;
        peal_arena_destroy(scratch);
    }
    return status;
}

/* ---- Bringing both ends together ---- */

static int order_of(const message_record *a, const message_record *b)
{
    if (a->to != b->to)
        return a->to < b->to ? -1 : 1;
    if (a->tag != b->tag)
        return a->tag < b->tag ? -1 : 1;
    return a->direction < b->direction ? -1 : a->direction > b->direction;
}

static int by_order(const void *a, const void *b)
{
    return order_of(a, b);
}

/* Sorts the records of one sender; their number is small where messages are many. */
static void sort_records(message_record *item, int64_t count)
{
    if (count > 64) {
        qsort(item, (size_t)count, sizeof(*item), by_order);
        return;
    }
    for (int64_t i = 1; i < count; i++) {
        message_record held = item[i];
        int64_t at = i;
        for (; at > 0 && order_of(&item[at - 1], &held) > 0; at--)
            item[at] = item[at - 1];
        item[at] = held;
    }
}

static int64_t equal_records(const message_record *item, int64_t count)
{
    int64_t n = 1;
    while (n < count && order_of(item, item + n) == 0)
        n++;
    return n;
}

/* Records of one sender, both sides sorted. */
static peal_status merge_sender(checker *k, message_record *send, int64_t sends,
                                message_record *recv, int64_t recvs, bool *late_send)
{
    peal_status first = PEAL_STATUS_OK, status;
    sort_records(send, sends);
    sort_records(recv, recvs);
    for (int64_t i = 0, j = 0; i < sends || j < recvs;) {
        int order = i == sends ? 1 : j == recvs ? -1 : order_of(&send[i], &recv[j]);
        int64_t same_sends = order <= 0 ? equal_records(send + i, sends - i) : 0;
        int64_t same_recvs = order >= 0 ? equal_records(recv + j, recvs - j) : 0;
        if (same_sends > 1 || same_recvs > 1)
            status = report_ambiguous(k->c, same_sends > 1 ? &send[i] : &recv[j], same_sends > 1,
                                      (int)(same_sends > 1 ? same_sends : same_recvs));
        else if (order)
            status = report_unmatched(k->c, order < 0 ? &send[i] : &recv[j], order < 0);
        else {
            status = check_pair(k->c, &send[i], &recv[j]);
            *late_send |= send[i].statement > recv[j].statement;
        }
        first = first ? first : status;
        i += same_sends;
        j += same_recvs;
    }
    return first;
}

/* Receives in the order of their senders, by counting. */
static message_record *by_sender(const record_list *recvs, int ranks, int64_t *start)
{
    message_record *sorted = malloc((size_t)(recvs->count + 1) * sizeof(*sorted));
    if (!sorted)
        return NULL;
    memset(start, 0, ((size_t)ranks + 1) * sizeof(*start));
    for (int64_t i = 0; i < recvs->count; i++)
        start[recvs->item[i].from + 1]++;
    for (int rank = 0; rank < ranks; rank++)
        start[rank + 1] += start[rank];
    for (int64_t i = 0; i < recvs->count; i++)
        sorted[start[recvs->item[i].from]++] = recvs->item[i];
    memmove(start + 1, start, (size_t)ranks * sizeof(*start));
    start[0] = 0;
    return sorted;
}

static peal_status match_records(checker *k, bool *late_send)
{
    int ranks = k->c->machine.ranks;
    int64_t *start = malloc(((size_t)ranks + 1) * sizeof(*start)), at = 0;
    message_record *recv = start ? by_sender(&k->recvs, ranks, start) : NULL;
    peal_status first = recv ? PEAL_STATUS_OK : PEAL_STATUS_ENVIRONMENT;
    for (int rank = 0; recv && rank < ranks; rank++) {
        int64_t end = at;
        while (end < k->sends.count && k->sends.item[end].from == rank)
            end++;
        peal_status status = merge_sender(k, k->sends.item + at, end - at, recv + start[rank],
                                          start[rank + 1] - start[rank], late_send);
        first = first ? first : status;
        at = end;
    }
    free(start);
    free(recv);
    return first;
}

peal_status check_each_rank(peal_compilation *c)
{
    checker k = {.c = c};
    peal_status first = PEAL_STATUS_OK;
    bool late_send = false;
    begin_reductions(&k);
    for (int rank = 0; rank < c->machine.ranks; rank++) {
        peal_status status = check_rank(&k, rank);
        first = first ? first : status;
    }
    if (!first)
        first = match_records(&k, &late_send);
    c->check_bytes =
        k.most_bytes + (size_t)(k.sends.capacity + 2 * k.recvs.capacity) * sizeof(message_record);
    free(k.sends.item);
    free(k.recvs.item);
    return !first && late_send ? find_deadlock(c) : first;
}

/* ---- By classes ---- */

/* Records of a rank's messages in one direction, the sender's. */
static int64_t pick_direction(const rank_view *v, bool outgoing, int direction, message_record *out)
{
    int64_t count = 0;
    for (int i = 0; i < v->end_count; i++) {
        message_record r = record_of(v, &v->end[i]);
        if (v->end[i].outgoing != outgoing || r.direction != direction)
            continue;
        r.to = 0; /* the direction tells who it is */
        out[count++] = r;
    }
    return count;
}

/* What a rank sends against what the neighbour's class receives. */
static bool neighbours_match(checker *k, const rank_classes *classes, rank_view *const *view,
                             int rank)
{
    peal_compilation *c = k->c;
    const rank_view *sender = view[class_of(c, classes, rank)];
    int position[PEAL_RANK_AXES];
    bool late_send = false;
    for (int axis = 0, left = rank; axis < PEAL_RANK_AXES; left /= c->dims[axis++])
        position[axis] = left % c->dims[axis];
    for (int number = 0; number < 27; number++) {
        int direction[PEAL_RANK_AXES] = {number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1};
        int peer = neighbour(c, position, direction);
        if (peer < 0)
            continue;
        const rank_view *receiver = view[class_of(c, classes, peer)];
        if (!sender->end_count && !receiver->end_count)
            continue;
        message_record *send = PEAL_ARENA_ARRAY(c->arena, message_record, sender->end_count);
        message_record *recv = PEAL_ARENA_ARRAY(c->arena, message_record, receiver->end_count);
        int64_t sends = pick_direction(sender, true, number, send);
        int64_t recvs = pick_direction(receiver, false, number, recv);
        if (merge_sender(k, send, sends, recv, recvs, &late_send))
            return false;
    }
    return !late_send;
}

/* One rank of each class is analysed, and their messages are matched for each neighbourhood. False:
 * something may be wrong, and each rank is looked at to say what. */
static bool analyse_classes(checker *k, const rank_classes *classes)
{
    peal_compilation *c = k->c;
    int count = classes->count[0] * classes->count[1] * classes->count[2];
    int around = classes->around_count[0] * classes->around_count[1] * classes->around_count[2];
    rank_view **view = PEAL_ARENA_ARRAY(c->arena, rank_view *, count);
    int middle = class_of(c, classes, c->machine.ranks / 2);
    bool good = true;
    begin_reductions(k);
    for (int i = 0; i < count && good; i++) {
        int rank = class_rank(c, classes, i);
        rank_view *known = c->view[rank];
        c->view[rank] = NULL;
        view[i] = view_at(c, rank, 2);
        c->view[rank] = known;
        c->analysed_count++;
        good = view[i] && !compare_reductions(k, view[i]);
    }
    for (int i = 0; i < around && good; i++)
        good = neighbours_match(k, classes, view, neighbourhood_rank(c, classes, i));
    c->diagnostics = k->diagnostics;
    if (good)
        warn_of_halos(c, view[middle]);
    return good;
}

static bool prove_by_classes(peal_compilation *c)
{
    checker k = {.c = c, .diagnostics = c->diagnostics};
    peal_arena *kept = c->arena, *scratch = peal_arena_create();
    rank_classes classes;
    if (!scratch)
        return false;
    c->arena = scratch;
    c->diagnostics = NULL;
    bool good = find_classes(c, &classes) && analyse_classes(&k, &classes);
    c->arena = kept;
    c->diagnostics = k.diagnostics;
    c->check_bytes = peal_arena_bytes(scratch);
    peal_arena_destroy(scratch);
    return good;
}

peal_status peal_compilation_check(peal_compilation *c)
{
    return prove_by_classes(c) ? PEAL_STATUS_OK : check_each_rank(c);
}
