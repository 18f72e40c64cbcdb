/* Stories of counterexamples: kept small, since they are told for one example of many. */
#define _POSIX_C_SOURCE 200809L
#include "base/story.h"
#include "base/quote.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int peal_story_add(peal_story *story, int rank, int64_t step, peal_source source,
                   const char *format, ...)
{
    if (story->event_count == PEAL_STORY_EVENTS) {
        story->left_out++;
        return -1;
    }
    peal_story_event *e = &story->event[story->event_count];
    va_list arguments;
    *e = (peal_story_event){.rank = rank, .step = step, .source = source};
    va_start(arguments, format);
    vsnprintf(e->text, sizeof(e->text), format, arguments);
    va_end(arguments);
    return story->event_count++;
}

void peal_story_connect(peal_story *story, int from, const char *why, int to)
{
    if (from >= 0 && to >= 0 && story->link_count < PEAL_STORY_LINKS)
        story->link[story->link_count++] = (peal_story_link){from, to, why};
}

peal_story *peal_story_copy(const peal_story *story)
{
    peal_story *copy = malloc(sizeof(*copy));
    if (!copy)
        return NULL;
    *copy = *story;
    for (int i = 0; i < copy->event_count; i++) {
        peal_source *s = &copy->event[i].source;
        s->file = s->file ? strdup(s->file) : NULL;
    }
    return copy;
}

void peal_story_destroy(peal_story *copy)
{
    if (!copy)
        return;
    for (int i = 0; i < copy->event_count; i++)
        free((char *)(uintptr_t)copy->event[i].source.file);
    free(copy);
}

const char *peal_story_step(int64_t step, char text[32])
{
    if (step < 0)
        return step == PEAL_STORY_SETUP ? "setup" : "finish";
    snprintf(text, 32, "step %" PRId64, step);
    return text;
}

void peal_story_print(const peal_story *story, FILE *stream)
{
    char step[32];
    for (int i = 0; i < story->event_count; i++) {
        const peal_story_event *e = &story->event[i];
        fprintf(stream, "    %d. rank %d, %s", i + 1, e->rank, peal_story_step(e->step, step));
        if (e->source.line > 0)
            fprintf(stream, ", line %d", e->source.line);
        fputs(": ", stream);
        peal_print_quoted(stream, e->text, NULL);
        for (int k = 0; k < story->link_count; k++)
            if (story->link[k].from == i)
                fprintf(stream, "; %s %d", story->link[k].why, story->link[k].to + 1);
        fputc('\n', stream);
    }
    if (story->left_out)
        fprintf(stream, "    ... and %d more like these\n", story->left_out);
}

/* A text within the quotes of a label. */
static void print_quoted(const char *text, FILE *stream)
{
    for (; *text; text++) {
        if (*text == '"' || *text == '\\')
            fputc('\\', stream);
        fputc(*text, stream);
    }
}

/* Whether an earlier event of this rank has drawn the rank's box. */
static bool rank_is_drawn(const peal_story *story, int index)
{
    for (int i = 0; i < index; i++)
        if (story->event[i].rank == story->event[index].rank)
            return true;
    return false;
}

static void print_rank_dot(const peal_story *story, int first, int number, FILE *stream)
{
    int rank = story->event[first].rank;
    char step[32];
    fprintf(stream, "    subgraph cluster_e%d_rank%d {\n      label=\"rank %d\";\n", number, rank,
            rank);
    for (int i = first; i < story->event_count; i++) {
        const peal_story_event *e = &story->event[i];
        if (e->rank != rank)
            continue;
        fprintf(stream, "      e%d_%d [label=\"%d. %s", number, i + 1, i + 1,
                peal_story_step(e->step, step));
        if (e->source.line > 0)
            fprintf(stream, ", line %d", e->source.line);
        fputs("\\n", stream);
        print_quoted(e->text, stream);
        fputs("\"];\n", stream);
    }
    fputs("    }\n", stream);
}

void peal_story_print_dot(const peal_story *story, int number, FILE *stream)
{
    for (int i = 0; i < story->event_count; i++)
        if (!rank_is_drawn(story, i))
            print_rank_dot(story, i, number, stream);
    for (int i = 0; i < story->link_count; i++) {
        const peal_story_link *l = &story->link[i];
        fprintf(stream, "    e%d_%d -> e%d_%d [label=\"%s\", color=red];\n", number, l->from + 1,
                number, l->to + 1, l->why);
    }
}
