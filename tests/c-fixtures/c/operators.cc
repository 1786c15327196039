// A library to load that calls every form of C++'s operators. What a form of new asks for tells which one it is.
#include <cstddef>
#include <new>

static const std::align_val_t AT{64};

static void *ask(int form, size_t size) {
    switch (form) {
    case 0: return ::operator new(size);
    case 1: return ::operator new[](size);
    case 2: return ::operator new(size, std::nothrow);
    case 3: return ::operator new[](size, std::nothrow);
    case 4: return ::operator new(size, AT);
    case 5: return ::operator new[](size, AT);
    case 6: return ::operator new(size, AT, std::nothrow);
    default: return ::operator new[](size, AT, std::nothrow);
    }
}

static void give_back(int form, int way, void *block, size_t size) {
    bool array = form % 2, aligned = form >= 4;
    switch (way % 3) {
    case 0:
        if (aligned) array ? ::operator delete[](block, AT) : ::operator delete(block, AT);
        else array ? ::operator delete[](block) : ::operator delete(block);
        break;
    case 1:
        if (aligned) array ? ::operator delete[](block, size, AT) : ::operator delete(block, size, AT);
        else array ? ::operator delete[](block, size) : ::operator delete(block, size);
        break;
    default:
        if (aligned) array ? ::operator delete[](block, AT, std::nothrow) : ::operator delete(block, AT, std::nothrow);
        else array ? ::operator delete[](block, std::nothrow) : ::operator delete(block, std::nothrow);
    }
}

extern "C" {
/// Each form of new three times, each block given back in another way. Returns the number of blocks.
int take_and_give_back(void) {
    int blocks = 0;
    for (int form = 0; form < 8; form++)
        for (int way = 0; way < 3; way++, blocks++) {
            size_t size = 64 * (200 + form);
            void *volatile block = ask(form, size);
            give_back(form, way, block, size);
        }
    return blocks;
}

/// Each form of new once, kept.
void take(void **kept) {
    for (int form = 0; form < 8; form++) kept[form] = ask(form, 64 * (400 + form));
}

/// More than there is: how many of the eight forms threw or answered null.
int ask_for_too_much(void) {
    int failed = 0;
    for (int form = 0; form < 8; form++) {
        try {
            failed += ask(form, size_t(1) << 62) == nullptr;
        } catch (const std::bad_alloc &) {
            failed++;
        }
    }
    return failed;
}
}
