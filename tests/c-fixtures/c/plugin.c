/* A library to load and unload: two of them, with different frames in functions of the same names. */
#include <stdint.h>

static volatile uint64_t sink;

static __attribute__((noinline)) void inner(void (*callback)(void *), void *argument) {
    volatile char room[NUMBER * 400];
    room[0] = NUMBER;
    callback(argument);
    sink += room[0];
}

void call_back(void (*callback)(void *), void *argument) {
    inner(callback, argument);
    sink++;
}
