/* Functions with all kinds of stack frames. Each runs a piece of a program: bytes that say what it calls next. */
#include <alloca.h>
#include <setjmp.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#define JOIN2(a, b) a##_##b
#define JOIN(a, b) JOIN2(a, b)
#define NAME(a) JOIN(a, SUFFIX)

typedef struct program program;
typedef void (*function)(program *);

struct program {
    const uint8_t *next, *end;
    const function *functions;
    size_t count;
    function capture;
};

enum { RETURN = 255, CAPTURE = 254 };

static volatile uint64_t sink;

#define RUN(before, after)                                                                                             \
    while (p->next < p->end) {                                                                                         \
        uint8_t op = *p->next++;                                                                                       \
        if (op == RETURN)                                                                                              \
            break;                                                                                                     \
        before;                                                                                                        \
        if (op == CAPTURE)                                                                                             \
            p->capture(p);                                                                                             \
        else                                                                                                           \
            p->functions[op % p->count](p);                                                                            \
        after;                                                                                                         \
    }

void NAME(plain)(program *p) { RUN((void)0, sink++) }

void NAME(large)(program *p) {
    volatile char room[20000];
    room[0] = 1;
    RUN(room[100]++, sink += room[100])
}

void NAME(with_alloca)(program *p) {
    RUN(char *room = alloca(op * 3 + 1); memset(room, op, op * 3 + 1), sink += room[0])
}

void NAME(with_vla)(program *p) {
    size_t length = (size_t)(p->end - p->next) % 97 + 1;
    volatile uint64_t room[length];
    room[0] = length;
    RUN(room[length - 1]++, sink += room[0])
}

/* Locals that want more alignment than the ABI gives: the stack is realigned, and the CFA is an expression. */
void NAME(aligned)(program *p) {
    volatile _Alignas(64) char room[64];
    room[3] = 3;
    RUN(room[op % 64]++, sink += room[3])
}

/* Aligned and of variable size at once. */
void NAME(aligned_alloca)(program *p) {
    volatile _Alignas(64) char room[64];
    RUN(volatile char *more = alloca(op + 8); more[0] = 1; room[op % 64] = more[0], sink += room[0])
}

/* Enough values live over the calls to need every register that callees save, rbp included. */
void NAME(registers)(program *p) {
    uint64_t a = sink, b = sink + 1, c = sink + 2, d = sink + 3, e = sink + 4, f = sink + 5, g = sink + 6;
    RUN(a += b ^ c, (b += c * d, c += d ^ e, d += e * f, e += f ^ g, f += g, g += a))
    sink += a ^ b ^ c ^ d ^ e ^ f ^ g;
}

static jmp_buf NAME(jump);

/* Calls `inside`, which may leave by `jump_out` from any depth, then `after` from this same frame. */
void NAME(land)(void (*inside)(void *), void (*after)(void *), void *argument) {
    if (setjmp(NAME(jump)) == 0)
        inside(argument);
    after(argument);
    sink++;
}

void NAME(jump_out)(void) { longjmp(NAME(jump), 1); }

/* Calls itself and its twin to a depth, and `leaf` there. */
void NAME(recurse)(uint64_t depth, void (*leaf)(void *), void *argument);

static void NAME(recurse_twin)(uint64_t depth, void (*leaf)(void *), void *argument) {
    volatile char room[24];
    room[0] = (char)depth;
    NAME(recurse)(depth, leaf, argument);
    sink += room[0];
}

void NAME(recurse)(uint64_t depth, void (*leaf)(void *), void *argument) {
    if (depth == 0)
        leaf(argument);
    else if (depth * 0x9e3779b97f4a7c15u >> 63)
        NAME(recurse)(depth - 1, leaf, argument);
    else
        NAME(recurse_twin)(depth - 1, leaf, argument);
    sink++;
}

/* Like `recurse`, with values that live over the calls: without frame pointers, one of them lies in rbp. */
void NAME(recurse_carrying)(uint64_t depth, void (*leaf)(void *), void *argument) {
    if (depth == 0)
        leaf(argument);
    else if (depth & 1)
        NAME(recurse_carrying)(depth - 1, leaf, argument);
    else {
        NAME(recurse_carrying)(depth - 1, leaf, argument);
        sink++;
    }
    sink += depth + (uintptr_t)leaf * (uintptr_t)argument;
}
