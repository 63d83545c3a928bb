#include "wordpiece.hpp"

#include <catch2/catch.hpp>
#include <cstdint>
#include <sstream>
#include <string>
#include <vector>

namespace {

using ids = std::vector<std::int64_t>;

// Ids are line numbers from 0.
const char* const vocabulary =
    "[PAD]\n[UNK]\n[CLS]\n[SEP]\n"
    "a\nwo\nwork\n##er\n##s\nun\n##work\n##able\n,\n!\ncafe\nund\n語\n日\nстрана\n…\n¿\n##e\n";

examples::wordpiece tokenizer() {
  std::istringstream lines(vocabulary);
  return examples::wordpiece(lines);
}

// The ids between [CLS] and [SEP].
ids inner(const std::string& text) {
  ids all = tokenizer().encode(text);
  REQUIRE(all.size() >= 2);
  CHECK(all.front() == 2);
  CHECK(all.back() == 3);
  return ids(all.begin() + 1, all.end() - 1);
}

}  // namespace

TEST_CASE("wordpiece takes the longest piece first") {
  CHECK(inner("workers") == ids{6, 7, 8});
  CHECK(inner("unworkable") == ids{9, 10, 11});
  CHECK(inner("unda") == ids{1});
  CHECK(inner("workers workz a") == ids{6, 7, 8, 1, 4});
  CHECK(inner("") == ids{});
}

TEST_CASE("wordpiece sets punctuation and ideographs apart") {
  CHECK(inner("a,a!") == ids{4, 12, 4, 13});
  CHECK(inner("日語a日") == ids{17, 16, 4, 17});
  CHECK(inner("¿a…") == ids{20, 4, 19});
}

TEST_CASE("wordpiece folds case and accents") {
  CHECK(inner("WORK") == ids{6});
  CHECK(inner("Café") == ids{14});
  CHECK(inner("cafe\u0301") == ids{14});
  CHECK(inner("ÀẠǍ") == ids{1});  // U+01CD lies outside the tables and stays
  CHECK(inner("ÀB") == ids{1});
  CHECK(inner("Ấ") == ids{4});
  CHECK(inner("СТРАНА") == ids{18});
}

TEST_CASE("wordpiece drops controls and invalid UTF-8 and treats every space alike") {
  CHECK(inner("wo\u00adrk\u200b a\u3000a\ta") == ids{6, 4, 4, 4});
  CHECK(inner("wo\xffrk") == ids{6});
  CHECK(inner("work\xe6\x97") == ids{6});
}

TEST_CASE("wordpiece bounds words and results") {
  CHECK(inner("wo" + std::string(99, 'e')) == ids{1});
  CHECK(inner("wo" + std::string(98, 'e')).size() == 99);
  CHECK(tokenizer().encode("a a a a a", 4) == ids{2, 4, 4, 3});
  CHECK(tokenizer().encode("a a", 4) == ids{2, 4, 4, 3});
  CHECK(tokenizer().encode("a", 2) == ids{2, 3});
}

TEST_CASE("a vocabulary without the special pieces is refused") {
  std::istringstream lines("[PAD]\n[UNK]\n[CLS]\na\n");
  CHECK_THROWS_WITH(examples::wordpiece(lines), Catch::Contains("[SEP]"));
}
