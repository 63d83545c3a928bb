// Inputs and outputs in device memory, for the commands that time an inference (--bind-io)
#include <dnnopt/backend/opencl/context.hpp>

#include "support.hpp"

namespace tool {

dnnopt::named_tensors bind_io(const options& o, dnnopt::session& session, const dnnopt::named_tensors& inputs,
                              const dnnopt::named_tensors& outputs, json& result) {
  if (!o.bind_io) return inputs;
  if (session.context() == nullptr)
    throw dnnopt::error(dnnopt::errc::usage, "--bind-io needs an OpenCL device; --device reference has no memory");
  const cl::Context context(session.context()->handle(), true);
  const cl::CommandQueue queue(context, cl::Device(session.context()->where().handle(), true));
  dnnopt::named_tensors given;
  std::size_t in_place = 0;
  result["bound"] = json::array();
  const auto tell = [&](const std::string& name, bool is_output, std::string_view use, const std::string& reason) {
    result["bound"].push_back({{"name", name}, {"is_output", is_output}, {"use", use}, {"reason", reason}});
    if (!reason.empty()) note(o, "'" + name + "' is " + std::string(use) + ": " + reason);
  };
  // Whether the value now lies in a buffer of its own; what keeps it out is said.
  const auto bind = [&](const std::string& name, const dnnopt::tensor& content, bool is_output) {
    const std::size_t bytes = content.byte_size();
    if (bytes == 0) {
      tell(name, is_output, "not bound", "it has no bytes");
      return false;
    }
    try {
      const cl::Buffer buffer(context, CL_MEM_READ_WRITE, bytes);
      const dnnopt::bound_value bound =
          session.bind(name, buffer, is_output ? std::nullopt : std::optional(content.dims()));
      if (!is_output && queue.enqueueWriteBuffer(buffer, CL_TRUE, 0, bytes, content.bytes().data()) != CL_SUCCESS)
        throw dnnopt::error(dnnopt::errc::opencl_call, "the buffer of input '" + name + "' cannot be filled");
      in_place += bound.use == dnnopt::bound_use::in_place ? 1 : 0;
      tell(name, is_output, dnnopt::name_of(bound.use), bound.reason);
      return true;
    } catch (const dnnopt::error& e) {
      if (e.code() != dnnopt::errc::unsupported) throw;
      tell(name, is_output, "not bound", e.what());
      return false;
    }
  };
  for (const auto& [name, content] : inputs)
    if (!bind(name, content, false)) given.add(name, content);
  for (const auto& [name, content] : outputs) bind(name, content, true);
  say(o, std::to_string(in_place) + " of " + std::to_string(inputs.size() + outputs.size()) +
             " inputs and outputs lie in buffers of the device that kernels use in place\n");
  return given;
}

}  // namespace tool
