#include "engine/llama/backend.h"

#include <fmt/format.h>
#include <ggml-cpu.h>
#include <llama.h>
#include <netdb.h>
#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <fstream>
#include <mutex>
#include <set>
#include <thread>

#include "base/log.h"
#include "kernels/plugin.h"

namespace outrider {
namespace {

thread_local std::string* captured_errors = nullptr;

void OnLlamaLog(ggml_log_level level, const char* text, void*) {
  std::string_view line = text;
  while (!line.empty() && line.back() == '\n') line.remove_suffix(1);
  if (line.empty()) return;
  if (level == GGML_LOG_LEVEL_ERROR && captured_errors != nullptr) {
    *captured_errors += fmt::format("{}\n", line);
  }
  LogDebug("llama: {}", line);
}

bool Answers(const std::string& host, const std::string& port) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return false;
  bool connected = false;
  for (addrinfo* address = found; address != nullptr && !connected; address = address->ai_next) {
    const int fd = socket(address->ai_family, address->ai_socktype | SOCK_CLOEXEC, address->ai_protocol);
    if (fd < 0) continue;
    const timeval timeout{5, 0};
    setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &timeout, sizeof timeout);  // bounds connect() too
    connected = connect(fd, address->ai_addr, address->ai_addrlen) == 0;
    close(fd);
  }
  freeaddrinfo(found);
  return connected;
}

std::string DeviceNames() {
  std::string names;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    names += (i == 0 ? "" : ", ") + std::string(ggml_backend_dev_name(ggml_backend_dev_get(i)));
  }
  return names;
}

}  // namespace

Status InitBackend(const std::string& numa) {
  ggml_numa_strategy strategy = GGML_NUMA_STRATEGY_DISABLED;
  if (numa == "distribute") {
    strategy = GGML_NUMA_STRATEGY_DISTRIBUTE;
  } else if (numa == "isolate") {
    strategy = GGML_NUMA_STRATEGY_ISOLATE;
  } else if (numa == "numactl") {
    strategy = GGML_NUMA_STRATEGY_NUMACTL;
  } else if (!numa.empty()) {
    return InvalidArgument(fmt::format("--numa '{}' is not one of distribute, isolate, numactl", numa));
  }
  static std::once_flag once;
  std::call_once(once, [strategy] {
    llama_log_set(OnLlamaLog, nullptr);
    llama_backend_init();
    llama_numa_init(strategy);
    kernels::Install();
  });
  return {};
}

ErrorLogCapture::ErrorLogCapture() {
  captured_errors = &text_;
}
ErrorLogCapture::~ErrorLogCapture() {
  captured_errors = nullptr;
}

Status AddRpcServers(const std::vector<std::string>& addresses) {
  if (addresses.empty()) return {};
  ggml_backend_reg_t registry = ggml_backend_reg_by_name("RPC");
  using AddServer = ggml_backend_reg_t (*)(const char*);
  const auto add_server =
      registry ? reinterpret_cast<AddServer>(ggml_backend_reg_get_proc_address(registry, "ggml_backend_rpc_add_server"))
               : nullptr;
  if (add_server == nullptr) return Unsupported("--rpc needs a build with GGML_RPC=ON");

  static std::mutex mutex;
  static std::set<std::string> known;
  const std::lock_guard lock(mutex);
  for (const std::string& address : addresses) {
    if (known.contains(address)) continue;
    const size_t colon = address.rfind(':');
    if (colon == std::string::npos) return InvalidArgument(fmt::format("--rpc '{}' is not host:port", address));
    if (!Answers(address.substr(0, colon), address.substr(colon + 1))) {
      return InvalidArgument(
          fmt::format("--rpc {}: nobody answers there; start llama.cpp's rpc-server first", address));
    }
    ggml_backend_reg_t server = add_server(address.c_str());
    if (server == nullptr) {
      return InvalidArgument(
          fmt::format("--rpc {}: what answers there is not an rpc-server of this llama.cpp version", address));
    }
    ggml_backend_register(server);
    known.insert(address);
  }
  return {};
}

Result<std::vector<ggml_backend_dev_t>> FindDevices(const std::vector<std::string>& names) {
  std::vector<ggml_backend_dev_t> devices;
  if (names.size() == 1 && names[0] == "none") return devices;
  for (const std::string& name : names) {
    ggml_backend_dev_t device = ggml_backend_dev_by_name(name.c_str());
    if (device == nullptr)
      return InvalidArgument(fmt::format("device '{}' does not exist; there are: {}", name, DeviceNames()));
    devices.push_back(device);
  }
  return devices;
}

std::string DeviceSummary() {
  std::string summary;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_dev_t device = ggml_backend_dev_get(i);
    summary += fmt::format("{}{} {}", summary.empty() ? "" : ", ", ggml_backend_dev_name(device),
                           ggml_backend_dev_description(device));
  }
  return summary;
}

Result<ggml_backend_buffer_type_t> FindBufferType(const std::string& name) {
  std::string known;
  for (size_t i = 0; i < ggml_backend_dev_count(); ++i) {
    ggml_backend_buffer_type_t type = ggml_backend_dev_buffer_type(ggml_backend_dev_get(i));
    if (type == nullptr) continue;
    if (name == ggml_backend_buft_name(type)) return type;
    known += (known.empty() ? "" : ", ") + std::string(ggml_backend_buft_name(type));
  }
  return InvalidArgument(fmt::format("buffer type '{}' does not exist; there are: {}", name, known));
}

std::string LlamaVersion() {
  return llama_version();
}

uint64_t TotalMemory() {
  uint64_t bytes = 0;
  std::ifstream file("/proc/meminfo");
  for (std::string name, line; file >> name; std::getline(file, line)) {
    uint64_t kibibytes;
    if (name != "MemTotal:" || !(file >> kibibytes)) continue;
    bytes = kibibytes * 1024;
    break;
  }
  uint64_t limit;
  std::ifstream group("/sys/fs/cgroup/memory.max");  // "max" if there is no limit
  if (group >> limit) bytes = bytes == 0 ? limit : std::min(bytes, limit);
  return bytes;
}

int PhysicalCores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return std::max(1U, std::thread::hardware_concurrency());
  std::set<std::string> cores;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed)) continue;
    std::ifstream file(fmt::format("/sys/devices/system/cpu/cpu{}/topology/thread_siblings_list", cpu));
    std::string siblings = fmt::format("cpu{}", cpu);  // if the kernel does not say, each CPU counts as a core
    std::getline(file, siblings);
    cores.insert(siblings);
  }
  return std::max<int>(1, static_cast<int>(cores.size()));
}

}  // namespace outrider
