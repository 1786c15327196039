/* A small library, whose debug information is the seed of the fuzzer of debug files. */

static inline __attribute__((always_inline)) int inner(int rows) {
    return rows * 3;
}

__attribute__((noinline)) int cart_add(int rows) {
    return inner(rows) + 7;
}

int shop_run(int rows) {
    return cart_add(rows) - inner(rows + 1);
}
