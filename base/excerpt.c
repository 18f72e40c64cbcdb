/* Reads one line of a file, and draws it. What is no regular file of text, or changes, is left
 * out: a message needs no picture. */
#define _GNU_SOURCE
#include "base/excerpt.h"

#include "base/quote.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MOST_BYTES = 4 << 20, WIDTH = 90, BEFORE = 60, TAB = 4 };
/* Of a character of UTF-8; where there are more, these bytes are none. */
enum { MOST_CONTINUATIONS = 3 };

/* A file that neither blocks nor never ends. */
static FILE *open_text(const char *path)
{
    struct stat info;
    int descriptor = open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC);

    if (descriptor < 0)
        return NULL;
    FILE *file = NULL;
    if (fstat(descriptor, &info) == 0 && S_ISREG(info.st_mode) && info.st_size <= MOST_BYTES)
        file = fdopen(descriptor, "r");
    if (!file)
        close(descriptor);
    return file;
}

/* The line without its end; NULL: there is none, or it is no text. To be freed. */
static char *read_line(const char *path, int number)
{
    FILE *file = open_text(path);
    char *line = NULL;
    size_t room = 0;
    ssize_t length = -1;

    for (int i = 0; file && i < number; i++)
        if ((length = getline(&line, &room, file)) < 0)
            break;
    if (file)
        fclose(file);
    if (length < 0 || strlen(line) != (size_t)length) {
        free(line);
        return NULL;
    }
    line[strcspn(line, "\r\n")] = 0;
    return line;
}

static bool continues(char c)
{
    return ((unsigned char)c & 0xc0) == 0x80;
}

/* The byte at which the column's character begins. Columns count characters, from 1. */
static size_t byte_of(const char *line, int column)
{
    size_t at = 0;
    for (int i = 1; i < column && line[at]; i++)
        do
            at++;
        while (continues(line[at]));
    return at;
}

/* One character a column, so that the caret stands right: tabs become blanks. */
static void print_piece(FILE *stream, const char *from, size_t bytes)
{
    char text[WIDTH * 4 + 8];
    size_t used = 0;
    for (size_t i = 0; i < bytes && used + TAB < sizeof(text); i++) {
        if (from[i] != '\t') {
            text[used++] = from[i];
            continue;
        }
        memset(text + used, ' ', TAB);
        used += TAB;
    }
    text[used] = 0;
    peal_print_quoted(stream, text, NULL);
}

/* Blanks as wide as a piece is when it is printed. */
static void print_blanks(FILE *stream, const char *from, size_t bytes)
{
    char *text = NULL;
    size_t length = 0;
    FILE *out = open_memstream(&text, &length);
    if (!out)
        return;
    print_piece(out, from, bytes);
    fclose(out);
    for (size_t i = 0; i < length; i++)
        if (!continues(text[i]))
            fputc(' ', stream);
    free(text);
}

static void draw(FILE *stream, const char *line, peal_source source, bool color)
{
    size_t at = byte_of(line, source.column), begin = at > BEFORE ? at - BEFORE : 0;
    size_t end = strlen(line);

    for (int i = 0; begin > 0 && i < MOST_CONTINUATIONS && continues(line[begin]); i++)
        begin++;
    if (end > begin + WIDTH) {
        end = begin + WIDTH;
        for (int i = 0; i < MOST_CONTINUATIONS && continues(line[end]); i++)
            end--;
    }
    fprintf(stream, "%6d | %s", source.line, begin ? "..." : "");
    print_piece(stream, line + begin, end - begin);
    fprintf(stream, "%s\n", line[end] ? "..." : "");
    if (source.column < 1)
        return;
    fprintf(stream, "       | %s", begin ? "   " : "");
    print_blanks(stream, line + begin, at - begin);
    fputs(color ? "\033[1;32m^\033[0m\n" : "^\n", stream);
}

void peal_excerpt_print(FILE *stream, peal_source source, bool color)
{
    char *line = source.file && source.line > 0 ? read_line(source.file, source.line) : NULL;
    if (line && line[strspn(line, " \t")])
        draw(stream, line, source, color);
    free(line);
}
