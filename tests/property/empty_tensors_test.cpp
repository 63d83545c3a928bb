// Each operator and each family of kernels with each dim of each input 0 in turn, where dims are numbers and where they
// are symbols of a session that runs other sizes before and after: the same as the reference backend, errors as well.
#include <algorithm>
#include <cmath>
#include <map>
#include <optional>
#include <string>

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

TEST_CASE("a dim of 0 that is known gives what the reference gives") {
  for (const testing::lettered_network& n : testing::lettered_networks())
    for (const std::string& letter : n.letters()) {
      sizes_of_letters sizes = n.usual();
      sizes[letter] = 0;
      INFO(n.name << text_of(sizes));
      try {
        const outcome expected = expected_of(n, sizes);
        compare(expected, of([&] {
                  dnnopt::session s = compiled(n, sizes, false);
                  dnnopt::named_tensors outputs = s.run(n.tensors(sizes));
                  check_counts(s);
                  return outputs;
                }));
      } catch (const std::exception& e) {
        FAIL_CHECK(e.what());
      }
    }
}

TEST_CASE("a dim of 0 that only a run tells gives what the reference gives, in between other sizes") {
  for (const testing::lettered_network& n : testing::lettered_networks()) {
    INFO(n.name);
    try {
      dnnopt::session s = compiled(n, {}, false);
      const auto run = [&](const sizes_of_letters& sizes) {
        INFO(text_of(sizes));
        const outcome found = of([&] { return s.run(n.tensors(sizes)); });
        compare(expected_of(n, sizes), found);
        if (found.outputs) check_counts(s);
        return found.outputs.has_value();
      };
      CHECK(run(n.usual()));
      for (const std::string& letter : n.letters()) {
        sizes_of_letters sizes = n.usual();
        sizes[letter] = 0;
        (void)run(sizes);
      }
      CHECK(run(n.usual()));
    } catch (const std::exception& e) {
      FAIL_CHECK(e.what());
    }
  }
}
