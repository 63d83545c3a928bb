// The dnnopt command line: subcommands and flags as docs/reference/command_line.md states them.
#include <algorithm>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <fstream>
#include <functional>
#include <iostream>
#include <numeric>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <unistd.h>

#include <CLI/CLI.hpp>

#include <dnnopt/backend/opencl/device.hpp>
#include <dnnopt/error.hpp>
#include <dnnopt/version.hpp>

#include "command.hpp"

namespace tool {

void write_json(const options& o, const json& result) {
  if (o.json_target.empty()) return;
  if (o.json_target == "-") {
    std::cout << result.dump(2) << "\n";
    return;
  }
  std::ofstream file(o.json_target);
  file << result.dump(2) << "\n";
  file.close();
  if (!file) throw std::runtime_error("cannot write '" + o.json_target + "'");
}

void say(const options& o, const std::string& text) {
  if (o.quiet) return;
  std::fputs(text.c_str(), o.json_target == "-" ? stderr : stdout);
  std::fflush(stdout);  // what comes behind the result may take a while
}

void note(const options& o, const std::string& text) {
  if (!o.quiet) std::fprintf(stderr, "dnnopt: %s\n", text.c_str());
}

progress_line::progress_line(const options& o)
    : overwrites_(!o.quiet && ::isatty(STDERR_FILENO) != 0), appends_(!overwrites_ && o.verbose) {}
progress_line::~progress_line() { clear(); }
void progress_line::show(const std::string& text) {
  if (overwrites_) std::fprintf(stderr, "\r\033[K%s", text.c_str());
  if (appends_) std::fprintf(stderr, "dnnopt: %s\n", text.c_str());
}
void progress_line::clear() {
  if (overwrites_) std::fputs("\r\033[K", stderr);
}

}  // namespace tool

namespace {

std::optional<std::string> nearest(std::string_view wrong, const std::vector<std::string>& names);

/// Takes one of these names; what is none gets the one that may have been meant.
CLI::Validator one_of(const std::vector<std::string>& names) {
  std::string all;
  for (const std::string& name : names) all += (all.empty() ? "" : ",") + name;
  return CLI::Validator(
      [names, all](std::string& given) {
        if (std::find(names.begin(), names.end(), given) != names.end()) return std::string();
        const std::optional<std::string> meant = nearest(given, names);
        return "'" + given + "' is none of {" + all + "}" + (meant ? "; did you mean '" + *meant + "'?" : "");
      },
      "{" + all + "}", "");
}

/// A whole number of at least one.
CLI::Validator positive() {
  return CLI::Validator(
      [](std::string& given) {
        const bool digits = !given.empty() && given.find_first_not_of("0123456789") == std::string::npos;
        return digits && given.find_first_not_of('0') != std::string::npos
                   ? std::string()
                   : "'" + given + "' is no whole number of at least 1";
      },
      "POSITIVE", "");
}

/// Of all subcommands that print a result.
void add_manners(CLI::App& command, tool::options& o) {
  auto* const quiet =
      command.add_flag("-q,--quiet", o.quiet, "print errors alone; files that flags name are written all the same");
  command.add_flag("-v,--verbose", o.verbose, "print what is done, all tables, and what the driver's compiler says")
      ->excludes(quiet);
}

void add_json(CLI::App& command, tool::options& o) {
  command.add_option("--json", o.json_target, "write the machine-readable result to this file, - for standard output");
  add_manners(command, o);
}

void add_model(CLI::App& command, tool::options& o) {
  command.add_option("MODEL", o.model, "an .onnx file")->required();
}

/// Of the commands that compile or run one model.
void add_io_types(CLI::App& command, tool::options& o) {
  command
      .add_option("--io-types", o.io_types,
                  "float32 inputs and outputs are given and returned as the model declares them, or as float16")
      ->check(one_of({"model", "float16"}))
      ->capture_default_str();
}

void add_common(CLI::App& command, tool::options& o) {
  add_json(command, o);
  command.add_option("--device", o.device, "reference, opencl, opencl:N or opencl:part of the device's name")
      ->capture_default_str();
  command.add_flag("--require-device", o.require_device,
                   "an operator that would fall back to the host is an error naming it");
  command
      .add_option("--form", o.form,
                  "of kernels: the device's own, those for work-items one after the other with wide vectors, or those "
                  "for many in step with local memory")
      ->check(one_of({"native", "vectors", "groups"}))
      ->capture_default_str();
  command
      .add_option(
          "--matrix-steps", o.matrix_steps,
          "what multiplies in matrix steps: automatic is the best for halves, for floats and for bytes that works "
          "on the device, none, plain, plain_floats or plain_bytes (halves, floats or bytes in OpenCL C for every "
          "device, slow), or another provider's name")
      ->capture_default_str();
  command
      .add_option("--integer-dots", o.integer_dots,
                  "what multiplies bytes in kernels for wide vectors: automatic is the best that works on the device, "
                  "none, plain (OpenCL C for every device), or another provider's name")
      ->capture_default_str();
  command
      .add_option("--precision", o.precision,
                  "storage of floats; sums are in fp32. fp16-arithmetic multiplies in fp16 too, where the device does")
      ->check(one_of({"fp32", "fp16", "fp16-arithmetic"}))
      ->capture_default_str();
  command
      .add_option("--memory-objects", o.memory_objects,
                  "what holds weights and packed tensors: buffers of rows, packed texels in buffers, images, or what "
                  "suits the device")
      ->check(one_of({"buffers", "packed", "images", "automatic"}))
      ->capture_default_str();
  command
      .add_option("--texels", o.texels,
                  "NAME=DIM[:OBJECT[:ROWS]]: an input or output that lies as texels of four elements along DIM, in a "
                  "buffer, image2d, image2d_array (layers of ROWS, or planes) or image1d_buffer")
      ->allow_extra_args(false);
  command.add_option("--shape", o.shapes, "NAME=2x3x224x224: shape of an input with symbolic dims")
      ->allow_extra_args(false);
  command.add_option("--dim", o.dims, "batch=2: value of a symbolic dim")->allow_extra_args(false);
  command
      .add_option("--range", o.ranges,
                  "NAME=LOW:HIGH[:MULTIPLE]: what a symbolic dim may be; a run refuses what lies outside")
      ->allow_extra_args(false);
  command
      .add_option("--value", o.values,
                  "NAME=NUMBER or NAME=FILE.npy: value of an input that is known now; it is a constant and no input")
      ->allow_extra_args(false);
  command.add_option("--cache", o.cache, "file of tuning results, profile database and plans");
  command.add_flag("--measure", o.measure,
                   "time the joins that fusion leaves to a profile on the device, into --cache");
  command.add_option("--passes", o.passes, "default, none, epilogue, or names in order, separated by commas")
      ->capture_default_str();
  command.add_option("--memory-limit", o.memory_limit,
                     "bytes of device memory; what cannot fit is refused before running");
  command
      .add_option("--memory-strategy", o.memory_strategy,
                  "default, or a planner's name as plan-memory knows it: places intermediate tensors")
      ->capture_default_str();
  command.add_option("--memory-budget", o.memory_budget, "seconds for the execution order and the memory plan")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();
  command.add_option("--seed", o.seed, "of generated weights and inputs")->capture_default_str();
}

/// Of the commands that run on inputs.
void add_inputs(CLI::App& command, tool::options& o) {
  command.add_option("--input", o.inputs, "NAME=FILE.npy; inputs not given are generated")->allow_extra_args(false);
  command
      .add_option("--input-shape", o.input_shapes,
                  "NAME=2x3x224x224: shape of a generated input; unlike --shape it leaves the model's dims symbolic")
      ->allow_extra_args(false);
  add_io_types(command, o);
}

/// Of the commands that wait for inferences.
void add_wait(CLI::App& command, tool::options& o) {
  command
      .add_option("--wait", o.wait,
                  "sleep until the device is done, or poll it (sooner on some drivers, one core busy)")
      ->check(one_of({"blocking", "spinning"}))
      ->capture_default_str();
}

/// Of the commands that may begin with kernels of which later starts have better ones.
void add_first_start(CLI::App& command, tool::options& o, const std::string& own) {
  command
      .add_option(
          "--first-start", o.first_start,
          "what kernels in no cache are compiled as: optimized, or quick, without the driver's optimizer, which "
          "takes over behind the first inference (" +
              own + " unless told)")
      ->check(one_of({"optimized", "quick"}));
}

/// Of the commands that time an inference.
void add_bind_io(CLI::App& command, tool::options& o) {
  command.add_flag("--bind-io", o.bind_io,
                   "inputs and outputs lie in buffers of the device, so that nothing is uploaded or downloaded");
}

/// Nothing for a file with one of these endings, else what is wrong.
std::string ending_of(const std::string& file, const std::vector<std::string>& endings) {
  std::string all;
  for (const std::string& ending : endings) {
    if (file.ends_with(ending)) return {};
    all += (all.empty() ? "" : " or ") + ending;
  }
  return "'" + file + "' ends in neither " + all + ", which say what is written";
}

/// The functions that complete subcommands and flags in bash, or in zsh through its bashcompinit.
std::string completion(const CLI::App& app, bool zsh) {
  std::string commands;
  std::string cases;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; })) {
    commands += " " + command->get_name();
    cases += "    " + command->get_name() + ") flags='";
    for (const CLI::Option* option : command->get_options())
      for (const std::string& name : option->get_lnames()) cases += "--" + name + " ";
    cases += "' ;;\n";
  }
  return std::string(zsh ? "autoload -U +X bashcompinit && bashcompinit\n" : "") + "_dnnopt() {\n" +
         "  local word=${COMP_WORDS[COMP_CWORD]} flags=\n  if [ \"$COMP_CWORD\" = 1 ]; then\n" +
         "    COMPREPLY=($(compgen -W '--help --version" + commands + "' -- \"$word\"))\n    return\n  fi\n" +
         "  case ${COMP_WORDS[1]} in\n" + cases + "  esac\n" +
         "  case $word in\n    -*) COMPREPLY=($(compgen -W \"$flags\" -- \"$word\")) ;;\n" +
         "    *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n  esac\n}\n" + "complete -o filenames -F _dnnopt dnnopt\n";
}

/// The library's version, and the OpenCL devices with their drivers or why there are none.
std::string version_text() {
  std::string text = "dnnopt " + std::to_string(DNNOPT_VERSION_MAJOR) + "." + std::to_string(DNNOPT_VERSION_MINOR) +
                     "." + std::to_string(DNNOPT_VERSION_PATCH);
  try {
    for (const dnnopt::opencl::device& d : dnnopt::opencl::list_devices())
      text += "\nopencl:" + std::to_string(d.info.index) + "  " + d.info.name + " (" + d.info.platform + ", " +
              d.info.version + ", driver " + d.info.driver_version + ")";
  } catch (const dnnopt::error& e) {
    text += std::string("\n") + e.what();
  }
  return text;
}

/// How many characters must be put in, taken out or replaced to make one text of the other (Levenshtein's distance).
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < a.size(); ++i) {
    std::size_t diagonal = row[0]++;
    for (std::size_t j = 0; j < b.size(); ++j) {
      const std::size_t above = row[j + 1];
      row[j + 1] = std::min({above + 1, row[j] + 1, diagonal + (a[i] == b[j] ? 0U : 1U)});
      diagonal = above;
    }
  }
  return row.back();
}

/// The name that somebody who typed `wrong` may have meant, or nothing.
std::optional<std::string> nearest(std::string_view wrong, const std::vector<std::string>& names) {
  std::optional<std::string> best;
  std::size_t least = std::max<std::size_t>(wrong.size() / 3, 2) + 1;
  for (const std::string& name : names)
    if (const std::size_t d = distance(wrong, name); d < least) {
      least = d;
      best = name;
    }
  return best;
}

/// What somebody who meets an error may do next, or nothing where its text says so.
std::string next_step(dnnopt::errc code, const tool::options& o) {
  switch (code) {
    case dnnopt::errc::external_data_missing:
      return "`dnnopt weights '" + o.model + "'` writes generated weights where no others are at hand";
    case dnnopt::errc::malformed_protobuf:
    case dnnopt::errc::malformed_model:
      return "the file may be cut off, or is no .onnx file: compare its size with that of its source";
    case dnnopt::errc::no_kernel:
      return "without --require-device these operators run on the host; `dnnopt info` lists them";
    case dnnopt::errc::unbound_symbol:
      return "--dim NAME=N or --shape INPUT=DIMS states what is open";
    case dnnopt::errc::memory_limit:
    case dnnopt::errc::out_of_device_memory:
      return "--precision fp16 halves most tensors, smaller --dim or --shape make them smaller, and `dnnopt optimize "
             "--memory-plan F.svg` draws what is alive when";
    case dnnopt::errc::kernel_build:
      return "`--device reference` runs the model without the driver; --verbose prints what its compiler says";
    case dnnopt::errc::contradiction:
    case dnnopt::errc::shape_mismatch:
      return o.command == "info" ? "" : "`dnnopt info '" + o.model + "'` lists inputs with their shapes";
    default:
      return "";
  }
}

/// "Did you mean" for the subcommand and each flag that the tool does not know.
std::string suggestions(const CLI::App& app, int count, char** arguments) {
  std::vector<std::string> commands;
  for (const CLI::App* command : app.get_subcommands([](const CLI::App*) { return true; }))
    commands.push_back(command->get_name());
  const auto meant = [](const std::string& wrong, const std::optional<std::string>& name) {
    return name ? "'" + wrong + "' is unknown; did you mean '" + *name + "'?\n" : std::string();
  };
  const std::string first = count > 1 ? arguments[1] : "";
  const auto chosen = std::find(commands.begin(), commands.end(), first);
  if (chosen == commands.end()) return first.starts_with("-") ? "" : meant(first, nearest(first, commands));
  std::vector<std::string> flags;
  for (const CLI::Option* option : app.get_subcommand(first)->get_options())
    for (const std::string& name : option->get_lnames()) flags.push_back("--" + name);
  std::string text;
  for (int i = 2; i < count; ++i) {
    const std::string flag = std::string(arguments[i]).substr(0, std::string(arguments[i]).find('='));
    if (flag.starts_with("--") && std::find(flags.begin(), flags.end(), flag) == flags.end())
      text += meant(flag, nearest(flag, flags));
  }
  return text;
}

}  // namespace

int main(int count, char** arguments) {
  tool::options o;
  CLI::App app{"dnnopt: optimize ONNX models, run them through OpenCL, and see where the time goes"};
  app.require_subcommand(1);
  app.set_version_flag("--version", version_text, "the version, and the OpenCL devices with their drivers");
  std::function<int(const tool::options&)> chosen;
  const auto add = [&](const char* name, const char* what, int (*call)(const tool::options&)) {
    CLI::App* command = app.add_subcommand(name, what);
    command->callback([&chosen, &o, name, call] {
      chosen = call;
      o.command = name;
    });
    return command;
  };

  CLI::App* command = add("devices", "OpenCL platforms and devices, or why there are none", &tool::devices);
  add_json(*command, o);

  command =
      add("info", "inputs, outputs, operators, classes, parameters and multiply-accumulates of a model", &tool::info);
  add_model(*command, o);
  add_common(*command, o);

  command = add("weights", "write the missing external-data file from a seeded generator", &tool::weights);
  add_model(*command, o);
  add_common(*command, o);

  command = add("optimize", "the pipeline without running", &tool::optimize);
  add_model(*command, o);
  add_common(*command, o);
  command->add_option("-o,--output", o.output, "write the optimized model as ONNX");
  command->add_option("--dot", o.dot, "write the optimized graph for Graphviz");
  command->add_flag(
      "--explain", o.explain,
      "say what passes could not do and why, also of every edge that was not fused, and which conditions runs check");
  command->add_flag("--extended-graph", o.extended_graph,
                    "mapping types, result sizes and properties of the nodes, in --json and --dot");
  command->add_option("--memory-plan", o.memory_plan, "draw the memory plan as SVG");
  add_io_types(*command, o);

  command = add("run", "one inference", &tool::run);
  add_model(*command, o);
  add_common(*command, o);
  add_inputs(*command, o);
  add_wait(*command, o);
  add_first_start(*command, o, "quick");
  command->add_option("--output-dir", o.output_dir, "folder for one .npy per output");
  command->add_flag("--poison-freed", o.poison_freed,
                    "fill memory with 0xFF when nothing reads it any more: outputs must stay the same");

  command = add("build", "all kernels of a model, compiled ahead for later starts", &tool::build);
  add_model(*command, o);
  add_common(*command, o);
  add_inputs(*command, o);

  command = add("verify", "the device against the reference backend, or against stored outputs", &tool::verify);
  add_model(*command, o);
  add_common(*command, o);
  add_inputs(*command, o);
  command->add_option("--data", o.data, "a test_data_set_* folder with inputs and expected outputs");

  command = add("conformance", "a folder of ONNX backend tests", &tool::conformance);
  command->add_option("DIR", o.model, "folder of test folders")->required();
  add_common(*command, o);

  command = add("bench", "latency", &tool::bench);
  add_model(*command, o);
  add_common(*command, o);
  add_inputs(*command, o);
  add_wait(*command, o);
  add_first_start(*command, o, "optimized");
  add_bind_io(*command, o);
  command->add_option("--warmup", o.warmup, "inferences before measuring")->capture_default_str();
  command->add_option("--runs", o.runs, "measured inferences")->check(positive())->capture_default_str();

  command = add("profile", "per-operator and per-kernel times on one clock", &tool::profile);
  add_model(*command, o);
  add_common(*command, o);
  add_inputs(*command, o);
  add_wait(*command, o);
  add_bind_io(*command, o);
  command->add_option("--mode", o.mode, "full: every kernel; monitor: a sample within an overhead budget")
      ->check(one_of({"full", "monitor"}))
      ->capture_default_str();
  command->add_option("--warmup", o.warmup, "inferences before measuring")->capture_default_str();
  command->add_option("--runs", o.runs, "profiled inferences")->check(positive())->capture_default_str();
  command->add_option("--trace", o.trace, "timeline as .json (Chrome) or .perfetto-trace")
      ->check([](const std::string& file) {
        return ending_of(file, {".json", ".perfetto-trace"});
      });
  command
      ->add_option("--tables", o.tables,
                   "kernels: where the time goes and the longest kernels, on one screen; all: every table")
      ->check(one_of({"kernels", "all"}))
      ->capture_default_str();
  command->add_option("--csv", o.csv, "one row per event");
  command->add_option("--html", o.html, "self-contained report");
  command->add_option("--latency-table", o.latency_table, "lookup table of kernels and operators, .csv or .json")
      ->check([](const std::string& file) {
        return ending_of(file, {".csv", ".json"});
      });
  command->add_flag("--roofline", o.roofline,
                    "print each kernel's share of the device's measured arithmetic and bandwidth");
  command->add_flag("--check-kernels", o.check_kernels,
                    "hold each kernel's time against the slope of latency over 1 to 20 injected copies of it");
  command->add_option("--check-seconds", o.check_seconds, "time for --check-kernels")
      ->check(CLI::NonNegativeNumber)
      ->capture_default_str();

  command = add("walk", "one session through a list of shapes, each run twice: what a new shape costs", &tool::walk);
  add_model(*command, o);
  add_common(*command, o);
  add_wait(*command, o);
  command
      ->add_option(
          "--walk", o.walk,
          "JSON list of shapes: {\"batch\": 2, ...} by symbolic dim, or {\"shapes\": {\"x\": [1, 3, 640, 480]}}")
      ->required();

  command =
      add("compare", "two profiles that profile --json wrote: what grew, by operator and by kernel", &tool::compare);
  command->add_option("A", o.model, "the first profile")->required();
  command->add_option("B", o.other, "the second one")->required();
  add_json(*command, o);

  command = add("tune", "genetic search over kernel configurations on the device, kept in --cache", &tool::tune);
  add_model(*command, o);
  add_common(*command, o);
  command->add_option("--budget", o.budget, "seconds")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--gain", o.gain, "share of the time that a choice must save to replace the default")
      ->check(CLI::Range(-1e6, 1.0))
      ->capture_default_str();
  add_inputs(*command, o);

  command = add("plan-memory", "the memory planner alone, on id,lower,upper,size records", &tool::plan_memory);
  command->add_option("FILE", o.model, "MiniMalloc CSV or usage-record JSON")->required();
  add_json(*command, o);
  command->add_option("--strategy", o.strategy, "planning strategy")->capture_default_str();
  command->add_option("--budget", o.budget, "seconds")->check(CLI::PositiveNumber)->capture_default_str();
  command->add_option("--threads", o.threads, "of the exact search")->capture_default_str();
  command->add_option("--capacity", o.capacity, "stop as soon as a plan fits these bytes");

  command = app.add_subcommand("completion", "shell code that completes subcommands and flags");
  command->add_option("SHELL", o.model, "bash or zsh")->check(one_of({"bash", "zsh"}))->required();
  command->callback([&chosen, &app] {
    chosen = [&app](const tool::options& given) {
      std::fputs(completion(app, given.model == "zsh").c_str(), stdout);
      return 0;
    };
  });

  try {
    app.parse(count, arguments);
  } catch (const CLI::Success& e) {
    return app.exit(e);
  } catch (const CLI::ParseError& e) {
    if (count == 1)
      std::fputs(app.help().c_str(), stderr);
    else
      app.exit(e);
    std::fputs(suggestions(app, count, arguments).c_str(), stderr);
    return 2;
  }
  try {
    return chosen(o);
  } catch (const dnnopt::error& e) {
    const std::string step = next_step(e.code(), o);
    std::fprintf(stderr, "dnnopt: %s\n%s", e.what(), step.empty() ? "" : ("dnnopt: " + step + "\n").c_str());
    return 2;
  } catch (const std::exception& e) {
    std::fprintf(stderr, "dnnopt: %s\n", e.what());
    return 2;
  }
}
