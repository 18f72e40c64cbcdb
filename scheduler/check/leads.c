/* How far senders may be ahead of their receivers.
 *
 * Ranks can go through a body together, statement by statement, unless a receive stands above its
 * send: then its rank stands still while others go through what lies in between. A loop that lies
 * there has all its iterations on some ranks before its first on others. Each message of its
 * channels finds a free slot if there are as many slots as messages in one iteration of the body
 * around; then no rank waits for a slot in it, and all ranks can end that iteration before the next
 * one begins. Where no such receive lies around a loop, ranks go through its iterations together,
 * with one message of a channel under way. */
#include "scheduler/check/check.h"
#include "scheduler/conditions/conditions.h"
#include "scheduler/stories/stories.h"

#include <limits.h>

enum { MOST_AHEAD = INT_MAX / 4 };

typedef struct lead_walk {
    const common_input *c;
    const pass_context *pass;
    rank_views *views;
    condition_table *conditions;
    int late_send; /* of the receive that the walk is below; -1: ranks go together */
    peal_status first;
} lead_walk;

static int last_statement(const peal_statement *s)
{
    while (s->kind == PEAL_STATEMENT_REPEAT && s->u.loop.body.count)
        s = s->u.loop.body.statement[s->u.loop.body.count - 1];
    return s->id;
}

int late_send_around(const common_input *c, const peal_statement *loop)
{
    int last = last_statement(loop);
    for (int i = last + 1; i < c->graph->statement_count; i++)
        if (c->statement[i] && c->statement_loop[i] == c->statement_loop[loop->id] &&
            c->leads.receive_above[i] >= 0 && c->leads.receive_above[i] < loop->id)
            return i;
    return -1;
}

/* By statements alone. */
static bool may_differ(const peal_body *body)
{
    const peal_statement *const *s = body->statement;
    int recv = 0, send = body->count - 1;
    while (recv < body->count && s[recv]->kind != PEAL_STATEMENT_RECV)
        recv++;
    while (send > recv && s[send]->kind != PEAL_STATEMENT_SEND)
        send--;
    for (int i = 0; i < body->count; i++)
        if (s[i]->kind == PEAL_STATEMENT_REPEAT &&
            ((i > recv && i < send && has_messages(s[i])) || may_differ(&s[i]->u.loop.body)))
            return true;
    return false;
}

bool leads_may_differ(const common_input *c)
{
    const peal_graph_data *g = c->graph;
    return may_differ(&g->setup) || may_differ(&g->step.body) || may_differ(&g->finish);
}

bool has_late_loop(const common_input *c)
{
    for (int i = 0; i < c->graph->statement_count; i++)
        if (c->statement[i] && c->statement[i]->kind == PEAL_STATEMENT_REPEAT &&
            has_messages(c->statement[i]) && late_send_around(c, c->statement[i]) >= 0)
            return true;
    return false;
}

/* The peer that a rank's send goes to; -1: its view is not to be had. */
static int peer_of(lead_walk *w, int rank, int send)
{
    const rank_view *v = view_at(w->views, rank, STAGE_TASKS);
    for (int i = 0; v && i < v->end_count; i++)
        if (v->end[i].outgoing && v->end[i].statement == send)
            return v->end[i].peer;
    return -1;
}

static void tell_lead(lead_walk *w, const peal_statement *loop, peal_story *story)
{
    const common_input *c = w->c;
    const peal_statement *send = c->statement[w->late_send],
                         *recv = c->statement[c->leads.receive_above[w->late_send]];
    int from = c->leads.sender[w->late_send], to = peer_of(w, from, w->late_send);
    if (to < 0)
        return;
    int waits = peal_story_add(story, to, story_step(c, recv, to), recv->source,
                               "`%s` waits for rank %d", recv->name, from);
    int goes =
        peal_story_add(story, from, story_step(c, loop, from), loop->source,
                       "`%s` goes round: what it sends is not received meanwhile", loop->name);
    int sends = peal_story_add(story, from, story_step(c, send, from), send->source,
                               "`%s` sends what rank %d waits for", send->name, to);
    peal_story_connect(story, waits, "waits for", sends);
    peal_story_connect(story, sends, "comes after all iterations of", goes);
}

static void report_lead(lead_walk *w, const peal_statement *loop, int64_t around)
{
    peal_story story = {0};
    char count[64] = "";
    peal_source source = loop->source;
    if (around > 1)
        snprintf(count, sizeof(count), "%lld times ", (long long)around);
    if (peal_diagnostics_want(w->pass->diagnostics, PEAL_E_LEAD_WITHOUT_BOUND, source))
        tell_lead(w, loop, &story);
    peal_status status = peal_report_story(
        w->pass->diagnostics, PEAL_E_LEAD_WITHOUT_BOUND, source,
        "give `repeat` a bound that arithmetic can find, or move the send above the loop", &story,
        "senders in this loop may be ahead of receivers by %sas many messages as it has "
        "iterations, and no bound below %d can be shown for `repeat: %s`",
        count, MOST_AHEAD, loop->u.loop.repeat->text ? loop->u.loop.repeat->text : "?");
    w->first = w->first ? w->first : status;
}

/* `ahead`: iterations of the body that a rank may have begun while another one has ended none. */
static void walk_body(lead_walk *w, const peal_body *body, int64_t ahead)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind != PEAL_STATEMENT_REPEAT) {
            w->c->leads.ahead[s->id] = (int)ahead;
            continue;
        }
        int outside = w->late_send;
        if (w->late_send < 0)
            w->late_send = late_send_around(w->c, s);
        int64_t rounds = 1;
        if (w->late_send >= 0 && has_messages(s))
            rounds = most_iterations(w->conditions, s, MOST_AHEAD / (ahead ? ahead : 1));
        if (rounds < 0)
            report_lead(w, s, ahead);
        else
            walk_body(w, &s->u.loop.body, ahead * rounds);
        w->late_send = outside;
    }
}

peal_status find_leads(const common_input *c, const pass_context *pass, rank_views *views,
                       condition_table *conditions)
{
    lead_walk w = {.c = c, .pass = pass, .views = views, .conditions = conditions, .late_send = -1};
    walk_body(&w, &c->graph->setup, 1);
    walk_body(&w, &c->graph->step.body, 1);
    walk_body(&w, &c->graph->finish, 1);
    return w.first;
}
