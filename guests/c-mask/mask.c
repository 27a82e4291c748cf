// Finding and masking payment card numbers in any bytes.

#include "mask.h"

#include <stdbool.h>

// ISO/IEC 7812: a card number has at most 19 digits; those in use have at least 13.
enum { SHORTEST = 13, LONGEST = 19 };

static bool is_digit(uint8_t byte) {
    return byte >= '0' && byte <= '9';
}

// Whether the digits carry the check digit that every card number ends with.
static bool has_check_digit(const uint8_t *bytes, const size_t *places, size_t count) {
    unsigned sum = 0;
    for (size_t index = 0; index < count; index++) {
        unsigned digit = bytes[places[count - 1 - index]] - '0';
        if (index % 2 == 1) {
            digit *= 2;
        }
        sum += digit > 9 ? digit - 9 : digit;
    }
    return sum % 10 == 0;
}

// The length of the longest card number at `start`, in digits; 0 where there is none. `places` gets the places of its
// digits. It may have single spaces or dashes between groups of digits, and ends where a group ends.
static size_t card_at(const uint8_t *bytes, size_t length, size_t start, size_t places[LONGEST]) {
    size_t count = 0;
    size_t card = 0;
    for (size_t at = start; at < length; at++) {
        if (is_digit(bytes[at])) {
            if (count == LONGEST) {
                break;
            }
            places[count++] = at;
            bool group_ends = at + 1 == length || !is_digit(bytes[at + 1]);
            if (group_ends && count >= SHORTEST && has_check_digit(bytes, places, count)) {
                card = count;
            }
        } else {
            bool separates = (bytes[at] == ' ' || bytes[at] == '-') && at + 1 < length && is_digit(bytes[at + 1]);
            if (!separates) {
                break;
            }
        }
    }
    return card;
}

size_t mask_cards(uint8_t *bytes, size_t length, const struct mask_settings *settings) {
    size_t found = 0;
    for (size_t at = 0; at < length; at++) {
        bool group_starts = is_digit(bytes[at]) && (at == 0 || !is_digit(bytes[at - 1]));
        if (!group_starts) {
            continue;
        }
        size_t places[LONGEST];
        size_t count = card_at(bytes, length, at, places);
        if (count == 0) {
            continue;
        }
        for (size_t index = 0; index + settings->keep_last < count; index++) {
            bytes[places[index]] = settings->mask;
        }
        at = places[count - 1];
        found++;
    }
    return found;
}
