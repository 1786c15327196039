/* A library that takes the loader a while to relocate. */
#define OTHERS (1 << 19)
void *others[OTHERS] = {[0 ... OTHERS - 1] = others};
