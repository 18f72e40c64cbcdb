/* A file whose text is in the binary: backends/embed.c makes tables of them. */
#ifndef PEAL_BASE_TEXT_FILE_H
#define PEAL_BASE_TEXT_FILE_H

/* A table ends with {0, 0}. */
typedef struct peal_text_file {
    const char *name, *text;
} peal_text_file;

#endif
