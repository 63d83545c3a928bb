// Linear attention, causal convolution with a state, Col2Im and n-gram counts against the reference.
#include "kernel_fixture.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <string>
#include <vector>

using namespace dnnopt;
using namespace dnnopt::testing;

namespace {

struct recurrences : kernel_bench {
  void check(const node_case& c, const std::string& version) {
    const std::vector<tensor> want = expect(c);
    const kernel_run got = run(c, device_form::vectors, want);
    for (const std::string& ran : got.versions) CHECK(ran == version);
    for (std::size_t o = 0; o < want.size(); ++o)
      CHECK(relative_difference(got.outputs[o], want[o]) <= tolerance_of(want[o].type()));
  }
};

}  // namespace

TEST_CASE_METHOD(recurrences, "linear attention by each rule, with and without a past state, with shared heads") {
  const std::int64_t batch = 2;
  const std::int64_t positions = 5;
  const std::int64_t heads = 3;
  const std::int64_t size = 7;
  const std::int64_t value_size = 4;
  for (const std::string rule : {"linear", "gated", "delta", "gated_delta"})
    for (const std::int64_t share : {1, 2})
      for (const bool past : {false, true})
        for (const bool per_element : {share == 2}) {
          CAPTURE(rule, share, past, per_element);
          const bool gated = rule == "gated" || rule == "gated_delta";
          const bool delta = rule == "delta" || rule == "gated_delta";
          node_case c{
              "LinearAttention",
              {random_tensor(dtype::float32, {batch, positions, heads * share * size}, 1),
               random_tensor(dtype::float32, {batch, positions, heads * size}, 2),
               random_tensor(dtype::float32, {batch, positions, heads * value_size}, 3), tensor(), tensor(), tensor()},
              {},
              {},
              2};
          // Keys are short, so that states do not grow.
          for (float& v : c.inputs[1].mutable_data<float>()) v *= 0.25F;
          if (past) c.inputs[3] = random_tensor(dtype::float32, {batch, heads, size, value_size}, 4);
          if (gated)
            c.inputs[4] = random_tensor(dtype::float32, {batch, positions, per_element ? heads * size : heads}, 5);
          if (gated)
            for (float& v : c.inputs[4].mutable_data<float>()) v = v > 0 ? -v : v;
          if (delta) c.inputs[5] = random_tensor(dtype::float32, {batch, positions, per_element ? heads : 1}, 6);
          if (delta)
            for (float& v : c.inputs[5].mutable_data<float>()) v = v > 0 ? 0.5F : 0.25F;
          c.attributes.set("update_rule", rule);
          c.attributes.set("q_num_heads", heads * share);
          c.attributes.set("kv_num_heads", heads);
          if (share == 2) c.attributes.set("scale", 0.75F);
          check(c, "linear_attention");
        }
}

TEST_CASE_METHOD(recurrences, "causal convolution with what an earlier call left") {
  for (const std::int64_t kernel : {1, 4})
    for (const std::int64_t length : {1, 9})
      for (const bool past : {false, true})
        for (const std::string activation : {"none", "silu"}) {
          CAPTURE(kernel, length, past, activation);
          node_case c{
              "CausalConvWithState",
              {random_tensor(dtype::float32, {2, 3, length}, 1), random_tensor(dtype::float32, {3, 1, kernel}, 2),
               past ? random_tensor(dtype::float32, {3}, 3) : tensor(),
               past && kernel > 1 ? random_tensor(dtype::float32, {2, 3, kernel - 1}, 4) : tensor()},
              {},
              {},
              kernel > 1 ? std::size_t{2} : std::size_t{1}};
          c.attributes.set("activation", activation);
          check(c, "map");
        }
}

TEST_CASE_METHOD(recurrences, "columns are summed into images") {
  const auto integers = [](const std::vector<std::int64_t>& values) {
    return tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values);
  };
  node_case c{"Col2Im",
              {random_tensor(dtype::float32, {2, 3 * 6, 12}, 1), integers({5, 5}), integers({2, 3})},
              {false, true, true},
              {},
              1};
  check(c, "map");
  node_case strided{"Col2Im",
                    {random_tensor(dtype::float32, {1, 2 * 4, 9}, 1), integers({7, 6}), integers({2, 2})},
                    {false, true, true},
                    {},
                    1};
  strided.attributes.set("strides", std::vector<std::int64_t>{3, 2});
  strided.attributes.set("dilations", std::vector<std::int64_t>{2, 1});
  strided.attributes.set("pads", std::vector<std::int64_t>{1, 0, 1, 0});
  check(strided, "map");
}

TEST_CASE_METHOD(recurrences, "n-grams are counted by column") {
  for (const std::string mode : {"TF", "IDF", "TFIDF"})
    for (const std::int64_t skips : {0, 2})
      for (const bool rows : {false, true}) {
        CAPTURE(mode, skips, rows);
        const std::vector<std::int64_t> items{1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8};
        node_case c{
            "TfIdfVectorizer", {tensor::of<std::int64_t>(rows ? dim_list{2, 6} : dim_list{12}, items)}, {}, {}, 1};
        c.attributes.set("mode", mode);
        c.attributes.set("min_gram_length", std::int64_t{1});
        c.attributes.set("max_gram_length", std::int64_t{2});
        c.attributes.set("max_skip_count", skips);
        c.attributes.set("ngram_counts", std::vector<std::int64_t>{0, 4});
        c.attributes.set("ngram_indexes", std::vector<std::int64_t>{0, 6, 2, 3, 4, 5, 1});
        c.attributes.set("pool_int64s", std::vector<std::int64_t>{2, 3, 5, 4, 5, 6, 7, 8, 6, 7});
        c.attributes.set("weights", std::vector<float>{0.5F, 1.5F, 2, 3, 4, 5, 6});
        check(c, "map");
      }
}

TEST_CASE_METHOD(recurrences, "random numbers are those of the reference's stream") {
  for (const std::int64_t count : {1, 7, 700}) {
    CAPTURE(count);
    for (const std::string op : {"RandomUniformLike", "RandomNormalLike", "Bernoulli"}) {
      CAPTURE(op);
      node_case c{op, {random_tensor(dtype::float32, {count}, 1)}, {}, {}, 1};
      c.attributes.set("seed", 5.0F);
      const std::vector<tensor> want = expect(c);
      const kernel_run got = run(c, device_form::vectors, want);
      CHECK(got.versions == std::vector<std::string>{"random_stream", "random_elements"});
      CHECK(relative_difference(got.outputs[0], want[0]) <= (op == "Bernoulli" ? 0 : 2e-5));
    }
    node_case dropout{
        "Dropout",
        {random_tensor(dtype::float32, {count}, 1), tensor::scalar<float>(0.3F), tensor(dtype::boolean, {})},
        {false, true, true},
        {},
        2};
    dropout.inputs[2].mutable_data<bool>()[0] = true;
    dropout.attributes.set("seed", std::int64_t{9});
    const std::vector<tensor> want = expect(dropout);
    const kernel_run got = run(dropout, device_form::vectors, want);
    CHECK(relative_difference(got.outputs[0], want[0]) <= 1e-6);
    CHECK(relative_difference(got.outputs[1], want[1]) <= 0);
  }
}

TEST_CASE_METHOD(recurrences, "a one-sided spectrum is turned back into its signal") {
  for (const std::int64_t bins : {2, 5, 6}) {
    node_case c{"DFT",
                {random_tensor(dtype::float32, {2, bins, 3, 2}, 1), tensor(), tensor::scalar<std::int64_t>(1)},
                {false, false, true},
                {},
                1};
    c.attributes.set("inverse", std::int64_t{1});
    c.attributes.set("onesided", std::int64_t{1});
    check(c, "map");
    c.inputs[1] = tensor::scalar<std::int64_t>(2 * bins - 1);
    c.constant[1] = true;
    check(c, "map");
  }
}
