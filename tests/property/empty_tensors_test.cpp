// Each operator and each family of kernels with each dim of each input 0 in turn, where dims are numbers and where they
// are symbols of a session that runs other sizes before and after: the same as the reference backend, errors as well.
// With DNNOPT_EMPTY_ALL in the environment each network is checked with all its letters in both forms.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <exception>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include <dnnopt/backend/run/executor.hpp>
#include <dnnopt/session.hpp>

#include "property/empty_networks.hpp"

namespace {

using sizes_of_letters = std::map<std::string, std::int64_t>;

/// What a run gave: outputs, or the error.
struct outcome {
  std::optional<dnnopt::named_tensors> outputs;
  std::string error;
};

template <class Run>
outcome of(Run&& run) {
  try {
    return {run(), {}};
  } catch (const dnnopt::error& e) {
    return {std::nullopt, e.what()};
  }
}

std::string text_of(const sizes_of_letters& sizes) {
  std::string text;
  for (const auto& [letter, size] : sizes) text += " " + letter + "=" + std::to_string(size);
  return text;
}

/// The first difference, or nothing.
std::string difference(const dnnopt::tensor& want, const dnnopt::tensor& got) {
  if (got.type() != want.type()) return "another type";
  if (got.dims() != want.dims()) return dnnopt::to_string(got.dims()) + ", not " + dnnopt::to_string(want.dims());
  if (want.type() != dnnopt::dtype::float32)
    return std::equal(want.bytes().begin(), want.bytes().end(), got.bytes().begin()) ? "" : "other bytes";
  for (std::size_t i = 0; i < static_cast<std::size_t>(want.size()); ++i) {
    const float a = want.data<float>()[i];
    const float b = got.data<float>()[i];
    const bool same =
        a == b || (std::isnan(a) && std::isnan(b)) || std::fabs(a - b) <= 2e-4f * std::max(1.0f, std::fabs(a));
    if (!same) return "element " + std::to_string(i) + " is " + std::to_string(b) + ", not " + std::to_string(a);
  }
  return {};
}

void compare(const outcome& expected, const outcome& found) {
  INFO("the reference says: " << expected.error);
  INFO("the device says: " << found.error);
  CHECK(found.outputs.has_value() == expected.outputs.has_value());
  if (!expected.outputs || !found.outputs) return;
  for (const auto& [name, want] : *expected.outputs) {
    INFO("output " << name);
    const dnnopt::tensor* got = found.outputs->find(name);
    CHECK(got != nullptr);
    if (got != nullptr) CHECK(difference(want, *got) == "");
  }
}

dnnopt::session compiled(const testing::lettered_network& n, const sizes_of_letters& sizes, bool reference,
                         dnnopt::kernel_form form = dnnopt::kernel_form::vectors) {
  dnnopt::compile_options options;
  options.device = reference ? "reference" : "opencl";
  if (reference) options.passes = "none";
  options.form = form;
  return dnnopt::compile(n.model(sizes), options);
}

outcome expected_of(const testing::lettered_network& n, const sizes_of_letters& sizes) {
  return of([&] { return compiled(n, sizes, true).run(n.tensors(sizes)); });
}

void check_counts(dnnopt::session& s) { CHECK(s.kernels() == s.executor()->predicted_kernels()); }

}  // namespace

namespace {

/// Networks in which some size of 0 contradicts what an operator asks for (parts of a Split that do not add up, an
/// ArgMax of none, a -1 beside a 0, a DFT of length 0): the reference refuses it when it runs. On a device such sizes
/// are not checked yet; it goes on.
bool contradicts(const testing::lettered_network& n) {
  for (const char* name : {"Split", "ArgMax", "ArgMin", "Shape and reshape", "DFT"})
    if (n.name == name) return true;
  return false;
}

void check_known(const testing::lettered_network& n, const sizes_of_letters& sizes, dnnopt::kernel_form form) {
  INFO(n.name << text_of(sizes) << " in " << dnnopt::name_of(form));
  const outcome expected = expected_of(n, sizes);
  const outcome found = of([&] {
    dnnopt::session s = compiled(n, sizes, false, form);
    dnnopt::named_tensors outputs = s.run(n.tensors(sizes));
    check_counts(s);
    return outputs;
  });
  if (expected.outputs || !contradicts(n)) compare(expected, found);
}

void check_symbols(const testing::lettered_network& n, dnnopt::kernel_form form) {
  dnnopt::session s = compiled(n, {}, false, form);
  const auto run = [&](const sizes_of_letters& sizes) {
    INFO(n.name << text_of(sizes) << " in " << dnnopt::name_of(form));
    const outcome found = of([&] { return s.run(n.tensors(sizes)); });
    const outcome expected = expected_of(n, sizes);
    if (expected.outputs || !contradicts(n)) compare(expected, found);
    if (found.outputs) check_counts(s);
    return found.outputs.has_value();
  };
  INFO(n.name << " in " << dnnopt::name_of(form));
  CHECK(run(n.usual()));
  for (const std::string& letter : n.letters()) {
    sizes_of_letters sizes = n.usual();
    sizes[letter] = 0;
    (void)run(sizes);
  }
  CHECK(run(n.usual()));
}

/// All forms and letters, or where nothing asks for them one of each for a network, in turn.
bool wants_all() { return std::getenv("DNNOPT_EMPTY_ALL") != nullptr; }

template <class Check>
void for_each_form(std::size_t turn, Check&& check) {
  const dnnopt::kernel_form forms[] = {dnnopt::kernel_form::vectors, dnnopt::kernel_form::groups};
  for (std::size_t f = 0; f < 2; ++f) {
    if (!wants_all() && turn % 2 != f) continue;
    try {
      check(forms[f]);
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}

}  // namespace

TEST_CASE("a dim of 0 that is known gives what the reference gives") {
  std::size_t turn = 0;
  for (const testing::lettered_network& n : testing::lettered_networks()) {
    ++turn;
    const std::vector<std::string> letters = n.letters();
    for (std::size_t k = 0; k < letters.size(); ++k) {
      if (!wants_all() && k != turn / 2 % letters.size()) continue;
      sizes_of_letters sizes = n.usual();
      sizes[letters[k]] = 0;
      for_each_form(turn, [&](dnnopt::kernel_form form) { check_known(n, sizes, form); });
    }
  }
}

TEST_CASE("a dim of 0 that only a run tells gives what the reference gives, in between other sizes") {
  std::size_t turn = 1;
  for (const testing::lettered_network& n : testing::lettered_networks())
    for_each_form(turn++, [&](dnnopt::kernel_form form) { check_symbols(n, form); });
}
