/* What a bootstrap says of itself, if the environment asks for it. */
#include "runtime/bootstrap/bootstrap.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void peal_bootstrap_log(const char *format, ...)
{
    const char *level = getenv("PEAL_LOG");
    if (!level || (strcmp(level, "info") && strcmp(level, "debug")))
        return;
    char text[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    fprintf(stderr, "peal: %s\n", text);
}
