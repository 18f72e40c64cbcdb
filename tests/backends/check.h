/* cmocka, which needs these headers first. */
#ifndef PEAL_TESTS_CMOCKA_H
#define PEAL_TESTS_CMOCKA_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#endif
