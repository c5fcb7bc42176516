// libllama's process-wide side: initialisation, its log, devices and RPC servers. Everything here may be called from
// any thread.
#pragma once

#include <ggml-backend.h>

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace outrider {

// Initialises libllama once and routes its log to our debug level. `numa`: "", distribute, isolate or numactl.
Status InitBackend(const std::string& numa = "");

// While alive, keeps the error lines libllama logs on this thread, so that a failed load can say why in one sentence.
class ErrorLogCapture {
 public:
  ErrorLogCapture();
  ~ErrorLogCapture();
  ErrorLogCapture(const ErrorLogCapture&) = delete;
  ErrorLogCapture& operator=(const ErrorLogCapture&) = delete;

  const std::string& text() const { return text_; }  // lines joined by newlines

 private:
  std::string text_;
};

// Makes the devices of llama.cpp rpc-servers known under their names. An address that does not answer is
// kInvalidArgument.
Status AddRpcServers(const std::vector<std::string>& addresses);

// Devices by name; "none" gives an empty list. An unknown name is kInvalidArgument; the message lists the existing
// ones.
Result<std::vector<ggml_backend_dev_t>> FindDevices(const std::vector<std::string>& names);

// The names and descriptions of all devices: "CPU Intel …, CUDA0 NVIDIA H200".
std::string DeviceSummary();

// A buffer type by name, for tensor overrides.
Result<ggml_backend_buffer_type_t> FindBufferType(const std::string& name);

std::string LlamaVersion();  // "0.5.0"

// Bytes of memory that this process may use: the machine's, or those of its control group if that is less; 0 if the
// system does not say.
uint64_t TotalMemory();

int PhysicalCores();  // that this process may run on, at least 1

}  // namespace outrider
