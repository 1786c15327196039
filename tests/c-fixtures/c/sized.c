/* A library that gives blocks back by the functions of C23, where there are any. */
#include <stddef.h>

__attribute__((weak)) void free_sized(void *block, size_t size);
__attribute__((weak)) void free_aligned_sized(void *block, size_t alignment, size_t size);

/* Whether it did. */
int give_back_sized(void *block, size_t size) {
    if (!free_sized) return 0;
    free_sized(block, size);
    return 1;
}

int give_back_aligned_sized(void *block, size_t alignment, size_t size) {
    if (!free_aligned_sized) return 0;
    free_aligned_sized(block, alignment, size);
    return 1;
}
