// An allocator to preload: C's functions and C++'s operators, each with blocks of its own making. With HEADER, the
// operators alone, which take their blocks from malloc and hide a header before each.
#include <cerrno>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <sys/mman.h>

#ifdef HEADER

static void *take(size_t size, size_t) {
    char *block = size > (size_t(1) << 40) ? nullptr : static_cast<char *>(malloc(size + 64));
    return block ? block + 64 : nullptr;
}

static void give_back(void *block) {
    if (block) free(static_cast<char *>(block) - 64);
}

#else

static const size_t ARENA = size_t(16) << 30;
static char *arena;
static size_t used;

static void *take(size_t size, size_t alignment) {
    if (!__atomic_load_n(&arena, __ATOMIC_ACQUIRE)) {
        void *mapped = mmap(nullptr, ARENA, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (mapped == MAP_FAILED) return nullptr;
        __atomic_store_n(&arena, static_cast<char *>(mapped), __ATOMIC_RELEASE);
    }
    if (size > ARENA || alignment > ARENA) return nullptr;
    if (alignment < 16) alignment = 16;
    // The size stands before each block, for realloc.
    size_t room = size + alignment + 16;
    size_t at = __atomic_fetch_add(&used, room, __ATOMIC_RELAXED);
    if (at + room > ARENA) return nullptr;
    uintptr_t block = (reinterpret_cast<uintptr_t>(arena) + at + 16 + alignment - 1) & ~(alignment - 1);
    reinterpret_cast<size_t *>(block)[-1] = size;
    return reinterpret_cast<void *>(block);
}

static void give_back(void *) {}

extern "C" {
void *malloc(size_t size) { return take(size, 16); }
void free(void *block) { give_back(block); }
void free_sized(void *block, size_t) { give_back(block); }
void free_aligned_sized(void *block, size_t, size_t) { give_back(block); }
void *calloc(size_t count, size_t size) {
    size_t bytes;
    return __builtin_mul_overflow(count, size, &bytes) ? nullptr : take(bytes, 16);
}
void *realloc(void *block, size_t size) {
    void *other = take(size, 16);
    if (other && block) {
        size_t old = static_cast<size_t *>(block)[-1];
        memcpy(other, block, old < size ? old : size);
    }
    return other;
}
int posix_memalign(void **place, size_t alignment, size_t size) {
    void *block = take(size, alignment);
    if (!block) return ENOMEM;
    *place = block;
    return 0;
}
void *aligned_alloc(size_t alignment, size_t size) { return take(size, alignment); }
void *memalign(size_t alignment, size_t size) { return take(size, alignment); }
}

#endif

static void *take_or_throw(size_t size, size_t alignment) {
    void *block = take(size, alignment);
    if (!block) throw std::bad_alloc();
    return block;
}

void *operator new(size_t size) { return take_or_throw(size, 16); }
void *operator new[](size_t size) { return take_or_throw(size, 16); }
void *operator new(size_t size, const std::nothrow_t &) noexcept { return take(size, 16); }
void *operator new[](size_t size, const std::nothrow_t &) noexcept { return take(size, 16); }
void *operator new(size_t size, std::align_val_t at) { return take_or_throw(size, size_t(at)); }
void *operator new[](size_t size, std::align_val_t at) { return take_or_throw(size, size_t(at)); }
void *operator new(size_t size, std::align_val_t at, const std::nothrow_t &) noexcept { return take(size, size_t(at)); }
void *operator new[](size_t size, std::align_val_t at, const std::nothrow_t &) noexcept { return take(size, size_t(at)); }
void operator delete(void *block) noexcept { give_back(block); }
void operator delete[](void *block) noexcept { give_back(block); }
void operator delete(void *block, size_t) noexcept { give_back(block); }
void operator delete[](void *block, size_t) noexcept { give_back(block); }
void operator delete(void *block, const std::nothrow_t &) noexcept { give_back(block); }
void operator delete[](void *block, const std::nothrow_t &) noexcept { give_back(block); }
void operator delete(void *block, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void *block, std::align_val_t) noexcept { give_back(block); }
void operator delete(void *block, size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete[](void *block, size_t, std::align_val_t) noexcept { give_back(block); }
void operator delete(void *block, std::align_val_t, const std::nothrow_t &) noexcept { give_back(block); }
void operator delete[](void *block, std::align_val_t, const std::nothrow_t &) noexcept { give_back(block); }
