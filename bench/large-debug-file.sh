#!/usr/bin/env bash
# Makes a library with a gibibyte of debug information, for `heapray-bench symbols`: one object of C++, copied 700 times under
# other names. `bench/large-debug-file.sh FILE [COPIES]`; takes a minute. Needs g++ and binutils.
set -euo pipefail

output=$(realpath "$1")
copies=${2:-700}
folder=$(mktemp --directory)
trap 'rm -rf "$folder"' EXIT
cd "$folder"

cat >one.cpp <<'EOF'
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <regex>
#include <string>
#include <unordered_map>
#include <vector>

struct Row {
    std::string name;
    std::map<int, std::vector<std::string>> values;
};

int run(int count) {
    std::map<std::string, Row> rows;
    std::unordered_map<int, std::shared_ptr<Row>> index;
    std::regex pattern("a(b|c)*d");
    for (int number = 0; number < count; ++number) {
        Row row;
        row.name = std::to_string(number);
        row.values[number].push_back(row.name);
        rows[row.name] = row;
        index[number] = std::make_shared<Row>(row);
    }
    std::vector<std::function<int(int)>> all{[&](int more) { return more + (int)rows.size(); }};
    std::vector<int> results;
    for (auto &function : all) results.push_back(function(count));
    std::sort(results.begin(), results.end());
    return std::regex_match("abcd", pattern) + results[0] + (int)index.size();
}
EOF
g++ -g -O1 -fPIC -fno-exceptions -ffunction-sections -c one.cpp -o one.o
for ((copy = 0; copy < copies; ++copy)); do
    objcopy --prefix-symbols="copy${copy}_" one.o "copy$copy.o"
done
# The copies refer to copies of the C++ library, which are not there. Nobody runs the library.
ld -shared --unresolved-symbols=ignore-all --build-id -o "$output" copy*.o
