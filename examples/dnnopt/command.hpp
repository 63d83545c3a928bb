// Owns what the subcommands of the dnnopt tool share: options, JSON output, inputs of a run.
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

namespace tool {

using json = nlohmann::ordered_json;

/// The flags of every subcommand that compiles or runs a model, and those of single subcommands.
struct options {
  std::string command;  ///< the subcommand's name
  std::string model;
  std::string json_target;  ///< a file, "-" for standard output, empty for none
  std::string device = "opencl";
  bool require_device = false;
  std::string form = "native";
  std::string matrix_steps = "automatic";
  std::string integer_dots = "automatic";
  std::string precision = "fp32";
  std::string memory_objects = "automatic";
  std::vector<std::string> texels;  ///< NAME=1:image2d
  std::string wait = "blocking";
  std::vector<std::string> shapes;  ///< NAME=2x3x224x224
  std::vector<std::string> dims;    ///< batch=2
  std::vector<std::string> ranges;  ///< batch=1:64:8
  std::vector<std::string> values;  ///< sr=16000, or NAME=FILE.npy
  bool quiet = false;               ///< nothing but errors, and what --json and other flags ask for
  bool verbose = false;             ///< the driver's own messages, what is done, and all tables
  std::string cache;
  bool measure = false;
  std::string passes = "default";
  std::uint64_t memory_limit = 0;
  std::string memory_strategy = "default";
  double memory_budget = 0.25;
  std::uint64_t seed = 0;

  // optimize
  std::string output;
  std::string dot;
  bool explain = false;
  bool extended_graph = false;
  std::string memory_plan;
  // run
  std::vector<std::string> inputs;        ///< NAME=FILE.npy
  std::vector<std::string> input_shapes;  ///< NAME=2x3x224x224, of generated inputs alone
  std::string output_dir;
  bool poison_freed = false;
  std::string first_start;  ///< "quick", "optimized", or empty for what the command does by itself
  // verify
  std::string data;  ///< a test_data_set_* folder
  // all that compile or run a model
  std::string io_types = "model";  ///< or "float16"
  // bench, profile
  std::size_t warmup = 10;
  std::size_t runs = 50;
  bool bind_io = false;  ///< inputs and outputs lie in device memory
  // profile
  std::string mode = "full";
  std::string tables = "kernels";
  std::string trace;
  std::string csv;
  std::string html;
  std::string latency_table;
  bool roofline = false;
  bool check_kernels = false;
  double check_seconds = 120;
  // compare
  std::string other;
  // walk
  std::string walk;  ///< a file of shapes
  // tune, plan-memory
  double budget = 60;
  double gain = 0.03;
  std::string strategy = "exact";
  unsigned threads = 1;
  std::int64_t capacity = 0;
};

/// Writes the machine-readable result where --json asks; nothing without it.
void write_json(const options& o, const json& result);
/// Text for people: to standard output, or to standard error where standard output carries JSON; nothing with --quiet.
void say(const options& o, const std::string& text);
/// What people should know beside the result: a line on standard error behind the tool's name; nothing with --quiet.
void note(const options& o, const std::string& text);

/// What the tool is busy with: one line that is written over where standard error is a terminal, a line for each thing
/// with --verbose where it is none, else nothing. The line is gone when this ends.
class progress_line {
 public:
  explicit progress_line(const options& o);
  ~progress_line();
  progress_line(const progress_line&) = delete;
  progress_line& operator=(const progress_line&) = delete;
  void show(const std::string& text);
  void clear();

 private:
  bool overwrites_ = false;
  bool appends_ = false;
};

// Each returns the exit status: 0 success, 1 a wrong result. Errors are exceptions (status 2).
int devices(const options& o);
int info(const options& o);
int weights(const options& o);
int optimize(const options& o);
int run(const options& o);
int build(const options& o);
int verify(const options& o);
int conformance(const options& o);
int bench(const options& o);
int profile(const options& o);
int walk(const options& o);
int compare(const options& o);
int tune(const options& o);
int plan_memory(const options& o);

}  // namespace tool
