/* Scaling curves: the time of a step over the number of ranks, both on logarithmic axes, a line a
 * mode; dashed: the same schedule with free messages. One file, without scripts or fonts. */
#define _GNU_SOURCE
#include "tools/simulate.h"

#include "base/new_file.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { WIDTH = 720, HEIGHT = 440, LEFT = 80, RIGHT = 120, TOP = 40, BOTTOM = 60 };

typedef struct chart {
    FILE *file;
    const simulation *simulation;
    double low_x, high_x, low_y, high_y; /* decimal logarithms */
} chart;

static const char *const colours[PEAL_MODE_COUNT] = {"#666666", "#1b6ca8", "#2a8f3c", "#c2571a",
                                                     "#8e3aa3"};

static double x_of(const chart *c, double ranks)
{
    double span = c->high_x > c->low_x ? c->high_x - c->low_x : 1;
    return LEFT + (log10(ranks) - c->low_x) / span * (WIDTH - LEFT - RIGHT);
}

static double y_of(const chart *c, double seconds)
{
    return HEIGHT - BOTTOM -
           (log10(seconds) - c->low_y) / (c->high_y - c->low_y) * (HEIGHT - TOP - BOTTOM);
}

static void find_ranges(chart *c)
{
    double least = INFINITY, most = 0;
    const simulation *s = c->simulation;
    for (int i = 0; i < s->point_count; i++) {
        const double times[] = {s->point[i].sent.step_s, s->point[i].free_step_s};
        for (int k = 0; k < 2; k++)
            if (times[k] > 0) {
                least = times[k] < least ? times[k] : least;
                most = times[k] > most ? times[k] : most;
            }
    }
    c->low_x = log10(s->point[0].ranks);
    c->high_x = log10(s->point[s->point_count - 1].ranks);
    c->low_y = floor(log10(most > 0 ? least : 1e-6));
    c->high_y = ceil(log10(most > 0 ? most : 1e-6));
    c->high_y += c->high_y <= c->low_y;
}

/* The spec's name may hold anything. */
static void put_text(FILE *file, const char *text)
{
    for (; *text; text++)
        if (strchr("<>&\"", *text))
            fprintf(file, "&#%d;", *text);
        else
            fputc(*text, file);
}

static void draw_axes(const chart *c)
{
    const simulation *s = c->simulation;
    FILE *f = c->file;
    fprintf(f, "<text x=\"%d\" y=\"24\" font-size=\"15\">", LEFT);
    put_text(f, s->graph->name);
    fputs(": time of a step over ranks</text>\n", f);
    for (int decade = (int)c->low_y; decade <= (int)c->high_y; decade++) {
        double y = y_of(c, pow(10, decade));
        fprintf(f,
                "<line x1=\"%d\" y1=\"%.1f\" x2=\"%d\" y2=\"%.1f\" stroke=\"#dddddd\"/>"
                "<text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">%s</text>\n",
                LEFT, y, WIDTH - RIGHT, y, LEFT - 8, y + 4, text_seconds(pow(10, decade)).s);
    }
    for (int i = 0; i < s->point_count && s->point[i].mode == s->point[0].mode; i++) {
        double x = x_of(c, s->point[i].ranks);
        fprintf(f,
                "<line x1=\"%.1f\" y1=\"%d\" x2=\"%.1f\" y2=\"%d\" stroke=\"#eeeeee\"/>"
                "<text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">%d</text>\n",
                x, TOP, x, HEIGHT - BOTTOM, x, HEIGHT - BOTTOM + 18, s->point[i].ranks);
    }
    fprintf(f, "<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">ranks</text>\n",
            (LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14);
}

static void draw_line(const chart *c, int first, int end, bool free_messages)
{
    const simulated_point *point = c->simulation->point;
    const char *colour = colours[point[first].mode];
    fprintf(c->file, "<polyline fill=\"none\" stroke=\"%s\" stroke-width=\"2\"%s points=\"", colour,
            free_messages ? " stroke-dasharray=\"5 4\"" : "");
    for (int i = first; i < end; i++) {
        double seconds = free_messages ? point[i].free_step_s : point[i].sent.step_s;
        if (seconds > 0)
            fprintf(c->file, "%.1f,%.1f ", x_of(c, point[i].ranks), y_of(c, seconds));
    }
    fputs("\"/>\n", c->file);
    for (int i = first; i < end && !free_messages; i++)
        if (point[i].sent.step_s > 0)
            fprintf(c->file, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"3\" fill=\"%s\"/>\n",
                    x_of(c, point[i].ranks), y_of(c, point[i].sent.step_s), colour);
}

static void draw_curves(const chart *c)
{
    const simulation *s = c->simulation;
    int line = 0;
    for (int first = 0, end; first < s->point_count; first = end) {
        for (end = first; end < s->point_count && s->point[end].mode == s->point[first].mode;)
            end++;
        draw_line(c, first, end, true);
        draw_line(c, first, end, false);
        fprintf(c->file, "<text x=\"%d\" y=\"%d\" fill=\"%s\">%s</text>\n", WIDTH - RIGHT + 16,
                TOP + 20 + 20 * line++, colours[s->point[first].mode],
                peal_mode_name(s->point[first].mode));
    }
    fprintf(c->file,
            "<text x=\"%d\" y=\"%d\" fill=\"#666666\">dashed: no</text>\n"
            "<text x=\"%d\" y=\"%d\" fill=\"#666666\">messages</text>\n",
            WIDTH - RIGHT + 16, TOP + 30 + 20 * line, WIDTH - RIGHT + 16, TOP + 46 + 20 * line);
}

peal_status simulate_draw(const simulation *s, const char *path, peal_diagnostics *diagnostics)
{
    static const peal_source nowhere;
    char *text = NULL;
    size_t bytes = 0;
    chart c = {.file = open_memstream(&text, &bytes), .simulation = s};
    bool good = c.file != NULL;
    if (good) {
        find_ranges(&c);
        fprintf(c.file,
                "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%d\" height=\"%d\" "
                "font-family=\"sans-serif\" font-size=\"12\">\n"
                "<rect width=\"100%%\" height=\"100%%\" fill=\"white\"/>\n",
                WIDTH, HEIGHT);
        draw_axes(&c);
        draw_curves(&c);
        fputs("</svg>\n", c.file);
        good = !ferror(c.file);
        good = !fclose(c.file) && good;
        good = good && (errno = peal_file_replace(text, bytes, path, 0)) == 0;
    }
    free(text);
    return good ? PEAL_STATUS_OK
                : peal_report(diagnostics, PEAL_E_OUTPUT_NOT_WRITTEN, nowhere, NULL,
                              "cannot write '%s': %s", path, strerror(errno));
}
