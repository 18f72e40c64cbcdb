/* See the header. No locks: counters. */
#include "base/saves_board.h"

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

/* What the processes know of a statement that saves a field; then a counter for each rank: how
 * often it has written its part. */
enum { CLAIMED, MOVED, DONE };

typedef struct save_board {
    _Atomic uint64_t job;    /* what new files of this plan are called; 0: not chosen yet */
    _Atomic uint64_t failed; /* some part could not be written */
    _Atomic uint64_t word[]; /* by statement: CLAIMED, MOVED, DONE + rank */
} save_board;

static int count_in(const peal_graph_data *graph, const peal_body *body, int *index, int count)
{
    for (int i = 0; i < body->count; i++) {
        const peal_statement *s = body->statement[i];
        if (s->kind == PEAL_STATEMENT_REPEAT)
            count = count_in(graph, &s->u.loop.body, index, count);
        if (s->kind != PEAL_STATEMENT_SAVE ||
            graph->arrays[s->u.file.array].kind != PEAL_ARRAY_FIELD)
            continue;
        if (index)
            index[s->id] = count;
        count++;
    }
    return count;
}

int peal_saves_count(const peal_graph_data *graph, int *index)
{
    const peal_body *bodies[] = {&graph->setup, &graph->step.body, &graph->finish};
    int count = 0;
    for (int i = 0; i < 3; i++)
        count = count_in(graph, bodies[i], index, count);
    return count;
}

int64_t peal_saves_bytes(const peal_graph_data *graph, int ranks)
{
    int64_t words = (int64_t)peal_saves_count(graph, NULL) * (DONE + (int64_t)ranks);
    return (int64_t)sizeof(save_board) + words * (int64_t)sizeof(uint64_t);
}

/* Whether all ranks have saved so often. Loads and stores are sequentially consistent: of two ranks
 * that store last, at least one sees both. */
static bool is_whole(const _Atomic uint64_t *done, int ranks, int rank, uint64_t count)
{
    for (int i = 1; i < ranks; i++) /* most often the next one lags */
        if (atomic_load(&done[(rank + i) % ranks]) < count)
            return false;
    return true;
}

/* A rank comes here again once it has moved the file: none overtakes another. */
static bool take_part(save_board *board, _Atomic uint64_t *word, int ranks,
                      const peal_saves_question *question)
{
    uint64_t before = question->value - 1;
    atomic_store(&word[DONE + question->rank], question->value);
    return !atomic_load(&board->failed) &&
           is_whole(word + DONE, ranks, question->rank, question->value) &&
           atomic_compare_exchange_strong(&word[CLAIMED], &before, question->value);
}

static uint64_t choose_job(save_board *board, uint64_t proposed)
{
    uint64_t job = 0;
    return atomic_compare_exchange_strong(&board->job, &job, proposed) ? proposed : job;
}

/* The words of a save; NULL: there is no such save or rank. */
static _Atomic uint64_t *words_of(save_board *board, int64_t bytes, int ranks,
                                  const peal_saves_question *question)
{
    int64_t words = (bytes - (int64_t)sizeof(*board)) / (int64_t)sizeof(uint64_t);
    bool is_there = question->save >= 0 && question->save < words / (DONE + ranks) &&
                    question->rank >= 0 && question->rank < ranks;
    return is_there ? &board->word[(size_t)question->save * (DONE + (size_t)ranks)] : NULL;
}

peal_saves_answer peal_saves_tell(void *memory, int64_t bytes, int ranks,
                                  const peal_saves_question *question)
{
    save_board *board = memory;
    _Atomic uint64_t *word = words_of(board, bytes, ranks, question);
    peal_saves_answer answer = {.failed = 1};
    if (question->what == PEAL_SAVES_NAME)
        answer.value = choose_job(board, question->value);
    else if (question->what == PEAL_SAVES_PART && word)
        answer.is_last = take_part(board, word, ranks, question);
    else if (question->what == PEAL_SAVES_MOVED && word)
        atomic_store(&word[MOVED], question->value);
    else if (question->what == PEAL_SAVES_LOOK)
        answer.value = word ? atomic_load(&word[MOVED]) : 0;
    else if (question->what == PEAL_SAVES_FAILED)
        atomic_store(&board->failed, 1);
    else
        return answer;
    answer.failed = atomic_load(&board->failed) != 0;
    return answer;
}
