/* Numbers in texts that programs read: with a point, whatever locale the application has set. */
#ifndef PEAL_BASE_NUMBER_H
#define PEAL_BASE_NUMBER_H

enum { PEAL_NUMBER_TEXT = 48, PEAL_NUMBER_HEX = 0, PEAL_NUMBER_EXACT = 17 };

/* The number that a text begins with, as strtod reads it; *end (unless NULL) is behind it. */
double peal_number_read(const char *text, char **end);
/* In that many significant digits (%g; 1 to 17), or PEAL_NUMBER_HEX (%a). Returns `text`. */
const char *peal_number_print(char text[PEAL_NUMBER_TEXT], int digits, double value);

#endif
