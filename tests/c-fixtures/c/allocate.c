/* A library that is relocated after the one that it needs. */
#include <stdlib.h>

extern void *others[];

void *allocate(void) {
    void *volatile block = malloc(100000);
    free(block);
    return others[0];
}
