// What the generated bindings need of a C library; see ../runtime.c.
#ifndef STRING_H
#define STRING_H

#include <stddef.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memset(void *to, int byte, size_t size);
size_t strlen(const char *text);

#endif
