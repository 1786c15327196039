// A C++ library that allocates from threads of its own: each builds an index of words, changes it, and gives it back.

#include <cstdint>
#include <map>
#include <string>
#include <thread>
#include <vector>

namespace {

class Index {
public:
    explicit Index(std::uint64_t seed) : state(seed * 0x9E3779B97F4A7C15u + 1) {}

    // Goes down `depth` calls before it works, so that stacks are as deep as real ones.
    __attribute__((noinline)) std::size_t descend(unsigned depth, unsigned words) {
        std::size_t found = depth == 0 ? fill(words) : descend(depth - 1, words);
        return found + (depth & 1);
    }

private:
    __attribute__((noinline)) std::size_t fill(unsigned words) {
        std::size_t found = 0;
        for (unsigned word = 0; word < words; ++word) {
            add(word);
            if (word % 4 == 3) found += remove();
        }
        return found + places.size();
    }

    __attribute__((noinline)) void add(unsigned position) {
        // Longer than what a string holds without allocating.
        std::string word = "word number " + std::to_string(next() % 5000) + " of the index";
        places[word].push_back(position);
    }

    __attribute__((noinline)) std::size_t remove() {
        if (places.empty()) return 0;
        auto place = places.lower_bound("word number " + std::to_string(next() % 5000) + " of");
        if (place == places.end()) place = places.begin();
        std::size_t found = place->second.size();
        places.erase(place);
        return found;
    }

    std::uint64_t next() {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        return state;
    }

    std::uint64_t state;
    std::map<std::string, std::vector<unsigned>> places;
};

} // namespace

extern "C" std::uint64_t heapray_bench_index(unsigned threads, unsigned words) {
    std::vector<std::thread> running;
    std::vector<std::uint64_t> found(threads);
    for (unsigned thread = 0; thread < threads; ++thread) {
        running.emplace_back([thread, words, &found] {
            found[thread] = Index(thread + 1).descend(30, words);
        });
    }
    std::uint64_t sum = 0;
    for (unsigned thread = 0; thread < threads; ++thread) {
        running[thread].join();
        sum += found[thread];
    }
    return sum;
}
