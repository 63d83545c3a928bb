// Owns the steps from the tool's flags to a compiled session and its inputs.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <dnnopt/backend/codegen/integer_dot.hpp>
#include <dnnopt/backend/codegen/matrix_step.hpp>
#include <dnnopt/dnnopt.hpp>
#include <dnnopt/half_io.hpp>

#include "command.hpp"

namespace tool {

/// "2x3x224x224" as dims. Errors: usage.
[[nodiscard]] inline dnnopt::dim_list parse_dims(std::string_view text) {
  dnnopt::dim_list dims;
  while (!text.empty()) {
    const std::size_t cut = text.find_first_of("x,");
    const std::string part(text.substr(0, cut));
    std::size_t used = 0;
    std::int64_t number = -1;
    try {
      number = std::stoll(part, &used);
    } catch (const std::exception&) {
      used = 0;
    }
    if (used == 0 || used != part.size() || number < 0)
      throw dnnopt::error(dnnopt::errc::usage, "'" + part + "' is not a dim");
    dims.push_back(number);
    if (cut == std::string_view::npos) break;
    text.remove_prefix(cut + 1);
  }
  return dims;
}

/// "NAME=REST" in two. The last '=' separates, for names may hold one. Errors: usage.
[[nodiscard]] inline std::pair<std::string, std::string> parse_pair(const std::string& text) {
  const std::size_t equals = text.rfind('=');
  if (equals == std::string::npos || equals == 0)
    throw dnnopt::error(dnnopt::errc::usage, "'" + text + "' is not NAME=VALUE");
  return {text.substr(0, equals), text.substr(equals + 1)};
}

/// The layout that --texels states behind NAME=: "DIM[:OBJECT[:ROWS]]". Errors: usage, naming `whole`.
[[nodiscard]] inline dnnopt::texel_layout parse_texels(const std::string& whole, std::string_view text) {
  const auto part = [&text] {
    const std::size_t cut = text.find(':');
    const std::string_view first = text.substr(0, cut);
    text.remove_prefix(cut == std::string_view::npos ? text.size() : cut + 1);
    return first;
  };
  const auto number = [&](std::string_view digits) {
    const dnnopt::dim_list dims = parse_dims(digits);
    if (dims.size() != 1) throw dnnopt::error(dnnopt::errc::usage, "--texels " + whole + ": one number is needed");
    return dims[0];
  };
  dnnopt::texel_layout layout;
  layout.packed = static_cast<std::size_t>(number(part()));
  if (!text.empty()) {
    const std::string_view object = part();
    const auto found = dnnopt::find_memory_object(object);
    if (!found)
      throw dnnopt::error(dnnopt::errc::usage,
                          "--texels " + whole + ": '" + std::string(object) + "' is no memory object");
    layout.object = *found;
  }
  if (!text.empty()) layout.layer_rows = number(text);
  return layout;
}

/// The range that --range states behind NAME=: "LOW:HIGH[:MULTIPLE]". Errors: usage, naming `whole`.
[[nodiscard]] inline dnnopt::dim_range parse_range(const std::string& whole, std::string_view text) {
  std::vector<std::int64_t> numbers;
  for (bool more = true; more;) {
    const std::size_t cut = text.find(':');
    more = cut != std::string_view::npos;
    const dnnopt::dim_list number = parse_dims(text.substr(0, cut));
    if (number.size() != 1) throw dnnopt::error(dnnopt::errc::usage, "--range " + whole + ": a number is needed");
    numbers.push_back(number[0]);
    text.remove_prefix(more ? cut + 1 : text.size());
  }
  if (numbers.size() < 2 || numbers.size() > 3)
    throw dnnopt::error(dnnopt::errc::usage, "--range " + whole + ": LOW:HIGH or LOW:HIGH:MULTIPLE is needed");
  return {numbers[0], numbers[1], numbers.size() == 3 ? numbers[2] : 1};
}

/// The memory plans in the file that --cache names, or none yet. Errors: bad_file.
[[nodiscard]] std::shared_ptr<dnnopt::memory::plan_store> plans_of(const options& o);
/// Writes the plans back beside whatever else the file holds; nothing without --cache.
void keep_plans(const options& o, const dnnopt::memory::plan_store& plans);

/// The tuning results in the file that --cache names, or none yet. Errors: bad_file.
[[nodiscard]] std::shared_ptr<dnnopt::tuning_store> tuned_of(const options& o);
/// Writes them back beside whatever else the file holds; nothing without --cache.
void keep_tuned(const options& o, const dnnopt::tuning_store& tuned);

/// Makes fusion ask the profile database in the file that --cache names, and measure what it lacks with --measure.
/// Errors: bad_file; usage; unknown_device.
void use_profiles(const options& o, dnnopt::compile_options& compiling);
/// Writes what was measured back beside whatever else the file holds; nothing without --cache.
void keep_profiles(const options& o, const dnnopt::compile_options& compiling);
/// How many joins fusion asked about, and who answered.
[[nodiscard]] json profile_figures(const dnnopt::compile_options& compiling);

/// The value that --value states for an input: a file, or numbers after commas. Errors: missing_input; usage.
[[nodiscard]] dnnopt::tensor parse_value(const dnnopt::model& m, const std::string& name, const std::string& text);

/// The graph with the dims, shapes and values that the options state bound.
[[nodiscard]] inline dnnopt::graph bound_graph(const dnnopt::model& m, const dnnopt::compile_options& compiling) {
  dnnopt::graph g = m.main;
  dnnopt::bind_dims(g, compiling.dims);
  for (const auto& [input, dims] : compiling.shapes) dnnopt::bind_input_shape(g, input, dims);
  dnnopt::bind_values(g, compiling.values);
  return g;
}

/// The compile options that the flags state.
[[nodiscard]] inline dnnopt::compile_options compile_options_of(const options& o, const dnnopt::model& m) {
  dnnopt::compile_options result;
  result.device = o.device;
  result.require_device = o.require_device;
  result.form = dnnopt::find_kernel_form(o.form).value_or(dnnopt::kernel_form::native);
  result.matrix_steps = o.matrix_steps;
  if (o.matrix_steps != "automatic" && o.matrix_steps != "none" && !dnnopt::codegen::find_matrix_step(o.matrix_steps))
    throw dnnopt::error(dnnopt::errc::usage, "no '" + o.matrix_steps +
                                                 "' multiplies halves; there are automatic, none" +
                                                 dnnopt::codegen::matrix_step_names(", "));
  result.integer_dots = o.integer_dots;
  if (o.integer_dots != "automatic" && o.integer_dots != "none" && !dnnopt::codegen::find_integer_dot(o.integer_dots))
    throw dnnopt::error(dnnopt::errc::usage, "no '" + o.integer_dots + "' multiplies bytes; there are automatic, none" +
                                                 dnnopt::codegen::integer_dot_names(", "));
  result.precision = dnnopt::find_precision(o.precision).value_or(dnnopt::precision::fp32);
  result.memory_objects = dnnopt::find_memory_objects(o.memory_objects).value_or(dnnopt::memory_objects::automatic);
  result.wait = dnnopt::find_wait_mode(o.wait).value_or(dnnopt::wait_mode::blocking);
  // Whoever runs once waits for the first output; what is measured or compared is what a later start runs.
  const std::string_view start = !o.first_start.empty() ? std::string_view(o.first_start)
                                 : o.command == "run"   ? dnnopt::name_of(dnnopt::first_start::quick)
                                                        : dnnopt::name_of(dnnopt::first_start::optimized);
  result.first_start = dnnopt::find_first_start(start).value_or(dnnopt::first_start::optimized);
  result.passes = o.passes;
  result.memory.strategy = o.memory_strategy;
  result.memory.budget = o.memory_budget;
  result.memory.store = plans_of(o);
  result.tuned = tuned_of(o);
  result.memory_limit = o.memory_limit;
  for (const std::string& text : o.dims) {
    const auto [name, number] = parse_pair(text);
    const dnnopt::dim_list dims = parse_dims(number);
    if (dims.size() != 1) throw dnnopt::error(dnnopt::errc::usage, "--dim " + text + ": one number is needed");
    result.dims[name] = dims[0];
  }
  for (const std::string& text : o.shapes) {
    const auto [name, dims] = parse_pair(text);
    result.shapes[name] = parse_dims(dims);
  }
  for (const std::string& text : o.ranges) {
    const auto [name, range] = parse_pair(text);
    result.ranges[name] = parse_range(text, range);
  }
  for (const std::string& text : o.texels) {
    const auto [name, layout] = parse_pair(text);
    result.texels[name] = parse_texels(text, layout);
  }
  for (const std::string& text : o.values) {
    const auto [name, content] = parse_pair(text);
    result.values[name] = parse_value(m, name, content);
  }
  // Held by the function itself, so that the line is there as long as somebody may compile.
  const auto busy = std::make_shared<progress_line>(o);
  result.programs.driver_warnings = o.verbose;
  result.programs.progress = [busy](std::size_t ready, std::size_t all) {
    busy->show("compiling kernels: " + std::to_string(ready) + " of " + std::to_string(all));
    if (ready + 1 >= all) busy->clear();
  };
  result.after_pass = [busy](const dnnopt::graph&, const dnnopt::pass_report& pass) {
    busy->show("pass " + pass.name + ": " + std::to_string(pass.edits) + " edits");
    busy->clear();
  };
  use_profiles(o, result);
  return result;
}

/// Warnings as the tool's JSON.
[[nodiscard]] inline json to_json(const std::vector<dnnopt::warning>& warnings) {
  json rows = json::array();
  for (const dnnopt::warning& row : warnings)
    rows.push_back({{"code", dnnopt::name_of(row.code)}, {"node", row.node}, {"text", row.text}});
  return rows;
}

/// Prints warnings from the one numbered `first` on to standard error.
inline void say_warnings(const options& o, const std::vector<dnnopt::warning>& warnings, std::size_t first = 0) {
  for (std::size_t i = first; i < warnings.size(); ++i)
    note(o, "warning (" + std::string(dnnopt::name_of(warnings[i].code)) + "): " + warnings[i].text);
}

/// Loads the model that the flags name and prints its warnings. Inputs with a default value that --input names stay
/// inputs. Errors: those of dnnopt::load.
[[nodiscard]] inline dnnopt::model load_model(const options& o, dnnopt::load_options loading = {}) {
  dnnopt::model m = dnnopt::load(o.model, loading);
  for (const std::string& text : o.inputs) {
    const std::string name = parse_pair(text).first;
    if (std::find(m.default_inputs.begin(), m.default_inputs.end(), name) != m.default_inputs.end())
      loading.overridden_inputs.push_back(name);
  }
  if (!loading.overridden_inputs.empty()) m = dnnopt::load(o.model, std::move(loading));
  say_warnings(o, m.warnings);
  if (o.io_types == "float16") dnnopt::exchange_halves(m);
  return m;
}

/// Prints what compiling found beside the model's own warnings, and puts all of them into `result`.
inline void tell_warnings(const options& o, const dnnopt::model& m, const dnnopt::compile_report& report,
                          json& result) {
  say_warnings(o, report.warnings, m.warnings.size());
  result["warnings"] = to_json(report.warnings);
}

/// How the session waits for its device, for JSON: "blocking", "spinning", or "none" on the reference backend.
[[nodiscard]] std::string wait_of(const dnnopt::session& session);

/// The form of kernels that --form asks for, for JSON: "none" on the reference backend, which has no kernels.
[[nodiscard]] inline std::string form_of(const options& o) { return o.device == "reference" ? "none" : o.form; }
/// The same for people: nothing for a device's own form.
[[nodiscard]] inline std::string form_text(const options& o) {
  return form_of(o) == "none" || o.form == "native" ? std::string() : ", kernels in the form of " + o.form;
}

/// A session's first inference, which may take long.
[[nodiscard]] dnnopt::named_tensors first_run(const options& o, dnnopt::session& session,
                                              const dnnopt::named_tensors& inputs);
/// Where --bind-io asks for it, puts inputs and outputs into buffers of the device, of the sizes that a first inference
/// had, and tells of each in `result`. Returns the inputs that are left to give: all without the flag. Errors: usage on
/// the reference backend.
[[nodiscard]] dnnopt::named_tensors bind_io(const options& o, dnnopt::session& session,
                                            const dnnopt::named_tensors& inputs, const dnnopt::named_tensors& outputs,
                                            json& result);
/// Keeps the programs that the first inference compiled, as the session's end would, and says where it cannot. Whether
/// it could.
bool keep_programs(const options& o, dnnopt::session& session);

/// Lines on nodes whose kernels allow fewer work-items than planned, which also go to `result` where there are any.
[[nodiscard]] std::string smaller_work_groups_of(const dnnopt::session& session, json& result);
/// The bodies of control flow that ran on the device, as text and in `result`; nothing where there are none.
[[nodiscard]] inline std::string control_flow_of(const dnnopt::session& session, json& result) {
  std::string text;
  result["control_flow"] = json::array();
  for (const dnnopt::body_row& row : session.bodies()) {
    result["control_flow"].push_back({{"node", row.node},
                                      {"op", row.op},
                                      {"body", row.body},
                                      {"depth", row.depth},
                                      {"programs", row.programs},
                                      {"entered", row.entered},
                                      {"kernels", row.kernels},
                                      {"host_ops", row.host_ops}});
    text += std::string(2 * row.depth, ' ') + row.op + " '" + row.node + "' " + row.body + ": entered " +
            std::to_string(row.entered) + " times, " + std::to_string(row.kernels) + " device commands" +
            (row.host_ops == 0 ? "" : ", " + std::to_string(row.host_ops) + " operators on the host") + "\n";
  }
  return text;
}

/// What of a session's programs is for certain values of inputs, as text and in `result`; nothing where none is.
[[nodiscard]] std::string specialization_of(const dnnopt::session& session, json& result);

/// Inputs of a run: what --input names, generated ones for the rest. Symbolic dims of generated inputs come from
/// --dim and --shape, else from given inputs, else they are chosen (dnnopt::choose_dims); what was chosen is said on
/// standard error, and in `told` where there is one. Errors: usage where no sizes were found.
[[nodiscard]] dnnopt::named_tensors inputs_of(const dnnopt::model& m, const options& o, json* told = nullptr);

/// Writes each output as <name>.npy into `folder`, which is made, and returns the files; without a folder their names
/// are empty. Errors: file_io.
std::vector<std::string> write_outputs(const std::string& folder, const dnnopt::named_tensors& outputs);

/// Columns of text, the first left-aligned, the others right-aligned.
class text_table {
 public:
  explicit text_table(std::vector<std::string> head) { rows_.push_back(std::move(head)); }
  void add(std::vector<std::string> row) { rows_.push_back(std::move(row)); }
  [[nodiscard]] std::string str() const {
    std::vector<std::size_t> widths;
    for (const auto& row : rows_)
      for (std::size_t c = 0; c < row.size(); ++c) {
        if (widths.size() <= c) widths.push_back(0);
        widths[c] = std::max(widths[c], row[c].size());
      }
    std::string text;
    for (const auto& row : rows_) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string space(widths[c] - row[c].size(), ' ');
        text += (c == 0 ? "" : "  ") + (c == 0 ? row[c] + space : space + row[c]);
      }
      text += "\n";
    }
    return text;
  }

 private:
  std::vector<std::vector<std::string>> rows_;
};

/// A number with three digits, so that small ones are not printed as 0.
[[nodiscard]] inline std::string short_number(double number) {
  char text[64];
  std::snprintf(text, sizeof text, "%.3g", number);
  return text;
}

/// A number with `digits` decimals.
[[nodiscard]] inline std::string fixed(double number, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*f", digits, number);
  return text;
}

}  // namespace tool
