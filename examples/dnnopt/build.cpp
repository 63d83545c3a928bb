// dnnopt build
#include <dnnopt/backend/run/executor.hpp>

#include "support.hpp"

namespace tool {

namespace {

/// Shows each launch of an inference, when those before it are done: some drivers compile at the first launch.
class launch_progress final : public dnnopt::run_observer {
 public:
  launch_progress(const options& o, std::size_t all) : line_(o), all_(all) {}
  [[nodiscard]] bool wants_events() const override { return false; }
  [[nodiscard]] dnnopt::opencl::event_sink* kernel(std::size_t, std::size_t, std::uint64_t, std::uint64_t) override {
    return nullptr;
  }
  void before(std::size_t, std::size_t, dnnopt::opencl::command_queue& queue) override {
    queue.finish();
    line_.show("first inference, in which some drivers still compile: kernel " + std::to_string(++launched_) +
               (all_ == 0 ? "" : " of " + std::to_string(all_)));
  }

 private:
  progress_line line_;
  std::size_t all_;
  std::size_t launched_ = 0;
};

}  // namespace

int build(const options& o) {
  if (o.device == "reference")
    throw dnnopt::error(dnnopt::errc::usage, "the reference backend has no kernels to build; name an OpenCL device");
  const auto begin = std::chrono::steady_clock::now();
  const dnnopt::model m = load_model(o);
  json result;
  const dnnopt::named_tensors inputs = inputs_of(m, o, &result);
  const dnnopt::compile_options compiling = compile_options_of(o, m);
  dnnopt::session session = dnnopt::compile(m, compiling);
  keep_profiles(o, compiling);
  tell_warnings(o, m, session.report(), result);
  {
    launch_progress progress(o, session.executor() == nullptr ? 0 : session.executor()->predicted_kernels());
    (void)session.run(inputs, &progress);
  }
  const bool kept = keep_programs(o, session);
  keep_plans(o, *compiling.memory.store);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  result["device"] = session.context()->info().name;
  result["form"] = form_of(o);
  result["kernels"] = session.kernels();
  result["builds"] = session.report().builds;
  result["kept"] = kept;
  result["seconds"] = seconds;
  const std::string programs = session.report().builds == 0
                                   ? "all programs had been compiled before"
                                   : std::to_string(session.report().builds) + " programs compiled";
  say(o, programs + " for " + std::to_string(session.kernels()) + " device commands in " + fixed(seconds, 1) + " s" +
             form_text(o) + "\n");
  write_json(o, result);
  return 0;
}

}  // namespace tool
