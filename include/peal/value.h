/* A value of the language: of a param, of an expression, in a row of `print`. */
#ifndef PEAL_VALUE_H
#define PEAL_VALUE_H

#include <stdbool.h>
#include <stdint.h>

typedef enum peal_value_kind { PEAL_INTEGER, PEAL_REAL, PEAL_BOOLEAN, PEAL_TEXT } peal_value_kind;

typedef struct peal_value {
    peal_value_kind kind;
    union {
        int64_t integer;
        double real;
        bool boolean;
        const char *text;
    } u; /* the member that kind says */
} peal_value;

#endif
