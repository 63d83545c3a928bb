// Owns the drawing of one operator with its attributes and inputs from a seed, at several shapes of the same model.
#ifndef DNNOPT_TESTS_PROPERTY_OPERATOR_DRAWER_HPP
#define DNNOPT_TESTS_PROPERTY_OPERATOR_DRAWER_HPP

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/attribute.hpp>
#include <dnnopt/tensor.hpp>

namespace testing {

using dnnopt::dim_list;
using dnnopt::dtype;
using dnnopt::tensor;
using ints = std::vector<std::int64_t>;

/// An input of a drawn operator: a constant of the model or given to each run; empty where it is absent.
struct drawn_input {
  tensor content;
  bool constant = false;
};

/// An operator as it was drawn.
struct drawn_operator {
  std::string op;
  std::vector<std::pair<std::string, dnnopt::attribute>> attributes;
  std::vector<drawn_input> inputs;
  std::size_t outputs = 1;
};

/// Draws by three streams of numbers, so that one seed gives one model at several shapes: what the model is (operator,
/// attributes, ranks, types, constants) comes from the seed alone; extents and contents come from seed and variant.
class operator_drawer {
 public:
  operator_drawer(std::uint64_t seed, std::uint64_t variant)
      : model_(seed), constant_(seed ^ 0x9e3779b97f4a7c15U), shape_(seed * 1000003U + variant + 1) {
    style_ = pick(0, 7);
  }

  // --- the model ---

  int pick(int low, int high) { return between(model_, low, high); }
  bool coin() { return pick(0, 1) == 1; }
  bool rarely(int one_in) { return pick(1, one_in) == 1; }
  template <class T>
  T one_of(std::initializer_list<T> choices) {
    return choices.begin()[pick(0, static_cast<int>(choices.size()) - 1)];
  }
  std::string name_of(std::initializer_list<std::string_view> choices) { return std::string(one_of(choices)); }
  dtype real_type() {
    return one_of({dtype::float32, dtype::float32, dtype::float32, dtype::float32, dtype::float16, dtype::bfloat16,
                   dtype::float64});
  }
  dtype integer_type() {
    return one_of({dtype::int64, dtype::int64, dtype::int32, dtype::int32, dtype::int16, dtype::int8, dtype::uint8,
                   dtype::uint16, dtype::uint32, dtype::uint64});
  }
  dtype number_type() { return rarely(3) ? integer_type() : real_type(); }
  std::size_t rank(int least, int most) { return static_cast<std::size_t>(pick(least, most)); }
  /// An axis of a rank of at least 1, counted from either end.
  std::int64_t axis(std::size_t of_rank) {
    const int at = pick(0, static_cast<int>(of_rank) - 1);
    return coin() ? at : at - static_cast<std::int64_t>(of_rank);
  }
  /// Some axes in random order, counted from either end.
  ints some_axes(std::size_t of_rank) {
    ints all = permutation(of_rank);
    all.resize(static_cast<std::size_t>(pick(of_rank == 0 ? 0 : 1, static_cast<int>(of_rank))));
    for (std::int64_t& a : all)
      if (coin()) a -= static_cast<std::int64_t>(of_rank);
    return all;
  }
  ints permutation(std::size_t of_rank) {
    ints all;
    for (std::size_t i = 0; i < of_rank; ++i) all.push_back(static_cast<std::int64_t>(i));
    for (std::size_t i = of_rank; i > 1; --i)
      std::swap(all[i - 1], all[static_cast<std::size_t>(pick(0, static_cast<int>(i) - 1))]);
    return all;
  }

  // --- extents ---

  /// An extent from 0 on: the same at all shapes by chance.
  std::int64_t extent(std::int64_t least = 0) {
    static constexpr std::int64_t pool[] = {0, 1, 1, 2, 3, 4, 5, 7, 8, 9, 16, 17};
    const bool fixed = rarely(3);
    const std::int64_t own = pool[pick(0, 11)];
    const std::int64_t other = pool[between(shape_, 0, 11)];
    return std::max(least, fixed ? own : other);
  }
  dim_list dims(std::size_t of_rank, std::int64_t least = 0) {
    // Zeros in every third model at most: elsewhere they would hide all else.
    if (!zeros_drawn_) zeros_ = rarely(4), zeros_drawn_ = true;
    dim_list drawn;
    for (std::size_t i = 0; i < of_rank; ++i)
      drawn.push_back(extent(zeros_ ? least : std::max<std::int64_t>(least, 1)));
    return drawn;
  }
  /// Dims that broadcast together with `other`: whether one is 1 differs between shapes.
  dim_list broadcast_with(const dim_list& other) {
    dim_list drawn = other;
    for (std::int64_t& d : drawn)
      if (between(shape_, 0, 3) == 0) d = 1;
    const int dropped = rarely(3) ? pick(0, static_cast<int>(other.size())) : 0;
    drawn.erase(drawn.begin(), drawn.begin() + dropped);
    if (rarely(8)) drawn.insert(drawn.begin(), extent(1));
    return drawn;
  }
  /// A number of the shape, which may differ between shapes.
  std::int64_t varying(std::int64_t low, std::int64_t high) {
    return between(shape_, static_cast<int>(low), static_cast<int>(std::max(low, high)));
  }

  // --- contents ---

  /// Numbers in the case's style: smooth, coarse (often equal), positive, or with what is special.
  tensor numbers(dtype type, const dim_list& of, bool constant = false, double low = -2, double high = 2) {
    tensor drawn(type, of);
    auto& stream = constant ? constant_ : shape_;
    const int style = low < 0 ? style_ : 2;
    for (std::int64_t i = 0; i < drawn.size(); ++i) {
      double v = std::uniform_real_distribution<double>(low, high)(stream);
      if (style == 1) v = static_cast<double>(static_cast<std::int64_t>(v * 4)) / 4;
      if (style == 3 && specials_ && between(stream, 0, 5) == 0) {
        static constexpr double odd[] = {0.0,
                                         -0.0,
                                         1e30,
                                         -1e30,
                                         std::numeric_limits<double>::infinity(),
                                         -std::numeric_limits<double>::infinity(),
                                         std::numeric_limits<double>::quiet_NaN()};
        v = odd[between(stream, 0, 6)];
      }
      set(drawn, static_cast<std::size_t>(i), v, between(stream, -8, 8));
    }
    return drawn;
  }
  tensor integers(dtype type, const dim_list& of, std::int64_t low, std::int64_t high, bool constant = false) {
    tensor drawn(type, of);
    auto& stream = constant ? constant_ : shape_;
    for (std::int64_t i = 0; i < drawn.size(); ++i)
      set(drawn, static_cast<std::size_t>(i), 0,
          between(stream, static_cast<int>(low), static_cast<int>(std::max(low, high))));
    return drawn;
  }
  /// From now on numbers hold no NaN, infinity or huge value: for what sums or divides.
  void tame() { specials_ = false; }

  // --- the operator ---

  drawn_operator made;

  void op(std::string_view name, std::size_t outputs = 1) {
    made.op = name;
    made.outputs = outputs;
  }
  void set(std::string_view name, dnnopt::attribute value) { made.attributes.emplace_back(name, std::move(value)); }
  /// By chance; what is left out is ONNX's default.
  void maybe(std::string_view name, dnnopt::attribute value) {
    if (coin()) set(name, std::move(value));
  }
  /// Data: seldom a constant.
  const tensor& data(dtype type, const dim_list& of, double low = -2, double high = 2) {
    return input(type, of, 10, low, high);
  }
  /// Weights: a constant in half of the models.
  const tensor& weights(dtype type, const dim_list& of, double low = -2, double high = 2) {
    return input(type, of, 2, low, high);
  }
  /// What says how: nearly always a constant.
  void settings(const ints& values) {
    settings(tensor::of<std::int64_t>({static_cast<std::int64_t>(values.size())}, values));
  }
  void settings(tensor values) {
    const bool constant = !rarely(6);
    made.inputs.push_back({std::move(values), constant});
  }
  void scalar(dtype type, double value) {
    tensor t(type, {});
    set(t, 0, value, static_cast<std::int64_t>(value));
    settings(std::move(t));
  }
  void given(tensor content, int constant_one_in = 10) {
    const bool constant = rarely(constant_one_in);
    made.inputs.push_back({std::move(content), constant});
  }
  void absent() { made.inputs.push_back({}); }

 private:
  static int between(std::mt19937_64& stream, int low, int high) {
    return low + static_cast<int>(stream() % static_cast<std::uint64_t>(high - low + 1));
  }
  const tensor& input(dtype type, const dim_list& of, int constant_one_in, double low, double high) {
    const bool constant = rarely(constant_one_in);
    made.inputs.push_back({numbers(type, of, constant, low, high), constant});
    return made.inputs.back().content;
  }
  static void set(tensor& t, std::size_t at, double real, std::int64_t whole) {
    const std::int64_t natural = whole < 0 ? -whole : whole;
    switch (t.type()) {
      case dtype::float32:
        t.mutable_data<float>()[at] = static_cast<float>(real);
        return;
      case dtype::float64:
        t.mutable_data<double>()[at] = real;
        return;
      case dtype::float16:
        t.mutable_data<dnnopt::float16>()[at] = dnnopt::float16(static_cast<float>(real));
        return;
      case dtype::bfloat16:
        t.mutable_data<dnnopt::bfloat16>()[at] = dnnopt::bfloat16(static_cast<float>(real));
        return;
      case dtype::int64:
        t.mutable_data<std::int64_t>()[at] = whole;
        return;
      case dtype::int32:
        t.mutable_data<std::int32_t>()[at] = static_cast<std::int32_t>(whole);
        return;
      case dtype::int16:
        t.mutable_data<std::int16_t>()[at] = static_cast<std::int16_t>(whole);
        return;
      case dtype::int8:
        t.mutable_data<std::int8_t>()[at] = static_cast<std::int8_t>(whole);
        return;
      case dtype::uint64:
        t.mutable_data<std::uint64_t>()[at] = static_cast<std::uint64_t>(natural);
        return;
      case dtype::uint32:
        t.mutable_data<std::uint32_t>()[at] = static_cast<std::uint32_t>(natural);
        return;
      case dtype::uint16:
        t.mutable_data<std::uint16_t>()[at] = static_cast<std::uint16_t>(natural);
        return;
      case dtype::uint8:
        t.mutable_data<std::uint8_t>()[at] = static_cast<std::uint8_t>(natural);
        return;
      case dtype::boolean:
        t.mutable_data<bool>()[at] = natural % 2 == 1;
        return;
      default:
        throw dnnopt::error(dnnopt::errc::unsupported, "no drawn numbers of that type");
    }
  }

  std::mt19937_64 model_;
  std::mt19937_64 constant_;
  std::mt19937_64 shape_;
  int style_ = 0;
  bool specials_ = true;
  bool zeros_ = false;
  bool zeros_drawn_ = false;
};

/// A way to draw operators, and how often it is taken.
struct operator_row {
  std::string_view name;
  int weight;
  void (*draw)(operator_drawer&);
};

}  // namespace testing

#endif  // DNNOPT_TESTS_PROPERTY_OPERATOR_DRAWER_HPP
