#ifndef MASK_H
#define MASK_H

#include <stddef.h>
#include <stdint.h>

// How numbers are masked.
struct mask_settings {
    // Digits at the end of a number that stay, 0 to 6.
    unsigned keep_last;
    // What the other digits become.
    uint8_t mask;
};

// Reads the `config` table from JSON text; what it does not name keeps its default. Returns NULL, or a text for the
// operator that names the key; the text is valid until the next call.
const char *mask_configure(const uint8_t *json, size_t length, struct mask_settings *settings);

// Masks the payment card numbers in `bytes`; returns how many there were.
size_t mask_cards(uint8_t *bytes, size_t length, const struct mask_settings *settings);

#endif
