#include "apps/child_process.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <thread>

#include "base/clock.h"
#include "base/file.h"

namespace outrider {
namespace {

constexpr auto kEndTimeout = std::chrono::seconds(10);
constexpr auto kPollInterval = std::chrono::milliseconds(20);
constexpr int kNotStarted = 127;

}  // namespace

Result<std::unique_ptr<ChildProcess>> ChildProcess::Start(const std::vector<std::string>& arguments,
                                                          const std::string& log_file) {
  std::vector<char*> argv;
  for (const std::string& argument : arguments) argv.push_back(const_cast<char*>(argument.c_str()));
  argv.push_back(nullptr);
  const File log(open(log_file.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644));
  if (!log.is_open()) return InvalidArgument(fmt::format("cannot write {}: {}", log_file, std::strerror(errno)));
  const pid_t parent = getpid();
  const pid_t pid = fork();
  if (pid < 0) return Unavailable(fmt::format("cannot start {}: {}", arguments[0], std::strerror(errno)));
  if (pid > 0) setpgid(pid, pid);  // in the child too: it must hold whichever of the two runs first
  if (pid == 0) {                  // only calls that are safe after a fork
    setpgid(0, 0);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != parent) _exit(kNotStarted);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, nullptr);
    const int nothing = open("/dev/null", O_RDONLY);
    dup2(nothing, STDIN_FILENO);
    dup2(log.descriptor(), STDOUT_FILENO);
    dup2(log.descriptor(), STDERR_FILENO);
    execvp(argv[0], argv.data());
    const char* why = std::strerror(errno);
    if (write(STDERR_FILENO, why, std::strlen(why)) < 0) _exit(kNotStarted);
    _exit(kNotStarted);
  }
  return std::unique_ptr<ChildProcess>(new ChildProcess(pid, log_file));
}

ChildProcess::~ChildProcess() {
  // The signals go to its process group, so that programs it has started end too.
  if (Running()) kill(-pid_, SIGTERM);
  const TimePoint deadline = Clock::Real().Now() + kEndTimeout;
  while (Running()) {
    if (Clock::Real().Now() >= deadline) kill(-pid_, SIGKILL);
    std::this_thread::sleep_for(kPollInterval);
  }
}

bool ChildProcess::Running() {
  if (!ended_) ended_ = waitpid(pid_, nullptr, WNOHANG) != 0;
  return !ended_;
}

std::string ChildProcess::LastOutput() const {
  constexpr size_t kMaxBytes = 600;
  std::string log = ReadFile(log_file_).value_or("");
  while (log.ends_with('\n')) log.pop_back();
  if (log.size() <= kMaxBytes) return log;
  const size_t line = log.find('\n', log.size() - kMaxBytes);
  return log.substr(line == log.npos ? log.size() - kMaxBytes : line + 1);
}

double ChildProcess::PeakBytes() const {
  const std::string status = ReadFile(fmt::format("/proc/{}/status", pid_)).value_or("");
  const size_t at = status.find("VmHWM:");
  return at == status.npos ? -1 : std::strtod(status.c_str() + at + std::strlen("VmHWM:"), nullptr) * 1024;
}

Result<int> FreePort() {
  const File probe(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  if (bind(probe.descriptor(), generic, size) != 0 || getsockname(probe.descriptor(), generic, &size) != 0) {
    return Unavailable(fmt::format("no free port: {}", std::strerror(errno)));
  }
  return static_cast<int>(ntohs(address.sin_port));
}

}  // namespace outrider
