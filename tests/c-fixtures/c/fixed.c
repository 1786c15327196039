/* Compiled for a fixed address: taking a function's address gives that of the program's PLT entry. */
#include <stdlib.h>

struct functions {
    void *(*allocate)(size_t size);
    int (*align)(void **place, size_t alignment, size_t size);
    void (*release)(void *block);
};

struct functions functions_at_fixed_addresses(void) {
    struct functions all = {malloc, posix_memalign, free};
    return all;
}

void *allocate_directly(size_t size) {
    return malloc(size);
}
