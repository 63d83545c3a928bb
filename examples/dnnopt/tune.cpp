// dnnopt tune
#include <chrono>
#include <cstdio>
#include <vector>

#include <dnnopt/profile/statistics.hpp>
#include <dnnopt/tune.hpp>

#include "support.hpp"

namespace tool {

namespace {

double latency_ms(dnnopt::session& session, const dnnopt::named_tensors& inputs) {
  const auto begin = std::chrono::steady_clock::now();
  (void)session.run(inputs);
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
}

}  // namespace

int tune(const options& o) {
  const dnnopt::model m = load_model(o);
  dnnopt::compile_options compiling = compile_options_of(o, m);
  json generated;
  const dnnopt::named_tensors inputs = inputs_of(m, o, &generated);
  compiling.opened = std::make_shared<dnnopt::opened_device>(compiling.device, compiling.programs);
  const dnnopt::device_info info = dnnopt::with_form(compiling.opened->context.info(), compiling.form);

  dnnopt::tuning_store store = *compiling.tuned;
  dnnopt::tuner_options search;
  search.seconds = o.budget;
  search.gain = o.gain;
  search.seed = static_cast<std::uint32_t>(o.seed);
  json shapes = json::array();
  search.progress = [&](const dnnopt::tuning_progress& progress) {
    if (!o.quiet)
      std::fprintf(stderr, "%zu of %zu  %-44s %9.1f us -> %9.1f us\n", progress.done, progress.all,
                   progress.shape.c_str(), progress.before_us, progress.after_us);
    json row = {{"shape", progress.shape}, {"before_us", progress.before_us}, {"after_us", progress.after_us}};
    if (const auto* values = store.table_of(info).find(progress.shape)) {
      row["values"] = *values;
      const std::string family = progress.shape.substr(0, progress.shape.find(' '));
      for (const auto& parameter : dnnopt::codegen::find_tuning_space(family)->choices())
        row["parameters"].push_back(parameter.name);
    }
    shapes.push_back(std::move(row));
  };
  if (o.cache.empty()) note(o, "without --cache FILE the result is printed and kept nowhere");
  const dnnopt::tuning_result found = dnnopt::tune(m, compiling, inputs, search, store);
  keep_tuned(o, store);
  keep_profiles(o, compiling);

  // Both sessions in turns, so that a slow moment of the machine meets both.
  compiling.tuned = nullptr;
  dnnopt::session plain = dnnopt::compile(m, compiling);
  compiling.tuned = std::make_shared<const dnnopt::tuning_store>(store);
  dnnopt::session tuned = dnnopt::compile(m, compiling);
  std::vector<double> before;
  std::vector<double> after;
  const std::size_t warmup = 3;
  const std::size_t rounds = 15;
  for (std::size_t i = 0; i < warmup + rounds; ++i) {
    const double one = latency_ms(plain, inputs);
    const double other = latency_ms(tuned, inputs);
    if (i < warmup) continue;
    before.push_back(one);
    after.push_back(other);
  }
  const double before_ms = dnnopt::profile::exact_quantile(before, 0.5);
  const double after_ms = dnnopt::profile::exact_quantile(after, 0.5);
  json result = std::move(generated);
  result["device"] = info.name;
  result["form"] = form_of(o);
  result["warnings"] = to_json(m.warnings);
  result["before_ms"] = before_ms;
  result["after_ms"] = after_ms;
  result["tried"] = found.tried;
  result["kernels_before_us"] = found.before_us;
  result["kernels_after_us"] = found.after_us;
  result["shapes"] = std::move(shapes);
  say(o, "device " + info.name + form_text(o) + ", " + std::to_string(found.tried) +
             " configurations tried\ntunable kernels " + fixed(found.before_us * 1e-3, 3) + " ms -> " +
             fixed(found.after_us * 1e-3, 3) + " ms; latency, median of " + std::to_string(rounds) +
             " in turns: " + fixed(before_ms, 3) + " ms -> " + fixed(after_ms, 3) + " ms\n" +
             (o.cache.empty() ? std::string() : "kept in '" + o.cache + "' for this device and driver\n"));
  write_json(o, result);
  return 0;
}

}  // namespace tool
