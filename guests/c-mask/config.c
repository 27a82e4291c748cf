// Reading the `config` table: a flat JSON object with two known keys.

#include <stdbool.h>

#include "mask.h"

enum { LONGEST_TOKEN = 64 };

struct reader {
    const uint8_t *at;
    const uint8_t *end;
};

static char problem[256];

static size_t append(size_t length, const char *text) {
    while (*text != '\0' && length + 1 < sizeof problem) {
        problem[length++] = *text++;
    }
    problem[length] = '\0';
    return length;
}

static const char *complain(const char *before, const char *key, const char *after) {
    append(append(append(0, before), key), after);
    return problem;
}

// The next byte that is not white space, without going past it; 0 at the end.
static uint8_t peek(struct reader *reader) {
    while (reader->at < reader->end &&
           (*reader->at == ' ' || *reader->at == '\t' || *reader->at == '\n' || *reader->at == '\r')) {
        reader->at++;
    }
    return reader->at < reader->end ? *reader->at : 0;
}

static bool take(struct reader *reader, uint8_t byte) {
    if (peek(reader) != byte) {
        return false;
    }
    reader->at++;
    return true;
}

// A string of printable ASCII, cut off where it is longer than any that is known.
static bool read_string(struct reader *reader, char text[LONGEST_TOKEN]) {
    if (!take(reader, '"')) {
        return false;
    }
    size_t length = 0;
    while (reader->at < reader->end && *reader->at != '"') {
        if (*reader->at == '\\') {
            reader->at++;
            // Of the escapes only these stand for what they show.
            if (reader->at == reader->end || (*reader->at != '"' && *reader->at != '\\' && *reader->at != '/')) {
                return false;
            }
        }
        if (*reader->at < ' ' || *reader->at > '~') {
            return false;
        }
        if (length + 1 < LONGEST_TOKEN) {
            text[length++] = (char)*reader->at;
        }
        reader->at++;
    }
    text[length] = '\0';
    return take(reader, '"');
}

static bool read_keep_last(struct reader *reader, struct mask_settings *settings) {
    uint8_t digit = peek(reader);
    if (digit < '0' || digit > '6') {
        return false;
    }
    reader->at++;
    settings->keep_last = digit - '0';
    uint8_t next = peek(reader);
    return next == ',' || next == '}';
}

static bool read_mask(struct reader *reader, struct mask_settings *settings) {
    char text[LONGEST_TOKEN];
    if (!read_string(reader, text) || text[0] == '\0' || text[1] != '\0') {
        return false;
    }
    settings->mask = (uint8_t)text[0];
    return true;
}

static bool is(const char *left, const char *right) {
    while (*left != '\0' && *left == *right) {
        left++;
        right++;
    }
    return *left == *right;
}

const char *mask_configure(const uint8_t *json, size_t length, struct mask_settings *settings) {
    struct reader reader = {json, json + length};
    if (!take(&reader, '{')) {
        return complain("config: is not a table", "", "");
    }
    if (take(&reader, '}')) {
        return NULL;
    }
    do {
        char key[LONGEST_TOKEN];
        if (!read_string(&reader, key) || !take(&reader, ':')) {
            return complain("config: a key is not plain text", "", "");
        }
        if (is(key, "keep_last")) {
            if (!read_keep_last(&reader, settings)) {
                return complain("config.", key, ": is not a whole number from 0 to 6");
            }
        } else if (is(key, "mask")) {
            if (!read_mask(&reader, settings)) {
                return complain("config.", key, ": is not one printable ASCII character");
            }
        } else {
            return complain("config: unknown key ", key, "; there are keep_last and mask");
        }
    } while (take(&reader, ','));
    return take(&reader, '}') ? NULL : complain("config: is not a table", "", "");
}
