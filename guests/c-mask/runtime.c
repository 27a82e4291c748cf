// The little of a C library that a guest needs. A full one would import a system interface, which guests do not get.

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

// Placed by the linker after data and stack.
extern unsigned char __heap_base;

enum { ALIGNMENT = 16, PAGE = 65536 };

// Precedes each block.
struct block {
    _Alignas(ALIGNMENT) size_t size;
};

static uintptr_t top;
static size_t live;

static uintptr_t rounded(uintptr_t place) {
    return (place + ALIGNMENT - 1) & ~(uintptr_t)(ALIGNMENT - 1);
}

static void reserve(uintptr_t end) {
    uintptr_t have = (uintptr_t)__builtin_wasm_memory_size(0) * PAGE;
    if (end > have && __builtin_wasm_memory_grow(0, (end - have + PAGE - 1) / PAGE) == SIZE_MAX) {
        abort();
    }
}

void *malloc(size_t size) {
    if (top == 0) {
        top = rounded((uintptr_t)&__heap_base);
    }
    size_t most = SIZE_MAX - top - sizeof(struct block) - ALIGNMENT;
    if (size > most) {
        abort();
    }
    struct block *block = (struct block *)top;
    uintptr_t end = rounded(top + sizeof *block + size);
    reserve(end);
    block->size = size;
    top = end;
    live++;
    return block + 1;
}

// Every call frees all that it allocated: the heap starts over when the last block goes.
void free(void *memory) {
    if (memory != NULL && --live == 0) {
        top = 0;
    }
}

void *realloc(void *memory, size_t size) {
    void *moved = malloc(size);
    if (memory != NULL) {
        size_t before = ((struct block *)memory - 1)->size;
        memcpy(moved, memory, before < size ? before : size);
        free(memory);
    }
    return moved;
}

void abort(void) {
    __builtin_trap();
}

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
    for (size_t index = 0; index < size; index++) {
        ((unsigned char *)to)[index] = ((const unsigned char *)from)[index];
    }
    return to;
}

void *memset(void *to, int byte, size_t size) {
    for (size_t index = 0; index < size; index++) {
        ((unsigned char *)to)[index] = (unsigned char)byte;
    }
    return to;
}

size_t strlen(const char *text) {
    size_t length = 0;
    while (text[length] != '\0') {
        length++;
    }
    return length;
}
