/* To preload: functions that count, and call those behind them. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

static void *(*next_malloc)(size_t);
static void (*next_free)(void *);
static unsigned long calls;

/* Asks for the functions behind, once more. */
void look_behind(void) {
    next_malloc = (void *(*)(size_t))dlsym(RTLD_NEXT, "malloc");
    next_free = (void (*)(void *))dlsym(RTLD_NEXT, "free");
}

unsigned long calls_so_far(void) { return __atomic_load_n(&calls, __ATOMIC_RELAXED); }

void *malloc(size_t size) {
    if (!next_malloc) look_behind();
    __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
    return next_malloc(size);
}

void free(void *block) {
    if (!next_free) look_behind();
    next_free(block);
}
