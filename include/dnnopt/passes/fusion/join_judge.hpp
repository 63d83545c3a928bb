// Owns the decision of joins that DNNFusion's table leaves to a profile: asked of a database, then of a device.
#ifndef DNNOPT_PASSES_FUSION_JOIN_JUDGE_HPP
#define DNNOPT_PASSES_FUSION_JOIN_JUDGE_HPP

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include <dnnopt/graph.hpp>
#include <dnnopt/graph_io.hpp>
#include <dnnopt/passes/fusion/profile_database.hpp>
#include <dnnopt/passes/graph_views.hpp>

namespace dnnopt::fusion {

/// The same operators as one block and as several in order; the graph outlives the question.
struct join_question {
  const graph& g;
  fused_block joined;
  std::vector<fused_block> apart;
};

/// Constants of integers are part of a key up to so many elements.
inline constexpr std::int64_t largest_listed = 16;

/// What the answer depends on, as text: each operator with its attributes, what it reads and the shape of what it
/// makes, values outside named by first use; which operators are stored; which block each belongs to. Equal questions
/// of different models have equal keys. O(text).
[[nodiscard]] inline std::string key_of(const join_question& q) {
  std::string key;
  std::unordered_map<value_id, std::string> names;
  const auto facts_text = [&](value_id v) {
    const value_facts& facts = q.g.facts(v);
    std::string text(name_of(facts.type));
    text += facts.dims ? to_string(*facts.dims) : std::string("[*]");
    return text;
  };
  std::size_t outside = 0;
  std::size_t inside = 0;
  for (const node_id id : q.joined.members) {
    const node& n = q.g.node_at(id);
    key += (key.empty() ? "" : "; ") + std::string(n.op->domain) + (n.op->domain.empty() ? "" : ".") +
           std::string(n.op->name);
    std::vector<std::string> attributes;
    for (const auto& [name, held] : n.attributes) attributes.push_back(name + "=" + dnnopt::to_string(held));
    std::sort(attributes.begin(), attributes.end());
    for (std::size_t i = 0; i < attributes.size(); ++i) key += (i == 0 ? "{" : ", ") + attributes[i];
    if (!attributes.empty()) key += "}";
    key += "(";
    for (std::size_t i = 0; i < n.inputs.size(); ++i) {
      if (i != 0) key += ", ";
      if (n.inputs[i] == no_value) continue;
      const auto [found, is_new] = names.try_emplace(n.inputs[i]);
      if (is_new) {
        found->second = (q.g.facts(n.inputs[i]).is_constant() ? "c" : "x") + std::to_string(outside++);
        key += found->second + " " + facts_text(n.inputs[i]);
        // Axes, bounds and permutations decide what is read; what a model has learned does not.
        const tensor& content = q.g.facts(n.inputs[i]).constant;
        if (q.g.facts(n.inputs[i]).is_constant() && is_integer(content.type()) && content.size() <= largest_listed)
          key += dnnopt::detail::elements_text(content);
      } else {
        key += found->second;
      }
    }
    key += ") ->";
    for (const value_id out : n.outputs | views::present) {
      const std::string name = "v" + std::to_string(inside++);
      names.emplace(out, name);
      key += " " + name + " " + facts_text(out);
      const auto& stored = q.joined.outputs;
      if (std::find(stored.begin(), stored.end(), out) != stored.end()) key += "!";
    }
  }
  // Which of the members each of the blocks has, as numbers in the order above.
  for (const fused_block& block : q.apart) {
    key += " |";
    for (std::size_t i = 0; i < q.joined.members.size(); ++i)
      if (std::find(block.members.begin(), block.members.end(), q.joined.members[i]) != block.members.end())
        key += " " + std::to_string(i);
  }
  return key;
}

/// What a judge was asked, and what it said.
struct judge_figures {
  std::size_t asked = 0;
  std::size_t known = 0;            ///< answered by the database
  std::size_t measured = 0;         ///< answered by the device and kept
  std::size_t against_default = 0;  ///< answers other than the shipped rule's
};

/// Answers joins from a table, else by measuring where that is asked for; what neither tells is left to the shipped
/// rule (join_rules.hpp), so that plans without a database are the same on every machine.
class join_judge {
 public:
  /// Times both plans of a question on a device; nothing where it cannot (sizes that are not known).
  using timer = std::function<std::optional<join_times>(const join_question&)>;

  /// Without `measure` nothing is measured.
  explicit join_judge(std::shared_ptr<profile_table> table, timer measure = {})
      : table_(std::move(table)), measure_(std::move(measure)) {}

  /// Whether to join; `usual` is the shipped rule's answer. `times` tells what the answer rests on.
  [[nodiscard]] bool ask(const join_question& q, bool usual, std::optional<join_times>& times) {
    ++figures_.asked;
    const std::string key = key_of(q);
    if (const auto found = table_->find(key); found != table_->end()) {
      times = found->second;
      ++figures_.known;
    } else if (measure_) {
      times = measure_(q);
      if (times) {
        ++figures_.measured;
        table_->emplace(key, *times);
      }
    }
    const bool answer = times ? times->pays() : usual;
    if (answer != usual) ++figures_.against_default;
    return answer;
  }

  /// What is known, with what was measured.
  [[nodiscard]] const profile_table& table() const noexcept { return *table_; }
  [[nodiscard]] const judge_figures& figures() const noexcept { return figures_; }

 private:
  std::shared_ptr<profile_table> table_;
  timer measure_;
  judge_figures figures_;
};

}  // namespace dnnopt::fusion

#endif  // DNNOPT_PASSES_FUSION_JOIN_JUDGE_HPP
